/* image_places.c -- crops, resizes, filters and affine transforms of images. */
#include "data/image.h"

/* as_batch returns x as (N, C, H, W); from_batch reshapes such a result back. */
static tern_tensor *as_batch(tern_tensor *x)
{
    tern_shape s = tern_shape_of(x);
    int64_t n = 1;
    for (int i = 0; i < s.ndim - 3; i++)
        n *= s.dims[i];
    return tern_reshape(x, TERN_SHAPE(n, tern_size(x, -3), tern_size(x, -2), tern_size(x, -1)));
}

static tern_tensor *from_batch(tern_tensor *y, const tern_tensor *x)
{
    if (!y)
        return NULL;
    tern_shape s = tern_shape_of(x);
    s.dims[s.ndim - 2] = tern_size(y, -2);
    s.dims[s.ndim - 1] = tern_size(y, -1);
    return tern_reshape(y, s);
}

tern_tensor *tern_image_crop(tern_tensor *x, int64_t top, int64_t left, int64_t height,
                             int64_t width)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!tern_image_given(x, true, function))
        return NULL;
    if (height < 1 || width < 1 || top == INT64_MIN || left == INT64_MIN ||
        tern_size_is_lost(tern_size_add(top, height)) ||
        tern_size_is_lost(tern_size_add(left, width)))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %lld x %lld pixels", function,
                              (long long)height, (long long)width);
    int64_t h = tern_size(x, -2), w = tern_size(x, -1);
    int64_t before[2] = {top < 0 ? -top : 0, left < 0 ? -left : 0};
    int64_t after[2] = {top + height > h ? top + height - h : 0,
                        left + width > w ? left + width - w : 0};
    if (before[0] || before[1] || after[0] || after[1])
        x = tern_pad(x, TERN_SHAPE(before[1], after[1], before[0], after[0]), NULL);
    return tern_narrow(tern_narrow(x, -2, top + before[0], height), -1, left + before[1], width);
}

tern_tensor *tern_image_center_crop(tern_tensor *x, int64_t height, int64_t width)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, true, __func__))
        return NULL;
    if (height < 1 || width < 1)
        return tern_image_crop(x, 0, 0, height, width);
    int64_t h = tern_size(x, -2), w = tern_size(x, -1);
    /* Python's round: ties to even. A smaller image is padded first, with the smaller part before
     * it. */
    int64_t top = h >= height ? (int64_t)nearbyint((double)(h - height) / 2) : -((height - h) / 2);
    int64_t left = w >= width ? (int64_t)nearbyint((double)(w - width) / 2) : -((width - w) / 2);
    return tern_image_crop(x, top, left, height, width);
}

tern_tensor *tern_image_resize(tern_tensor *x, int64_t height, int64_t width)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, true, __func__))
        return NULL;
    if (tern_size(x, -2) == height && tern_size(x, -1) == width)
        return x;
    return from_batch(
        tern_interpolate(as_batch(x), &(tern_interpolate_options){.size = TERN_SHAPE(height, width),
                                                                  .mode = TERN_INTERPOLATE_BILINEAR,
                                                                  .antialias = true}),
        x);
}

/* ---- filters --------------------------------------------------------------------------------- */

/* Convolves each channel of x, floating point, with the same kernel of (rows, columns). */
static tern_tensor *filtered(tern_tensor *x, const double *kernel, int rows, int columns)
{
    int64_t channels = tern_size(x, -3);
    tern_tensor *k = tern_to_dtype(
        tern_from_data(kernel, TERN_SHAPE(1, 1, rows, columns), TERN_F64, "cpu"), tern_dtype_of(x));
    k = tern_contiguous(
        tern_expand(tern_to(k, tern_device(x)), TERN_SHAPE(channels, 1, rows, columns)));
    return tern_conv2d(x, k, NULL, &(tern_conv_function_options){.groups = channels});
}

static tern_tensor *rounded_like(tern_tensor *y, const tern_tensor *x)
{
    return tern_image_is_real(x) ? y : tern_to_dtype(tern_round(y), tern_dtype_of(x));
}

enum { LARGEST_KERNEL = 1025 };

tern_tensor *tern_image_gaussian_blur(tern_tensor *x, int size, double sigma)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!tern_image_given(x, true, function))
        return NULL;
    if (size < 1 || size % 2 == 0 || size > LARGEST_KERNEL || !(sigma > 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: kernel_size should have odd and positive integers, and sigma "
                              "should be positive; not %d and %g",
                              function, size, sigma);
    double kernel[LARGEST_KERNEL], sum = 0, limit = (size - 1) / (2 * sqrt(2));
    for (int i = 0; i < size; i++) {
        double at = size == 1 ? 0 : (-limit + 2 * limit * i / (size - 1)) / sigma;
        sum += kernel[i] = exp(-at * at);
    }
    for (int i = 0; i < size; i++)
        kernel[i] /= sum;
    tern_tensor *real =
        tern_pad(as_batch(tern_image_real(x)), TERN_SHAPE(size / 2, size / 2, size / 2, size / 2),
                 &(tern_pad_options){.mode = TERN_PAD_REFLECT});
    /* the kernel is the product of a row and a column */
    tern_tensor *y = filtered(filtered(real, kernel, 1, size), kernel, size, 1);
    return from_batch(rounded_like(y, x), x);
}

tern_tensor *tern_image_adjust_sharpness(tern_tensor *x, double factor)
{
    TERN_NAMED_IN_ERRORS;
    static const double kernel[] = {1.0 / 13, 1.0 / 13, 1.0 / 13, 1.0 / 13, 5.0 / 13,
                                    1.0 / 13, 1.0 / 13, 1.0 / 13, 1.0 / 13};
    const char *function = __func__;
    if (!tern_image_given(x, false, function))
        return NULL;
    if (!(factor >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: sharpness_factor (%g) is not non-negative.",
                              function, factor);
    int64_t h = tern_size(x, -2), w = tern_size(x, -1);
    if (tern_numel(x) == 0 || h <= 2 || w <= 2)
        return x;
    tern_tensor *y = as_batch(tern_clone(tern_image_real(x)));
    tern_tensor *blurred = filtered(y, kernel, 3, 3);
    if (!tern_image_is_real(x))
        blurred = tern_round(blurred);
    tern_tensor *inside = tern_narrow(tern_narrow(y, -2, 1, h - 2), -1, 1, w - 2);
    tern_tensor *mixed =
        tern_add(inside, tern_mul_scalar(tern_sub(blurred, inside), TERN_SCALAR(1 - factor)));
    if (!tern_copy_(inside, mixed))
        return NULL;
    return from_batch(tern_image_like(y, x), x);
}

/* ---- affine transforms ----------------------------------------------------------------------- */

/* Computes the matrix from positions of the result to positions of x: torchvision's
 * _get_inverse_affine_matrix. */
static void inverse(double angle, const double *move, double scale, const double *shear,
                    const double *center, double m[6])
{
    const double degree = 3.14159265358979323846 / 180;
    double rot = angle * degree, sx = shear[0] * degree, sy = shear[1] * degree;
    double cx = center[0], cy = center[1];
    double a = cos(rot - sy) / cos(sy), b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
    double c = sin(rot - sy) / cos(sy), d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);
    m[0] = d / scale;
    m[1] = -b / scale;
    m[3] = -c / scale;
    m[4] = a / scale;
    m[2] = m[0] * (-cx - move[0]) + m[1] * (-cy - move[1]) + cx;
    m[5] = m[3] * (-cx - move[0]) + m[4] * (-cy - move[1]) + cy;
}

/* Returns the grid (1, H, W, 2) for tern_grid_sample. */
static tern_tensor *grid_of(const double m[6], int64_t h, int64_t w)
{
    tern_tensor *grid = tern_empty(TERN_SHAPE(1, h, w, 2), TERN_F32, "cpu");
    float *at = grid ? tern_data(grid) : NULL;
    float row[6];
    for (int i = 0; i < 6; i++)
        row[i] = (float)m[i] / (float)(i < 3 ? 0.5 * (double)w : 0.5 * (double)h);
    for (int64_t i = 0; at && i < h; i++)
        for (int64_t j = 0; j < w; j++, at += 2) {
            float x = (float)((double)j - 0.5 * (double)w + 0.5);
            float y = (float)((double)i - 0.5 * (double)h + 0.5);
            at[0] = x * row[0] + y * row[1] + row[2];
            at[1] = x * row[3] + y * row[4] + row[5];
        }
    return grid;
}

static tern_tensor *sampled(tern_tensor *x, tern_tensor *grid)
{
    int64_t n = tern_size(x, 0);
    grid = tern_expand(grid, TERN_SHAPE(n, tern_size(grid, 1), tern_size(grid, 2), 2));
    return tern_grid_sample(x, grid, &(tern_grid_sample_options){.mode = TERN_GRID_SAMPLE_NEAREST});
}

tern_tensor *tern_image_affine(tern_tensor *x, double angle, const double *translate, double scale,
                               const double *shear, const double *center, double fill)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    static const double none[2];
    if (!tern_image_given(x, true, function))
        return NULL;
    if (!(scale > 0))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Argument scale should be positive; not %g",
                              function, scale);
    int64_t h = tern_size(x, -2), w = tern_size(x, -1);
    if (tern_numel(x) == 0)
        return x;
    double m[6], middle[2] = {0, 0};
    if (center) {
        middle[0] = center[0] - 0.5 * (double)w;
        middle[1] = center[1] - 0.5 * (double)h;
    }
    inverse(angle, translate ? translate : none, scale, shear ? shear : none, middle, m);
    tern_tensor *real = as_batch(tern_image_real(x));
    tern_tensor *grid =
        tern_to_dtype(tern_to(grid_of(m, h, w), tern_device(x)), tern_dtype_of(real));
    tern_tensor *y = sampled(real, grid);
    if (fill != 0) {
        tern_tensor *ones = tern_ones_like(tern_narrow(real, 1, 0, 1));
        tern_tensor *outside = tern_lt_scalar(sampled(ones, grid), TERN_SCALAR(0.5));
        y = tern_masked_fill(y, outside, TERN_SCALAR(fill));
    }
    return from_batch(rounded_like(y, x), x);
}
