/* stack.c -- concatenation after adding dims: hstack and similar functions. */
#include "base/memory.h"
#include "tensor/op.h"
#include <tern/ops.h>

static tern_tensor *column(tern_tensor *x)
{
    return x && x->ndim < 2 ? tern_reshape(x, TERN_SHAPE(x->numel, 1)) : x;
}

/* Returns the tensors of the list, each passed through `prepare`, concatenated along dim. */
static tern_tensor *joined(tern_tensor *const *tensors, int n,
                           tern_tensor *(*prepare)(tern_tensor *), int dim, const char *function)
{
    if (!tensors || n < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: expects a non-empty TensorList", function);
    tern_tensor **all = tern_alloc(sizeof *all * (size_t)n), *out = NULL;
    bool ready = all != NULL;
    for (int i = 0; i < n && ready; i++)
        ready =
            (tensors[i] || tern_fail_argument_null(function, "a tensor of the list") == TERN_OK) &&
            (all[i] = prepare(tensors[i])) != NULL;
    if (ready)
        out = tern_cat(all, n, dim == 1 && all[0]->ndim == 1 ? 0 : dim);
    tern_free(all);
    return out;
}

tern_tensor *tern_hstack(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    return joined(tensors, n, tern_atleast_1d, 1, __func__);
}

tern_tensor *tern_vstack(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    return joined(tensors, n, tern_atleast_2d, 0, __func__);
}

tern_tensor *tern_row_stack(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    return joined(tensors, n, tern_atleast_2d, 0, __func__);
}

tern_tensor *tern_dstack(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    return joined(tensors, n, tern_atleast_3d, 2, __func__);
}

tern_tensor *tern_column_stack(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    return joined(tensors, n, column, 1, __func__);
}
