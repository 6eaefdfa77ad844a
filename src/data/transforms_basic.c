/* transforms_basic.c -- flips, dtypes, normalization. */
#include "data/data.h"

/* ---- flips ------------------------------------------------------------------------------- */

typedef struct flip {
    double p;
    int dim;
} flip;

static tern_tensor *flip_apply(tern_transform *t, tern_tensor *x)
{
    const flip *f = t->data;
    uint32_t words[4];
    if (tern_data_draw(words) != TERN_OK)
        return NULL;
    return tern_data_real(words) < f->p ? tern_flip(x, TERN_DIMS(f->dim)) : x;
}

static tern_transform *flip_of(const tern_transform_kind *kind, double p, int dim)
{
    if (!(p >= 0 && p <= 1))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "%s: `p` should be a floating point value in the interval [0.0, 1.0]; "
            "not %g",
            kind->name, p);
    return tern_transform_new(kind, &(flip){p, dim}, sizeof(flip));
}

tern_transform *tern_transforms_random_horizontal_flip(double p)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_transform_kind kind = {"RandomHorizontalFlip", flip_apply, NULL, false};
    return flip_of(&kind, p, -1);
}

tern_transform *tern_transforms_random_vertical_flip(double p)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_transform_kind kind = {"RandomVerticalFlip", flip_apply, NULL, false};
    return flip_of(&kind, p, -2);
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

typedef struct to_dtype {
    tern_dtype dtype;
    bool scale;
} to_dtype;

static double largest(tern_dtype dtype)
{
    return dtype == TERN_U8 ? 255 : dtype == TERN_I32 ? 0x7fffffff : 1;
}

/* As torchvision: from uint8 to floating point x / 255, back x * (255 + 1 - 1e-3), truncated. */
static tern_tensor *to_dtype_apply(tern_transform *t, tern_tensor *x)
{
    const to_dtype *o = t->data;
    tern_dtype from = tern_dtype_of(x);
    bool real = tern_dtype_is_floating_point(o->dtype), was = tern_dtype_is_floating_point(from);
    if (from == o->dtype || !o->scale || real == was)
        return tern_to_dtype(x, o->dtype);
    if (real)
        return tern_div_scalar(tern_to_dtype(x, o->dtype), TERN_SCALAR(largest(from)));
    if (o->dtype != TERN_U8)
        return tern_fail_null(TERN_ERR_DTYPE, "ToDtype: from %s to %s with scale",
                              tern_dtype_name(from), tern_dtype_name(o->dtype));
    return tern_to_dtype(tern_mul_scalar(x, TERN_SCALAR(255 + 1 - 1e-3)), o->dtype);
}

tern_transform *tern_transforms_to_dtype(tern_dtype dtype, bool scale)
{
    static const tern_transform_kind kind = {"ToDtype", to_dtype_apply, NULL, true};
    if (!tern_dtype_size(dtype))
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_transforms_to_dtype: dtype %d", (int)dtype);
    return tern_transform_new(&kind, &(to_dtype){dtype, scale}, sizeof(to_dtype));
}

/* ---- normalization --------------------------------------------------------------------------- */

enum { MOST_CHANNELS = 64 };

typedef struct normalize {
    int n;
    double mean[MOST_CHANNELS], std[MOST_CHANNELS];
} normalize;

static tern_tensor *channels(const double *numbers, int n, const tern_tensor *x)
{
    tern_tensor *all = tern_from_data(numbers, TERN_SHAPE(n, 1, 1), TERN_F64, "cpu");
    return tern_to(tern_to_dtype(all, tern_dtype_of(x)), tern_device(x));
}

static tern_tensor *normalize_apply(tern_transform *t, tern_tensor *x)
{
    const normalize *o = t->data;
    if (!tern_dtype_is_floating_point(tern_dtype_of(x)))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "Normalize: Input tensor should be a float tensor. Got %s.",
                              tern_dtype_name(tern_dtype_of(x)));
    if (tern_dim(x) < 3 || (o->n != 1 && tern_size(x, -3) != o->n))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "Normalize: Expected tensor to be a tensor image of size (..., C, H, "
                              "W) with %d channels",
                              o->n);
    if (o->n == 1)
        return tern_div_scalar(tern_sub_scalar(x, TERN_SCALAR(o->mean[0])), TERN_SCALAR(o->std[0]));
    return tern_div(tern_sub(x, channels(o->mean, o->n, x)), channels(o->std, o->n, x));
}

tern_transform *tern_transforms_normalize(const double *mean, const double *std, int n)
{
    static const tern_transform_kind kind = {"Normalize", normalize_apply, NULL, true};
    const char *function = "tern_transforms_normalize";
    normalize o = {.n = n};
    if (!mean || !std)
        return tern_fail_argument_null(function, mean ? "std" : "mean"), NULL;
    if (n < 1 || n > MOST_CHANNELS)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %d channels", function, n);
    for (int i = 0; i < n; i++) {
        o.mean[i] = mean[i];
        o.std[i] = std[i];
        if (std[i] == 0)
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "%s: std evaluated to zero, leading to division by zero",
                                  function);
    }
    return tern_transform_new(&kind, &o, sizeof o);
}
