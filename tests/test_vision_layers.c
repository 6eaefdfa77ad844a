/* test_vision_layers.c -- convolution, pooling, resampling and padding as modules: PyTorch's
 * numbers, names and texts, what they start from, what they refuse. */
#include "pattern.h"
#include "base/memory.h"
#include <math.h>
#include <stdio.h>

#define D(...) TERN_DIMS(__VA_ARGS__)
#define OPTIONS(TYPE, ...)                                                                         \
    &(TYPE)                                                                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define CONV(...)   OPTIONS(tern_conv_options, __VA_ARGS__)
#define BACK(...)   OPTIONS(tern_conv_transpose_options, __VA_ARGS__)
#define MAX(...)    OPTIONS(tern_max_pool_options, __VA_ARGS__)
#define AVG(...)    OPTIONS(tern_avg_pool_options, __VA_ARGS__)
#define SIZED(...)  OPTIONS(tern_interpolate_options, __VA_ARGS__)
#define WINDOW(...) OPTIONS(tern_unfold_options, __VA_ARGS__)

/* X(name, shape of x, module): the table of golden/vision_layers.py. */
// clang-format off
#define CASES(X)                                                                                                       \
    X(conv1, (2, 4, 9), tern_nn_conv1d(4, 6, D(3), CONV(.stride = D(2), .padding = D(1), .dilation = D(2), .groups = 2))) \
    X(conv1_circular, (2, 3, 6), tern_nn_conv1d(3, 4, D(3), CONV(.padding = D(2), .padding_mode = TERN_PAD_CIRCULAR))) \
    X(conv2, (2, 3, 6, 5), tern_nn_conv2d(3, 4, D(3, 2), CONV(.padding = D(1, 0), .no_bias = true)))                   \
    X(conv2_same, (1, 2, 5, 6), tern_nn_conv2d(2, 3, D(4, 3), CONV(.named_padding = TERN_PADDING_SAME, .dilation = D(1, 2))))      \
    X(conv2_reflect, (1, 2, 5, 6), tern_nn_conv2d(2, 3, D(4, 3), CONV(.named_padding = TERN_PADDING_SAME, .padding_mode = TERN_PAD_REFLECT))) \
    X(conv2_replicate, (1, 2, 4, 5), tern_nn_conv2d(2, 2, D(3), CONV(.stride = D(2), .padding = D(2, 1), .padding_mode = TERN_PAD_REPLICATE))) \
    X(conv2_valid, (1, 2, 4, 5), tern_nn_conv2d(2, 3, D(2), CONV(.named_padding = TERN_PADDING_VALID, .padding_mode = TERN_PAD_CIRCULAR))) \
    X(conv3, (1, 2, 4, 5, 4), tern_nn_conv3d(2, 3, D(2), CONV(.stride = D(1, 2, 1), .padding = D(0, 1, 1))))           \
    X(transpose1, (2, 3, 5), tern_nn_conv_transpose1d(3, 2, D(4), BACK(.stride = D(3), .padding = D(1), .output_padding = D(2)))) \
    X(transpose2, (2, 4, 3, 4), tern_nn_conv_transpose2d(4, 6, D(3, 2), BACK(.stride = D(2), .output_padding = D(1, 0), .groups = 2, .dilation = D(1, 2)))) \
    X(transpose3, (1, 2, 2, 3, 2), tern_nn_conv_transpose3d(2, 3, D(2, 2, 3), BACK(.padding = D(1), .no_bias = true))) \
    X(max1, (2, 3, 9), tern_nn_max_pool1d(D(3), MAX(.stride = D(2), .padding = D(1))))                                 \
    X(max2, (2, 7, 9), tern_nn_max_pool2d(D(3, 2), MAX(.stride = D(2, 3), .padding = D(1, 0), .dilation = D(1, 2), .ceil_mode = true))) \
    X(max3, (1, 2, 4, 6, 4), tern_nn_max_pool3d(D(2), NULL))                                                           \
    X(avg1, (2, 3, 9), tern_nn_avg_pool1d(D(3), AVG(.stride = D(2), .padding = D(1))))                                 \
    X(avg2, (1, 2, 7, 8), tern_nn_avg_pool2d(D(3), AVG(.stride = D(2), .padding = D(1), .ceil_mode = true, .no_count_include_pad = true))) \
    X(avg3, (1, 2, 4, 4, 6), tern_nn_avg_pool3d(D(2, 2, 3), AVG(.divisor_override = TERN_SOME(3))))                    \
    X(adaptive_avg1, (2, 3, 7), tern_nn_adaptive_avg_pool1d(D(3)))                                                     \
    X(adaptive_avg2, (2, 3, 7, 5), tern_nn_adaptive_avg_pool2d(D(3, -1)))                                              \
    X(adaptive_avg3, (1, 2, 4, 5, 3), tern_nn_adaptive_avg_pool3d(D(2, 3, 2)))                                         \
    X(adaptive_max1, (2, 7), tern_nn_adaptive_max_pool1d(D(3)))                                                        \
    X(adaptive_max2, (2, 3, 7, 5), tern_nn_adaptive_max_pool2d(D(3, 4)))                                               \
    X(adaptive_max3, (1, 2, 4, 5, 3), tern_nn_adaptive_max_pool3d(D(2, 3, 2)))                                         \
    X(lp1, (2, 3, 9), tern_nn_lp_pool1d(1, D(3), OPTIONS(tern_lp_pool_options, .stride = D(2))))                       \
    X(lp2, (1, 2, 5, 6), tern_nn_lp_pool2d(2, D(2, 3), OPTIONS(tern_lp_pool_options, .ceil_mode = true)))              \
    X(upsample, (1, 2, 3, 4), tern_nn_upsample(SIZED(.scale_factor = {2, 3}, .mode = TERN_INTERPOLATE_BILINEAR, .align_corners = true))) \
    X(nearest2, (1, 2, 3, 4), tern_nn_upsampling_nearest2d(SIZED(.size = D(5, 6))))                                    \
    X(bilinear2, (1, 2, 3, 4), tern_nn_upsampling_bilinear2d(SIZED(.scale_factor = {2})))                              \
    X(pixel_shuffle, (2, 8, 2, 3), tern_nn_pixel_shuffle(2))                                                           \
    X(pixel_unshuffle, (2, 4, 6), tern_nn_pixel_unshuffle(2))                                                          \
    X(constant1, (2, 3, 4), tern_nn_constant_pad1d(D(1, 2), 3.5))                                                      \
    X(constant3, (1, 2, 2, 3, 2), tern_nn_constant_pad3d(D(1), -0.25))                                                 \
    X(zero2, (2, 3, 4), tern_nn_zero_pad2d(D(1, -1, 2, 0)))                                                            \
    X(reflection2, (1, 2, 4, 3), tern_nn_reflection_pad2d(D(1, 2, 2, 0)))                                              \
    X(replication3, (1, 1, 2, 3, 2), tern_nn_replication_pad3d(D(1, 0, 2, 1, 0, 1)))                                   \
    X(unfold, (1, 2, 4, 5), tern_nn_unfold(D(2, 3), WINDOW(.padding = D(1), .stride = D(2))))                          \
    X(fold, (1, 8, 12), tern_nn_fold(D(4, 5), D(2), NULL))
// clang-format on

#define MAKER(NAME, SHAPE, ...)                                                                    \
    static tern_module *make_##NAME(void)                                                          \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    static tern_shape shape_##NAME(void)                                                           \
    {                                                                                              \
        return TERN_SHAPE SHAPE;                                                                   \
    }
CASES(MAKER)
#define ROW(NAME, ...) {#NAME, make_##NAME, shape_##NAME},
static const struct {
    const char *name;
    tern_module *(*make)(void);
    tern_shape (*shape)(void);
} rows[] = {CASES(ROW)};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- PyTorch's numbers ------------------------------------------------------------------- */

typedef struct golden {
    test_golden *file;
    const char *row, *device;
    int parameters;
} golden;

static void assert_golden(const golden *g, const char *part, tern_tensor *x)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", g->row, *part ? "." : "", part);
    tern_tensor *wanted = tern_to_dtype(test_golden_tensor(g->file, name, "cpu"), TERN_F32);
    test_close(x, wanted, (test_tolerance){.abs = 2e-5, .rel = 2e-5}, name, __FILE__, __LINE__);
}

static tern_status fill(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    const golden *g = user;
    return tern_set_data_(x, pattern(g->device, TERN_F32, tern_shape_of(x), 5, 9))
               ? TERN_OK
               : tern_last_status();
}

static tern_status compare(const char *path, tern_tensor *x, void *user)
{
    golden *g = user;
    assert_golden(g, path, tern_grad(x));
    g->parameters++;
    return TERN_OK;
}

static void modules_compute_what_pytorch_s_do_under_its_names(void **state)
{
    (void)state;
    golden g = {.file = test_golden_open("vision_layers")};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i += test_thorough(device) ? 1 : 5)
        TERN_SCOPE {
            tern_module *m = tern_nn_to(rows[i].make(), device);
            g.row = rows[i].name;
            g.device = device;
            g.parameters = 0;
            assert_ok(tern_nn_each_parameter(m, fill, &g));
            tern_tensor *x = pattern(device, TERN_F32, rows[i].shape(), 7, 31);
            tern_requires_grad_(x, true);
            tern_tensor *y = tern_nn_forward(m, x);
            assert_golden(&g, "", y);
            tern_tensor *weights = pattern(device, TERN_F32, tern_shape_of(y), 3, 5);
            assert_ok(tern_backward(tern_sum(tern_mul(y, weights))));
            assert_golden(&g, "dx", tern_grad(x));
            assert_ok(tern_nn_each_parameter(m, compare, &g));
            char bias[64];
            snprintf(bias, sizeof bias, "%s.bias", g.row);
            bool weighs = strncmp(g.row, "conv", 4) == 0 || strncmp(g.row, "transpose", 9) == 0;
            assert_int_equal(g.parameters, weighs + test_golden_has(g.file, bias));
            tern_nn_free(m);
        }
    test_golden_close(g.file);
}

/* With PyTorch's output_size at forward, which says what output_padding would have to be. */
static void a_transposed_convolution_makes_the_size_that_is_asked_for(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_to(
            tern_nn_conv_transpose2d(2, 3, D(3), BACK(.stride = D(3, 2), .padding = D(1))), device);
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(1, 2, 4, 5), -1, 1, 1);
        tern_tensor *weight = tern_nn_parameter(m, "weight"), *bias = tern_nn_parameter(m, "bias");
        tern_conv_transpose_function_options o = {
            .stride = D(3, 2), .padding = D(1), .output_padding = D(2, 1)};
        tern_tensor *y = tern_conv_transpose2d(x, weight, bias, &o);
        assert_shape(y, 1, 3, 12, 10);
        assert_same(tern_nn_conv_transpose_forward(m, x, D(12, 10)), y);
        assert_same(tern_nn_conv_transpose_forward(m, x, D(1, 3, 12, 10)), y);
        assert_shape(tern_nn_conv_transpose_forward(m, tern_select(x, 0, 0), D(11, 9)), 3, 11, 9);
        assert_shape(tern_nn_forward(m, x), 1, 3, 10, 9);
        assert_null(tern_nn_conv_transpose_forward(m, x, D(13, 10)));
        assert_error(TERN_ERR_ARGUMENT, "requested an output size of [13, 10], but valid sizes "
                                        "range from [10, 9] to [12, 10] (for an input of [4, 5])");
        assert_null(tern_nn_conv_transpose_forward(m, x, D(12)));
        assert_error(TERN_ERR_ARGUMENT, "ConvTranspose2D: for 4D input, output_size must have 2 or "
                                        "4 elements (got 1)");
        tern_nn_free(m);
        m = make_conv2();
        assert_null(tern_nn_conv_transpose_forward(m, x, D(3, 3)));
        assert_error(TERN_ERR_ARGUMENT, "Conv2d is no transposed convolution");
        tern_nn_free(m);
    }
}

static tern_status ask_another(tern_module *m, tern_tensor **in, int n, void *user)
{
    (void)m;
    assert_int_equal(n, 2);
    assert_shape(tern_nn_conv_transpose_forward(user, in[0], D(4)), 1, 1, 4);
    return TERN_OK;
}

static void sizes_that_are_asked_for_are_each_modules_own(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_conv_transpose1d(1, 1, D(1), BACK(.stride = D(3))),
                    *other = tern_nn_conv_transpose1d(1, 1, D(1), BACK(.stride = D(3)));
        tern_tensor *x = tern_ones(TERN_SHAPE(1, 1, 2), TERN_F32, "cpu"), *y;
        assert_true(tern_nn_register_forward_pre_hook(m, ask_another, other) > 0);
        assert_shape(tern_nn_conv_transpose_forward(m, x, D(6)), 1, 1, 6);
        tern_tensor *in[] = {x, NULL};
        assert_ok(tern_nn_call(other, in, 2, &y, 1));
        assert_shape(y, 1, 1, 4);
        in[1] = x;
        assert_int_equal(tern_nn_call(other, in, 2, &y, 1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "output_size as a list of int64 on the cpu");
        tern_nn_free(m);
        tern_nn_free(other);
    }
}

static void pools_give_indices_and_take_them_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *pool = tern_nn_max_pool2d(D(2), NULL);
        tern_module *back = tern_nn_max_unpool2d(D(2), NULL);
        tern_module *larger =
            tern_nn_max_unpool2d(D(2), OPTIONS(tern_max_unpool_options, .output_size = D(3, 5)));
        tern_module *adaptive = tern_nn_adaptive_max_pool2d(D(1, 2));
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(1, 2, 4), 1, 5, 3, 2, 7, 6, 4, 8);
        tern_tensor *pooled[2], *y;
        assert_ok(tern_nn_call(pool, &x, 1, pooled, 2));
        assert_values(pooled[0], 7, 8);
        assert_values(pooled[1], 4, 7);
        assert_ok(tern_nn_call(back, pooled, 2, &y, 1));
        assert_shape(y, 1, 2, 4);
        assert_values(y, 0, 0, 0, 0, 7, 0, 0, 8);
        assert_ok(tern_nn_call(larger, pooled, 2, &y, 1));
        assert_values(y, 0, 0, 0, 0, 7, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0);
        assert_ok(tern_nn_call(adaptive, &x, 1, pooled, 2));
        assert_values(pooled[1], 4, 7);
        tern_nn_free(pool);
        tern_nn_free(back);
        tern_nn_free(larger);
        tern_nn_free(adaptive);
    }
}

/* PyTorch 1.13 has none in three dims. */
static void a_norm_over_three_dims_is_the_root_of_sums_of_powers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *norm = tern_nn_lp_pool3d(2, D(1, 2, 2), NULL);
        tern_tensor *x =
            TENSOR(device, TERN_F32, TERN_SHAPE(1, 1, 2, 2, 2), 1, 1, 1, 1, 2, 4, 4, 8);
        tern_tensor *y = tern_nn_forward(norm, x);
        assert_shape(y, 1, 1, 2, 1, 1);
        assert_values_close(y, 1e-5, 2, 10);
        tern_nn_free(norm);
    }
}

/* ---- texts and beginnings ---------------------------------------------------------------- */

static void they_print_as_in_pytorch(void **state)
{
    (void)state;
    const struct {
        tern_module *m;
        const char *text;
    } cases[] = {
        {tern_nn_conv2d(4, 6, D(3, 2),
                        CONV(.named_padding = TERN_PADDING_SAME, .dilation = D(1, 2), .groups = 2,
                             .no_bias = true)),
         "Conv2d(4, 6, kernel_size=(3, 2), stride=(1, 1), padding=same, dilation=(1, 2), groups=2, "
         "bias=False)"},
        {make_conv1_circular(), "Conv1d(3, 4, kernel_size=(3,), stride=(1,), padding=(2,), "
                                "padding_mode=circular)"},
        {tern_nn_conv3d(2, 3, D(2), CONV(.stride = D(2))),
         "Conv3d(2, 3, kernel_size=(2, 2, 2), stride=(2, 2, 2))"},
        {tern_nn_conv_transpose2d(4, 6, D(3),
                                  BACK(.stride = D(2), .padding = D(1), .output_padding = D(1))),
         "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
         "output_padding=(1, 1))"},
        {tern_nn_max_pool2d(D(2, 3), MAX(.stride = D(2))),
         "MaxPool2d(kernel_size=(2, 3), stride=2, padding=0, dilation=1, ceil_mode=False)"},
        {tern_nn_max_pool1d(D(3), NULL),
         "MaxPool1d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=False)"},
        {tern_nn_max_unpool1d(D(2), OPTIONS(tern_max_unpool_options, .stride = D(3))),
         "MaxUnpool1d(kernel_size=(2,), stride=(3,), padding=(0,))"},
        {tern_nn_max_unpool2d(D(2), NULL),
         "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"},
        {tern_nn_avg_pool1d(D(2), NULL), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"},
        {tern_nn_avg_pool3d(D(1, 2, 3), NULL),
         "AvgPool3d(kernel_size=(1, 2, 3), stride=(1, 2, 3), padding=0)"},
        {make_adaptive_avg2(), "AdaptiveAvgPool2d(output_size=(3, None))"},
        {tern_nn_adaptive_max_pool3d(D(2)), "AdaptiveMaxPool3d(output_size=2)"},
        {tern_nn_lp_pool2d(2, D(3), NULL),
         "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)"},
        {make_upsample(), "Upsample(scale_factor=(2.0, 3.0), mode=bilinear)"},
        {make_nearest2(), "UpsamplingNearest2d(size=(5, 6), mode=nearest)"},
        {make_bilinear2(), "UpsamplingBilinear2d(scale_factor=2.0, mode=bilinear)"},
        {make_pixel_shuffle(), "PixelShuffle(upscale_factor=2)"},
        {make_pixel_unshuffle(), "PixelUnshuffle(downscale_factor=2)"},
        {tern_nn_channel_shuffle(3), "ChannelShuffle(groups=3)"},
        {make_constant1(), "ConstantPad1d(padding=(1, 2), value=3.5)"},
        {tern_nn_zero_pad2d(D(1)), "ZeroPad2d((1, 1, 1, 1))"},
        {tern_nn_reflection_pad1d(D(2)), "ReflectionPad1d((2, 2))"},
        {make_unfold(), "Unfold(kernel_size=(2, 3), dilation=1, padding=1, stride=2)"},
        {make_fold(), "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=1)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = tern_nn_to_text(cases[i].m);
        assert_string_equal(text, cases[i].text);
        tern_free_text(text);
        tern_nn_free(cases[i].m);
    }
}

static void assert_uniform(tern_tensor *x, double bound)
{
    TERN_SCOPE {
        tern_tensor *flat = tern_detach(x);
        double high = tern_item(tern_amax(flat, TERN_SHAPE_SCALAR, false));
        double low = tern_item(tern_amin(flat, TERN_SHAPE_SCALAR, false));
        assert_true(high <= bound && high > 0.95 * bound);
        assert_true(low >= -bound && low < -0.95 * bound);
        assert_true(fabs(tern_item(tern_mean(flat))) < 0.1 * bound);
    }
}

/* PyTorch takes the second dim of a transposed convolution's weight for its inputs too. */
static void convolutions_start_uniform_in_one_over_root_of_a_kernel(void **state)
{
    (void)state;
    tern_manual_seed(5);
    tern_module *plain = tern_nn_conv2d(4, 500, D(3, 2), CONV(.groups = 2));
    tern_module *back = tern_nn_conv_transpose1d(200, 8, D(5), NULL);
    assert_uniform(tern_nn_parameter(plain, "weight"), 1 / sqrt(2 * 6));
    assert_uniform(tern_nn_parameter(plain, "bias"), 1 / sqrt(2 * 6));
    assert_uniform(tern_nn_parameter(back, "weight"), 1 / sqrt(8 * 5));
    tern_nn_free(plain);
    tern_nn_free(back);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void options_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
#define REFUSED(CALL, WORDS)                                                                       \
    assert_null(CALL);                                                                             \
    assert_error(TERN_ERR_ARGUMENT, WORDS)
    REFUSED(tern_nn_conv2d(3, 4, D(3), CONV(.groups = 2)),
            "in_channels must be divisible by groups");
    REFUSED(tern_nn_conv2d(4, 3, D(3), CONV(.groups = 2)),
            "out_channels must be divisible by groups");
    REFUSED(tern_nn_conv1d(4, 4, D(3), CONV(.groups = -1)), "groups must be a positive integer");
    REFUSED(tern_nn_conv2d(3, 4, D(3), CONV(.named_padding = (tern_named_padding)3)),
            "named_padding 3 is none of tern_named_padding");
    REFUSED(tern_nn_conv2d(3, 4, D(3), CONV(.named_padding = TERN_PADDING_SAME, .stride = D(2))),
            "padding='same' is not supported for strided convolutions");
    REFUSED(tern_nn_conv3d(3, 4, D(3), CONV(.stride = D(2, 1))),
            "tern_nn_conv3d: stride must be one number or 3, but got 2");
    REFUSED(tern_nn_conv1d(3, 4, TERN_SHAPE_SCALAR, NULL),
            "kernel_size must be one number or 1, but got 0");
    REFUSED(tern_nn_conv1d(3, 4, D(2), CONV(.padding_mode = (tern_pad_mode)9)), "padding_mode 9");
    REFUSED(tern_nn_conv_transpose2d(3, 4, D(2), BACK(.output_padding = D(1, 1, 1))),
            "tern_nn_conv_transpose2d: output_padding must be one number or 2, but got 3");
    REFUSED(tern_nn_upsample(SIZED(.size = D(2), .mode = (tern_interpolate_mode)8)),
            "mode 8 is none of tern_interpolate_mode");
    REFUSED(tern_nn_reflection_pad2d(D(1, 2)), "padding of one number or 4, not 2");
    tern_module *pool = tern_nn_max_unpool2d(D(2), NULL);
    REFUSED(tern_nn_forward(pool, NULL), "");
    tern_nn_free(pool);
}

static void every_failed_allocation_gives_null_and_leaks_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (int i = 0; i < ROWS; i++)
        for (uint64_t n = 1;; n++) {
            int64_t before = tern_live_tensors();
            tern_memory_fail_at(n);
            tern_module *m = rows[i].make();
            tern_memory_fail_at(0);
            bool failed = tern_last_status() != TERN_OK;
            tern_clear_error();
            assert_true(!m == failed);
            tern_nn_free(m);
            assert_int_equal(tern_live_tensors(), before);
            failures += failed;
            if (!failed)
                break;
        }
    assert_true(failures > 2 * ROWS);
}

static const struct CMUnitTest tests[] = {
    TEST(modules_compute_what_pytorch_s_do_under_its_names),
    TEST(a_transposed_convolution_makes_the_size_that_is_asked_for),
    TEST(sizes_that_are_asked_for_are_each_modules_own),
    TEST(pools_give_indices_and_take_them_back),
    TEST(a_norm_over_three_dims_is_the_root_of_sums_of_powers),
    TEST(they_print_as_in_pytorch),
    TEST(convolutions_start_uniform_in_one_over_root_of_a_kernel),
    TEST(options_that_do_not_go_together_are_refused),
    TEST(every_failed_allocation_gives_null_and_leaks_nothing),
};
TEST_MAIN(tests)
