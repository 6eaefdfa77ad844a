/* dense_rows.c -- tensors with dense rows for elementwise kernels. */
#include "ops/copy/copy.h"
#include "ops/elementwise/nd_index.h"
#include "tensor/memory_format.h"
#include "tensor/tensor.h"

/* Returns a dense copy of x without history, owned by the open scope, or NULL after an error. */
static tern_tensor *dense_copy(const tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *y = tern_scoped(tern_tensor_new(&shape, x->dtype, x->storage->place, "tern"));
    return y && tern_copy_elements(y, x) == TERN_OK ? y : NULL;
}

/* Inputs that are strided along the rows, such as transposed ones, are copied: the copy is tiled,
 * and the kernel loads vectors. */
tern_status tern_nd_index_rows(tern_nd_index *w, const tern_shape *shape, tern_tensor **t, int n,
                               tern_tensor **strided)
{
    *strided = NULL;
    tern_nd_index_make(w, shape, t, n);
    if (w->form != TERN_ND_STRIDED)
        return TERN_OK;
    if (w->step[0] != 1 || tern_runs_channels_last(t[0])) {
        *strided = t[0];
        t[0] = tern_scoped(tern_tensor_new(shape, t[0]->dtype, t[0]->storage->place, "tern"));
        if (!t[0])
            return tern_last_status();
        tern_nd_index_make(w, shape, t, n);
    }
    bool broadcasts = n == 3;
    for (int k = 1; k < n; k++) {
        if (w->step[k] == 1 || (w->step[k] == 0 && broadcasts))
            continue;
        if (!(t[k] = dense_copy(t[k])))
            return tern_last_status();
    }
    tern_nd_index_make(w, shape, t, n);
    if (w->form != TERN_ND_STRIDED)
        return TERN_OK;
    /* Two inputs that are both broadcast along the rows, or one such input in a kernel without a
     * form for it, are expanded to dense copies. */
    for (int k = 1; k < n; k++)
        if (w->step[k] == 0) {
            tern_tensor view = *t[k];
            for (int d = 0; d < shape->ndim; d++) {
                view.shape[d] = shape->dims[d];
                view.stride[d] = tern_nd_index_stride(t[k], shape->ndim, d);
            }
            view.ndim = shape->ndim;
            view.numel = t[0]->numel;
            view.contiguous = false;
            if (!(t[k] = dense_copy(&view)))
                return tern_last_status();
        }
    tern_nd_index_make(w, shape, t, n);
    return TERN_OK;
}

tern_status tern_nd_index_finish(tern_tensor *dense, tern_tensor *strided)
{
    return strided ? tern_copy_elements(strided, dense) : TERN_OK;
}
