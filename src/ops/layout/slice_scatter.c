/* slice_scatter.c -- copies of a tensor in which a view was written. */
#include "tensor/op.h"
#include <tern/ops.h>

/* y, in whose view src is put; their shapes must be the same. */
static tern_tensor *put(tern_tensor *y, tern_tensor *view, tern_tensor *src, const char *function)
{
    if (!y || !view)
        return NULL;
    if (!src) {
        tern_fail_argument_null(function, "src");
        return NULL;
    }
    if (!tern_same_shape(view, src))
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "%s: expected src to have a size equal to the slice of self. src size "
            "= %s, slice size = %s",
            function, TERN_TENSOR_TEXT(src), TERN_TENSOR_TEXT(view));
    return tern_copy_(view, src) ? y : NULL;
}

tern_tensor *tern_select_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t index)
{
    tern_tensor *y = tern_clone(x);
    return put(y, y ? tern_select(y, dim, index) : NULL, src, "tern_select_scatter");
}

tern_tensor *tern_slice_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t start,
                                int64_t end, int64_t step)
{
    tern_tensor *y = tern_clone(x);
    return put(y, y ? tern_slice(y, dim, start, end, step) : NULL, src, "tern_slice_scatter");
}

tern_tensor *tern_diagonal_scatter(tern_tensor *x, tern_tensor *src, int64_t offset, int dim1,
                                   int dim2)
{
    tern_tensor *y = tern_clone(x);
    return put(y, y ? tern_diagonal(y, offset, dim1, dim2) : NULL, src, "tern_diagonal_scatter");
}
