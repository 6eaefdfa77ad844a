/* test_init.c -- initial values: gains, fans, and what is made of a structure. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

static void gains_are_pytorchs(void **state)
{
    (void)state;
    static const struct {
        tern_nonlinearity of;
        double param, gain;
    } cases[] = {{TERN_NONLINEARITY_LINEAR, 0, 1},
                 {TERN_NONLINEARITY_SIGMOID, 0, 1},
                 {TERN_NONLINEARITY_TANH, 0, 1.6666666666666667},
                 {TERN_NONLINEARITY_RELU, 0, 1.4142135623730951},
                 {TERN_NONLINEARITY_LEAKY_RELU, 0, 1.4141428569978354},
                 {TERN_NONLINEARITY_LEAKY_RELU, TERN_ZERO, 1.4142135623730951},
                 {TERN_NONLINEARITY_LEAKY_RELU, 0.2, 1.3867504905630728},
                 {TERN_NONLINEARITY_SELU, 0, 0.75}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(fabs(tern_nn_init_calculate_gain(cases[i].of, cases[i].param) - cases[i].gain) <
                    1e-15);
    assert_true(isnan(tern_nn_init_calculate_gain((tern_nonlinearity)6, 0)));
    assert_error(TERN_ERR_ARGUMENT, "Unsupported nonlinearity 6");
}

/* No numbers are drawn and nothing is written; norms, which hold ones, are as always. */
static void skipped_values_are_not_written(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_rng_state before, after;
        assert_ok(tern_get_rng_state(device, &before));
        tern_tensor *x = tern_full(TERN_SHAPE(4, 4), tern_scalar_int(3), TERN_F32, device);
        TERN_SKIP_INIT
        {
            assert_ptr_equal(tern_nn_init_uniform_(x, -1, 1), x);
            assert_ptr_equal(tern_nn_init_kaiming_normal_(x, 0), x);
            assert_ptr_equal(tern_nn_init_zeros_(x), x);
            TERN_DEVICE (device) {
                tern_module *m = tern_nn_linear(3, 2, NULL);
                assert_shape(tern_nn_parameter(m, "weight"), 2, 3);
                tern_nn_free(m);
            }
        }
        assert_ok(tern_get_rng_state(device, &after));
        assert_int_equal(before.offset, after.offset);
        assert_true(tern_item(tern_min(x)) == 3);
        assert_true(tern_item(tern_max(tern_nn_init_zeros_(x))) == 0);
    }
}

/* The standard deviation that x is filled with, within 4 %. */
static void assert_std(tern_tensor *x, double std)
{
    assert_non_null(x);
    assert_true(fabs(tern_item(tern_std(x, 1)) / std - 1) < 0.04);
}

static void fans_count_what_meets_in_a_weight(void **state)
{
    (void)state;
    TERN_SCOPE {
        double in = 0, out = 0;
        tern_tensor *x = tern_empty(TERN_SHAPE(60, 20, 3, 5), TERN_F32, NULL);
        assert_ok(tern_nn_init_calculate_fan_in_and_fan_out(x, &in, &out));
        assert_true(in == 300 && out == 900);
        assert_ok(tern_nn_init_calculate_fan_in_and_fan_out(x, NULL, NULL));
        tern_init_kaiming_options o = {.mode = TERN_FAN_OUT,
                                       .nonlinearity = TERN_NONLINEARITY_RELU};
        assert_std(tern_nn_init_kaiming_normal_with_(x, &o), sqrt(2.0 / 900));
        assert_std(tern_nn_init_kaiming_uniform_with_(x, &o), sqrt(2.0 / 900));
        assert_std(tern_nn_init_kaiming_normal_with_(x, NULL), sqrt(2.0 / 300));
        o = (tern_init_kaiming_options){.a = 1};
        assert_std(tern_nn_init_kaiming_uniform_with_(x, &o), sqrt(1.0 / 300));
        o.nonlinearity = (tern_nonlinearity)6;
        assert_null(tern_nn_init_kaiming_normal_with_(x, &o));
        assert_error(TERN_ERR_ARGUMENT, "Unsupported nonlinearity 6");
        o = (tern_init_kaiming_options){.mode = (tern_fan_mode)2};
        assert_null(tern_nn_init_kaiming_uniform_with_(x, &o));
        assert_error(TERN_ERR_ARGUMENT, "mode 2 is none of tern_fan_mode");
    }
}

/* For a standard normal cut at -1 and 2: mean 0.2296, variance 0.5198 (by its formulas). */
static void truncated_numbers_stay_between_and_have_their_moments(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        TERN_SCOPE {
            tern_manual_seed(1);
            tern_tensor *x = tern_empty(TERN_SHAPE(300, 200), TERN_F32, device);
            tern_requires_grad_(x, true);
            assert_ptr_equal(tern_nn_init_trunc_normal_(x, 0, 1, -1, 2), x);
            assert_true(tern_is_leaf(x));
            double *v = test_read(x), sum = 0, squares = 0, cubes = 0;
            int64_t n = tern_numel(x);
            for (int64_t i = 0; i < n; i++) {
                assert_true(v[i] >= -1 && v[i] <= 2);
                sum += v[i] / (double)n;
                squares += v[i] * v[i] / (double)n;
                cubes += v[i] < 0 ? 1 / (double)n : 0;
            }
            free(v);
            assert_true(fabs(sum - 0.2296) < 0.01);
            assert_true(fabs(squares - sum * sum - 0.5198) < 0.01);
            assert_true(fabs(cubes - 0.34134 / 0.81859) < 0.01);
            /* A tail, in halves; and far from its mean. */
            tern_tensor *half = tern_empty(TERN_SHAPE(1000), TERN_F16, device);
            assert_non_null(tern_nn_init_trunc_normal_(half, 1, 0.5, 2, INFINITY));
            v = test_read(half);
            sum = 0;
            for (int i = 0; i < 1000; i++) {
                assert_true(v[i] >= 2 && isfinite(v[i]));
                sum += v[i] / 1000;
            }
            free(v);
            assert_true(fabs(sum - (1 + 0.5 * 2.3732)) < 0.02);
            assert_null(tern_nn_init_trunc_normal_(x, 0, 1, 2, -2));
            assert_error(TERN_ERR_ARGUMENT, "a=2.0, b=-2.0");
        }
    }
}

static void identities_and_diracs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_F32, device);
            assert_values(tern_nn_init_eye_(x), 1, 0, 0, 0, 1, 0);
            /* torch.nn.init.dirac_(torch.empty(4, 2, 3), groups=2): ones at (0,0,1), (1,1,1),
             * (2,0,1), (3,1,1). */
            x = tern_ones(TERN_SHAPE(4, 2, 3), TERN_F32, device);
            assert_values(tern_nn_init_dirac_(x, 2), 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0,
                          0, 0, 0, 0, 0, 0, 1, 0);
            x = tern_ones(TERN_SHAPE(1, 2, 2, 3), TERN_F32, device);
            assert_values(tern_nn_init_dirac_(x, 1), 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);
            assert_null(tern_nn_init_dirac_(x, 2));
            assert_error(TERN_ERR_ARGUMENT, "dim 0 must be divisible by groups");
            assert_null(tern_nn_init_eye_(x));
            assert_error(TERN_ERR_SHAPE, "Only tensors with 2 dimensions are supported");
            assert_null(tern_nn_init_dirac_(tern_ones(TERN_SHAPE(2, 2), TERN_F32, device), 1));
            assert_error(TERN_ERR_SHAPE, "Only tensors with 3, 4, or 5 dimensions are supported");
        }
    }
}

static void assert_orthonormal(tern_tensor *x, double gain, double tolerance)
{
    int64_t rows = tern_size(x, 0), columns = tern_numel(x) / rows;
    tern_tensor *flat = tern_reshape(tern_detach(x), TERN_SHAPE(rows, columns));
    if (rows > columns)
        flat = tern_t(flat);
    tern_tensor *product = tern_matmul(flat, tern_t(flat));
    tern_tensor *wanted = tern_mul_scalar(
        tern_eye(tern_size(flat, 0), tern_size(flat, 0), tern_dtype_of(x), tern_device(x)),
        tern_scalar_real(gain * gain));
    assert_close(product, wanted, .abs = tolerance);
}

static void orthogonal_rows_or_columns(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        TERN_SCOPE {
            tern_manual_seed(5);
            tern_tensor *x = tern_empty(TERN_SHAPE(70, 10, 8), TERN_F32, device);
            assert_ptr_equal(tern_nn_init_orthogonal_(x, 1), x);
            assert_orthonormal(x, 1, 1e-5);
            if (!test_thorough(device))
                continue;
            assert_orthonormal(
                tern_nn_init_orthogonal_(tern_empty(TERN_SHAPE(40, 40), TERN_F32, device), 2), 2,
                4e-5);
            if (test_has(device, TERN_F64))
                assert_orthonormal(
                    tern_nn_init_orthogonal_(tern_empty(TERN_SHAPE(50, 7), TERN_F64, device), 1), 1,
                    1e-12);
            assert_orthonormal(
                tern_nn_init_orthogonal_(tern_empty(TERN_SHAPE(3, 9), TERN_BF16, device), 1), 1,
                0.02);
            tern_tensor *none = tern_empty(TERN_SHAPE(0, 3), TERN_F32, device);
            assert_ptr_equal(tern_nn_init_orthogonal_(none, 1), none);
            assert_null(tern_nn_init_orthogonal_(tern_ones(TERN_SHAPE(3), TERN_F32, device), 1));
            assert_error(TERN_ERR_SHAPE, "Only tensors with 2 or more dimensions are supported");
        }
    }
}

static void every_column_is_as_sparse_as_asked(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        TERN_SCOPE {
            tern_manual_seed(2);
            tern_tensor *x = tern_ones(TERN_SHAPE(50, 40), TERN_F32, device);
            assert_ptr_equal(tern_nn_init_sparse_(x, 0.31, 0.5), x);
            double *v = test_read(x), squares = 0;
            int patterns = 0;
            for (int column = 0; column < 40; column++) {
                int zeros = 0;
                for (int row = 0; row < 50; row++) {
                    zeros += v[row * 40 + column] == 0;
                    squares += v[row * 40 + column] * v[row * 40 + column];
                    patterns += (v[row * 40 + column] == 0) != (v[row * 40] == 0);
                }
                assert_int_equal(zeros, 16);
            }
            free(v);
            assert_true(fabs(sqrt(squares / (34 * 40)) - 0.5) < 0.05);
            assert_true(patterns > 100); /* columns differ */
            assert_null(tern_nn_init_sparse_(x, 1.5, 1));
            assert_error(TERN_ERR_ARGUMENT, "expected sparsity between 0 and 1, but got 1.5");
        }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(gains_are_pytorchs),
    TEST(skipped_values_are_not_written),
    TEST(fans_count_what_meets_in_a_weight),
    TEST(truncated_numbers_stay_between_and_have_their_moments),
    TEST(identities_and_diracs),
    TEST(orthogonal_rows_or_columns),
    TEST(every_column_is_as_sparse_as_asked),
};
TEST_MAIN(tests)
