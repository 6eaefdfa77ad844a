/* test_index32.c -- kernels with indices of 32 bits: which launches take them, and that both kinds give the same. */
#include "device/device.h"
#include "device/index32.h"
#include "support.h"
#include "types_host.h"

#include "shapes.h"

/* ---- which launches ------------------------------------------------------------------------ */

static bool narrow_with(tern_arg arg)
{
    return tern_fits_index32(&arg, 1, 1);
}

static void launches_are_narrow_up_to_the_limit(void **state)
{
    (void)state;
    const int64_t limit = tern_index32_limit;
    assert_true(limit == INT64_C(1) << 30);
    for (int64_t by = -1; by <= 1; by++) {
        tern_buffer halves = {.bytes = (size_t)(limit + by) * 2},
                    reals = {.bytes = (size_t)(limit + by) * 4};
        tern_pool_shape pool = {.planes = 1};
        pool.stride[1] = limit + by;
        assert_int_equal(narrow_with(tern_arg_buffer(TERN_ROLE_IN, TERN_F32, &reals, 0)), by < 0);
        assert_int_equal(narrow_with(tern_arg_buffer(TERN_ROLE_OUT, TERN_F16, &halves, 0)), by < 0);
        assert_int_equal(narrow_with(tern_arg_i64(limit + by)), by < 0);
        assert_int_equal(narrow_with(tern_arg_i64(-limit - by)), by < 0);
        assert_int_equal(narrow_with(TERN_ARG_STRUCT(tern_pool_shape, &pool)), by < 0);
        assert_int_equal(tern_fits_index32(NULL, 0, limit + by), by < 0);
    }
    assert_true(narrow_with(tern_arg_f32(1e30f))); /* no sizes */
    assert_true(narrow_with(tern_arg_u64(UINT64_MAX)));
}

/* ---- what they compute --------------------------------------------------------------------- */

static int programs_of(const char *device)
{
    tern_memory_stats stats = {0};
    tern_memory_get_stats(device, &stats);
    return (int)(stats.programs_built + stats.programs_loaded);
}

/* Sum of (x + x) sin x by rows, of n columns. */
static tern_tensor *sums_on(const char *device, int64_t n)
{
    tern_tensor *x = tern_to(tern_linspace(-3, 5, 3 * n, TERN_F32, "cpu"), device);
    x = tern_transpose(tern_view(x, TERN_SHAPE(n, 3)), 0, 1);
    return tern_sum_dim(tern_mul(tern_add(x, x), tern_sin(x)), TERN_DIMS(1), false);
}

static void a_second_program_only_beyond_the_limit(void **state)
{
    (void)state;
    const int64_t limit = tern_index32_limit;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = tern_place_find(device, "test");
        assert_non_null(place);
        tern_index32_limit = 2000;
        TERN_SCOPE {
            assert_close(sums_on(device, 100), sums_on("cpu", 100), .abs = 1e-4, .rel = 1e-5);
            int small = programs_of(device);
            assert_close(sums_on(device, 300), sums_on("cpu", 300), .abs = 1e-4, .rel = 1e-5);
            assert_int_equal(programs_of(device), small);
            assert_close(sums_on(device, 1000), sums_on("cpu", 1000), .abs = 1e-3, .rel = 1e-5);
            int more = programs_of(device) - small;
            assert_int_equal(more > 0, tern_place_is_grouped(place));
            assert_close(sums_on(device, 900), sums_on("cpu", 900), .abs = 1e-3, .rel = 1e-5);
            assert_int_equal(programs_of(device), small + more);
        }
        tern_index32_limit = limit;
    }
}

/* A window's place along a dim is found by a product that 32 bits do not hold. */
static void places_of_many_windows_are_right(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const int64_t n = 50000;
        tern_tensor *x = tern_to(tern_linspace(0, 1, n, TERN_F32, "cpu"), device);
        x = tern_requires_grad_(tern_view(x, TERN_SHAPE(1, 1, n)), true);
        tern_tensor *y = tern_adaptive_avg_pool1d(x, TERN_DIMS(n - 1));
        tern_backward(tern_sum(y));
        tern_tensor *there = tern_to(tern_detach(x), "cpu");
        tern_requires_grad_(there, true);
        tern_tensor *expected = tern_adaptive_avg_pool1d(there, TERN_DIMS(n - 1));
        tern_backward(tern_sum(expected));
        assert_close(y, expected, .abs = 1e-6, .rel = 1e-5);
        assert_close(tern_grad(x), tern_grad(there), .abs = 1e-6, .rel = 1e-5);
    }
}

static const struct CMUnitTest tests[] = {TEST(launches_are_narrow_up_to_the_limit),
                                          TEST(a_second_program_only_beyond_the_limit),
                                          TEST(places_of_many_windows_are_right)};
TEST_MAIN(tests)
