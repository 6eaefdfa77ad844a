/* fractional_pool.c -- max pooling with windows at random distances (Graham 2014). Other operations
 * compute the elements of the windows as index tensors; only the indices of the maxima are saved
 * for the gradient. */
#include "base/checked.h"
#include "device/device.h"
#include "ops/pool/pool.h"
#include <tern/autograd.h>

/* Sizes along one dim of the planes. */
typedef struct axis {
    int64_t in, out, window;
    int sample; /* column of this dim in the samples */
} axis;

typedef struct fractional {
    const char *function;
    int ndim;
    int64_t planes;
    axis axes[3]; /* the last ndim entries are used */
} fractional;

/* ---- options ------------------------------------------------------------------------------ */

/* Returns entry d of a list of ndim numbers, or the only entry of a list of one number. */
static int64_t number_of(const tern_shape *list, int ndim, int d)
{
    return list->dims[list->ndim == ndim ? d : 0];
}

/* Reads the sizes of output and window for each dim, the output as a size or as a ratio of the
 * input. The windows need in >= out + window - 1. */
static tern_status read_sizes(const tern_tensor *x, const tern_shape *window,
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
        a->sample = f->ndim == 2 ? 1 - d : d; /* with two dims the samples begin with the width */
        if (a->window < 1 || a->out < 1 || tern_size_add(a->out, a->window) - 1 > a->in)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: pool %s %lld too large relative to input %s %lld (output %lld)",
                             f->function, names[3 - f->ndim + d], (long long)a->window,
                             names[3 - f->ndim + d], (long long)a->in, (long long)a->out);
    }
    return TERN_OK;
}

/* Checks that x is (N, C, *) or (C, *), of a floating point dtype, with no empty dim but N. */
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

/* Returns samples u in [0, 1), (planes, ndim), given or drawn. For half precision u is float32, as
 * u of 11 bits would move the windows. */
static tern_tensor *samples_for(const fractional *f, const tern_tensor *x, tern_tensor *given)
{
    tern_dtype dtype = tern_dtype_size(x->dtype) == 2 ? TERN_F32 : x->dtype;
    if (!given)
        return tern_rand(TERN_SHAPE(f->planes, f->ndim), dtype, tern_device(x));
    bool batched = x->ndim == f->ndim + 2;
    int64_t batch = batched ? x->shape[0] : 1; /* later rows are not read, as in PyTorch */
    tern_shape shape = tern_shape_of(x), drawn = tern_shape_of(given);
    if (given->dtype != x->dtype)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: expected scalar type %s but found %s",
                              f->function, tern_dtype_name(x->dtype),
                              tern_dtype_name(given->dtype));
    if (given->ndim != 3 || given->shape[0] < batch || given->shape[1] != x->shape[batched] ||
        given->shape[2] != f->ndim)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expect _random_samples of a batch, its channels and %d numbers "
                              "each for input %s, but got %s",
                              f->function, f->ndim, TERN_SHAPE_TEXT(&shape),
                              TERN_SHAPE_TEXT(&drawn));
    given = tern_narrow(tern_detach(given), 0, 0, batch);
    return tern_reshape(tern_to_dtype(given, dtype), TERN_SHAPE(f->planes, f->ndim));
}

/* ---- positions of the windows -------------------------------------------------------------- */

/* Returns the elements of each window along one dim, (planes, out, window). With a = (in - window)
 * / (out - 1), the distance of evenly spread windows, window i begins at
 *   trunc((i + u) a) - trunc(u a)
 * and the last window at in - window. Distances therefore vary pseudorandomly between floor(a) and
 * ceil(a). */
static tern_tensor *positions_along(const fractional *f, const axis *a, tern_tensor *samples)
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

/* Returns the elements of each window as indices into the plane, (planes, windows, elements of a
 * window). Dims are combined one by one: index = index in the outer dims * size + index in this
 * dim, with windows and elements broadcast against each other. */
static tern_tensor *windows_of(const fractional *f, tern_tensor *samples)
{
    int64_t windows = 1, elements = 1;
    tern_tensor *all = NULL;
    for (int d = 3 - f->ndim; d < 3; d++) {
        const axis *a = &f->axes[d];
        tern_tensor *along = positions_along(f, a, samples);
        if (!along || (d > 3 - f->ndim && !all))
            return NULL;
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

/* Returns the index in its plane of the maximum of each window, (planes, windows). */
static tern_tensor *argmax_windows(const fractional *f, tern_tensor *planes, tern_tensor *samples)
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

/* Computes y = x gathered at the maximum of each window. The positions are computed without a
 * graph; the gather is recorded, and its gradient adds dy to the chosen elements. */
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
    TERN_TRY(read_sizes(x, &window, o, &f));
    tern_shape shape = tern_shape_of(x);
    int64_t plane = 1;
    f.planes = 1;
    for (int d = 0; d < x->ndim; d++)
        *(d < x->ndim - ndim ? &f.planes : &plane) *= x->shape[d];
    for (int d = 0; d < ndim; d++)
        shape.dims[x->ndim - ndim + d] = f.axes[3 - ndim + d].out;
    tern_tensor *planes = tern_reshape(x, TERN_SHAPE(f.planes, plane)), *places = NULL;
    if (f.planes == 0) /* an empty batch */
        places = tern_zeros(TERN_SHAPE(0, 1), TERN_I64, tern_device(x));
    else
        TERN_NO_GRAD {
            tern_tensor *samples = samples_for(&f, x, o->random_samples);
            places = samples ? argmax_windows(&f, tern_detach(planes), samples) : NULL;
        }
    tern_tensor *values = places ? tern_gather(planes, 1, places) : NULL;
    tern_values_indices both = {values ? tern_reshape(values, shape) : NULL,
                                values ? tern_reshape(places, shape) : NULL};
    bool made = both.values && both.indices;
    *out = made ? both : (tern_values_indices){0};
    return made ? TERN_OK : tern_last_status();
}

#define POOL(N)                                                                                    \
    tern_status tern_fractional_max_pool##N##d_with_indices(                                       \
        tern_tensor *x, tern_shape kernel_size, const tern_fractional_max_pool_options *options,   \
        tern_values_indices *out)                                                                  \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
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
