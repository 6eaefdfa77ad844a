/* shape.c -- functions of shapes that need no tensor. */
#include "base/text.h"
#include "tensor/fields.h"
#include "tensor/shape.h"

tern_shape tern_shape_from(int ndim, const int64_t *dims)
{
    tern_shape shape;
    if (ndim > 0 && !dims) {
        tern_fail_argument_null("tern_shape_from", "dims");
        return (tern_shape){.ndim = TERN_MAX_DIMS + 1}; /* invalid: all functions refuse it */
    }
    shape.ndim = ndim;
    for (int i = 0; i < ndim && i < TERN_MAX_DIMS; i++)
        shape.dims[i] = dims[i];
    return shape;
}

tern_shape_text tern_shape_to_text(const tern_shape *shape)
{
    tern_shape_text t;
    int ndim = shape->ndim < 0 ? 0 : shape->ndim > TERN_MAX_DIMS ? TERN_MAX_DIMS : shape->ndim;
    tern_format_list(t.text, sizeof t.text, shape->dims, ndim);
    return t;
}

int64_t tern_shape_numel(const tern_shape *shape, const char *function)
{
    if (shape->ndim < 0 || shape->ndim > TERN_MAX_DIMS) {
        tern_fail(TERN_ERR_SHAPE, "%s: a tensor has at most %d dims, not %d", function,
                  TERN_MAX_DIMS, shape->ndim);
        return -1;
    }
    int64_t numel = 1, nonzero = 1; /* an overflow is an error even if another dim is 0 */
    for (int i = 0; i < shape->ndim; i++) {
        int64_t d = shape->dims[i];
        if (d < 0) {
            tern_fail(TERN_ERR_SHAPE,
                      "%s: Trying to create tensor with negative dimension %lld: %s", function,
                      (long long)d, TERN_SHAPE_TEXT(shape));
            return -1;
        }
        if (d && __builtin_mul_overflow(nonzero, d, &nonzero)) {
            tern_fail(TERN_ERR_SHAPE, "%s: Storage size calculation overflowed with sizes=%s",
                      function, TERN_SHAPE_TEXT(shape));
            return -1;
        }
        numel = d ? numel : 0;
    }
    if (nonzero > INT64_MAX / 16) {
        tern_fail(TERN_ERR_SHAPE, "%s: Storage size calculation overflowed with sizes=%s", function,
                  TERN_SHAPE_TEXT(shape));
        return -1;
    }
    return numel ? nonzero : 0;
}

tern_status tern_check_window(const tern_shape *list, const char *name, const char *function)
{
    for (int i = 0; i < list->ndim && i < TERN_MAX_DIMS; i++)
        if (list->dims[i] > INT32_MAX || list->dims[i] < INT32_MIN)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: integer out of range: %s=%s", function, name,
                             TERN_SHAPE_TEXT(list));
    return TERN_OK;
}

bool tern_shape_equal(const tern_shape *a, const tern_shape *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

tern_status tern_shape_broadcast(const tern_shape *a, const tern_shape *b, tern_shape *out,
                                 const char *function)
{
    tern_shape result;
    result.ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 0; i < result.ndim; i++) {
        int ia = i - (result.ndim - a->ndim), ib = i - (result.ndim - b->ndim);
        int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        if (da != db && da != 1 && db != 1)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: The size of tensor a (%lld) must match the size of tensor b "
                             "(%lld) at non-singleton dimension %d",
                             function, (long long)da, (long long)db, i);
        result.dims[i] = da == 1 ? db : da;
    }
    *out = result;
    return TERN_OK;
}

tern_status tern_wrap_dim(int64_t dim, int ndim, int *wrapped, const char *function)
{
    int n = ndim ? ndim : 1;
    if (dim < -n || dim >= n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Dimension out of range (expected to be in range of [%d, %d], but got "
                         "%lld)",
                         function, -n, n - 1, (long long)dim);
    *wrapped = (int)(dim < 0 ? dim + n : dim);
    return TERN_OK;
}

tern_sides tern_sides_of(const tern_shape *shape, int dim)
{
    tern_sides s = {1, 1, 1};
    for (int d = 0; d < shape->ndim; d++)
        *(d < dim ? &s.outer : d == dim ? &s.n : &s.inner) *= shape->dims[d];
    return s;
}

void tern_dense_strides(const tern_shape *shape, int64_t *stride)
{
    int64_t step = 1;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        stride[i] = step;
        /* in an empty shape the product may wrap */
        step = (int64_t)((uint64_t)step * (uint64_t)(shape->dims[i] > 1 ? shape->dims[i] : 1));
    }
}

uint32_t tern_distinct_dims(const tern_shape *shape, const int64_t *stride)
{
    uint32_t distinct = 0, seen = 0;
    int64_t reach = 0;
    for (int i = 0; i < shape->ndim; i++) {
        int next = -1; /* the smallest stride left; among equal ones, the longest dim's */
        for (int d = 0; d < shape->ndim; d++)
            if (!(seen >> d & 1) &&
                (next < 0 || stride[d] < stride[next] ||
                 (stride[d] == stride[next] && shape->dims[d] > shape->dims[next])))
                next = d;
        seen |= 1u << next;
        if (shape->dims[next] > 1 && stride[next] <= reach)
            continue;
        distinct |= 1u << next;
        if (shape->dims[next] > 1)
            reach += (shape->dims[next] - 1) * stride[next];
    }
    return distinct;
}
