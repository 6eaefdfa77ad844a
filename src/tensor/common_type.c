/* common_type.c -- the common type of tensors of several types (type promotion). */
#include "tensor/fields.h"
#include "tensor/op.h"
#include <string.h>

tern_dtype tern_common_type(tern_tensor *const *in, int n)
{
    tern_dtype dims = TERN_DTYPE_DEFAULT, scalars = TERN_DTYPE_DEFAULT;
    for (int i = 0; i < n; i++) {
        if (!in[i])
            continue;
        tern_dtype *kind = in[i]->ndim ? &dims : &scalars;
        tern_dtype t = in[i]->dtype;
        *kind = *kind == TERN_DTYPE_DEFAULT ? t : tern_promote_types(*kind, t);
        if (*kind == TERN_DTYPE_DEFAULT) /* an error is recorded: the types have no common type */
            return *kind;
    }
    if (dims == TERN_DTYPE_DEFAULT)
        return scalars;
    if (scalars == TERN_DTYPE_DEFAULT || tern_dtype_is_floating_point(dims))
        return dims;
    if (dims == TERN_BOOL || tern_dtype_is_floating_point(scalars))
        return tern_promote_types(dims, scalars);
    return dims;
}

tern_dtype tern_result_type(const tern_tensor *x, const tern_tensor *y)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *in[2];
    if (!tern_given(x, __func__, "x") || !tern_given(y, __func__, "y"))
        return TERN_DTYPE_DEFAULT;
    memcpy(&in[0], &x, sizeof x);
    memcpy(&in[1], &y, sizeof y);
    return tern_common_type(in, 2);
}
