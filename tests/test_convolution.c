/* test_convolution.c -- convolutions: PyTorch's numbers, gradients of any
 * order, types, refusals. */
#include "convolution_rows.h"
#include "pattern.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The table of golden/convolution.py. */
static const conv_row rows[] = {
    {"plain1", tern_conv1d, NULL, S(2, 3, 9), S(4, 3, 3), {.groups = 0}, {0}},
    {"strided1", tern_conv1d, NULL, S(1, 4, 12), S(6, 2, 3), {S(2), S(2), S(2), .groups = 2}, {0}},
    {"plain2", tern_conv2d, NULL, S(2, 3, 6, 5), S(4, 3, 3, 2), {.padding = S(1)}, {0}},
    {"point2",
     tern_conv2d,
     NULL,
     S(3, 5, 3, 4),
     S(2, 5, 1, 1),
     {.named_padding = TERN_PADDING_VALID},
     {0}},
    {"strided2",
     tern_conv2d,
     NULL,
     S(2, 4, 9, 8),
     S(6, 2, 3, 3),
     {S(2, 3), S(1, 2), S(2, 1), .groups = 2},
     {0}},
    {"same2",
     tern_conv2d,
     NULL,
     S(1, 2, 5, 6),
     S(3, 2, 4, 3),
     {.named_padding = TERN_PADDING_SAME, .dilation = S(1, 2)},
     {0}},
    {"depth2",
     tern_conv2d,
     NULL,
     S(2, 4, 6, 7),
     S(8, 1, 3, 3),
     {.stride = S(2), .padding = S(1), .groups = 4},
     {0}},
    {"leftover2", tern_conv2d, NULL, S(1, 2, 8, 8), S(3, 2, 3, 3), {.stride = S(4)}, {0}},
    {"plain3",
     tern_conv3d,
     NULL,
     S(1, 2, 4, 5, 4),
     S(3, 2, 2, 3, 2),
     {.stride = S(1, 2, 1), .padding = S(0, 1, 1)},
     {0}},
    {"same3", tern_conv3d, NULL, S(1, 2, 3, 4, 5), S(2, 2, 3, 3, 3), {.padding = S(1)}, {0}},
    {"wide1", tern_conv1d, NULL, S(2, 1, 3), S(2, 1, 7), {.padding = S(3)}, {0}},
    {"transpose1",
     NULL,
     tern_conv_transpose1d,
     S(2, 3, 5),
     S(3, 2, 4),
     {.stride = S(3), .padding = S(1)},
     S(2)},
    {"transpose2",
     NULL,
     tern_conv_transpose2d,
     S(2, 4, 3, 4),
     S(4, 3, 3, 2),
     {S(2), S(1, 0), S(1, 2), .groups = 2},
     S(1, 0)},
    {"depth_transpose2",
     NULL,
     tern_conv_transpose2d,
     S(1, 4, 4, 3),
     S(4, 1, 3, 3),
     {.stride = S(2), .groups = 4},
     {0}},
    {"transpose3",
     NULL,
     tern_conv_transpose3d,
     S(1, 2, 2, 3, 2),
     S(2, 3, 2, 2, 3),
     {.padding = S(1)},
     {0}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void assert_golden(test_golden *file, const conv_row *r, const char *part, tern_tensor *x,
                          test_tolerance tolerance)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", r->name, part);
    tern_tensor *wanted = tern_to_dtype(test_golden_tensor(file, name, "cpu"), tern_dtype_of(x));
    test_close(x, wanted, tolerance, name, __FILE__, __LINE__);
}

static void check_row(test_golden *file, const conv_row *r, const char *device, tern_dtype dtype)
{
    test_tolerance exact = {.abs = dtype == TERN_BF16  ? 0.04
                                   : dtype == TERN_F16 ? 4e-3
                                                       : 1e-6,
                            .rel = dtype == TERN_BF16  ? 8e-3
                                   : dtype == TERN_F16 ? 1e-3
                                                       : 1e-6};
    tern_tensor *in[] = {pattern(device, dtype, r->x, 7, 11), pattern(device, dtype, r->w, 5, 9),
                         pattern(device, dtype, TERN_SHAPE(channels(r)), 3, 7)};
    for (int i = 0; i < 3; i++)
        tern_requires_grad_(in[i], true);
    tern_tensor *y = call(r, in[0], in[1], in[2]);
    assert_golden(file, r, "", y, exact);
    tern_tensor *weights = pattern(device, dtype, tern_shape_of(y), 3, 5);
    assert_ok(tern_backward(tern_sum(tern_mul(y, weights))));
    static const char *const parts[] = {".dx", ".dw", ".db"};
    for (int i = 0; i < 3; i++)
        assert_golden(file, r, parts[i], tern_grad(in[i]), exact);
}

static void convolutions_are_pytorch_s(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    test_golden *file = test_golden_open("convolution");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < 4; d++)
            TERN_SCOPE
                if (d < 1 || i % 3 == 1 || test_thorough(device))
                    check_row(file, &rows[i], device, dtypes[d]);
    test_golden_close(file);
}

static tern_tensor *call_row(tern_tensor *const *in, void *user)
{
    return call(user, in[0], in[1], in[2]);
}

static void gradients_of_any_order_are_the_differences(void **state)
{
    (void)state;
    static const char *const names[] = {"strided1", "same2", "depth2", "transpose2"};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++) {
        conv_row small = rows[i];
        bool wanted = false;
        for (int k = 0; k < 4; k++)
            wanted = wanted || strcmp(names[k], small.name) == 0;
        if (!wanted || (strcmp(small.name, "depth2") != 0 && !test_thorough(device)))
            continue;
        TERN_SCOPE {
            tern_tensor *in[] = {
                test_uniform(device, TERN_F64, small.x, -1, 1, 1),
                test_uniform(device, TERN_F64, small.w, -1, 1, 2),
                test_uniform(device, TERN_F64, TERN_SHAPE(channels(&small)), -1, 1, 3)};
            for (int k = 0; k < 3; k++)
                tern_requires_grad_(in[k], true);
            gradcheck(call_row, in, 3, .user = &small, .second = true);
        }
    }
}

/* A convolution and its gradients against the same in float64, in which other ways are taken. */
static void agrees_with_float64(const char *device, tern_shape xs, tern_shape ws,
                                const tern_conv_function_options *o, bool infinite)
{
    int64_t products = 6; /* the result and two gradients, in both dtypes */
    for (int d = 0; d < 4; d++) {
        const int64_t stride =
            d < 2 || !o->stride.ndim ? 1 : o->stride.dims[o->stride.ndim == 1 ? 0 : d - 2];
        products *= ws.dims[d] * (d == 1 ? xs.dims[0] : d > 1 ? xs.dims[d] / stride : 1);
    }
    if (!test_affords(device, products))
        return;
    tern_tensor *result[2][3];
    for (int d = 0; d < 2; d++) {
        tern_dtype dtype = d ? TERN_F64 : TERN_F32;
        tern_tensor *x = test_uniform(device, dtype, xs, -1, 1, 4);
        tern_tensor *w = test_uniform(device, dtype, ws, -1, 1, 5);
        if (infinite) /* one number, not on the border */
            assert_non_null(tern_fill_(
                tern_select(tern_select(x, -1, xs.dims[xs.ndim - 1] - 2), -1, 1), INFINITY));
        tern_requires_grad_(x, true);
        tern_requires_grad_(w, true);
        tern_tensor *y = tern_conv2d(x, w, NULL, o);
        assert_ok(
            tern_backward(tern_sum(tern_mul(y, pattern(device, dtype, tern_shape_of(y), 3, 5)))));
        tern_tensor *const all[] = {tern_detach(y), tern_grad(x), tern_grad(w)};
        for (int k = 0; k < 3; k++)
            result[d][k] = tern_to_dtype(infinite ? tern_isfinite(all[k]) : all[k], TERN_F32);
    }
    for (int k = 0; k < 3; k++)
        if (infinite) /* nothing that a tap does not see is in its sum */
            assert_same(result[0][k], result[1][k]);
        else
            assert_close(result[0][k], result[1][k], .abs = 2e-3, .rel = 1e-4);
}

/* Several chunks of images and of threads. */
static void large_convolutions_agree_with_float64(void **state)
{
    (void)state;
    static const struct {
        tern_shape x, w;
        tern_conv_function_options o;
    } cases[] = {
        {S(7, 16, 33, 30), S(24, 16, 3, 3), {.padding = S(1)}},
        {S(9, 12, 32, 32), S(20, 6, 5, 3), {.stride = S(2), .padding = S(2, 1), .groups = 2}},
        {S(5, 40, 20, 21), S(32, 40, 1, 1), {.groups = 1}},
        {S(3, 32, 40, 40), S(32, 1, 3, 3), {.padding = S(1), .groups = 32}},
        {S(40, 1, 28, 28), S(6, 1, 5, 5), {.padding = S(2)}},
        {S(2, 3, 90, 111), S(64, 3, 7, 7), {.stride = S(2), .padding = S(3)}},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TERN_SCOPE
            agrees_with_float64(device, cases[i].x, cases[i].w, &cases[i].o, false);
}

/* Winograd's way, of 3 x 3 taps: images of every size beside its tiles, units of several images, more threads
 * than images, every padding. */
static void three_by_three_agree_with_float64(void **state)
{
    (void)state;
    static const struct {
        int64_t n, c, o, height, width, padding[2];
    } cases[] = {
        {3, 16, 16, 32, 32, {1, 1}},  {7, 8, 9, 8, 33, {0, 1}},   {9, 33, 20, 8, 8, {1, 1}},
        {1, 24, 16, 40, 19, {2, 2}},  {9, 64, 48, 7, 8, {1, 0}},  {2, 19, 128, 14, 9, {1, 2}},
        {40, 17, 18, 6, 6, {1, 1}},   {5, 17, 31, 10, 9, {0, 0}}, {2, 65, 66, 21, 18, {1, 1}},
        {2, 256, 21, 12, 11, {1, 1}}, {2, 16, 16, 5, 50, {1, 1}}, {11, 16, 320, 7, 8, {1, 1}},
        {3, 512, 24, 14, 13, {1, 1}},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TERN_SCOPE {
            tern_conv_function_options o = {.padding = S(cases[i].padding[0], cases[i].padding[1])};
            agrees_with_float64(device,
                                TERN_SHAPE(cases[i].n, cases[i].c, cases[i].height, cases[i].width),
                                TERN_SHAPE(cases[i].o, cases[i].c, 3, 3), &o, false);
        }
}

/* y of half the rows and columns of x, and what is nearly so. */
static void halved_agree_with_float64(void **state)
{
    (void)state;
    static const struct {
        int64_t n, c, o, height, width, window, padding;
    } cases[] = {
        {3, 16, 32, 32, 32, 3, 1}, {5, 32, 64, 16, 16, 3, 1}, {3, 16, 32, 32, 32, 1, 0},
        {1, 9, 11, 4, 16, 3, 1},   {2, 8, 23, 2, 32, 3, 1},   {7, 17, 8, 6, 48, 1, 0},
        {2, 16, 16, 31, 32, 3, 1}, {2, 16, 16, 32, 32, 1, 1}, {2, 16, 16, 32, 32, 3, 0},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TERN_SCOPE {
            tern_conv_function_options o = {.stride = S(2), .padding = S(cases[i].padding)};
            agrees_with_float64(
                device, TERN_SHAPE(cases[i].n, cases[i].c, cases[i].height, cases[i].width),
                TERN_SHAPE(cases[i].o, cases[i].c, cases[i].window, cases[i].window), &o, false);
        }
}

static tern_tensor *filled(tern_shape shape, double value)
{
    return tern_full(shape, TERN_SCALAR(value), TERN_F32, "cpu");
}

/* Where differences are made of x before it is multiplied, a large number of x rounds what its neighbours give: which tells
 * that they were, on processors that it is for. */
static void three_by_three_take_fewer_products(void **state)
{
    (void)state;
    tern_device_info info;
    tern_conv_function_options o = {.padding = S(1, 1)};
    assert_ok(tern_device_get_info("cpu", &info));
    TERN_SCOPE {
        tern_tensor *x = filled(TERN_SHAPE(4, 16, 12, 11), 1);
        tern_tensor *w = filled(TERN_SHAPE(8, 16, 3, 3), 0);
        assert_non_null(tern_fill_(tern_select(tern_select(w, 3, 1), 2, 1), 1));
        tern_tensor *want = tern_mul_scalar(filled(TERN_SHAPE(4, 8, 12, 11), 1), TERN_SCALAR(16));
        assert_same(tern_conv2d(x, w, NULL, &o), want);
        assert_non_null(tern_fill_(tern_select(tern_select(x, 2, 5), 2, 7), 0x1p30));
        tern_tensor *y = tern_conv2d(x, w, NULL, &o);
        assert_true(
            tern_item(tern_select(tern_select(tern_select(tern_select(y, 3, 7), 2, 5), 1, 0), 0,
                                  0)) == 0x1p34);
        bool fewer = false;
#ifdef __aarch64__
        fewer = true;
#elif defined(TEST_WITH_V3)
        fewer = strcmp(info.driver, "x86-64-v3") >= 0;
#endif
        assert_int_equal(tern_equal(tern_select(y, 3, 6), tern_select(want, 3, 6)), !fewer);
    }
}

/* Few channels have a way of their own to the weight's gradient: any stride, padding and dilation. */
static void few_channels_agree_with_float64(void **state)
{
    (void)state;
    unsigned seed = 1;
#define PICK(n) (int64_t)((seed = seed * 1664525u + 1013904223u) >> 16) % (n)
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 40; i++)
        TERN_SCOPE {
            int64_t h = 1 + PICK(4), w = 1 + PICK(5), dh = 1 + PICK(2), dw = 1 + PICK(3);
            int64_t c = 1 + PICK(5), height = (h - 1) * dh + 1 + PICK(9),
                    width = (w - 1) * dw + 8 + PICK(30);
            tern_conv_function_options o = {.stride = S(1 + PICK(3), 1 + PICK(3)),
                                            .padding = S(PICK(4), PICK(6)),
                                            .dilation = S(dh, dw)};
            tern_shape x = TERN_SHAPE(1 + PICK(4), c, height, width),
                       weight = TERN_SHAPE(1 + PICK(8), c, h, w);
            agrees_with_float64(device, x, weight, &o, false);
            if (strcmp(device, "cpu") == 0) /* devices may multiply zeros of the padding */
                agrees_with_float64(device, x, weight, &o, true);
        }
#undef PICK
}

static void inputs_may_lack_a_batch_be_empty_or_strided(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = pattern(device, TERN_F32, TERN_SHAPE(3, 6, 5), 7, 11);
        tern_tensor *w = pattern(device, TERN_F32, TERN_SHAPE(4, 3, 3, 3), 5, 9);
        tern_tensor *b = pattern(device, TERN_F32, TERN_SHAPE(4), 3, 7);
        tern_tensor *batch = tern_conv2d(tern_unsqueeze(x, 0), w, b, NULL);
        tern_tensor *alone = tern_conv2d(x, w, b, NULL);
        assert_shape(alone, 4, 4, 3);
        assert_same(alone, tern_squeeze_dim(batch, 0));
        tern_tensor *turned = tern_transpose(tern_contiguous(tern_transpose(x, 1, 2)), 1, 2);
        assert_false(tern_is_contiguous(turned));
        assert_same(tern_conv2d(turned, w, b, NULL), alone);
        tern_tensor *none = tern_zeros(TERN_SHAPE(0, 3, 6, 5), TERN_F32, device);
        tern_requires_grad_(w, true);
        tern_requires_grad_(b, true);
        tern_tensor *y = tern_conv2d(none, w, b, NULL);
        assert_shape(y, 0, 4, 4, 3);
        assert_ok(tern_backward(tern_sum(y)));
        assert_true(tern_item(tern_sum(tern_abs(tern_grad(w)))) == 0);
        assert_values(tern_grad(b), 0, 0, 0, 0);
        assert_shape(tern_conv_transpose2d(alone, w, NULL, NULL), 3, 6, 5);
    }
}

static tern_tensor *whole(const char *device, tern_dtype dtype, tern_shape shape, uint64_t seed)
{
    return tern_to_dtype(test_uniform(device, TERN_F32, shape, 0, 3, seed), dtype);
}

/* Sums are small enough to be the same in float32, and in bytes. */
static void integers_have_the_sums_of_reals(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_I64, TERN_I32, TERN_U8};
    const tern_conv_function_options two = {.stride = TERN_DIMS(2), .padding = TERN_DIMS(1)};
    const tern_conv_transpose_function_options back = {.stride = TERN_DIMS(2), .groups = 2};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            tern_tensor *in[3] = {whole(device, dtypes[i], TERN_SHAPE(2, 4, 6, 5), 1),
                                  whole(device, dtypes[i], TERN_SHAPE(4, 4, 2, 3), 2),
                                  whole(device, dtypes[i], TERN_SHAPE(4), 3)},
                        *wide[3];
            for (int k = 0; k < 3; k++)
                wide[k] = tern_to_dtype(in[k], TERN_F32);
            tern_tensor *y = tern_round(tern_conv2d(wide[0], wide[1], wide[2], &two));
            assert_same(tern_conv2d(in[0], in[1], in[2], &two), tern_to_dtype(y, dtypes[i]));
            y = tern_round(tern_conv_transpose2d(wide[0], wide[1], NULL, &back));
            assert_same(tern_conv_transpose2d(in[0], in[1], NULL, &back),
                        tern_to_dtype(y, dtypes[i]));
        }
}

static void misfits_are_refused_in_pytorch_s_words(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(1, 3, 8, 8), TERN_F32, "cpu");
    tern_tensor *w = tern_zeros(TERN_SHAPE(6, 3, 3, 3), TERN_F32, "cpu");
    tern_tensor *other = tern_zeros(TERN_SHAPE(16, 8, 3, 3), TERN_F32, "cpu");
    tern_tensor *huge = tern_zeros(TERN_SHAPE(6, 3, 9, 9), TERN_F32, "cpu");
    tern_tensor *five = tern_zeros(TERN_SHAPE(5), TERN_F32, "cpu");
    tern_tensor *whole = tern_zeros(TERN_SHAPE(1, 3, 8, 8), TERN_I64, "cpu");
    tern_tensor *fine = tern_zeros(TERN_SHAPE(6, 3, 3, 3), TERN_F64, "cpu");
    assert_null(tern_conv2d(x, other, NULL, NULL));
    assert_error(TERN_ERR_SHAPE,
                 "Given groups=1, weight of size [16, 8, 3, 3], expected "
                 "input[1, 3, 8, 8] to have 8 channels, but got 3 channels instead");
    assert_null(tern_conv2d(x, huge, NULL, NULL));
    assert_error(TERN_ERR_SHAPE, "Calculated padded input size per channel: (8 x 8). Kernel size: "
                                 "(9 x 9). Kernel size can't be greater than actual input size");
    assert_null(tern_conv2d(x, w, five, NULL));
    assert_error(TERN_ERR_SHAPE, "Given groups=1, weight of size [6, 3, 3, 3], expected bias to be "
                                 "1-dimensional with 6 elements, but got bias of size [5] instead");
    assert_null(tern_conv2d(x, w, NULL, &(tern_conv_function_options){.padding = TERN_DIMS(-1)}));
    assert_error(TERN_ERR_ARGUMENT, "negative padding is not supported");
    assert_null(tern_conv2d(x, w, NULL, &(tern_conv_function_options){.stride = TERN_DIMS(0)}));
    assert_error(TERN_ERR_ARGUMENT, "non-positive stride is not supported");
    assert_null(
        tern_conv2d(x, w, NULL, &(tern_conv_function_options){.dilation = TERN_DIMS(1, 0)}));
    assert_error(TERN_ERR_ARGUMENT, "dilation should be greater than zero");
    assert_null(
        tern_conv2d(x, w, NULL, &(tern_conv_function_options){.stride = TERN_DIMS(1, 2, 3)}));
    assert_error(TERN_ERR_ARGUMENT, "expected stride to be a single integer value or a list of 2");
    assert_null(tern_conv2d(x, w, NULL, &(tern_conv_function_options){.groups = 4}));
    assert_error(TERN_ERR_SHAPE, "expected weight to be divisible by 4 at dimension 0");
    assert_null(tern_conv2d(
        x, w, NULL,
        &(tern_conv_function_options){.named_padding = TERN_PADDING_SAME, .stride = TERN_DIMS(2)}));
    assert_error(TERN_ERR_ARGUMENT, "padding='same' is not supported for strided convolutions");
    assert_null(tern_conv2d(x, w, NULL,
                            &(tern_conv_function_options){.named_padding = (tern_named_padding)3}));
    assert_error(TERN_ERR_ARGUMENT, "named_padding 3 is none of tern_named_padding");
    assert_null(tern_conv1d(x, w, NULL, NULL));
    assert_error(TERN_ERR_SHAPE, "expected 3-dimensional weight");
    assert_null(tern_conv2d(five, w, NULL, NULL));
    assert_error(TERN_ERR_SHAPE, "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got "
                                 "input of size: [5]");
    assert_null(tern_conv2d(whole, w, NULL, NULL));
    assert_error(TERN_ERR_DTYPE, "Input type (int64) and weight type (float32) should be the same");
    assert_null(tern_conv2d(x, fine, NULL, NULL));
    assert_error(TERN_ERR_DTYPE, "Input type (float32) and weight type (float64)");
    assert_null(tern_conv2d(NULL, w, NULL, NULL));
    assert_error(TERN_ERR_ARGUMENT, "input");
    assert_null(tern_conv_transpose2d(x, w, NULL, NULL));
    assert_error(TERN_ERR_SHAPE,
                 "Given transposed=1, weight of size [6, 3, 3, 3], expected "
                 "input[1, 3, 8, 8] to have 6 channels, but got 3 channels instead");
    assert_null(tern_conv_transpose2d(
        tern_zeros(TERN_SHAPE(1, 6, 4, 4), TERN_F32, "cpu"), w, NULL,
        &(tern_conv_transpose_function_options){.output_padding = TERN_DIMS(1)}));
    assert_error(TERN_ERR_ARGUMENT,
                 "output padding must be smaller than either stride or dilation");
}

static const struct CMUnitTest tests[] = {
    TEST(convolutions_are_pytorch_s),
    TEST(gradients_of_any_order_are_the_differences),
    TEST(large_convolutions_agree_with_float64),
    TEST(three_by_three_agree_with_float64),
    TEST(three_by_three_take_fewer_products),
    TEST(halved_agree_with_float64),
    TEST(few_channels_agree_with_float64),
    TEST(inputs_may_lack_a_batch_be_empty_or_strided),
    TEST(integers_have_the_sums_of_reals),
    TEST(misfits_are_refused_in_pytorch_s_words),
};
TEST_MAIN(tests)
