/* test_transforms.c -- functions of images against torchvision's (golden/images.py), and random transforms. */
#include "support.h"
#include <math.h>
#include <stdio.h>

/* ---- what is the same every time --------------------------------------------------------- */

#define IMAGE(NAME, CALL)                                                                          \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return CALL;                                                                               \
    }
IMAGE(brightness, tern_image_adjust_brightness(x, 1.4))
IMAGE(darkness, tern_image_adjust_brightness(x, 0.3))
IMAGE(contrast, tern_image_adjust_contrast(x, 1.7))
IMAGE(no_contrast, tern_image_adjust_contrast(x, 0))
IMAGE(saturation, tern_image_adjust_saturation(x, 0.4))
IMAGE(more_saturation, tern_image_adjust_saturation(x, 1.9))
IMAGE(hue, tern_image_adjust_hue(x, 0.2))
IMAGE(other_hue, tern_image_adjust_hue(x, -0.4))
IMAGE(sharpness, tern_image_adjust_sharpness(x, 2))
IMAGE(no_sharpness, tern_image_adjust_sharpness(x, 0))
IMAGE(posterize, tern_image_posterize(x, 3))
IMAGE(solarize, tern_image_solarize(x, tern_dtype_of(x) == TERN_U8 ? 128 : 0.5))
IMAGE(autocontrast, tern_image_autocontrast(x))
IMAGE(equalize, tern_image_equalize(x))
IMAGE(invert, tern_image_invert(x))
IMAGE(gray, tern_size(x, 0) == 3 ? tern_image_rgb_to_grayscale(x, 3) : x)
IMAGE(blur, tern_image_gaussian_blur(x, 3, 0.8))
IMAGE(resize, tern_image_resize(x, 4, 7))
IMAGE(larger, tern_image_resize(x, 13, 8))
IMAGE(center, tern_image_center_crop(x, 5, 3))
IMAGE(around, tern_image_center_crop(x, 12, 15))
IMAGE(crop, tern_image_crop(x, -1, 2, 6, 5))
IMAGE(shear, tern_image_affine(x, 0, NULL, 1, (double[]){12, 0}, (double[]){0, 0}, 0))
IMAGE(move, tern_image_affine(x, 0, (double[]){2, -1}, 1, NULL, NULL,
                              tern_dtype_of(x) == TERN_U8 ? 9 : 0.5))
IMAGE(rotate, tern_image_affine(x, -30, NULL, 1, NULL, NULL, 0))
IMAGE(all_of_it, tern_image_affine(x, 20, (double[]){1, 2}, 0.7, (double[]){5, -8}, NULL, 0))

static tern_tensor *by(tern_transform *t, tern_tensor *x)
{
    tern_tensor *y = tern_transform_apply(t, x);
    tern_transform_free(t);
    return y;
}
IMAGE(to_float, by(tern_transforms_to_dtype(TERN_F32, true), x))
IMAGE(to_byte, by(tern_transforms_to_dtype(TERN_U8, true), x))

/* Where images are mixed PyTorch's additions are fused on the cpu, and not elsewhere: before a
 * byte's fraction is cut off that may be one more or less. */
#define MIX(NAME)                                                                                  \
    {                                                                                              \
#NAME, NAME, 1                                                                             \
    }
#define ROW(NAME)                                                                                  \
    {                                                                                              \
#NAME, NAME, 0                                                                             \
    }
static const struct {
    const char *name;
    tern_tensor *(*call)(tern_tensor *x);
    double most;
} rows[] = {ROW(brightness),   ROW(darkness),   MIX(contrast),
            MIX(no_contrast),  MIX(saturation), MIX(more_saturation),
            ROW(hue),          ROW(other_hue),  ROW(sharpness),
            ROW(no_sharpness), ROW(posterize),  ROW(solarize),
            ROW(autocontrast), ROW(equalize),   ROW(invert),
            ROW(gray),         ROW(blur),       ROW(resize),
            ROW(larger),       ROW(center),     ROW(around),
            ROW(crop),         ROW(to_float),   ROW(to_byte),
            ROW(shear),        ROW(move),       ROW(rotate),
            ROW(all_of_it)};

/* Bytes are the same, reals to a part in a million. */
static void images_are_torchvisions(void **state)
{
    (void)state;
    static const char *const inputs[] = {"colour", "grey", "flat", "real"};
    test_golden *golden = test_golden_open("images");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            TERN_SCOPE {
                char name[64];
                snprintf(name, sizeof name, "%s.%s", inputs[i], rows[k].name);
                tern_tensor *x = test_golden_tensor(golden, inputs[i], device);
                tern_tensor *y = rows[k].call(x),
                            *expected = test_golden_tensor(golden, name, device);
                if (!y)
                    print_error("%s: %s\n", name, tern_last_error());
                if (tern_dtype_of(expected) == TERN_U8)
                    test_close(y, expected, (test_tolerance){rows[k].most, 0, 0}, name, __FILE__,
                               __LINE__);
                else
                    test_close(y, expected, (test_tolerance){2e-6, 2e-6, 0}, name, __FILE__,
                               __LINE__);
            }
    test_golden_close(golden);
}

/* ---- sizes ------------------------------------------------------------------------------- */

static void sizes_follow_the_shorter_edge(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(3, 30, 47), TERN_U8, "cpu");
        assert_shape(by(tern_transforms_resize(TERN_SHAPE(20), NULL), x), 3, 20, 31);
        assert_shape(by(tern_transforms_resize(TERN_SHAPE(20, 10), NULL), x), 3, 20, 10);
        const tern_resize_options most = {.max_size = 25};
        assert_shape(by(tern_transforms_resize(TERN_SHAPE(20), &most), x), 3, 16, 25);
        assert_shape(by(tern_transforms_resize(TERN_SHAPE(30), NULL), x), 3, 30, 47);
        assert_shape(by(tern_transforms_center_crop(TERN_SHAPE(8)), x), 3, 8, 8);
        assert_shape(by(tern_transforms_pad(TERN_SHAPE(1, 2), 0), x), 3, 34, 49);
        assert_shape(by(tern_transforms_pad(TERN_SHAPE(1, 2, 3, 4), 0), x), 3, 36, 51);
        assert_null(tern_transforms_resize(TERN_SHAPE(20), &(tern_resize_options){.max_size = 9}));
        assert_error(TERN_ERR_ARGUMENT, "must be strictly greater than the requested size");
        const tern_resize_options cubic = {.interpolation = TERN_INTERPOLATE_BICUBIC};
        const tern_interpolate_options same = {
            .size = TERN_SHAPE(20, 10), .mode = TERN_INTERPOLATE_BICUBIC, .antialias = true};
        assert_same(by(tern_transforms_resize(TERN_SHAPE(20, 10), &cubic), x),
                    tern_squeeze_dim(tern_interpolate(tern_unsqueeze(x, 0), &same), 0));
        assert_null(tern_transforms_resize(
            TERN_SHAPE(20), &(tern_resize_options){.interpolation = TERN_INTERPOLATE_AREA}));
        assert_error(TERN_ERR_ARGUMENT, "interpolation");
        assert_null(tern_transforms_resize(TERN_SHAPE(0), NULL));
        assert_error(TERN_ERR_ARGUMENT, "positive numbers");
        assert_null(tern_transforms_pad(TERN_SHAPE(1, 2, 3), 0));
        assert_error(TERN_ERR_ARGUMENT, "Padding must be an int or a 1, 2, or 4 element tuple");
    }
}

/* ---- what is random ---------------------------------------------------------------------- */

static tern_tensor *ramp(void)
{
    tern_tensor *x = tern_arange(0, 3 * 20 * 24, 1, TERN_I64, "cpu");
    return tern_to_dtype(
        tern_reshape(tern_remainder_scalar(x, TERN_SCALAR(251)), TERN_SHAPE(3, 20, 24)), TERN_U8);
}

static void random_transforms_follow_the_seed(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_transform *all[] = {
            tern_transforms_random_horizontal_flip(0.5),
            tern_transforms_random_vertical_flip(0.5),
            tern_transforms_random_crop(TERN_SHAPE(12), NULL),
            tern_transforms_random_resized_crop(TERN_SHAPE(12), NULL),
            tern_transforms_color_jitter(
                &(tern_color_jitter_options){.brightness = 0.4, .contrast = 0.4, .hue = 0.3}),
            tern_transforms_random_grayscale(0.5),
            tern_transforms_gaussian_blur(3, 0.1, 2),
            tern_transforms_random_erasing(&(tern_random_erasing_options){.p = 0.9}),
            tern_transforms_rand_augment(NULL),
            tern_transforms_random_apply(tern_transforms_grayscale(3), 0.5),
        };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            tern_tensor *x = ramp(), *first = NULL;
            int others = 0;
            assert_non_null(all[i]);
            for (int seed = 0; seed < 20; seed++)
                for (int again = 0; again < 2; again++) {
                    tern_manual_seed((uint64_t)seed);
                    tern_tensor *y = tern_transform_apply(all[i], x);
                    assert_non_null(y);
                    if (again)
                        assert_same(y, first);
                    else
                        others += first && (!tern_same_shape(y, first) || !tern_equal(y, first));
                    first = y;
                }
            assert_true(others > 2);
            assert_same(x, ramp()); /* none writes into what it is given */
            tern_transform_free(all[i]);
        }
    }
}

static void probabilities_are_kept(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = ramp();
        int flips = 0;
        tern_transform *flip = tern_transforms_random_horizontal_flip(0.25);
        tern_manual_seed(3);
        for (int i = 0; i < 400; i++)
            TERN_SCOPE
                flips += tern_transform_apply(flip, x) != x;
        assert_in_range(flips, 70, 130);
        tern_transform_free(flip);
        tern_transform *crop = tern_transforms_random_resized_crop(
            TERN_SHAPE(4),
            &(tern_random_resized_crop_options){.scale = {0.2, 0.3}, .ratio = {1.9, 2.0}});
        for (int i = 0; i < 100; i++)
            TERN_SCOPE
                assert_shape(tern_transform_apply(crop, x), 3, 4, 4);
        tern_transform_free(crop);
    }
}

/* Of each of 14 operations at all magnitudes: an image of the same shape and type. */
static void rand_augment_keeps_shape_and_type(void **state)
{
    (void)state;
    for (int magnitude = 0; magnitude < 31; magnitude += 5)
        TERN_SCOPE {
            tern_transform *t = tern_transforms_rand_augment(
                TERN_DEFAULTS(rand_augment, .num_ops = 3, .magnitude = magnitude, .fill = 0.5));
            tern_tensor *x = ramp(), *real = tern_rand(TERN_SHAPE(3, 16, 16), TERN_F32, "cpu");
            for (int i = 0; i < 30; i++)
                TERN_SCOPE {
                    tern_tensor *y = tern_transform_apply(t, x), *z = tern_transform_apply(t, real);
                    assert_shape(y, 3, 20, 24);
                    assert_shape(z, 3, 16, 16);
                    assert_true(tern_dtype_of(y) == TERN_U8 && tern_dtype_of(z) == TERN_F32);
                }
            tern_transform_free(t);
        }
}

static void erased_rectangles_have_their_value(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_transform *t =
            tern_transforms_random_erasing(TERN_DEFAULTS(random_erasing, .p = 1, .value = 7));
        tern_tensor *x = tern_zeros(TERN_SHAPE(1, 40, 50), TERN_F32, "cpu");
        for (int i = 0; i < 20; i++) {
            tern_tensor *y = tern_transform_apply(t, x);
            double share = tern_item(tern_mean(y)) / 7;
            assert_true(share >= 0.01 && share <= 0.35);
        }
        tern_transform_free(t);
    }
}

/* ---- composed, and refused --------------------------------------------------------------- */

static tern_tensor *nothing(tern_tensor *x, void *user)
{
    (void)x, (void)user;
    return NULL;
}

/* Types and normalised channels of bytes, which a composition looks up in a table, are those of one transform after the other; a
 * function between them is called with the image. */
static tern_tensor *twice(tern_tensor *x, void *user)
{
    *(int64_t *)user = tern_numel(x);
    return tern_mul_scalar(x, TERN_SCALAR(2.0));
}

static void bytes_that_are_looked_up_are_the_same(void **state)
{
    (void)state;
    const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
    int64_t seen = 0;
    TERN_SCOPE {
        for (int kind = 0; kind < 4; kind++) {
            tern_dtype dtype = kind == 3 ? TERN_F64 : TERN_F32;
            tern_transform *t[] = {tern_transforms_to_dtype(dtype, kind != 1),
                                   kind == 2 ? tern_transforms_lambda(twice, &seen)
                                             : tern_transforms_normalize(mean, std, 3),
                                   tern_transforms_normalize(mean + 1, std, 1)};
            tern_tensor *x = tern_to_dtype(
                test_uniform("cpu", TERN_F32, TERN_SHAPE(3, 37, 41), 0, 256, 3), TERN_U8);
            tern_tensor *y = x;
            for (int i = 0; i < 3; i++)
                y = tern_transform_apply(t[i], y);
            tern_transform *all = tern_transforms_compose_of(t, 3);
            assert_same(tern_transform_apply(all, x), y);
            assert_same(tern_transform_apply(all, tern_transpose(x, 1, 2)),
                        tern_transpose(y, 1, 2));
            tern_transform_free(all);
        }
        assert_int_equal(seen, 3 * 37 * 41);
        tern_transform *wrong = tern_transforms_compose(tern_transforms_to_dtype(TERN_F32, true),
                                                        tern_transforms_normalize(mean, std, 3));
        assert_null(tern_transform_apply(wrong, tern_zeros(TERN_SHAPE(2, 64, 64), TERN_U8, "cpu")));
        assert_error(TERN_ERR_SHAPE, "with 3 channels");
        tern_transform_free(wrong);
    }
}

static void transforms_are_composed(void **state)
{
    (void)state;
    TERN_SCOPE {
        const double mean[] = {0.5, 0.4, 0.3}, std[] = {0.2, 0.25, 0.5};
        tern_transform *t = tern_transforms_compose(tern_transforms_center_crop(TERN_SHAPE(2)),
                                                    tern_transforms_to_dtype(TERN_F32, true),
                                                    tern_transforms_normalize(mean, std, 3));
        tern_tensor *y = tern_transform_apply(
            t, tern_full(TERN_SHAPE(3, 4, 4), TERN_SCALAR(51), TERN_U8, "cpu"));
        assert_shape(y, 3, 2, 2);
        for (int c = 0; c < 3; c++)
            assert_true(fabs(tern_item(tern_select(tern_select(tern_select(y, 0, c), 0, 0), 0, 0)) -
                             (0.2 - mean[c]) / std[c]) < 1e-6);
        tern_transform_free(t);
        assert_null(tern_transforms_compose(tern_transforms_center_crop(TERN_SHAPE(2)), NULL));
        assert_error(TERN_ERR_ARGUMENT, "a transform is NULL");
        t = tern_transforms_compose(tern_transforms_lambda(nothing, NULL));
        assert_null(tern_transform_apply(t, y));
        assert_error(TERN_ERR_ARGUMENT, "Lambda: the transform gave no tensor");
        tern_transform_free(t);
    }
}

static void wrong_images_and_numbers_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *whole = tern_zeros(TERN_SHAPE(3, 4, 4), TERN_I64, "cpu");
        tern_tensor *two = tern_zeros(TERN_SHAPE(2, 4, 4), TERN_U8, "cpu");
        assert_null(tern_image_invert(whole));
        assert_error(TERN_ERR_DTYPE, "images are uint8 or floating point, not int64");
        assert_null(tern_image_adjust_hue(two, 0.1));
        assert_error(TERN_ERR_SHAPE, "permitted channel values are 1 or 3, but found 2");
        assert_null(tern_image_adjust_hue(tern_zeros(TERN_SHAPE(3, 4, 4), TERN_U8, "cpu"), 0.7));
        assert_error(TERN_ERR_ARGUMENT, "hue_factor (0.7) is not in [-0.5, 0.5].");
        assert_null(by(tern_transforms_normalize((double[]){0}, (double[]){1}, 1), two));
        assert_error(TERN_ERR_DTYPE, "Input tensor should be a float tensor. Got uint8.");
        assert_null(tern_transforms_normalize((double[]){0}, (double[]){0}, 1));
        assert_error(TERN_ERR_ARGUMENT, "std evaluated to zero");
        assert_null(tern_transforms_random_horizontal_flip(1.5));
        assert_error(TERN_ERR_ARGUMENT, "`p` should be a floating point value");
        assert_null(tern_transforms_color_jitter(&(tern_color_jitter_options){.hue = 0.6}));
        assert_error(TERN_ERR_ARGUMENT, "hue at most 0.5");
        assert_null(tern_transforms_random_apply(tern_transforms_grayscale(1), 2));
        assert_error(TERN_ERR_ARGUMENT, "`p` should be");
        assert_null(by(tern_transforms_random_crop(TERN_SHAPE(9), NULL), two));
        assert_error(TERN_ERR_SHAPE, "larger than padded input image size (4, 4)");
        assert_null(tern_image_gaussian_blur(two, 4, 1));
        assert_error(TERN_ERR_ARGUMENT, "odd and positive");
        assert_null(tern_transforms_rand_augment(&(tern_rand_augment_options){.magnitude = 40}));
        assert_error(TERN_ERR_ARGUMENT, "magnitude 40 of 31");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(images_are_torchvisions),
        TEST(sizes_follow_the_shorter_edge),
        TEST(random_transforms_follow_the_seed),
        TEST(probabilities_are_kept),
        TEST(rand_augment_keeps_shape_and_type),
        TEST(erased_rectangles_have_their_value),
        TEST(bytes_that_are_looked_up_are_the_same),
        TEST(transforms_are_composed),
        TEST(wrong_images_and_numbers_are_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
