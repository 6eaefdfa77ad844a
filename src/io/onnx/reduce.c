/* reduce.c -- ONNX's reductions, sorting and counting. */
#include "io/onnx/operations.h"
#include <string.h>

/* Returns the n given axes, or all dims of x if n is not positive. */
static tern_shape dims_of(const onnx_call *c, const int64_t *axes, int n, const tern_tensor *x)
{
    (void)c;
    tern_shape dims = {0};
    if (n > 0)
        return tern_shape_from(n, axes);
    for (int d = 0; d < tern_dim(x); d++)
        dims.dims[dims.ndim++] = d;
    return dims;
}

/* Returns the product over several dims, starting with the last. */
static tern_tensor *product(tern_tensor *x, tern_shape dims, bool keepdim)
{
    bool over[TERN_MAX_DIMS] = {false};
    tern_dtype dtype = tern_dtype_of(x);
    for (int i = 0; i < dims.ndim; i++)
        over[onnx_axis(dims.dims[i], tern_dim(x))] = true;
    for (int d = tern_dim(x) - 1; d >= 0; d--)
        if (over[d])
            x = tern_prod_dim(x, d, keepdim);
    return tern_to_dtype(x, dtype);
}

tern_status onnx_reduce(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t axes[ONNX_DIMS];
    int n = onnx_axes(c, "axes", 1, axes);
    if (n == -2 || !x)
        return TERN_OK;
    if (n > TERN_MAX_DIMS)
        return onnx_fail(c, TERN_ERR_SHAPE, "%d axes", n);
    for (int i = 0; i < n; i++)
        if (axes[i] < -tern_dim(x) || axes[i] >= tern_dim(x))
            return onnx_fail(c, TERN_ERR_SHAPE, "axis %lld of a tensor of %d dims",
                             (long long)axes[i], tern_dim(x));
    const char *kind = c->proto->op_type + strlen("Reduce");
    bool keep = onnx_int(c, "keepdims", 1) != 0;
    bool nothing = n <= 0 && onnx_int(c, "noop_with_empty_axes", 0);
    tern_shape dims = dims_of(c, axes, n, x);
    tern_dtype dtype = tern_dtype_of(x);
    if (!strcmp(kind, "L1"))
        x = tern_abs(x);
    else if (!strcmp(kind, "L2") || !strcmp(kind, "SumSquare"))
        x = tern_square(x);
    tern_tensor *y;
    if (nothing)
        y = x;
    else if (tern_dim(x) == 0 || !strcmp(kind, "Prod"))
        y = tern_dim(x) == 0 ? x : product(x, dims, keep);
    else if (!strcmp(kind, "Max"))
        y = tern_amax(x, dims, keep);
    else if (!strcmp(kind, "Min"))
        y = tern_amin(x, dims, keep);
    else if (!strcmp(kind, "Mean"))
        y = tern_mean_dim(x, dims, keep);
    else if (!strcmp(kind, "LogSumExp"))
        y = tern_logsumexp(x, dims, keep);
    else
        y = tern_to_dtype(tern_sum_dim(x, dims, keep), dtype);
    if (!strcmp(kind, "L2"))
        y = tern_sqrt(y);
    else if (!strcmp(kind, "LogSum"))
        y = tern_log(y);
    return onnx_give(c, y);
}

tern_status onnx_arg_extreme(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    bool keep = onnx_int(c, "keepdims", 1) != 0,
         least = c->proto->op_type[3] == 'M' && c->proto->op_type[4] == 'i';
    bool last = onnx_int(c, "select_last_index", 0) != 0;
    int axis = onnx_axis(onnx_int(c, "axis", 0), tern_dim(x));
    if (last)
        x = tern_flip(x, TERN_DIMS(axis));
    tern_tensor *y = least ? tern_argmin_dim(x, axis, keep) : tern_argmax_dim(x, axis, keep);
    return onnx_give(c, last ? tern_rsub_scalar(y, TERN_SCALAR(tern_size(x, axis) - 1)) : y);
}

tern_status onnx_cumulative_sum(onnx_call *c)
{
    int64_t axis[ONNX_DIMS];
    tern_tensor *x = onnx_in(c, 0), *y = x;
    tern_dtype dtype = tern_dtype_of(x);
    if (onnx_input_ints(c, 1, axis) != 1)
        return onnx_fail(c, TERN_ERR_SHAPE, "its axis is one number");
    int d = onnx_axis(axis[0], tern_dim(x));
    bool reverse = onnx_int(c, "reverse", 0) != 0;
    if (reverse)
        y = tern_flip(y, TERN_DIMS(d));
    tern_tensor *from = y;
    y = tern_to_dtype(tern_cumsum(y, d), dtype);
    if (onnx_int(c, "exclusive", 0))
        y = tern_sub(y, from);
    return onnx_give(c, reverse ? tern_flip(y, TERN_DIMS(d)) : y);
}

/* k is an attribute up to operator set 9, and an input since. */
tern_status onnx_top_k(onnx_call *c)
{
    int64_t k[ONNX_DIMS] = {onnx_int(c, "k", 1)};
    tern_values_indices top = {NULL, NULL};
    if (onnx_input_ints(c, 1, k) == -2)
        return TERN_OK;
    TERN_TRY(tern_topk(onnx_in(c, 0), k[0],
                       onnx_axis(onnx_int(c, "axis", -1), tern_dim(onnx_in(c, 0))),
                       onnx_int(c, "largest", 1) != 0, onnx_int(c, "sorted", 1) != 0, &top));
    c->out[0] = top.values;
    c->out[1] = top.indices;
    return TERN_OK;
}

tern_status onnx_nonzero(onnx_call *c)
{
    return onnx_give(c, tern_t(tern_nonzero(onnx_in(c, 0))));
}
