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
        {tern_nn_softmin(1), "Softmin(dim=1)"},
        {tern_nn_softmax2d(), "Softmax2d()"},
        {tern_nn_flatten_dims(0, 2), "Flatten(start_dim=0, end_dim=2)"},
        {tern_nn_unflatten(1, TERN_SHAPE(2, 5)), "Unflatten(dim=1, unflattened_size=(2, 5))"},
        {tern_nn_dropout1d(NULL), "Dropout1d(p=0.5, inplace=False)"},
        {tern_nn_dropout2d(&(tern_dropout_options){.p = 0.2}), "Dropout2d(p=0.2, inplace=False)"},
        {tern_nn_dropout3d(NULL), "Dropout3d(p=0.5, inplace=False)"},
        {tern_nn_alpha_dropout(NULL), "AlphaDropout(p=0.5, inplace=False)"},
        {tern_nn_feature_alpha_dropout(NULL), "FeatureAlphaDropout(p=0.5, inplace=False)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_prints(rows[i].m, rows[i].text);
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
    TEST(modules_print_as_in_pytorch),           TEST(softmax2d_is_over_channels),
    TEST(reshaping_modules_are_their_functions), TEST(whole_channels_are_dropped),
    TEST(alpha_dropout_keeps_mean_and_variance), TEST(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)
