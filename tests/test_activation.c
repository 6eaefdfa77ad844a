/* test_activation.c -- modules without weights: how they print, and that they are their functions;
 * dropout of channels and around selu's mean. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

static void assert_prints(tern_module *m, const char *expected)
{
    char *text = tern_nn_to_text(m);
    assert_no_error();
    assert_string_equal(text, expected);
    tern_free_text(text);
    tern_nn_free(m);
}

static void modules_print_as_in_pytorch(void **state)
{
    (void)state;
    const struct {
        tern_module *m;
        const char *text;
    } rows[] = {
        {tern_nn_elu(NULL), "ELU(alpha=1.0)"},
        {tern_nn_celu(&(tern_celu_options){.alpha = 2}), "CELU(alpha=2.0)"},
        {tern_nn_selu(), "SELU()"},
        {tern_nn_hardshrink(NULL), "Hardshrink(0.5)"},
        {tern_nn_softshrink(&(tern_softshrink_options){.lambd = TERN_ZERO}), "Softshrink(0.0)"},
        {tern_nn_hardtanh(NULL), "Hardtanh(min_val=-1.0, max_val=1.0)"},
        {tern_nn_hardtanh(&(tern_hardtanh_options){.min_val = TERN_ZERO, .max_val = 6}),
         "Hardtanh(min_val=0.0, max_val=6.0)"},
        {tern_nn_log_sigmoid(), "LogSigmoid()"},
        {tern_nn_prelu(NULL), "PReLU(num_parameters=1)"},
        {tern_nn_rrelu(NULL), "RReLU(lower=0.125, upper=0.3333333333333333)"},
        {tern_nn_relu6(), "ReLU6()"},
        {tern_nn_softplus(NULL), "Softplus(beta=1, threshold=20)"},
        {tern_nn_softsign(), "Softsign()"},
        {tern_nn_threshold(0.1, 20), "Threshold(threshold=0.1, value=20)"},
        {tern_nn_tanhshrink(), "Tanhshrink()"},
        {tern_nn_glu(-1), "GLU(dim=-1)"},
        {tern_nn_softmin(1), "Softmin(dim=1)"},
        {tern_nn_softmax2d(), "Softmax2d()"},
        {tern_nn_hardsigmoid(), "Hardsigmoid()"},
        {tern_nn_hardswish(), "Hardswish()"},
        {tern_nn_mish(), "Mish()"},
        {tern_nn_flatten_dims(0, 2), "Flatten(start_dim=0, end_dim=2)"},
        {tern_nn_unflatten(1, TERN_SHAPE(2, 5)), "Unflatten(dim=1, unflattened_size=(2, 5))"},
        {tern_nn_dropout1d(NULL), "Dropout1d(p=0.5, inplace=False)"},
        {tern_nn_dropout2d(&(tern_dropout_options){.p = 0.2}), "Dropout2d(p=0.2, inplace=False)"},
        {tern_nn_dropout3d(NULL), "Dropout3d(p=0.5, inplace=False)"},
        {tern_nn_alpha_dropout(NULL), "AlphaDropout(p=0.5, inplace=False)"},
        {tern_nn_inplace(tern_nn_relu()), "ReLU(inplace=True)"},
        {tern_nn_inplace(tern_nn_inplace(tern_nn_mish())), "Mish(inplace=True)"},
        {tern_nn_inplace(tern_nn_hardswish()), "Hardswish()"},
        {tern_nn_elu(&(tern_elu_options){.inplace = true}), "ELU(alpha=1.0, inplace=True)"},
        {tern_nn_hardtanh(&(tern_hardtanh_options){.inplace = true}),
         "Hardtanh(min_val=-1.0, max_val=1.0, inplace=True)"},
        {tern_nn_inplace(tern_nn_threshold(0.1, 20)),
         "Threshold(threshold=0.1, value=20, inplace=True)"},
        {tern_nn_dropout2d(&(tern_dropout_options){.p = 0.2, .inplace = true}),
         "Dropout2d(p=0.2, inplace=True)"},
        {tern_nn_feature_alpha_dropout(NULL), "FeatureAlphaDropout(p=0.5, inplace=False)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_prints(rows[i].m, rows[i].text);
}

/* PyTorch's values of the defaults at these four. */
static void activations_are_pytorch_s(void **state)
{
    (void)state;
    const struct {
        tern_module *m;
        double y[4];
    } rows[] = {
        {tern_nn_relu6(), {0.0, 0.0, 0.75, 3.0}},
        {tern_nn_mish(), {-0.252501483, -0.129926964, 0.610018335, 2.986535005}},
        {tern_nn_selu(), {-1.520166469, -0.388890197, 0.788025741, 3.152102962}},
        {tern_nn_hardsigmoid(), {0.166666667, 0.458333333, 0.625, 1.0}},
        {tern_nn_hardswish(), {-0.333333333, -0.114583333, 0.46875, 3.0}},
        {tern_nn_log_sigmoid(), {-2.126928011, -0.82593942, -0.386871006, -0.048587352}},
        {tern_nn_softsign(), {-0.666666667, -0.2, 0.428571429, 0.75}},
        {tern_nn_tanhshrink(), {-1.03597242, -0.005081338, 0.114851048, 2.004945246}},
        {tern_nn_softmin(-1), {0.803574459, 0.139640303, 0.051370796, 0.005414442}},
        {tern_nn_elu(&(tern_elu_options){.alpha = 0.5}), {-0.432332358, -0.110599608, 0.75, 3.0}},
        {tern_nn_celu(&(tern_celu_options){.alpha = 0.5}), {-0.490842181, -0.19673467, 0.75, 3.0}},
        {tern_nn_hardshrink(NULL), {-2.0, 0.0, 0.75, 3.0}},
        {tern_nn_softshrink(NULL), {-1.5, 0.0, 0.25, 2.5}},
        {tern_nn_hardtanh(NULL), {-1.0, -0.25, 0.75, 1.0}},
        {tern_nn_rrelu(NULL), {-0.458333333, -0.057291667, 0.75, 3.0}},
        {tern_nn_softplus(&(tern_softplus_options){.beta = 2, .threshold = 5}),
         {0.009074964, 0.237038492, 0.850706639, 3.0}},
        {tern_nn_threshold(0.5, -7), {-7.0, -7.0, 0.75, 3.0}},
        {tern_nn_prelu(NULL), {-0.5, -0.0625, 0.75, 3.0}},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += test_thorough(device) ? 1 : 7)
        TERN_SCOPE {
            tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(1, 4), -2, -0.25, 0.75, 3);
            tern_nn_to(rows[i].m, device);
            tern_tensor *y = tern_nn_forward(tern_nn_eval(rows[i].m), x);
            test_values(y, rows[i].y, 4, (test_tolerance){.abs = 1e-6, .rel = 1e-6},
                        tern_nn_name(rows[i].m), __FILE__, __LINE__);
        }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tern_nn_free(rows[i].m);
}

/* The same with the option on: the same values and gradients, in the tensor that was given. */
static void inplace_writes_into_what_it_is_given(void **state)
{
    (void)state;
    static const tern_dropout_options half = {.inplace = true};
    tern_module *plain[] = {
        tern_nn_relu(),
        tern_nn_relu6(),
        tern_nn_silu(),
        tern_nn_mish(),
        tern_nn_selu(),
        tern_nn_hardsigmoid(),
        tern_nn_hardswish(),
        tern_nn_leaky_relu(NULL),
        tern_nn_elu(NULL),
        tern_nn_celu(NULL),
        tern_nn_hardtanh(NULL),
        tern_nn_rrelu(NULL),
        tern_nn_threshold(0.1, 5),
        tern_nn_dropout(NULL),
        tern_nn_dropout1d(NULL),
        tern_nn_dropout2d(NULL),
        tern_nn_dropout3d(NULL),
        tern_nn_alpha_dropout(NULL),
        tern_nn_feature_alpha_dropout(NULL),
    };
    tern_module *writing[] = {
        tern_nn_inplace(tern_nn_relu()),
        tern_nn_inplace(tern_nn_relu6()),
        tern_nn_inplace(tern_nn_silu()),
        tern_nn_inplace(tern_nn_mish()),
        tern_nn_inplace(tern_nn_selu()),
        tern_nn_inplace(tern_nn_hardsigmoid()),
        tern_nn_inplace(tern_nn_hardswish()),
        tern_nn_leaky_relu(&(tern_leaky_relu_options){.inplace = true}),
        tern_nn_elu(&(tern_elu_options){.inplace = true}),
        tern_nn_celu(&(tern_celu_options){.inplace = true}),
        tern_nn_hardtanh(&(tern_hardtanh_options){.inplace = true}),
        tern_nn_rrelu(&(tern_rrelu_options){.inplace = true}),
        tern_nn_inplace(tern_nn_threshold(0.1, 5)),
        tern_nn_dropout(&half),
        tern_nn_dropout1d(&half),
        tern_nn_dropout2d(&half),
        tern_nn_dropout3d(&half),
        tern_nn_alpha_dropout(&half),
        tern_nn_feature_alpha_dropout(&half),
    };
    enum { MODULES = sizeof plain / sizeof *plain };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < MODULES; i += test_thorough(device) ? 1 : 6)
        TERN_SCOPE {
            tern_tensor *leaf[2], *y[2], *x = NULL;
            tern_module *m[2] = {plain[i], writing[i]};
            for (int k = 0; k < 2; k++) {
                leaf[k] = test_uniform(device, TERN_F32, TERN_SHAPE(3, 4, 5), -2, 2, 3);
                x = tern_neg(tern_requires_grad_(leaf[k], true));
                tern_manual_seed(5);
                y[k] = tern_nn_forward(m[k], x);
                assert_ok(tern_backward(tern_sum(tern_mul(y[k], y[k]))));
            }
            assert_ptr_equal(y[1], x);
            assert_close(y[1], y[0], .abs = 1e-6, .rel = 1e-6);
            assert_close(tern_grad(leaf[1]), tern_grad(leaf[0]), .abs = 1e-5, .rel = 1e-5);
            assert_null(tern_nn_forward(writing[i], leaf[1]));
            assert_error(TERN_ERR_STATE, "a leaf Variable that requires grad");
        }
    for (size_t i = 0; i < MODULES; i++) {
        tern_nn_free(plain[i]);
        tern_nn_free(writing[i]);
    }
    tern_module *sigmoid = tern_nn_sigmoid();
    assert_null(tern_nn_inplace(sigmoid));
    assert_error(TERN_ERR_UNSUPPORTED, "Sigmoid has no option inplace");
    tern_nn_free(sigmoid);
}

static void functions_write_in_place(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(4), NAN, INFINITY, -INFINITY, 2);
        assert_ptr_equal(tern_nan_to_num_(x, INFINITY, 7, -8), x);
        assert_values(x, INFINITY, 7, -8, 2);
        tern_tensor *n = TENSOR(device, TERN_F32, TERN_SHAPE(4), 1, 2, 3, -1);
        assert_values(tern_ldexp_(TENSOR(device, TERN_F32, TERN_SHAPE(4), 1, 3, -1, 2), n), 2, 12,
                      -8, 1);
        tern_tensor *ones = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        assert_values(tern_dropout_(ones, 1, true), 0, 0, 0);
        assert_values(tern_alpha_dropout_(ones, 1, true), 0, 0, 0);
        assert_ptr_equal(tern_dropout2d_(ones, 0.5, false), ones);
        assert_null(tern_dropout2d_(ones, 0.5, true));
        assert_error(TERN_ERR_SHAPE, "Feature dropout requires at least 2 dimensions in the input");
        assert_null(tern_rrelu_(ones, 0.5, 0.25, true));
        assert_error(TERN_ERR_ARGUMENT, "tern_rrelu_: Lower bound should be less than");
        assert_null(tern_dropout_(ones, 1.5, true));
        assert_error(TERN_ERR_ARGUMENT, "tern_dropout_: dropout probability has to be between");
    }
}

static void prelu_learns_its_slope(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_prelu(
            &(tern_prelu_options){.num_parameters = 2, .init = 0.5, .device = device});
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), -1, -2, 3, -4);
        tern_tensor *y = tern_nn_forward(m, x);
        assert_values(y, -0.5, -1, 3, -2);
        assert_ok(tern_backward(tern_sum(y)));
        assert_values(tern_grad(tern_nn_parameter(m, "weight")), -1, -6);
        tern_nn_free(m);
    }
}

static void softmax2d_is_over_channels(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_softmax2d();
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(2, 3, 2, 2), -1, 1, 1);
        assert_same(tern_nn_forward(m, x), tern_softmax(x, 1));
        assert_null(tern_nn_forward(m, tern_select(tern_select(x, 0, 0), 0, 0)));
        assert_error(TERN_ERR_SHAPE, "Softmax2d requires a 3D or 4D tensor as input");
        tern_nn_free(m);
    }
}

static void reshaping_modules_are_their_functions(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(2, 3, 4), -1, 1, 1);
        tern_module *flat = tern_nn_flatten_dims(0, 1);
        tern_module *deep = tern_nn_unflatten(-1, TERN_SHAPE(2, -1));
        assert_same(tern_nn_forward(flat, x), tern_flatten(x, 0, 1));
        assert_shape(tern_nn_forward(deep, x), 2, 3, 2, 2);
        assert_null(tern_nn_forward(deep, tern_nn_forward(flat, tern_narrow(x, 2, 0, 3))));
        assert_error(TERN_ERR_SHAPE, "unflatten");
        tern_nn_free(flat);
        tern_nn_free(deep);
    }
}

/* ---- dropout --------------------------------------------------------------------------------- */

/* Every channel of y (N, C, *) is of one number, which is low or high, and both are there. */
static void assert_channels(const tern_tensor *y, int64_t channels, double low, double high)
{
    double *v = test_read(y);
    int64_t each = tern_numel(y) / channels, highs = 0;
    for (int64_t c = 0; c < channels; c++) {
        double first = v[c * each];
        assert_true(fabs(first - low) < 1e-6 || fabs(first - high) < 1e-6);
        highs += fabs(first - high) < 1e-6;
        for (int64_t i = 1; i < each; i++)
            assert_true(v[c * each + i] == first);
    }
    assert_true(highs > 0 && highs < channels);
    free(v);
}

static void whole_channels_are_dropped(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_manual_seed(2);
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 8, 2, 2), TERN_F32, device);
        tern_tensor *line = tern_ones(TERN_SHAPE(24, 3), TERN_F32, device);
        tern_requires_grad_(x, true);
        tern_tensor *y = tern_dropout2d(x, 0.25, true);
        assert_channels(y, 24, 0, 1 / 0.75);
        assert_ok(tern_backward(tern_sum(y)));
        assert_same(tern_grad(x), y);
        assert_channels(tern_dropout1d(line, 0.5, true), 24, 0, 2);
        assert_shape(tern_dropout1d(line, 0.5, true), 24, 3);
        assert_channels(tern_dropout3d(tern_view(x, TERN_SHAPE(24, 2, 2, 1)), 0.5, true), 24, 0, 2);
        assert_ptr_equal(tern_dropout2d(x, 0.5, false), x);
        assert_true(tern_item(tern_max(tern_dropout2d(x, 1, true))) == 0);
    }
}

/* Mean 0 and variance 1 stay; what is dropped becomes one number. */
static void alpha_dropout_keeps_mean_and_variance(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_manual_seed(3);
        tern_tensor *x = tern_randn(TERN_SHAPE(20000), TERN_F32, device);
        tern_tensor *y = tern_alpha_dropout(tern_requires_grad_(x, true), 0.3, true);
        double alpha = 1.7580993408473766, a = 1 / sqrt((alpha * alpha * 0.3 + 1) * 0.7);
        assert_true(fabs(tern_item(tern_mean(y))) < 0.05);
        assert_true(fabs(tern_item(tern_var(y, 1)) - 1) < 0.05);
        assert_ok(tern_backward(tern_sum(y)));
        double *v = test_read(y), *u = test_read(x), *slope = test_read(tern_grad(x));
        int dropped = 0;
        for (int i = 0; i < 20000; i++) {
            double kept = a * u[i] + alpha * a * 0.3, lost = alpha * a * 0.3 - alpha * a;
            assert_true(slope[i] == 0 || fabs(slope[i] - a) < 1e-6);
            assert_true(fabs(v[i] - (slope[i] == 0 ? lost : kept)) < 1e-5);
            dropped += slope[i] == 0;
        }
        assert_true(abs(dropped - 6000) < 300);
        free(v);
        free(u);
        free(slope);
        tern_tensor *channels = tern_zeros(TERN_SHAPE(4, 6, 3), TERN_F32, device);
        assert_channels(tern_feature_alpha_dropout(channels, 0.3, true), 24,
                        alpha * a * 0.3 - alpha * a, alpha * a * 0.3);
        assert_true(tern_item(tern_max(tern_alpha_dropout(channels, 1, true))) == 0);
        assert_ptr_equal(tern_alpha_dropout(x, 0.3, false), x);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
    tern_tensor *whole = tern_zeros(TERN_SHAPE(3, 3), TERN_I64, "cpu");
    assert_null(tern_dropout1d(x, 0.5, true));
    assert_error(TERN_ERR_SHAPE, "Expected 2D or 3D input, but received a 1D input");
    assert_null(tern_dropout2d(x, 0.5, true));
    assert_error(TERN_ERR_SHAPE, "Feature dropout requires at least 2 dimensions in the input");
    assert_null(tern_alpha_dropout(x, -1, true));
    assert_error(TERN_ERR_ARGUMENT, "dropout probability has to be between 0 and 1, but got -1");
    assert_null(tern_alpha_dropout(whole, 0.5, true));
    assert_error(TERN_ERR_DTYPE, "tern_alpha_dropout: result type float32 can't be cast to the "
                                 "desired output type int64");
    assert_null(tern_nn_alpha_dropout(&(tern_dropout_options){.p = 2}));
    assert_error(TERN_ERR_ARGUMENT, "between 0 and 1, but got 2.0");
}

static const struct CMUnitTest tests[] = {
    TEST(modules_print_as_in_pytorch),
    TEST(activations_are_pytorch_s),
    TEST(inplace_writes_into_what_it_is_given),
    TEST(functions_write_in_place),
    TEST(inplace_writes_into_what_it_is_given),
    TEST(functions_write_in_place),
    TEST(prelu_learns_its_slope),
    TEST(softmax2d_is_over_channels),
    TEST(reshaping_modules_are_their_functions),
    TEST(whole_channels_are_dropped),
    TEST(alpha_dropout_keeps_mean_and_variance),
    TEST(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)
