/* test_random.c -- Philox's numbers to the bit, on every device; distributions; dropout. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

/* Philox 4x32-10 once more, from the paper's description. */
static void philox(uint64_t counter, uint64_t key, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    memcpy(out, c, sizeof c);
}

static uint32_t word(uint64_t seed, uint64_t first_group, int64_t i)
{
    uint32_t w[4];
    philox(first_group + (uint64_t)i / 4, seed, w);
    return w[i % 4];
}

static void seed_zero_gives_the_published_words(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_manual_seed(0);
        tern_tensor *x = tern_randint(0, INT64_C(1) << 32, TERN_SHAPE(4), TERN_I64, device);
        int64_t words[4];
        assert_ok(tern_copy_to_host(x, words, sizeof words));
        assert_int_equal(words[0], 0x6627e8d5);
        assert_int_equal(words[1], 0xe169c58d);
        assert_int_equal(words[2], 0xbc57ac4c);
        assert_int_equal(words[3], 0x9b00dbd8);
    }
}

static void uniforms_are_the_words_to_the_bit(void **state)
{
    (void)state;
    const uint64_t seed = 0x123456789abcdef0;
    FOR_EACH_DEVICE(device)
    {
        for (int64_t n = 1; n < 70; n += n < 9 ? 1 : 29) {
            tern_manual_seed(seed);
            uint64_t group = 0;
            tern_rand(TERN_SHAPE(5), TERN_F32, device); /* two groups */
            group += 2;
            double *x = test_read(tern_rand(TERN_SHAPE(n), TERN_F32, device));
            for (int64_t i = 0; i < n; i++)
                assert_true(x[i] == (word(seed, group, i) >> 8) * 0x1p-24);
            group += (uint64_t)(n + 3) / 4;
            if (test_has(device, TERN_F64)) {
                double *y = test_read(tern_rand(TERN_SHAPE(n), TERN_F64, device));
                for (int64_t i = 0; i < n; i++) {
                    uint64_t bits =
                        (uint64_t)word(seed, group, 2 * i) << 32 | word(seed, group, 2 * i + 1);
                    assert_true(y[i] == (double)(bits >> 11) * 0x1p-53);
                }
                free(y);
                group += (uint64_t)(n + 1) / 2;
            }
            tern_rng_state now;
            assert_ok(tern_get_rng_state(device, &now));
            assert_int_equal(now.offset, group);
            assert_int_equal(now.seed, seed);
            free(x);
        }
    }
}

static void halves_stay_below_one(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const tern_dtype dtypes[] = {TERN_F16, TERN_BF16};
        for (int d = 0; d < 2; d++) {
            double *x = test_read(tern_rand(TERN_SHAPE(20000), dtypes[d], device));
            for (int i = 0; i < 20000; i++)
                assert_true(x[i] >= 0 && x[i] < 1);
            free(x);
        }
    }
}

static void normals_are_box_and_muller_s(void **state)
{
    (void)state;
    const double two_pi = 6.283185307179586;
    FOR_EACH_DEVICE(device)
    {
        tern_manual_seed(7);
        double *x = test_read(tern_randn(TERN_SHAPE(1003), TERN_F32, device));
        for (int64_t i = 0; i < 1003; i++) {
            double u = (word(7, 0, i / 2 * 2) >> 8) * 0x1p-24;
            double v = (word(7, 0, i / 2 * 2 + 1) >> 8) * 0x1p-24;
            double want = sqrt(-2 * log(1 - u)) * (i % 2 ? sin(two_pi * v) : cos(two_pi * v));
            assert_true(fabs(x[i] - want) < 3e-6);
        }
        free(x);
        if (!test_has(device, TERN_F64))
            continue;
        tern_manual_seed(7);
        double *y = test_read(tern_randn(TERN_SHAPE(101), TERN_F64, device));
        for (int64_t i = 0; i < 101; i++) {
            double unit[2];
            for (int k = 0; k < 2; k++) {
                int64_t at = i / 2 * 4 + 2 * k;
                uint64_t bits = (uint64_t)word(7, 0, at) << 32 | word(7, 0, at + 1);
                unit[k] = (double)(bits >> 11) * 0x1p-53;
            }
            double want = sqrt(-2 * log(1 - unit[0])) *
                          (i % 2 ? sin(two_pi * unit[1]) : cos(two_pi * unit[1]));
            assert_true(fabs(y[i] - want) < 1e-13);
        }
        free(y);
    }
}

static void normals_have_mean_0_and_variance_1(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_manual_seed(1);
        tern_tensor *x = tern_randn(TERN_SHAPE(400000), TERN_F32, device);
        assert_true(fabs(tern_item(tern_mean(x))) < 0.01);
        assert_true(fabs(tern_item(tern_var(x, 1)) - 1) < 0.01);
        tern_tensor *y = tern_empty(TERN_SHAPE(400000), TERN_F32, device);
        assert_ptr_equal(tern_normal_(y, 3, 0.5), y);
        assert_true(fabs(tern_item(tern_mean(y)) - 3) < 0.01);
        assert_true(fabs(tern_item(tern_std(y, 1)) - 0.5) < 0.01);
        assert_ptr_equal(tern_uniform_(y, -2, 4), y);
        assert_true(tern_item(tern_min(y)) >= -2 && tern_item(tern_max(y)) <= 4);
        assert_true(fabs(tern_item(tern_mean(y)) - 1) < 0.02);
    }
}

static void the_same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    tern_manual_seed(99);
    tern_tensor *first = tern_randn(TERN_SHAPE(333), TERN_F32, "cpu");
    tern_tensor *order = tern_randperm(50, TERN_I64, "cpu");
    FOR_EACH_DEVICE(device)
    {
        tern_manual_seed(99);
        assert_same(tern_randn(TERN_SHAPE(333), TERN_F32, device), first);
        assert_same(tern_randperm(50, TERN_I64, device), order);
        tern_rng_state here;
        assert_ok(tern_get_rng_state(device, &here));
        tern_tensor *a = tern_rand(TERN_SHAPE(9), TERN_F32, device);
        assert_ok(tern_set_rng_state(device, &here));
        assert_same(tern_rand_like(a), a);
    }
}

static void randint_covers_its_range(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const tern_dtype dtypes[] = {TERN_I64, TERN_I32, TERN_U8, TERN_F32};
        for (int d = 0; d < 4; d++) {
            tern_tensor *x = tern_randint(3, 10, TERN_SHAPE(5000), dtypes[d], device);
            assert_int_equal(tern_dtype_of(x), dtypes[d]);
            int seen[10] = {0};
            double *v = test_read(x);
            for (int i = 0; i < 5000; i++) {
                assert_true(v[i] >= 3 && v[i] < 10 && v[i] == floor(v[i]));
                seen[(int)v[i]]++;
            }
            for (int k = 3; k < 10; k++)
                assert_true(seen[k] > 550 && seen[k] < 900);
            free(v);
        }
        tern_tensor *wide = tern_randint(INT64_MIN, INT64_MAX, TERN_SHAPE(200), 0, device);
        assert_true(tern_item(tern_min(wide)) < -8e18 && tern_item(tern_max(wide)) > 8e18);
        assert_null(tern_randint(5, 5, TERN_SHAPE(2), 0, device));
        assert_error(TERN_ERR_ARGUMENT, "random_ expects 'from' to be less than 'to'");
        assert_null(tern_randint(0, 300, TERN_SHAPE(2), TERN_U8, device));
        assert_error(TERN_ERR_ARGUMENT, "to - 1 (299) is out of bounds for uint8");
    }
}

static void randperm_is_an_order(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        double *x = test_read(tern_randperm(1000, TERN_I32, device));
        int seen[1000] = {0}, at_home = 0;
        for (int i = 0; i < 1000; i++) {
            seen[(int)x[i]]++;
            at_home += x[i] == i;
        }
        for (int i = 0; i < 1000; i++)
            assert_int_equal(seen[i], 1);
        assert_true(at_home < 10);
        free(x);
        assert_int_equal(tern_numel(tern_randperm(0, 0, device)), 0);
        assert_null(tern_randperm(-1, 0, device));
        assert_error(TERN_ERR_SHAPE, "negative dimension -1");
    }
}

static void dropout_zeroes_a_share_and_scales_the_rest(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_manual_seed(5);
        tern_tensor *x = tern_ones(TERN_SHAPE(100, 101), TERN_F32, device);
        tern_requires_grad_(x, true);
        tern_tensor *y = tern_dropout(x, 0.25, true);
        double *v = test_read(y);
        int dropped = 0;
        for (int64_t i = 0; i < 10100; i++) {
            bool drop = (word(5, 0, i) >> 8) * 0x1p-24 < 0.25;
            assert_true(drop ? v[i] == 0 : v[i] == (double)(float)(1 / 0.75));
            dropped += drop;
        }
        assert_true(dropped > 2300 && dropped < 2750);
        free(v);
        assert_ok(tern_backward(tern_sum(y)));
        assert_same(tern_grad(x), y);
        assert_ptr_equal(tern_dropout(x, 0.5, false), x);
        assert_ptr_equal(tern_dropout(x, 0, true), x);
        assert_true(tern_item(tern_max(tern_dropout(x, 1, true))) == 0);
        assert_null(tern_dropout(x, 2, true));
        assert_error(TERN_ERR_ARGUMENT, "dropout probability has to be between 0 and 1, but got 2");
    }
}

static void what_can_not_be_drawn_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
    assert_null(tern_rand(TERN_SHAPE(2), TERN_I64, "cpu"));
    assert_error(TERN_ERR_DTYPE, "tern_rand: not implemented for int64");
    assert_null(tern_uniform_(x, 1, 0));
    assert_error(TERN_ERR_ARGUMENT, "found from=1 > to=0");
    assert_null(tern_normal_(x, 0, -1));
    assert_error(TERN_ERR_ARGUMENT, "normal expects std >= 0.0, but found std -1");
    assert_values(x, 0, 0, 0);
    assert_null(tern_uniform_(NULL, 0, 1));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
}

static const struct CMUnitTest tests[] = {
    TEST(seed_zero_gives_the_published_words),
    TEST(uniforms_are_the_words_to_the_bit),
    TEST(halves_stay_below_one),
    TEST(normals_are_box_and_muller_s),
    TEST(normals_have_mean_0_and_variance_1),
    TEST(the_same_seed_gives_the_same_numbers),
    TEST(randint_covers_its_range),
    TEST(randperm_is_an_order),
    TEST(dropout_zeroes_a_share_and_scales_the_rest),
    TEST(what_can_not_be_drawn_is_refused),
};
TEST_MAIN(tests)
