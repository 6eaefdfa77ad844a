/* pool.c -- the public functions of pooling. */
#include "ops/pool/pool.h"
#include "base/option.h"
#include "base/checked.h"
#include "tensor/memory_format.h"
#include <math.h>

/* Returns whether x is not NULL; the error names the argument. */
static bool given(const void *x, const char *name, const char *function)
{
    if (!x)
        tern_fail_argument_null(function, name);
    return x != NULL;
}

/* ---- max pooling ------------------------------------------------------------------------- */

/* Computes y[q] = max of x over the window of q and, with `indices`, the index of the maximum in
 * its plane. Padding counts as -inf. */
static tern_status max_pool(tern_tensor *x, tern_shape size, const tern_max_pool_options *options,
                            int ndim, bool indices, const char *function, tern_values_indices *out)
{
    const tern_max_pool_options read = tern_read_max_pool(options), *o = &read;
    tern_pool_attributes at;
    if (!given(x, "input", function) || !given(out, "out", function))
        return tern_last_status();
    tern_pool_window w = {.function = function,
                          .ndim = ndim,
                          .size = size,
                          .stride = o->stride,
                          .padding = o->padding,
                          .dilation = o->dilation,
                          .ceil_mode = o->ceil_mode};
    TERN_TRY(tern_pool_windows(&w, x, &at));
    return tern_pool_max(&at, x, indices, out);
}

/* Computes max pooling over out windows that cover x: window q goes from floor(q in / out) to
 * ceil((q + 1) in / out). */
static tern_status adaptive_max_pool(tern_tensor *x, tern_shape size, int ndim, bool indices,
                                     const char *function, tern_values_indices *out)
{
    tern_pool_attributes at;
    if (!given(x, "input", function) || !given(out, "out", function))
        return tern_last_status();
    TERN_TRY(tern_pool_adaptive(&size, ndim, x, false, function, &at));
    return tern_pool_max(&at, x, indices, out);
}

/* ---- max unpooling ----------------------------------------------------------------------- */

/* Returns a list of one number or of ndim numbers as ndim numbers, zeros for an empty list. */
static tern_shape numbers_for_dims(tern_shape list, int ndim)
{
    tern_shape all = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        all.dims[d] = list.ndim == ndim ? list.dims[d] : list.ndim == 1 ? list.dims[0] : 0;
    return all;
}

/* Computes the size before pooling, (in - 1) stride + window - 2 padding for each dim. Pooling
 * rounds down, so sizes that differ by less than a stride have the same pooled size; output_size
 * selects one. */
static tern_status unpooled_shape(const tern_tensor *x, tern_shape size,
                                  const tern_max_unpool_options *o, int ndim, const char *function,
                                  tern_shape *out)
{
    int lead = x->ndim - ndim;
    tern_shape stride = numbers_for_dims(o->stride.ndim ? o->stride : size, ndim);
    tern_shape padding = numbers_for_dims(o->padding, ndim);
    TERN_TRY(tern_check_window(&size, "kernel_size", function));
    TERN_TRY(tern_check_window(&o->stride, "stride", function));
    TERN_TRY(tern_check_window(&o->padding, "padding", function));
    size = numbers_for_dims(size, ndim);
    *out = tern_shape_of(x);
    for (int d = 0; d < ndim; d++) {
        int64_t least = tern_size_add(tern_size_mul(x->shape[lead + d] - 1, stride.dims[d]),
                                      size.dims[d] - 2 * padding.dims[d]);
        int64_t below = tern_size_sub(least, stride.dims[d]);
        int64_t above = tern_size_add(least, stride.dims[d]);
        const tern_shape *given_size = &o->output_size;
        int64_t wanted = least;
        if (given_size->ndim)
            wanted = given_size->dims[given_size->ndim - ndim + d];
        if (wanted <= below || wanted >= above)
            return tern_fail(
                TERN_ERR_SHAPE, "%s: invalid output_size %s (dim %d must be between %lld and %lld)",
                function, TERN_SHAPE_TEXT(given_size), d, (long long)below, (long long)above);
        out->dims[lead + d] = wanted;
    }
    return TERN_OK;
}

/* Returns zeros with each element of x at its index from max pooling, a partial inverse of it. */
static tern_tensor *max_unpool(tern_tensor *x, tern_tensor *indices, tern_shape size,
                               const tern_max_unpool_options *options, int ndim,
                               const char *function)
{
    const tern_max_unpool_options read = tern_read_max_unpool(options), *o = &read;
    tern_shape shape, given_size = o->output_size;
    if (!given(x, "input", function) || !given(indices, "indices", function))
        return NULL;
    if (indices->dtype != TERN_I64)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "%s: elements in indices should be type int64 but got: %s", function,
                              tern_dtype_name(indices->dtype));
    if (!tern_same_shape(x, indices))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expected shape of indices to be same as that of the input "
                              "tensor (%s) but got indices tensor with shape: %s",
                              function, TERN_TENSOR_TEXT(x), TERN_TENSOR_TEXT(indices));
    if (x->ndim != ndim + 1 && x->ndim != ndim + 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Input to %s should be a %dd or %dd Tensor, but got a tensor "
                              "with %d dims",
                              function, function, ndim + 1, ndim + 2, x->ndim);
    if (tern_check_floating(function, x->dtype) != TERN_OK)
        return NULL;
    if (given_size.ndim && given_size.ndim != ndim && given_size.ndim != x->ndim)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: There should be exactly %d elements in output_size, but got %d",
                              function, ndim, given_size.ndim);
    return unpooled_shape(x, size, o, ndim, function, &shape) == TERN_OK
               ? tern_lie_as(tern_pool_undo(x, indices, &shape, ndim, false), x)
               : NULL;
}

/* ---- average pooling --------------------------------------------------------------------- */

/* Returns y[q] = the sum of x over the window of q, divided by divisor_override, or by the number
 * of elements of the window, counted with or without the padding. */
static tern_tensor *avg_pool(tern_tensor *x, tern_shape size, const tern_avg_pool_options *options,
                             int ndim, const char *function)
{
    const tern_avg_pool_options read = tern_read_avg_pool(options), *o = &read;
    tern_pool_attributes at;
    if (!given(x, "input", function))
        return NULL;
    tern_pool_window w = {.function = function,
                          .ndim = ndim,
                          .size = size,
                          .stride = o->stride,
                          .padding = o->padding,
                          .ceil_mode = o->ceil_mode,
                          .excludes_padding = o->no_count_include_pad,
                          .divisor = o->divisor_override.set ? o->divisor_override.value : 0};
    if (o->divisor_override.set && w.divisor == 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: divisor must be not zero", function);
    return tern_pool_windows(&w, x, &at) == TERN_OK ? tern_pool_mean(&at, x) : NULL;
}

/* Returns the mean over the windows of adaptive_max_pool. One window over a whole plane (global
 * average pooling) is a reduction over the spatial dims, also for empty planes. */
static tern_tensor *adaptive_avg_pool(tern_tensor *x, tern_shape size, int ndim,
                                      const char *function)
{
    tern_pool_attributes at;
    tern_shape dims = {.ndim = ndim};
    bool one = size.ndim > 0 && (size.ndim == 1 || size.ndim == ndim);
    if (!given(x, "input", function))
        return NULL;
    for (int d = 0; d < ndim; d++) {
        one = one && size.dims[size.ndim == 1 ? 0 : d] == 1;
        dims.dims[d] = -1 - d;
    }
    if (one && (x->ndim == ndim + 1 || x->ndim == ndim + 2))
        return tern_check_floating(function, x->dtype) == TERN_OK ? tern_mean_dim(x, dims, true)
                                                                  : NULL;
    return tern_pool_adaptive(&size, ndim, x, true, function, &at) == TERN_OK
               ? tern_pool_mean(&at, x)
               : NULL;
}

/* Returns the largest |x| in each window, or the smallest if `least`. */
static tern_tensor *extreme_pool(tern_tensor *x, bool least, tern_shape size,
                                 const tern_lp_pool_options *o, int ndim, const char *function)
{
    const tern_max_pool_options max = {.stride = o ? o->stride : TERN_SHAPE_SCALAR,
                                       .ceil_mode = o && o->ceil_mode};
    tern_values_indices out = {0};
    x = tern_abs(x);
    max_pool(least ? tern_neg(x) : x, size, &max, ndim, false, function, &out);
    return least ? tern_neg(out.values) : out.values;
}

/* Returns y = (sum of x^p over the window)^(1 / p) by an average pool: with m the mean of x^p over
 * k elements, (sign(m) relu(|m|) k)^(1 / p), as PyTorch. The mean of integers is rounded towards 0
 * where p is whole, as in PyTorch. */
static tern_tensor *lp_pool(tern_tensor *x, double p, tern_shape size,
                            const tern_lp_pool_options *o, int ndim, const char *function)
{
    tern_avg_pool_options mean = {.stride = o ? o->stride : TERN_SHAPE_SCALAR,
                                  .ceil_mode = o && o->ceil_mode};
    double count = 1;
    tern_shape all = numbers_for_dims(size, ndim);
    for (int d = 0; d < ndim; d++)
        count *= (double)all.dims[d];
    if (!given(x, "input", function))
        return NULL;
    if (p == 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: norm_type must be a non-zero value, but got 0", function);
    if (isinf(p))
        return extreme_pool(x, p < 0, size, o, ndim, function);
    bool real = tern_dtype_is_floating_point(x->dtype) || p != floor(p);
    tern_tensor *y =
        tern_pow_scalar(x, real ? tern_scalar_real(p) : tern_scalar_int(tern_size_of_real(p)));
    y = avg_pool(y, size, &mean, ndim, function);
    y = tern_mul(tern_sign(y), tern_relu(tern_abs(y)));
    y = tern_mul_scalar(y, real ? tern_scalar_real(count) : tern_scalar_int((int64_t)count));
    return tern_pow_scalar(y, tern_scalar_real(1 / p));
}

/* ---- one, two and three dims ------------------------------------------------------------- */

#define POOL(N)                                                                                    \
    tern_status tern_max_pool##N##d_with_indices(tern_tensor *x, tern_shape kernel_size,           \
                                                 const tern_max_pool_options *options,             \
                                                 tern_values_indices *out)                         \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return max_pool(x, kernel_size, options, N, true, "tern_max_pool" #N "d", out);            \
    }                                                                                              \
    tern_tensor *tern_max_pool##N##d(tern_tensor *x, tern_shape kernel_size,                       \
                                     const tern_max_pool_options *options)                         \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        tern_values_indices out = {0};                                                             \
        max_pool(x, kernel_size, options, N, false, "tern_max_pool" #N "d", &out);                 \
        return out.values;                                                                         \
    }                                                                                              \
    tern_tensor *tern_max_unpool##N##d(tern_tensor *x, tern_tensor *indices,                       \
                                       tern_shape kernel_size,                                     \
                                       const tern_max_unpool_options *options)                     \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return max_unpool(x, indices, kernel_size, options, N, "tern_max_unpool" #N "d");          \
    }                                                                                              \
    tern_tensor *tern_avg_pool##N##d(tern_tensor *x, tern_shape kernel_size,                       \
                                     const tern_avg_pool_options *options)                         \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return avg_pool(x, kernel_size, options, N, "tern_avg_pool" #N "d");                       \
    }                                                                                              \
    tern_tensor *tern_adaptive_avg_pool##N##d(tern_tensor *x, tern_shape output_size)              \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return adaptive_avg_pool(x, output_size, N, "tern_adaptive_avg_pool" #N "d");              \
    }                                                                                              \
    tern_status tern_adaptive_max_pool##N##d_with_indices(tern_tensor *x, tern_shape output_size,  \
                                                          tern_values_indices *out)                \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return adaptive_max_pool(x, output_size, N, true, "tern_adaptive_max_pool" #N "d", out);   \
    }                                                                                              \
    tern_tensor *tern_adaptive_max_pool##N##d(tern_tensor *x, tern_shape output_size)              \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        tern_values_indices out = {0};                                                             \
        adaptive_max_pool(x, output_size, N, false, "tern_adaptive_max_pool" #N "d", &out);        \
        return out.values;                                                                         \
    }
POOL(1)
POOL(2)
POOL(3)

#define LP_POOL(N)                                                                                 \
    tern_tensor *tern_lp_pool##N##d(tern_tensor *x, double norm_type, tern_shape kernel_size,      \
                                    const tern_lp_pool_options *options)                           \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return lp_pool(x, norm_type, kernel_size, options, N, "tern_lp_pool" #N "d");              \
    }
LP_POOL(1)
LP_POOL(2)
LP_POOL(3)
