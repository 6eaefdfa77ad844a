/* image.c -- colours of images: brightness, contrast, saturation, hue and the like. */
#include "data/image.h"

bool tern_image_given(const tern_tensor *x, bool any, const char *function)
{
    if (!x)
        return tern_fail_argument_null(function, "x"), false;
    tern_dtype dtype = tern_dtype_of(x);
    if (dtype != TERN_U8 && !tern_dtype_is_floating_point(dtype))
        return tern_fail(TERN_ERR_DTYPE, "%s: images are uint8 or floating point, not %s", function,
                         tern_dtype_name(dtype)),
               false;
    tern_shape shape = tern_shape_of(x);
    int64_t channels = shape.ndim < 3 ? 0 : shape.dims[shape.ndim - 3];
    if (shape.ndim < 3 || (!any && channels != 1 && channels != 3))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Input image tensor permitted channel values are 1 or 3, but found "
                         "%lld (%d dims)",
                         function, (long long)channels, shape.ndim),
               false;
    return true;
}

tern_tensor *tern_image_real(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_image_is_real(x) ? x : tern_to_dtype(x, TERN_F32);
}

tern_tensor *tern_image_like(tern_tensor *y, const tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return y ? tern_to_dtype(tern_clamp(y, 0, tern_image_bound(x)), tern_dtype_of(x)) : NULL;
}

bool tern_image_uniform(double low, double high, double *drawn)
{
    uint32_t words[4];
    if (tern_data_draw(words) != TERN_OK)
        return false;
    *drawn = low + (high - low) * tern_data_real(words);
    return true;
}

bool tern_image_below(int64_t n, int64_t *drawn)
{
    uint32_t words[4];
    if (tern_data_draw(words) != TERN_OK)
        return false;
    *drawn = tern_data_below(words, n < 1 ? 1 : n);
    return true;
}

/* ---- blending -------------------------------------------------------------------------------- */

/* Returns ratio x + (1 - ratio) other. */
static tern_tensor *blend(tern_tensor *x, tern_tensor *other, double ratio)
{
    tern_tensor *sum = tern_add(tern_mul_scalar(tern_image_real(x), TERN_SCALAR(ratio)),
                                tern_mul_scalar(other, TERN_SCALAR(1 - ratio)));
    return tern_image_like(sum, x);
}

/* Returns grey in floating point, not rounded: 0.2989 R + 0.587 G + 0.114 B. */
static tern_tensor *grey(tern_tensor *x)
{
    static const double weights[] = {0.2989, 0.587, 0.114};
    tern_tensor *sum = NULL;
    if (tern_size(x, -3) == 1)
        return tern_image_real(x);
    for (int c = 0; c < 3; c++) {
        tern_tensor *part =
            tern_mul_scalar(tern_image_real(tern_narrow(x, -3, c, 1)), TERN_SCALAR(weights[c]));
        sum = sum ? tern_add(sum, part) : part;
    }
    return sum;
}

static tern_tensor *whole_grey(tern_tensor *x)
{
    return tern_image_is_real(x) ? grey(x) : tern_floor(grey(x));
}

tern_tensor *tern_image_adjust_brightness(tern_tensor *x, double factor)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, false, __func__))
        return NULL;
    return tern_image_like(tern_mul_scalar(tern_image_real(x), TERN_SCALAR(factor)), x);
}

tern_tensor *tern_image_adjust_contrast(tern_tensor *x, double factor)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, false, __func__))
        return NULL;
    return blend(x, tern_mean_dim(whole_grey(x), TERN_DIMS(-3, -2, -1), true), factor);
}

tern_tensor *tern_image_adjust_saturation(tern_tensor *x, double factor)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, false, __func__))
        return NULL;
    return tern_size(x, -3) == 1 ? x : blend(x, whole_grey(x), factor);
}

tern_tensor *tern_image_rgb_to_grayscale(tern_tensor *x, int channels)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!tern_image_given(x, false, function))
        return NULL;
    if (channels != 1 && channels != 3)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: num_output_channels must be 1 or 3, got %d.",
                              function, channels);
    tern_tensor *y = tern_to_dtype(grey(x), tern_dtype_of(x));
    if (!y || channels == 1)
        return y;
    return tern_cat((tern_tensor *const[]){y, y, y}, 3, -3);
}

/* ---- hues (torchvision's _rgb_to_hsv and _hsv_to_rgb) ------------------------------------ */

typedef struct planes {
    tern_tensor *of[3];
} planes;

static planes planes_of(tern_tensor *x)
{
    planes p;
    for (int c = 0; c < 3; c++)
        p.of[c] = tern_narrow(x, -3, c, 1);
    return p;
}

static planes to_hsv(tern_tensor *x)
{
    planes rgb = planes_of(x), hsv;
    tern_tensor *high = tern_amax(x, TERN_DIMS(-3), true), *low = tern_amin(x, TERN_DIMS(-3), true);
    tern_tensor *flat = tern_eq(high, low), *range = tern_sub(high, low), *part[3];
    hsv.of[2] = high;
    hsv.of[1] = tern_div(range, tern_where_scalar_self(flat, TERN_SCALAR(1.0), high));
    tern_tensor *divisor = tern_where_scalar_self(flat, TERN_SCALAR(1.0), range);
    for (int c = 0; c < 3; c++)
        part[c] = tern_div(tern_sub(high, rgb.of[c]), divisor);
    /* The largest channel decides the formula; of equal ones, the first. */
    tern_tensor *is_red = tern_eq(high, rgb.of[0]), *is_green = tern_eq(high, rgb.of[1]);
    tern_tensor *red = tern_sub(part[2], part[1]);
    tern_tensor *green = tern_add_scalar(tern_sub(part[0], part[2]), TERN_SCALAR(2.0));
    tern_tensor *blue = tern_add_scalar(tern_sub(part[1], part[0]), TERN_SCALAR(4.0));
    tern_tensor *hue = tern_where(is_red, red, tern_where(is_green, green, blue));
    hsv.of[0] = tern_remainder_scalar(
        tern_add_scalar(tern_mul_scalar(hue, TERN_SCALAR(1.0 / 6)), TERN_SCALAR(1.0)),
        TERN_SCALAR(1.0));
    return hsv;
}

/* Channel c of a colour: v - v s max(0, min(k, 4 - k, 1)) with k = (n + 6 h) mod 6, n = 5, 3, 1. */
static tern_tensor *from_hsv(const planes *hsv)
{
    static const double turns[] = {5, 3, 1};
    tern_tensor *rgb[3], *v = hsv->of[2], *range = tern_mul(v, hsv->of[1]);
    for (int c = 0; c < 3; c++) {
        tern_tensor *k = tern_remainder_scalar(
            tern_add_scalar(tern_mul_scalar(hsv->of[0], TERN_SCALAR(6.0)), TERN_SCALAR(turns[c])),
            TERN_SCALAR(6.0));
        tern_tensor *other = tern_add_scalar(tern_neg(k), TERN_SCALAR(4.0));
        tern_tensor *share = tern_clamp(tern_minimum(k, other), 0, 1);
        rgb[c] = tern_sub(v, tern_mul(range, share));
    }
    return tern_cat(rgb, 3, -3);
}

tern_tensor *tern_image_adjust_hue(tern_tensor *x, double factor)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!tern_image_given(x, false, function))
        return NULL;
    if (!(factor >= -0.5 && factor <= 0.5))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: hue_factor (%g) is not in [-0.5, 0.5].",
                              function, factor);
    if (tern_size(x, -3) == 1 || tern_numel(x) == 0)
        return x;
    tern_tensor *real = tern_image_real(x);
    if (!tern_image_is_real(x))
        real = tern_div_scalar(real, TERN_SCALAR(255.0));
    planes hsv = to_hsv(real);
    hsv.of[0] =
        tern_remainder_scalar(tern_add_scalar(hsv.of[0], TERN_SCALAR(factor)), TERN_SCALAR(1.0));
    tern_tensor *rgb = from_hsv(&hsv);
    if (tern_image_is_real(x))
        return rgb;
    return tern_to_dtype(tern_mul_scalar(rgb, TERN_SCALAR(255 + 1 - 1e-3)), TERN_U8);
}

/* ---- values ------------------------------------------------------------------------------ */

tern_tensor *tern_image_invert(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, true, __func__))
        return NULL;
    return tern_image_is_real(x) ? tern_add_scalar(tern_neg(x), TERN_SCALAR(1.0))
                                 : tern_bitwise_not(x);
}

tern_tensor *tern_image_solarize(tern_tensor *x, double threshold)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!tern_image_given(x, true, function))
        return NULL;
    if (threshold > tern_image_bound(x))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Threshold should be less or equal the maximum value of the "
                              "dtype, but got %g",
                              function, threshold);
    return tern_where(tern_ge_scalar(x, TERN_SCALAR(threshold)), tern_image_invert(x), x);
}

tern_tensor *tern_image_posterize(tern_tensor *x, int bits)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!tern_image_given(x, true, function))
        return NULL;
    if (bits < 0 || bits > 8)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: bits %d are not in 0..8", function, bits);
    if (!tern_image_is_real(x)) {
        int mask = ((1 << bits) - 1) << (8 - bits);
        return tern_bitwise_and(
            x, tern_full(TERN_SHAPE_SCALAR, TERN_SCALAR(mask), TERN_U8, tern_device(x)));
    }
    double levels = 1 << bits;
    tern_tensor *whole = tern_floor(tern_mul_scalar(x, TERN_SCALAR(levels)));
    return tern_mul_scalar(tern_clamp(whole, 0, levels - 1), TERN_SCALAR(1 / levels));
}

tern_tensor *tern_image_autocontrast(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, false, __func__))
        return NULL;
    tern_tensor *real = tern_image_real(x);
    tern_tensor *low = tern_amin(real, TERN_DIMS(-2, -1), true);
    tern_tensor *high = tern_amax(real, TERN_DIMS(-2, -1), true), *flat = tern_eq(low, high);
    tern_tensor *unit = tern_mul_scalar(tern_sub(high, low), TERN_SCALAR(1 / tern_image_bound(x)));
    low = tern_masked_fill(low, flat, TERN_SCALAR(0.0));
    unit = tern_masked_fill(unit, flat, TERN_SCALAR(1.0));
    return tern_image_like(tern_div(tern_sub(real, low), unit), x);
}

/* Equalizes the histogram of one plane of n bytes by a table. */
static void flatten(uint8_t *plane, int64_t n)
{
    int64_t count[256] = {0}, sum = 0;
    int last = 255;
    uint8_t table[256];
    for (int64_t i = 0; i < n; i++)
        count[plane[i]]++;
    while (last > 0 && !count[last])
        last--;
    int64_t step = n ? (n - count[last]) / 255 : 0;
    if (step == 0)
        return;
    for (int v = 0; v < 256; sum += count[v++]) {
        int64_t to = (sum + step / 2) / step;
        table[v] = (uint8_t)(to > 255 ? 255 : to);
    }
    for (int64_t i = 0; i < n; i++)
        plane[i] = table[plane[i]];
}

tern_tensor *tern_image_equalize(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_image_given(x, false, __func__))
        return NULL;
    bool real = tern_image_is_real(x);
    tern_tensor *bytes = x;
    if (real)
        bytes = tern_to_dtype(tern_mul_scalar(x, TERN_SCALAR(255 + 1 - 1e-3)), TERN_U8);
    bytes = tern_clone(tern_contiguous(tern_to(bytes, "cpu")));
    if (!bytes)
        return NULL;
    int64_t plane = tern_size(x, -1) * tern_size(x, -2);
    uint8_t *data = tern_data(bytes);
    for (int64_t at = 0; plane && at < tern_numel(bytes); at += plane)
        flatten(data + at, plane);
    bytes = tern_to(bytes, tern_device(x));
    return real ? tern_div_scalar(tern_to_dtype(bytes, tern_dtype_of(x)), TERN_SCALAR(255.0))
                : bytes;
}
