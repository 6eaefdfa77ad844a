/* test_memory.c -- the caching allocator: classes, reuse, numbers, retries, words of refusal. */
#include "support.h"
#include "base/memory.h"
#include "device/device.h"

static tern_memory_stats stats_of(const char *device)
{
    tern_memory_stats stats = {0};
    assert_ok(tern_memory_get_stats(device, &stats));
    return stats;
}

static void at_most_an_eighth_of_a_block_is_unused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = tern_place_find(device, "test");
        for (size_t bytes = 1; bytes < 3000000; bytes += bytes < 3000 ? 1 : bytes / 3) {
            tern_block *block = tern_block_alloc(place, bytes, "test");
            assert_non_null(block);
            assert_int_equal(block->used, bytes);
            assert_in_range(block->buffer.bytes, bytes, bytes <= 64 ? 64 : bytes + bytes / 8 + 1);
            tern_block_free(block);
        }
        assert_ok(tern_empty_cache(device));
    }
}

static void a_freed_block_is_used_again(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        assert_ok(tern_empty_cache(device));
        TERN_SCOPE {
            tern_zeros(TERN_SHAPE(1000), TERN_F32, device);
        }
        tern_memory_stats before = stats_of(device);
        for (int i = 0; i < 10; i++)
            TERN_SCOPE {
                tern_zeros(TERN_SHAPE(1000 - i), TERN_F32, device);
            }
        tern_memory_stats after = stats_of(device);
        assert_int_equal(after.driver_calls, before.driver_calls);
        assert_int_equal(after.allocations, before.allocations + 10);
        assert_int_equal(after.reserved, before.reserved);
    }
}

static void the_numbers_add_up(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        assert_ok(tern_empty_cache(device));
        assert_ok(tern_reset_peak_memory_stats(device));
        tern_memory_stats start = stats_of(device);
        assert_int_equal(start.allocated_peak, start.allocated);
        TERN_SCOPE {
            assert_non_null(tern_zeros(TERN_SHAPE(100), TERN_F32, device));
            assert_int_equal(stats_of(device).allocated, start.allocated + 400);
            assert_true(stats_of(device).reserved >= start.reserved + 400);
        }
        tern_memory_stats end = stats_of(device);
        assert_int_equal(end.allocated, start.allocated);
        assert_int_equal(end.allocated_peak, start.allocated + 400);
        assert_ok(tern_reset_peak_memory_stats(device));
        assert_int_equal(stats_of(device).allocated_peak, start.allocated);
        assert_ok(tern_empty_cache(device));
        assert_int_equal(stats_of(device).reserved, start.reserved);
    }
}

static void copies_are_counted(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        float data[100] = {0};
        tern_memory_stats before = stats_of(device);
        TERN_SCOPE {
            tern_tensor *x = tern_from_data(data, TERN_SHAPE(100), TERN_F32, device);
            assert_ok(tern_copy_to_host(x, data, sizeof data));
        }
        tern_memory_stats after = stats_of(device);
        if (strcmp(device, "cpu") == 0)
            continue; /* there is no other side */
        assert_int_equal(after.to_device_bytes, before.to_device_bytes + 400);
        assert_int_equal(after.to_host_bytes, before.to_host_bytes + 400);
    }
}

static void live_bytes_are_flat_over_a_training_loop(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(32, 64), -1, 1, 1);
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(32, 64), -1, 1, 2);
        tern_tensor *ones = tern_ones(TERN_SHAPE(32, 64), TERN_F32, device);
        tern_requires_grad_(w, true);
        tern_memory_stats warm = {0};
        int64_t live = 0;
        for (int step = 0; step < 30; step++) {
            TERN_SCOPE {
                tern_tensor *y = tern_tanh(tern_mul(tern_exp(tern_mul(x, w)), w));
                assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = ones}));
                TERN_NO_GRAD
                    tern_sub_(w, tern_mul_scalar(tern_grad(w), TERN_SCALAR(1e-3)));
                assert_ok(tern_set_grad(w, NULL));
            }
            if (step == 3) {
                warm = stats_of(device);
                live = tern_live_tensors();
            }
        }
        tern_memory_stats end = stats_of(device);
        assert_int_equal(end.allocated, warm.allocated);
        assert_int_equal(end.reserved, warm.reserved);
        assert_int_equal(end.driver_calls, warm.driver_calls);
        assert_int_equal(tern_live_tensors(), live);
    }
}

static void a_failed_driver_call_empties_the_cache_and_tries_again(void **state)
{
    (void)state;
    tern_place *place = tern_place_find("cpu", "test");
    assert_ok(tern_empty_cache("cpu"));
    tern_memory_stats start = stats_of("cpu");
    tern_block_free(tern_block_alloc(place, 100000, "test"));
    assert_true(stats_of("cpu").reserved >= start.reserved + 100000);
    tern_memory_fail_at(2); /* 1 is the block's struct, 2 the driver's first answer */
    tern_block *block = tern_block_alloc(place, 5000000, "test");
    tern_memory_fail_at(0);
    assert_non_null(block);
    assert_no_error();
    assert_int_equal(stats_of("cpu").reserved, start.reserved + block->buffer.bytes);
    tern_block_free(block);
}

static void too_much_is_refused_with_numbers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_memory_stats before = stats_of(device);
        assert_null(tern_empty(TERN_SHAPE(INT64_C(1) << 50), TERN_F32, device));
        assert_error(TERN_ERR_MEMORY, "tried to allocate 4503599627370496 bytes");
        assert_null(tern_empty(TERN_SHAPE(INT64_C(1) << 62, 4), TERN_F32, device));
        assert_error(TERN_ERR_SHAPE, "Storage size calculation overflowed with sizes=");
        assert_null(tern_empty(TERN_SHAPE(INT64_C(1) << 31, INT64_C(1) << 31, 4), TERN_U8, device));
        assert_error(TERN_ERR_SHAPE, "Storage size calculation overflowed with sizes=");
        tern_memory_stats after = stats_of(device);
        assert_int_equal(after.allocated, before.allocated);
        tern_tensor *small = tern_ones(TERN_SHAPE(2), TERN_F32, device);
        assert_values(small, 1, 1); /* and the device still works */
    }
}

static void overflowing_shapes_are_refused_in_any_order(void **state)
{
    (void)state;
    int64_t big = INT64_C(1) << 62;
    assert_null(tern_empty(TERN_SHAPE(0, big, big), TERN_F32, NULL));
    assert_error(TERN_ERR_SHAPE, "overflowed");
    assert_null(tern_empty(TERN_SHAPE(big, big, 0), TERN_F32, NULL));
    assert_error(TERN_ERR_SHAPE, "overflowed");
}

static void empty_tensors_own_no_memory_and_launch_nothing(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_memory_stats before = stats_of(device);
        tern_tensor *x = tern_zeros(TERN_SHAPE(3, 0), TERN_F32, device);
        tern_tensor *y = tern_exp(tern_add(x, x));
        assert_shape(y, 3, 0);
        tern_memory_stats after = stats_of(device);
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.launches, before.launches);
    }
}

static void copies_that_need_not_wait_are_copies(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(7, 5), -1, 1, 1);
        tern_tensor *turned = tern_transpose(x, 0, 1), *pinned = tern_pin_memory(turned);
        assert_int_equal(tern_is_pinned(pinned), tern_device_count("cuda") > 0);
        assert_same(pinned, turned);
        assert_ptr_equal(tern_pin_memory(pinned), pinned);
        tern_tensor *y = tern_to_non_blocking(pinned, device), *z = tern_zeros_like(y);
        assert_string_equal(tern_device(y), tern_device_canonical(device));
        assert_same(y, turned);
        assert_same(tern_to_non_blocking(x, device), x);
        assert_ptr_equal(tern_copy_non_blocking_(z, pinned), z);
        assert_same(z, turned);
        assert_same(tern_to_non_blocking(y, "cpu"), turned);
        assert_int_equal(tern_numel(tern_pin_memory(tern_zeros(TERN_SHAPE(0), 0, "cpu"))), 0);
        if (strcmp(device, "cpu") != 0) {
            assert_false(tern_is_pinned(y));
            assert_null(tern_pin_memory(y));
            assert_error(TERN_ERR_DEVICE, "only dense CPU tensors can be pinned");
        }
        assert_null(tern_pin_memory(NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_pin_memory");
        assert_null(tern_to_non_blocking(NULL, device));
        assert_error(TERN_ERR_ARGUMENT, "tern_to_non_blocking");
        assert_null(tern_copy_non_blocking_(z, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_copy_non_blocking_");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(copies_that_need_not_wait_are_copies),
    TEST(at_most_an_eighth_of_a_block_is_unused),
    TEST(a_freed_block_is_used_again),
    TEST(the_numbers_add_up),
    TEST(copies_are_counted),
    TEST(live_bytes_are_flat_over_a_training_loop),
    TEST(a_failed_driver_call_empties_the_cache_and_tries_again),
    TEST(too_much_is_refused_with_numbers),
    TEST(overflowing_shapes_are_refused_in_any_order),
    TEST(empty_tensors_own_no_memory_and_launch_nothing),
};
TEST_MAIN(tests)
