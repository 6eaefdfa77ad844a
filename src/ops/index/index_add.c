/* index_add.c -- index_add, index_copy and index_fill: whole entries of a dim written at the
 * indices of a vector. */
#include "ops/index/scatter.h"
#include "device/device.h"
#include <string.h>
#include <tern/ops.h>

/* index_add:  y[.., index[i], ..] += alpha source[.., i, ..]
 * index_copy: y[.., index[i], ..]  = source[.., i, ..];   index_fill: = value */
/* Checks x, index and source (NULL for index_fill), and sets *d to dim, wrapped. */
static tern_status check_rows(const tern_tensor *x, int dim, const tern_tensor *index,
                              const tern_tensor *source, int *d, const char *name)
{
    char function[32] = "tern_";
    strncat(function, name, sizeof function - 6);
    if (!x || !index)
        return tern_fail_argument_null(function, x ? "index" : "x");
    TERN_TRY(tern_wrap_dim(dim, x->ndim, d, function));
    if (index->ndim > 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: %s_(): Index is supposed to be a vector, but got dim: %d with type: "
                         "%s and size: %s",
                         function, name, index->ndim, tern_dtype_name(index->dtype),
                         TERN_TENSOR_TEXT(index));
    if (index->dtype != TERN_I64 && index->dtype != TERN_I32)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: %s_(): Expected dtype int32/int64 for index but got: %s", function,
                         name, tern_dtype_name(index->dtype));
    if (!source)
        return TERN_OK;
    if (source->dtype != x->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: %s_(): self (%s) and source (%s) must have the same scalar type",
                         function, name, tern_dtype_name(x->dtype), tern_dtype_name(source->dtype));
    int64_t entries = source->ndim > *d ? source->shape[*d] : 1;
    if (source->ndim == 0 ? index->numel != 1 : entries != index->numel)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: %s_(): Number of indices (%lld) should be equal to source.size(dim): "
                         "(%lld), for dim: %d",
                         function, name, (long long)index->numel, (long long)entries, *d);
    /* A tensor without dims is taken as one of one dim. */
    bool fits = source->ndim == x->ndim || source->ndim + x->ndim == 1;
    for (int k = 0; k < x->ndim && fits && source->ndim; k++)
        fits = k == *d || source->shape[k] == x->shape[k];
    if (!fits)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: %s_(): Source/destination tensor must have same slice shapes. "
                         "Destination shape: %s at dimension %d and source shape: %s",
                         function, name, TERN_TENSOR_TEXT(x), *d, TERN_TENSOR_TEXT(source));
    return TERN_OK;
}

/* Writes source to x at index; the caller has checked x. */
static tern_tensor *write_rows(tern_tensor *x, tern_tensor *index, tern_tensor *source,
                               tern_scatter_way way)
{
    index = tern_atleast_1d(tern_to_dtype(index, TERN_I64));
    tern_tensor *to = tern_atleast_1d(x);
    source = tern_atleast_1d(source);
    if (!index || !to || !source)
        return NULL;
    tern_tensor *y = tern_scatter_rows(to, index, source, &way);
    return !y ? NULL : way.in_place ? x : tern_reshape(y, tern_shape_of(x));
}

/* y[.., index[i], ..] += alpha source[.., i, ..] */
static tern_tensor *index_add(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source,
                              tern_scalar alpha, bool in_place)
{
    tern_scatter_way way = {
        .mode = TERN_SCATTER_ADD, .fault = TERN_FAULT_INDEX_ADD, .in_place = in_place};
    if (!source)
        tern_fail_argument_null("tern_index_add", "source");
    if (!source || check_rows(x, dim, index, source, &way.dim, "index_add") != TERN_OK)
        return NULL;
    if (tern_scalar_to_real(alpha) != 1)
        source = tern_to_dtype(tern_mul_scalar(source, alpha), x->dtype);
    return source ? write_rows(x, index, source, way) : NULL;
}

tern_tensor *tern_index_add(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source,
                            tern_scalar alpha)
{
    TERN_NAMED_IN_ERRORS;
    return index_add(x, dim, index, source, alpha, false);
}

tern_tensor *tern_index_add_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source,
                             tern_scalar alpha)
{
    TERN_NAMED_IN_ERRORS;
    return index_add(x, dim, index, source, alpha, true);
}

/* y[.., index[i], ..] = source[.., i, ..] */
static tern_tensor *index_copy(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source,
                               bool in_place)
{
    tern_scatter_way way = {.in_place = in_place};
    if (!source)
        tern_fail_argument_null("tern_index_copy", "source");
    if (!source || check_rows(x, dim, index, source, &way.dim, "index_copy") != TERN_OK)
        return NULL;
    way.fault = TERN_FAULT_ALONG(way.dim);
    return write_rows(x, index, source, way);
}

tern_tensor *tern_index_copy(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source)
{
    TERN_NAMED_IN_ERRORS;
    return index_copy(x, dim, index, source, false);
}

tern_tensor *tern_index_copy_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source)
{
    TERN_NAMED_IN_ERRORS;
    return index_copy(x, dim, index, source, true);
}

/* y[.., index[i], ..] = value, a tensor without dims, expanded; a NULL value records an error. */
static tern_tensor *index_fill(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *value,
                               bool in_place)
{
    tern_scatter_way way = {.wrap = true, .in_place = in_place};
    if (check_rows(x, dim, index, NULL, &way.dim, "index_fill") != TERN_OK)
        return NULL;
    if (x->ndim == 0) { /* as one dim of size 1, so that the kernel checks every index */
        tern_tensor *y = index_fill(tern_unsqueeze(x, 0), 0, index, value, in_place);
        return !y ? NULL : in_place ? x : tern_squeeze_dim(y, 0);
    }
    way.fault = TERN_FAULT_ALONG(way.dim);
    tern_shape shape = tern_shape_of(x);
    shape.dims[way.dim] = index->numel;
    value = value ? tern_expand(tern_to_dtype(value, x->dtype), shape) : NULL;
    return value ? write_rows(x, index, value, way) : NULL;
}

static tern_tensor *value_of(const tern_tensor *x, tern_scalar value)
{
    return x ? tern_new_full(x, (tern_shape){0}, value) : NULL;
}

tern_tensor *tern_index_fill(tern_tensor *x, int dim, tern_tensor *index, tern_scalar value)
{
    TERN_NAMED_IN_ERRORS;
    return index_fill(x, dim, index, value_of(x, value), false);
}

tern_tensor *tern_index_fill_(tern_tensor *x, int dim, tern_tensor *index, tern_scalar value)
{
    TERN_NAMED_IN_ERRORS;
    return index_fill(x, dim, index, value_of(x, value), true);
}

/* y = where(the entry is in index, value, x): an entry that index contains twice counts once in the
 * gradient of value. */
tern_tensor *tern_index_fill_tensor(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *value)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!value) {
        tern_fail_argument_null(__func__, "value");
        return NULL;
    }
    if (value->ndim > 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_index_fill: index_fill_ only supports a 0-dimensional value "
                              "tensor, but got tensor with %d dimension(s).",
                              value->ndim);
    if (check_rows(x, dim, index, NULL, &d, "index_fill") != TERN_OK)
        return NULL;
    tern_shape line = {.ndim = x->ndim};
    for (int k = 0; k < x->ndim; k++)
        line.dims[k] = k == d ? x->shape[k] : 1;
    tern_tensor *chosen = tern_zeros(line, TERN_BOOL, tern_device(x));
    chosen = tern_index_fill_(chosen, d, index, tern_scalar_bool(true));
    return tern_where(chosen, tern_to_dtype(value, x->dtype), x);
}

tern_tensor *tern_index_fill_tensor_(tern_tensor *x, int dim, tern_tensor *index,
                                     tern_tensor *value)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *y = tern_index_fill_tensor(x, dim, index, value);
    return y ? tern_copy_(x, y) : NULL;
}
