/* unravel.c -- flat indices as coordinates. */
#include "ops/index/nonzero.h"
#include <tern/ops.h>

tern_tensor *tern_nonzero_static(tern_tensor *x, int64_t size, int64_t fill_value)
{
    TERN_NAMED_IN_ERRORS;
    if (size < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nonzero_static: 'size' must be an non-negative integer, but "
                              "got %lld",
                              (long long)size);
    tern_tensor *result = NULL;
    TERN_SCOPE {
        tern_tensor *y = tern_nonzero(x);
        int64_t have = y ? y->shape[0] : 0;
        if (y && have > size)
            y = tern_contiguous(tern_narrow(y, 0, 0, size));
        else if (y && have < size)
            y = tern_cat((tern_tensor *[]){y, tern_new_full(y, TERN_SHAPE(size - have, x->ndim),
                                                            tern_scalar_int(fill_value))},
                         2, 0);
        result = tern_escape(y);
    }
    return result;
}

/* Coordinate d is index / stride(d) % size(d), rounded down. */
tern_status tern_unravel_index(tern_tensor *indices, tern_shape shape, tern_tensor **out)
{
    TERN_NAMED_IN_ERRORS;
    static const char *const name = __func__;
    if (!tern_given(indices, name, "indices") || (!out && shape.ndim > 0))
        return tern_fail_argument_null(name, indices ? "out" : "indices");
    for (int d = 0; d < shape.ndim; d++)
        out[d] = NULL;
    if (tern_dtype_is_floating_point(indices->dtype) || indices->dtype == TERN_BOOL)
        return tern_fail(TERN_ERR_DTYPE, "%s: expected 'indices' to be integer dtype, but got %s",
                         name, tern_dtype_name(indices->dtype));
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dims[d] < 0)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: 'shape' cannot have negative values, but got %s", name,
                             TERN_SHAPE_TEXT(&shape));
    if (tern_shape_numel(&shape, name) < 0)
        return tern_last_status();
    int64_t step = 1;
    for (int d = shape.ndim - 1; d >= 0; d--) {
        tern_scalar by = tern_scalar_int(step), size = tern_scalar_int(shape.dims[d]);
        out[d] = tern_remainder_scalar(tern_floor_divide_scalar(indices, by), size);
        if (!out[d])
            return tern_last_status();
        step *= shape.dims[d] ? shape.dims[d] : 1;
    }
    return TERN_OK;
}
