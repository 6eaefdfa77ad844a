/* transforms_color.c -- random colours, random erasing, and transforms with a probability. */
#include "base/option.h"
#include "data/image.h"

/* ---- jitter ------------------------------------------------------------------------------ */

static tern_tensor *(*const adjust[4])(tern_tensor *x, double factor) = {
    tern_image_adjust_brightness, tern_image_adjust_contrast, tern_image_adjust_saturation,
    tern_image_adjust_hue};

static tern_tensor *jitter_apply(tern_transform *t, tern_tensor *x)
{
    const double *by = t->data;
    int64_t order[4] = {0, 1, 2, 3};
    uint32_t words[4];
    if (tern_data_draw(words) != TERN_OK)
        return NULL;
    tern_data_shuffle(order, 4, (uint64_t)words[0] << 32 | words[1]);
    for (int i = 0; i < 4 && x; i++) {
        int64_t k = order[i];
        double factor, middle = k == 3 ? 0 : 1;
        if (by[k] == 0)
            continue;
        double low = middle - by[k];
        if (!tern_image_uniform(k < 3 && low < 0 ? 0 : low, middle + by[k], &factor))
            return NULL;
        x = adjust[k](x, factor);
    }
    return x;
}

tern_transform *tern_transforms_color_jitter(const tern_color_jitter_options *options)
{
    static const tern_transform_kind kind = {"ColorJitter", jitter_apply, NULL, false};
    const tern_color_jitter_options o = tern_read_color_jitter(options);
    const double by[4] = {o.brightness, o.contrast, o.saturation, o.hue};
    for (int i = 0; i < 4; i++)
        if (!(by[i] >= 0) || (i == 3 && by[i] > 0.5))
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_transforms_color_jitter: numbers must be non negative, hue "
                                  "at most 0.5; number %d is %g",
                                  i, by[i]);
    return tern_transform_new(&kind, by, sizeof by);
}

/* ---- grey, blur -------------------------------------------------------------------------- */

typedef struct numbers {
    double p, low, high;
    int n;
} numbers;

static bool happens(double p, bool *does)
{
    double u;
    if (!tern_image_uniform(0, 1, &u))
        return false;
    *does = u < p;
    return true;
}

static tern_tensor *grey_apply(tern_transform *t, tern_tensor *x)
{
    const numbers *o = t->data;
    bool does = true;
    if (o->n == 0 && !happens(o->p, &does))
        return NULL;
    int channels = o->n ? o->n : (int)tern_size(x, -3);
    return does ? tern_image_rgb_to_grayscale(x, channels) : x;
}

tern_transform *tern_transforms_grayscale(int channels)
{
    static const tern_transform_kind kind = {"Grayscale", grey_apply, NULL, false};
    if (channels != 1 && channels != 3)
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_transforms_grayscale: num_output_channels must be 1 or 3, got %d", channels);
    return tern_transform_new(&kind, &(numbers){.n = channels}, sizeof(numbers));
}

static bool is_probability(double p, const char *function)
{
    if (p >= 0 && p <= 1)
        return true;
    tern_fail(TERN_ERR_ARGUMENT,
              "%s: `p` should be a floating point value in the interval [0.0, 1.0]; not %g",
              function, p);
    return false;
}

tern_transform *tern_transforms_random_grayscale(double p)
{
    static const tern_transform_kind kind = {"RandomGrayscale", grey_apply, NULL, false};
    return is_probability(p, "tern_transforms_random_grayscale")
               ? tern_transform_new(&kind, &(numbers){.p = p}, sizeof(numbers))
               : NULL;
}

static tern_tensor *blur_apply(tern_transform *t, tern_tensor *x)
{
    const numbers *o = t->data;
    double sigma;
    if (!tern_image_uniform(o->low, o->high, &sigma))
        return NULL;
    return tern_image_gaussian_blur(x, o->n, sigma);
}

tern_transform *tern_transforms_gaussian_blur(int size, double low, double high)
{
    static const tern_transform_kind kind = {"GaussianBlur", blur_apply, NULL, false};
    if (size < 1 || size % 2 == 0 || !(low > 0 && low <= high))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_transforms_gaussian_blur: kernel size %d should be a tuple of odd "
            "and positive integers, sigma values positive and of the form (min, "
            "max), not (%g, %g)",
            size, low, high);
    return tern_transform_new(&kind, &(numbers){.n = size, .low = low, .high = high},
                              sizeof(numbers));
}

/* ---- erasing ----------------------------------------------------------------------------- */

/* Draws up to ten rectangles and writes the first that fits; r[2], the height, is 0 if none
 * does. */
static bool rectangle(const tern_random_erasing_options *o, int64_t h, int64_t w, int64_t r[4])
{
    r[2] = 0;
    for (int i = 0; i < 10; i++) {
        double area, ratio;
        if (!tern_image_uniform(o->scale[0], o->scale[1], &area) ||
            !tern_image_uniform(log(o->ratio[0]), log(o->ratio[1]), &ratio))
            return false;
        area *= (double)h * (double)w;
        int64_t high = (int64_t)nearbyint(sqrt(area * exp(ratio)));
        int64_t wide = (int64_t)nearbyint(sqrt(area / exp(ratio)));
        if (high >= h || wide >= w)
            continue;
        r[2] = high;
        r[3] = wide;
        return tern_image_below(h - high + 1, &r[0]) && tern_image_below(w - wide + 1, &r[1]);
    }
    return true;
}

static tern_tensor *erase_apply(tern_transform *t, tern_tensor *x)
{
    const tern_random_erasing_options *o = t->data;
    int64_t r[4];
    bool does;
    if (!tern_image_given(x, true, "RandomErasing") || !happens(o->p, &does))
        return NULL;
    if (!does)
        return x;
    if (!rectangle(o, tern_size(x, -2), tern_size(x, -1), r))
        return NULL;
    if (r[2] < 1 || r[3] < 1)
        return x;
    tern_tensor *y = tern_clone(x);
    tern_tensor *part = tern_narrow(tern_narrow(y, -2, r[0], r[2]), -1, r[1], r[3]);
    if (!o->random)
        return tern_fill_(part, TERN_SCALAR(o->value)) ? y : NULL;
    tern_tensor *noise = tern_randn(tern_shape_of(part), TERN_F32, tern_device(x));
    return tern_copy_(part, tern_to_dtype(noise, tern_dtype_of(x))) ? y : NULL;
}

tern_transform *tern_transforms_random_erasing(const tern_random_erasing_options *options)
{
    static const tern_transform_kind kind = {"RandomErasing", erase_apply, NULL, false};
    const char *function = "tern_transforms_random_erasing";
    const tern_random_erasing_options o = tern_read_random_erasing(options);
    if (!(o.scale[0] >= 0 && o.scale[0] <= o.scale[1] && o.scale[1] <= 1 && o.ratio[0] > 0 &&
          o.ratio[0] <= o.ratio[1]))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Scale should be between 0 and 1, scale and ratio of kind (min, "
                              "max); not (%g, %g) and (%g, %g)",
                              function, o.scale[0], o.scale[1], o.ratio[0], o.ratio[1]);
    return is_probability(o.p, function) ? tern_transform_new(&kind, &o, sizeof o) : NULL;
}

/* ---- transforms with a probability ----------------------------------------------------------- */

typedef struct sometimes {
    tern_transform *of;
    double p;
} sometimes;

static tern_tensor *sometimes_apply(tern_transform *t, tern_tensor *x)
{
    const sometimes *o = t->data;
    bool does;
    if (!happens(o->p, &does))
        return NULL;
    return does ? tern_transform_run(o->of, x) : x;
}

static void sometimes_free(tern_transform *t)
{
    tern_transform_free(((sometimes *)t->data)->of);
}

tern_transform *tern_transforms_random_apply(tern_transform *of, double p)
{
    static const tern_transform_kind kind = {"RandomApply", sometimes_apply, sometimes_free, false};
    const char *function = "tern_transforms_random_apply";
    TERN_TRANSFORM_GIVEN(of, function);
    if (!of)
        return tern_fail_argument_null(function, "transform"), NULL;
    tern_transform *t = is_probability(p, function)
                            ? tern_transform_new(&kind, &(sometimes){of, p}, sizeof(sometimes))
                            : NULL;
    if (!t)
        tern_transform_free(of);
    return t;
}
