/* test_vision.c -- interpolate, grid_sample, affine_grid, shuffles: PyTorch's
 * numbers, gradients. */
#include "pattern.h"
#include <stdio.h>

#define S(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / 8,                                                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define CALL(NAME, ...)                                                                            \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
#define TO(...)   tern_interpolate(x, &(tern_interpolate_options){__VA_ARGS__})
#define SIZE(...) .size = TERN_DIMS(__VA_ARGS__)
CALL(nearest, TO(SIZE(3, 7)))
CALL(nearest_exact, TO(.scale_factor = {1.7}, .mode = TERN_INTERPOLATE_NEAREST_EXACT))
CALL(linear, TO(SIZE(8), .mode = TERN_INTERPOLATE_LINEAR))
CALL(bilinear, TO(SIZE(3, 9), .mode = TERN_INTERPOLATE_BILINEAR))
CALL(bilinear_corners, TO(SIZE(5, 7), .mode = TERN_INTERPOLATE_BILINEAR, .align_corners = true))
CALL(bilinear_factor, TO(.scale_factor = {1.9, 2.3}, .mode = TERN_INTERPOLATE_BILINEAR))
CALL(bicubic, TO(SIZE(8, 3), .mode = TERN_INTERPOLATE_BICUBIC))
CALL(bicubic_corners, TO(SIZE(6, 9), .mode = TERN_INTERPOLATE_BICUBIC, .align_corners = true))
CALL(trilinear, TO(SIZE(3, 2, 7), .mode = TERN_INTERPOLATE_TRILINEAR))
CALL(area, TO(SIZE(2, 3), .mode = TERN_INTERPOLATE_AREA))
CALL(pixel_shuffle, tern_pixel_shuffle(x, 2))
CALL(pixel_unshuffle, tern_pixel_unshuffle(x, 2))
CALL(channel_shuffle, tern_channel_shuffle(x, 3))
CALL(affine, tern_affine_grid(x, TERN_SHAPE(2, 1, 3, 4), false))
CALL(affine_volume, tern_affine_grid(x, TERN_SHAPE(1, 1, 2, 1, 3), true))

static const struct {
    const char *name;
    tern_tensor *(*call)(tern_tensor *x);
    tern_shape shape;
} rows[] = {
    {"nearest", nearest, S(1, 2, 5, 3)},
    {"nearest_exact", nearest_exact, S(1, 2, 5)},
    {"linear", linear, S(1, 2, 5)},
    {"bilinear", bilinear, S(1, 2, 5, 4)},
    {"bilinear_corners", bilinear_corners, S(1, 2, 3, 4)},
    {"bilinear_factor", bilinear_factor, S(1, 2, 3, 4)},
    {"bicubic", bicubic, S(1, 2, 5, 4)},
    {"bicubic_corners", bicubic_corners, S(1, 1, 4, 4)},
    {"trilinear", trilinear, S(1, 1, 2, 3, 4)},
    {"area", area, S(1, 2, 5, 4)},
    {"pixel_shuffle", pixel_shuffle, S(2, 8, 2, 3)},
    {"pixel_unshuffle", pixel_unshuffle, S(2, 4, 6)},
    {"channel_shuffle", channel_shuffle, S(2, 6, 2, 2)},
    {"affine", affine, S(2, 2, 3)},
    {"affine_volume", affine_volume, S(1, 3, 4)},
};
static const struct {
    const char *name;
    tern_shape x, grid;
    tern_grid_sample_options options;
} grids[] = {
    {"grid_bilinear", S(2, 2, 4, 5), S(2, 3, 4, 2), {.mode = TERN_GRID_SAMPLE_BILINEAR}},
    {"grid_border",
     S(1, 2, 4, 5),
     S(1, 3, 4, 2),
     {.padding_mode = TERN_GRID_SAMPLE_BORDER, .align_corners = true}},
    {"grid_reflection",
     S(1, 2, 4, 5),
     S(1, 3, 4, 2),
     {.padding_mode = TERN_GRID_SAMPLE_REFLECTION}},
    {"grid_reflection_corners",
     S(1, 2, 4, 5),
     S(1, 3, 4, 2),
     {.padding_mode = TERN_GRID_SAMPLE_REFLECTION, .align_corners = true}},
    {"grid_nearest", S(1, 2, 4, 5), S(1, 3, 4, 2), {.mode = TERN_GRID_SAMPLE_NEAREST}},
    {"grid_bicubic",
     S(1, 2, 4, 5),
     S(1, 3, 4, 2),
     {.mode = TERN_GRID_SAMPLE_BICUBIC, .padding_mode = TERN_GRID_SAMPLE_BORDER}},
    {"grid_bicubic_zeros",
     S(1, 2, 4, 5),
     S(1, 3, 4, 2),
     {.mode = TERN_GRID_SAMPLE_BICUBIC, .align_corners = true}},
    {"grid_volume", S(1, 2, 3, 4, 3), S(1, 2, 3, 2, 3), {.padding_mode = TERN_GRID_SAMPLE_BORDER}},
};
enum { ROWS = sizeof rows / sizeof *rows, GRIDS = sizeof grids / sizeof *grids };

static void assert_golden(test_golden *file, const char *row, const char *part, tern_tensor *x)
{
    test_golden_compare(file, row, part, x, tern_dtype_size(tern_dtype_of(x)) == 2 ? 3e-2 : 2e-5);
}

static void go_back(tern_tensor *y)
{
    tern_tensor *weights = pattern(tern_device(y), tern_dtype_of(y), tern_shape_of(y), 3, 5);
    assert_ok(tern_backward(tern_sum(tern_mul(y, weights))));
}

static void images_are_resampled_as_pytorch_does(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    test_golden *file = test_golden_open("pool");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < (test_thorough(device) ? 4 : 1); d++)
            TERN_SCOPE {
                tern_tensor *x = pattern(device, dtypes[d], rows[i].shape, 7, 31);
                tern_requires_grad_(x, true);
                tern_tensor *y = rows[i].call(x);
                assert_golden(file, rows[i].name, "", y);
                go_back(y);
                assert_golden(file, rows[i].name, ".dx", tern_grad(x));
            }
    test_golden_close(file);
}

/* grid() in golden/pool.py */
static tern_tensor *places(const char *device, tern_dtype dtype, tern_shape shape)
{
    tern_tensor *x = pattern(device, dtype, shape, 7, 13);
    return tern_add_scalar(tern_div_scalar(x, TERN_SCALAR(1.4)), TERN_SCALAR(0.013));
}

static void grids_are_sampled_as_pytorch_does(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("pool");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < GRIDS; i++)
        for (int d = 0; d < (test_thorough(device) ? 2 : 1); d++)
            TERN_SCOPE {
                tern_dtype dtype = d ? TERN_F64 : TERN_F32;
                tern_tensor *x = pattern(device, dtype, grids[i].x, 7, 31);
                tern_tensor *grid = places(device, dtype, grids[i].grid);
                tern_requires_grad_(x, true);
                tern_requires_grad_(grid, true);
                tern_tensor *y = tern_grid_sample(x, grid, &grids[i].options);
                assert_golden(file, grids[i].name, "", y);
                go_back(y);
                assert_golden(file, grids[i].name, ".dx", tern_grad(x));
                assert_golden(file, grids[i].name, ".dgrid", tern_grad(grid));
            }
    test_golden_close(file);
}

static tern_tensor *call_row(tern_tensor *const *in, void *user)
{
    int i;
    memcpy(&i, user, sizeof i);
    return rows[i].call(in[0]);
}

static void gradients_of_any_order_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        if (test_thorough(device) || i == 6)
            TERN_SCOPE {
                tern_tensor *x = test_uniform(device, TERN_F64, rows[i].shape, -1, 1, 3);
                tern_requires_grad_(x, true);
                gradcheck(call_row, &x, 1, .user = &i, .second = true);
            }
}

/* Taller and less wide: bands of the table that overlap, and ones that do not. */
static tern_tensor *lanczos(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *x = in[0];
    return TO(SIZE(6, 3), .mode = TERN_INTERPOLATE_LANCZOS, .antialias = true);
}

static void wide_filters_have_gradients_of_any_order(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(1, 2, 4, 7), -1, 1, 3);
        tern_requires_grad_(x, true);
        gradcheck(lanczos, &x, 1, .second = true);
    }
}

/* Bytes over their whole range. The cpu's are PyTorch's, which tests/parity compares. */
static void images_of_bytes_are_the_same_on_every_device(void **state)
{
    (void)state;
    static const tern_interpolate_options options[] = {
        {.size = S(4, 5), .mode = TERN_INTERPOLATE_BILINEAR},
        {.size = S(13, 20), .mode = TERN_INTERPOLATE_BICUBIC},
        {.size = S(4, 31), .mode = TERN_INTERPOLATE_BICUBIC, .antialias = true},
        {.size = S(3, 7), .mode = TERN_INTERPOLATE_LANCZOS, .antialias = true},
        {.size = S(5, 30), .mode = TERN_INTERPOLATE_NEAREST_EXACT}};
    tern_tensor *image = test_uniform("cpu", TERN_F32, TERN_SHAPE(1, 3, 9, 12), 0, 256, 5);
    image = tern_to_dtype(image, TERN_U8);
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        TERN_SCOPE {
            tern_tensor *y = tern_interpolate(tern_to(image, device), &options[i]);
            assert_int_equal(tern_dtype_of(y), TERN_U8);
            assert_same(y, tern_interpolate(image, &options[i]));
        }
}

/* Rows and columns that do not fill vectors, filters wider than a tile of columns, and both directions: within what two roundings
 * may be off. */
static void bytes_are_reals_that_were_rounded(void **state)
{
    (void)state;
    static const struct {
        int64_t in[3], out[2];
    } sizes[] = {{{3, 33, 700}, {20, 9}}, {{1, 5, 4000}, {3, 7}},     {{2, 40, 30}, {64, 100}},
                 {{1, 1, 65}, {1, 33}},   {{3, 300, 17}, {1, 1}},     {{1, 70, 3000}, {70, 1500}},
                 {{2, 64, 520}, {64, 2}}, {{3, 375, 500}, {224, 224}}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        TERN_SCOPE {
            tern_tensor *x = test_uniform(
                device, TERN_F32, TERN_SHAPE(1, sizes[i].in[0], sizes[i].in[1], sizes[i].in[2]), 0,
                256, i + 1);
            x = tern_to_dtype(x, TERN_U8);
            tern_interpolate_options o = {.size = TERN_SHAPE(sizes[i].out[0], sizes[i].out[1]),
                                          .mode = TERN_INTERPOLATE_BILINEAR,
                                          .antialias = true};
            tern_tensor *bytes = tern_to_dtype(tern_interpolate(x, &o), TERN_F32);
            tern_tensor *reals = tern_interpolate(tern_to_dtype(x, TERN_F32), &o);
            assert_true(tern_item(tern_max(tern_abs(tern_sub(bytes, reals)))) < 1.05);
        }
}

static void misfits_are_refused_in_pytorch_s_words(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(1, 2, 3, 3), TERN_F32, "cpu");
    tern_tensor *grid = tern_zeros(TERN_SHAPE(1, 2, 2, 3), TERN_F32, "cpu");
    assert_null(TO(SIZE(2), .mode = TERN_INTERPOLATE_LINEAR));
    assert_error(TERN_ERR_SHAPE, "Got 4D input, but linear mode needs 3D input");
    assert_null(TO(SIZE(2), .mode = (tern_interpolate_mode)8));
    assert_error(TERN_ERR_ARGUMENT, "Only 3D, 4D and 5D input Tensors supported (got 4D)");
    assert_null(TO(.align_corners = false));
    assert_error(TERN_ERR_ARGUMENT, "either size or scale_factor should be defined");
    assert_null(TO(SIZE(2), .scale_factor = {2}));
    assert_error(TERN_ERR_ARGUMENT, "only one of size or scale_factor should be defined");
    assert_null(TO(SIZE(0, 2)));
    assert_error(TERN_ERR_SHAPE, "Input and output sizes should be greater than 0");
    assert_null(TO(SIZE(2), .align_corners = true));
    assert_error(TERN_ERR_ARGUMENT, "align_corners option can only be set with");
    assert_null(TO(SIZE(2), .antialias = true));
    assert_error(TERN_ERR_ARGUMENT, "Anti-alias option is restricted to bilinear, bicubic, and");
    assert_null(TO(SIZE(2), .mode = TERN_INTERPOLATE_LANCZOS));
    assert_error(TERN_ERR_ARGUMENT, "Lanczos mode requires antialias=True");
    assert_null(TO(SIZE(1, 2, 3)));
    assert_error(TERN_ERR_SHAPE, "must have the same number of spatial dimensions");
    assert_null(tern_grid_sample(x, grid, NULL));
    assert_error(TERN_ERR_SHAPE, "expected grid to have size 2 in last dimension");
    assert_null(
        tern_grid_sample(x, grid, &(tern_grid_sample_options){.mode = (tern_grid_sample_mode)3}));
    assert_error(TERN_ERR_ARGUMENT, "expected mode to be 'bilinear', 'nearest' or 'bicubic'");
    assert_null(tern_grid_sample(x, tern_zeros(TERN_SHAPE(2, 2, 2, 2), TERN_F32, "cpu"), NULL));
    assert_error(TERN_ERR_SHAPE, "expected grid and input to have same batch size");
    assert_null(tern_affine_grid(x, TERN_SHAPE(1, 2, 3, 3), false));
    assert_error(TERN_ERR_SHAPE, "Expected a batch of affine matrices of shape 1x2x3");
    assert_null(tern_pixel_shuffle(x, 2));
    assert_error(TERN_ERR_SHAPE, "divisible by the square of upscale_factor");
    assert_null(tern_pixel_unshuffle(x, 2));
    assert_error(TERN_ERR_SHAPE, "expects height and width to be divisible by downscale_factor");
    assert_null(tern_channel_shuffle(x, 3));
    assert_error(TERN_ERR_SHAPE, "Number of channels must be divisible by groups");
    assert_null(tern_interpolate(NULL, NULL));
    assert_error(TERN_ERR_ARGUMENT, "input");
}

static const struct CMUnitTest tests[] = {
    TEST(images_are_resampled_as_pytorch_does),
    TEST(grids_are_sampled_as_pytorch_does),
    TEST(gradients_of_any_order_are_the_differences),
    TEST(wide_filters_have_gradients_of_any_order),
    TEST(images_of_bytes_are_the_same_on_every_device),
    TEST(bytes_are_reals_that_were_rounded),
    TEST(misfits_are_refused_in_pytorch_s_words),
};
TEST_MAIN(tests)
