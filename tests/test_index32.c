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

static void launches_are_narrow_up_to_the_dims_that_such_kernels_know(void **state)
{
    (void)state;
    for (int ndim = 0; ndim <= TERN_ND_DIMS; ndim++) {
        tern_nd_index w = {.rows = 1, .inner = 1, .ndim = ndim};
        tern_transposition t = {.planes = w};
        tern_scatter_shape s = {.nd = w};
        const bool few = ndim <= TERN_ND_LOW;
        assert_int_equal(narrow_with(TERN_ARG_STRUCT(tern_nd_index, &w)), few);
        assert_int_equal(narrow_with(TERN_ARG_STRUCT(tern_transposition, &t)), few);
        assert_int_equal(narrow_with(TERN_ARG_STRUCT(tern_scatter_shape, &s)), few);
    }
}

/* ---- quotients by products ----------------------------------------------------------------- */

static void assert_quotients_by(int64_t n)
{
    tern_nd_index w = {.rows = 1, .inner = 1, .dim = {1, n}, .ndim = 2};
    tern_nd_index_derive(&w, 0);
    const int64_t last = INT32_MAX / n * n,
                  some[] = {0, 1, n, 7 * n, last / 2 / n * n, last - n, last};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (int64_t q = some[i] - 1; q <= some[i] + 1; q++) {
            if (q < 0 || q > INT32_MAX)
                continue;
            const u32 got = (u32)((uint64_t)((u32)q << 1) * w.factor[1] >> 32) >> w.shift[1];
            assert_int_equal(got, q / n);
        }
}

static void quotients_by_products_are_exact(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 5000; n++)
        assert_quotients_by(n);
    for (int bits = 12; bits < 31; bits++)
        for (int64_t by = -3; by <= 3; by++)
            assert_quotients_by((INT64_C(1) << bits) + by);
    for (int64_t n = 5000; n < INT32_MAX; n += n / 97)
        assert_quotients_by(n);
    assert_quotients_by(INT32_MAX);
}

static void rows_that_begin_at_fours_are_known(void **state)
{
    (void)state;
    const struct {
        tern_nd_index w;
        int fours;
    } rows[] = {
        {{.rows = 1, .inner = 7}, 0x33},
        {{.rows = 2, .inner = 8, .dim = {2}, .stride = {{8}, {12}}, .ndim = 1}, 0x13},
        {{.rows = 2, .inner = 8, .dim = {2}, .stride = {{8}, {9}}, .ndim = 1}, 0x11},
        {{.rows = 6, .inner = 8, .dim = {2, 3}, .stride = {{24, 10}, {0, 8}}, .ndim = 2}, 0x22},
        {{.rows = 2, .inner = 7, .dim = {2}, .stride = {{8}, {8}}, .ndim = 1}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_nd_index w = rows[i].w;
        tern_nd_index_derive(&w, 2);
        assert_int_equal(w.fours, rows[i].fours);
    }
}

/* As many groups as fill a GPU, and beyond that two vectors of 16 bytes a lane of the widest tensor. */
static void lanes_have_two_vectors_of_the_widest_tensor(void **state)
{
    (void)state;
    static tern_buffer buffer;
    const struct {
        tern_dtype dtypes[2];
        int64_t count, groups;
    } rows[] = {
        {{TERN_BF16, TERN_BF16}, 0, 0},
        {{TERN_BF16, TERN_BF16}, 257, 2},
        {{TERN_BF16, TERN_BF16}, 1000 * 256 * 16, 1000},
        {{TERN_BF16, TERN_BF16}, 1001 * 256 * 16 + 1, 1002},
        {{TERN_F32, TERN_BF16}, 1000 * 256 * 16, 2000},
        {{TERN_BOOL, TERN_F64}, 1000 * 256 * 16, 4000},
        {{TERN_BOOL, TERN_U8}, 1000 * 256 * 16, 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tern_arg args[] = {tern_arg_buffer(TERN_ROLE_OUT, rows[i].dtypes[0], &buffer, 0),
                                 tern_arg_buffer(TERN_ROLE_IN, rows[i].dtypes[1], &buffer, 0),
                                 tern_arg_i64(7)};
        const tern_grid grid = tern_items(rows[i].count);
        assert_int_equal(tern_flat_groups(&grid, args, 3, 256, 1000), rows[i].groups);
    }
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
            /* Rows of up to 256 elements have programs of their own. */
            assert_close(sums_on(device, 300), sums_on("cpu", 300), .abs = 1e-4, .rel = 1e-5);
            int small = programs_of(device);
            assert_close(sums_on(device, 500), sums_on("cpu", 500), .abs = 1e-4, .rel = 1e-5);
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

/* Tensors of ndim dims of 3, 5 and 2, turned around, of which no two merge. */
static tern_tensor *turned(const char *device, int ndim, double from)
{
    tern_shape size = {.ndim = ndim}, order = size;
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) {
        size.dims[d] = (int64_t[]){3, 5, 2}[d % 3];
        order.dims[d] = ndim - 1 - d;
        n *= size.dims[d];
    }
    tern_tensor *x = tern_arange(from, from + (double)n, 1.0, TERN_F32, "cpu");
    x = tern_remainder(x, 13.0); /* sums that are exact, whatever their order */
    return tern_permute(tern_view(tern_to(x, device), size), order);
}

/* A sum of what kernels that copy, choose, fill and write by an index make of them. */
static tern_tensor *moved(const char *device, int ndim)
{
    tern_tensor *x = turned(device, ndim, 1), *y = turned(device, ndim, -9);
    tern_tensor *copy = tern_contiguous(x), *index = tern_to_dtype(tern_gt(y, 5), TERN_I64);
    tern_tensor *chosen = tern_where(tern_gt(x, 7), y, copy), *rest = turned(device, ndim, 3);
    tern_fill_(tern_narrow(rest, 0, 0, 1), 0.25);
    chosen = tern_addcmul(tern_mul(chosen, rest), x, y, 0.5);
    return tern_scatter_add(chosen, 0, index, x);
}

static void any_number_of_dims_gives_the_same(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int ndim = 1; ndim <= 9; ndim++)
        TERN_SCOPE
            assert_close(moved(device, ndim), moved("cpu", ndim), .abs = 0, .rel = 0);
}

static const struct CMUnitTest tests[] = {
    TEST(launches_are_narrow_up_to_the_limit),
    TEST(launches_are_narrow_up_to_the_dims_that_such_kernels_know),
    TEST(quotients_by_products_are_exact),
    TEST(rows_that_begin_at_fours_are_known),
    TEST(lanes_have_two_vectors_of_the_widest_tensor),
    TEST(any_number_of_dims_gives_the_same),
    TEST(a_second_program_only_beyond_the_limit),
    TEST(places_of_many_windows_are_right)};
TEST_MAIN(tests)
