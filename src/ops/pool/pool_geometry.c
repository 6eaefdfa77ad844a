/* pool_geometry.c -- sizes of pooled planes, and errors with PyTorch's messages. */
#include "ops/pool/pool.h"
#include "base/checked.h"
#include <stdio.h>
#include <string.h>

/* Reads a list of one number or of ndim numbers as three numbers, right-aligned: pools of one and
 * two dims are pools of three dims whose leading dims have size 1. */
static tern_status read_numbers(const tern_shape *list, int ndim, int64_t otherwise,
                                const char *name, const char *function, int64_t out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = otherwise;
    if (list->ndim != 0 && list->ndim != 1 && list->ndim != ndim)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: %s must either be a single int, or a tuple of %d ints, but got %s",
                         function, name, ndim, TERN_SHAPE_TEXT(list));
    TERN_TRY(tern_check_window(list, name, function));
    for (int d = 0; list->ndim && d < ndim; d++)
        out[3 - ndim + d] = list->dims[list->ndim == 1 ? 0 : d];
    return TERN_OK;
}

/* Checks that x is (N, C, *) or (C, *) of one of the dtypes `takes`, and that no dim but the batch
 * is empty. */
static tern_status check_input(const tern_tensor *x, int ndim, uint32_t takes, const char *function)
{
    if (!tern_dtype_in(x->dtype, takes))
        return tern_fail_dtype(function, x->dtype);
    bool fits = x->ndim == ndim + 1 || x->ndim == ndim + 2;
    for (int d = x->ndim - ndim - 1; fits && d < x->ndim; d++)
        fits = x->shape[d] > 0;
    return fits ? TERN_OK
                : tern_fail(TERN_ERR_SHAPE,
                            "%s: Expected %dD or %dD (batch mode) tensor with optional 0 dim batch "
                            "size for input, but got: %s",
                            function, ndim + 1, ndim + 2, TERN_TENSOR_TEXT(x));
}

/* Checks an input of adaptive pools, of a floating point dtype. As in PyTorch the first dim may be
 * empty, and for means of one and two dims also the channels. */
static tern_status check_adaptive(const tern_tensor *x, int ndim, bool mean, const char *function)
{
    TERN_TRY(tern_check_floating(function, x->dtype));
    if (x->ndim != ndim + 1 && x->ndim != ndim + 2)
        return tern_fail(TERN_ERR_SHAPE, "%s: Expected %dD or %dD tensor, but got %s", function,
                         ndim + 1, ndim + 2, TERN_TENSOR_TEXT(x));
    for (int d = mean && ndim < 3 ? x->ndim - ndim : 1; d < x->ndim; d++)
        if (x->shape[d] == 0)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: Expected input to have non-zero size for non-batch dimensions, "
                             "but input has sizes %s with dimension %d being empty",
                             function, TERN_TENSOR_TEXT(x), d);
    return TERN_OK;
}

/* Merges batch and channels into one dim of planes, and right-aligns the spatial dims in three. */
static void set_input(const tern_tensor *x, int ndim, tern_pool_shape *s)
{
    s->planes = 1;
    for (int d = 0; d < x->ndim - ndim; d++)
        s->planes *= x->shape[d];
    for (int d = 0; d < 3; d++)
        s->in[d] = d < 3 - ndim ? 1 : x->shape[x->ndim - 3 + d];
}

/* Sets the shapes of the tensors x and y, without the added dims. */
static void set_tensor_shapes(const tern_tensor *x, int ndim, tern_pool_attributes *at)
{
    at->x = at->y = tern_shape_of(x);
    at->ndim = ndim;
    for (int d = 0; d < ndim; d++)
        at->y.dims[x->ndim - ndim + d] = at->shape.out[3 - ndim + d];
}

/* Checks the arguments of dim d as PyTorch does. Padding of more than half a window would make
 * windows in the padding alone, whose maximum is -inf. */
static tern_status check_window(const tern_pool_window *w, const tern_pool_shape *s, int d)
{
    if (s->window[d] < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: kernel size should be greater than zero, but got %lld", w->function,
                         (long long)s->window[d]);
    if (s->stride[d] < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: stride should be greater than zero, but got %lld",
                         w->function, (long long)s->stride[d]);
    if (s->dilation[d] < 1)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "%s: dilation should be greater than zero, but got dilationT: %lld dilationH: %lld "
            "dilationW: %lld",
            w->function, (long long)s->dilation[0], (long long)s->dilation[1],
            (long long)s->dilation[2]);
    if (s->padding[d] < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: pad must be non-negative, but got pad: %lld",
                         w->function, (long long)s->padding[d]);
    if (s->padding[d] > s->window[d] / 2)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: pad should be at most half of kernel size, but got pad=%lld and "
                         "kernel_size=%lld",
                         w->function, (long long)s->padding[d], (long long)s->window[d]);
    return TERN_OK;
}

/* Writes sizes as "(4x2x3)", channels first, for messages. */
static void write_sizes(char text[96], int64_t channels, const int64_t *dims, int ndim)
{
    size_t at = (size_t)snprintf(text, 96, "(%lld", (long long)channels);
    for (int d = 3 - ndim; d < 3; d++)
        at += (size_t)snprintf(text + at, 96 - at, "x%lld", (long long)dims[d]);
    snprintf(text + at, 96 - at, ")");
}

/* Computes out = (in + 2 padding - dilation (window - 1) - 1) / stride + 1 for each dim, rounded
 * down, or up with ceil_mode. With ceil_mode a last window that would begin in the padding at the
 * end is left out. */
tern_status tern_pool_windows(const tern_pool_window *w, const tern_tensor *x,
                              tern_pool_attributes *out)
{
    static const tern_shape one = {1, {1}};
    const char *f = w->function;
    memset(out, 0, sizeof *out);
    tern_pool_shape *s = &out->shape;
    out->function = f;
    TERN_TRY(read_numbers(&w->size, w->ndim, 1, "kernel_size", f, s->window));
    TERN_TRY(read_numbers(w->stride.ndim ? &w->stride
                          : w->size.ndim ? &w->size
                                         : &one,
                          w->ndim, 1, "stride", f, s->stride));
    TERN_TRY(read_numbers(&w->padding, w->ndim, 0, "padding", f, s->padding));
    TERN_TRY(read_numbers(&w->dilation, w->ndim, 1, "dilation", f, s->dilation));
    for (int d = 0; d < 3; d++)
        TERN_TRY(check_window(w, s, d));
    TERN_TRY(check_input(x, w->ndim, TERN_SET_NUMBERS, f));
    set_input(x, w->ndim, s);
    s->count_padding = !w->excludes_padding;
    s->divisor = w->divisor;
    bool fits = true;
    for (int d = 0; d < 3; d++) {
        /* all numbers fit an int: no overflow in int64 */
        int64_t extent = s->in[d] + 2 * s->padding[d] - s->dilation[d] * (s->window[d] - 1) - 1;
        bool up = w->ceil_mode;
        s->out[d] = tern_size_div(extent + (up ? s->stride[d] - 1 : 0), s->stride[d]) + 1;
        if (up && (s->out[d] - 1) * s->stride[d] >= s->in[d] + s->padding[d])
            s->out[d]--; /* the last window would begin outside of x */
        fits = fits && s->out[d] >= 1;
    }
    if (!fits) {
        char in[96], result[96];
        int64_t channels = x->shape[x->ndim - w->ndim - 1];
        write_sizes(in, channels, s->in, w->ndim);
        write_sizes(result, channels, s->out, w->ndim);
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Given input size: %s. Calculated output size: %s. Output size is too "
                         "small",
                         f, in, result);
    }
    set_tensor_shapes(x, w->ndim, out);
    return TERN_OK;
}

/* Sets windows by output size: window q goes from floor(q in / out) to ceil((q + 1) in / out), so
 * sizes differ by at most one and neighbours may overlap. The kernels compute the windows from in
 * and out, and do not read window and stride. */
tern_status tern_pool_adaptive(const tern_shape *size, int ndim, const tern_tensor *x, bool mean,
                               const char *function, tern_pool_attributes *out)
{
    memset(out, 0, sizeof *out);
    tern_pool_shape *s = &out->shape;
    out->function = function;
    if (size->ndim == 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: output_size must have %d elements", function,
                         ndim);
    TERN_TRY(read_numbers(size, ndim, 1, "output_size", function, s->out));
    TERN_TRY(check_adaptive(x, ndim, mean, function));
    set_input(x, ndim, s);
    s->adaptive = 1;
    for (int d = 0; d < 3; d++) {
        s->out[d] = s->out[d] == -1 ? s->in[d] : s->out[d];
        if (s->out[d] < 0)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: elements of output_size must be greater than or equal to 0 but "
                             "received %lld",
                             function, (long long)s->out[d]);
        s->window[d] = s->stride[d] = s->dilation[d] = 1;
    }
    set_tensor_shapes(x, ndim, out);
    return TERN_OK;
}
