/* fractional_pool.c -- the largest of windows whose distances are drawn (Graham 2014): which
 * elements they hold is worked out by operations, so that nothing but the choice is remembered. */
#include "base/checked.h"
#include "ops/pool/pool.h"

/* One dim of x's planes. */
typedef struct axis {
    int64_t in, out, window;
    int sample; /* its place in the samples */
} axis;

typedef struct fractional {
    const char *function;
    int ndim;
    int64_t planes;
    axis axes[3]; /* the last ndim of them */
} fractional;

/* ---- what is asked for --------------------------------------------------------------------- */

static int64_t number_of(const tern_shape *list, int ndim, int d)
{
    return list->dims[list->ndim == ndim ? d : 0];
}

static tern_status read_lists(const tern_tensor *x, const tern_shape *window,
                              const tern_fractional_max_pool_options *o, fractional *f)
{
    static const char *const names[] = {"time", "height", "width"};
    const tern_shape *size = &o->output_size;
    bool by_ratio = size->ndim == 0;
    if (by_ratio && !(o->output_ratio[0] > 0))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: requires specifying either an output_size or an output_ratio",
                         f->function);
    if ((window->ndim != 1 && window->ndim != f->ndim) ||
        (!by_ratio && size->ndim != 1 && size->ndim != f->ndim))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: kernel_size and output_size must be one number or %d, but got %s and "
                         "%s",
                         f->function, f->ndim, TERN_SHAPE_TEXT(window), TERN_SHAPE_TEXT(size));
    for (int d = 0; d < f->ndim; d++) {
        double ratio = o->output_ratio[d] > 0 ? o->output_ratio[d] : o->output_ratio[0];
        axis *a = &f->axes[3 - f->ndim + d];
        a->in = x->shape[x->ndim - f->ndim + d];
        a->window = number_of(window, f->ndim, d);
        a->out = by_ratio ? tern_size_of_real((double)a->in * ratio) : number_of(size, f->ndim, d);
        a->sample = f->ndim == 2 ? 1 - d : d; /* two dims draw for the width first */
        if (a->window < 1 || a->out < 1 || tern_size_add(a->out, a->window) - 1 > a->in)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: pool %s %lld too large relative to input %s %lld (output %lld)",
                             f->function, names[3 - f->ndim + d], (long long)a->window,
                             names[3 - f->ndim + d], (long long)a->in, (long long)a->out);
    }
    return TERN_OK;
}

static tern_status check_input(const tern_tensor *x, const fractional *f)
{
    tern_shape shape = tern_shape_of(x);
    if (x->ndim != f->ndim + 1 && x->ndim != f->ndim + 2)
        return tern_fail(TERN_ERR_SHAPE, "%s: Expected %dD or %dD tensor, but got: %s", f->function,
                         f->ndim + 1, f->ndim + 2, TERN_SHAPE_TEXT(&shape));
    TERN_TRY(tern_check_floating(f->function, x->dtype));
    for (int d = x->ndim - f->ndim - 1; d < x->ndim; d++)
        if (x->shape[d] == 0)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: Expected input to have non-zero size for non-batch dimensions, "
                             "but got %s with dimension %d being empty.",
                             f->function, TERN_SHAPE_TEXT(&shape), d);
    return TERN_OK;
}

/* (planes, ndim) numbers in [0, 1), as x's type or, of half precision, in float32. */
static tern_tensor *samples_for(const fractional *f, const tern_tensor *x, tern_tensor *given)
{
    tern_dtype dtype = tern_dtype_size(x->dtype) == 2 ? TERN_F32 : x->dtype;
    if (!given)
        return tern_rand(TERN_SHAPE(f->planes, f->ndim), dtype, tern_device(x));
    bool batched = x->ndim == f->ndim + 2;
    tern_shape shape = tern_shape_of(x), drawn = tern_shape_of(given);
    if (given->dtype != x->dtype)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: expected scalar type %s but found %s",
                              f->function, tern_dtype_name(x->dtype),
                              tern_dtype_name(given->dtype));
    if (given->ndim != 3 || given->shape[0] != (batched ? x->shape[0] : 1) ||
        given->shape[1] != x->shape[batched] || given->shape[2] != f->ndim)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expect _random_samples of a batch, its channels and %d numbers "
                              "each for input %s, but got %s",
                              f->function, f->ndim, TERN_SHAPE_TEXT(&shape),
                              TERN_SHAPE_TEXT(&drawn));
    return tern_reshape(tern_to_dtype(tern_detach(given), dtype), TERN_SHAPE(f->planes, f->ndim));
}

/* ---- where the windows lie ----------------------------------------------------------------- */

/* (planes, out, window) places along an axis: window i begins at [(i + u) a] - [u a], a being the
 * distance at which they would fill the axis evenly; the last one ends with it. */
static tern_tensor *places_along(const fractional *f, const axis *a, tern_tensor *samples)
{
    const char *device = tern_device(samples);
    const int64_t last = a->in - a->window;
    tern_tensor *starts =
        tern_full(TERN_SHAPE(f->planes, 1), tern_scalar_int(last), TERN_I64, device);
    if (a->out > 1) {
        tern_scalar distance = tern_scalar_real((double)last / (double)(a->out - 1));
        tern_tensor *u = tern_narrow(samples, 1, a->sample, 1);
        tern_tensor *i = tern_arange(0, (double)(a->out - 1), 1, tern_dtype_of(samples), device);
        tern_tensor *from = tern_trunc(tern_mul_scalar(tern_add(i, u), distance));
        from = tern_sub(from, tern_trunc(tern_mul_scalar(u, distance)));
        starts = tern_cat((tern_tensor *[]){tern_to_dtype(from, TERN_I64), starts}, 2, 1);
    }
    tern_tensor *step = tern_arange(0, (double)a->window, 1, TERN_I64, device);
    return tern_add(tern_unsqueeze(starts, 2), step);
}

/* (planes, windows, elements of one): places in a plane. */
static tern_tensor *windows_of(const fractional *f, tern_tensor *samples)
{
    int64_t windows = 1, elements = 1;
    tern_tensor *all = NULL;
    for (int d = 3 - f->ndim; d < 3; d++) {
        const axis *a = &f->axes[d];
        tern_tensor *along = places_along(f, a, samples);
        if (all) { /* (planes, before, 1, elements before, 1) and (planes, 1, out, 1, window) */
            all = tern_mul_scalar(tern_reshape(all, TERN_SHAPE(f->planes, windows, 1, elements, 1)),
                                  tern_scalar_int(a->in));
            along = tern_reshape(along, TERN_SHAPE(f->planes, 1, a->out, 1, a->window));
            along = tern_add(all, along);
        }
        windows *= a->out;
        elements *= a->window;
        all = tern_reshape(along, TERN_SHAPE(f->planes, windows, elements));
    }
    return all;
}

/* ---- the pool ------------------------------------------------------------------------------ */

/* The place of each window's largest, (planes, windows). */
static tern_tensor *choose(const fractional *f, tern_tensor *planes, tern_tensor *samples)
{
    tern_tensor *windows = windows_of(f, samples);
    if (!windows)
        return NULL;
    const int64_t *n = windows->shape;
    tern_tensor *values =
        tern_gather(planes, 1, tern_reshape(windows, TERN_SHAPE(n[0], n[1] * n[2])));
    tern_tensor *largest =
        tern_argmax_dim(tern_reshape(values, TERN_SHAPE(n[0], n[1], n[2])), 2, true);
    return tern_squeeze_dim(tern_gather(windows, 2, largest), 2);
}

static tern_status pool(tern_tensor *x, tern_shape window,
                        const tern_fractional_max_pool_options *options, int ndim,
                        const char *function, tern_values_indices *out)
{
    static const tern_fractional_max_pool_options none;
    const tern_fractional_max_pool_options *o = options ? options : &none;
    fractional f = {.function = function, .ndim = ndim};
    if (!x || !out)
        return tern_fail_argument_null(function, x ? "out" : "input");
    TERN_TRY(check_input(x, &f));
    TERN_TRY(read_lists(x, &window, o, &f));
    tern_shape shape = tern_shape_of(x);
    int64_t plane = 1;
    f.planes = 1;
    for (int d = 0; d < x->ndim; d++)
        *(d < x->ndim - ndim ? &f.planes : &plane) *= x->shape[d];
    for (int d = 0; d < ndim; d++)
        shape.dims[x->ndim - ndim + d] = f.axes[3 - ndim + d].out;
    if (f.planes == 0) { /* a batch of nothing */
        *out = (tern_values_indices){tern_new_zeros(x, shape),
                                     tern_zeros(shape, TERN_I64, tern_device(x))};
        return out->values && out->indices ? TERN_OK : tern_last_status();
    }
    tern_tensor *planes = tern_reshape(x, TERN_SHAPE(f.planes, plane)), *places = NULL;
    TERN_NO_GRAD {
        tern_tensor *samples = samples_for(&f, x, o->random_samples);
        places = samples ? choose(&f, tern_detach(planes), samples) : NULL;
    }
    tern_tensor *values = places ? tern_gather(planes, 1, places) : NULL;
    out->values = values ? tern_reshape(values, shape) : NULL;
    out->indices = places ? tern_reshape(places, shape) : NULL;
    return out->values && out->indices ? TERN_OK : tern_last_status();
}

#define POOL(N)                                                                                    \
    tern_status tern_fractional_max_pool##N##d_with_indices(                                       \
        tern_tensor *x, tern_shape kernel_size, const tern_fractional_max_pool_options *options,   \
        tern_values_indices *out)                                                                  \
    {                                                                                              \
        return pool(x, kernel_size, options, N, "tern_fractional_max_pool" #N "d", out);           \
    }                                                                                              \
    tern_tensor *tern_fractional_max_pool##N##d(tern_tensor *x, tern_shape kernel_size,            \
                                                const tern_fractional_max_pool_options *options)   \
    {                                                                                              \
        tern_values_indices out = {0};                                                             \
        pool(x, kernel_size, options, N, "tern_fractional_max_pool" #N "d", &out);                 \
        return out.values;                                                                         \
    }
POOL(2)
POOL(3)
