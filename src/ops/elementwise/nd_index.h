/* nd_index.h -- the tern_nd_index of some tensors, by which elementwise kernels compute
 * addresses. */
#ifndef TERN_SRC_OPS_ND_INDEX_H
#define TERN_SRC_OPS_ND_INDEX_H
#include "device/device.h"
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

/* Returns the stride of t along dim d of the broadcast shape: 0 if t is broadcast along d. */
static inline i64 tern_nd_index_stride(const tern_tensor *t, int ndim, int d)
{
    int own = d - (ndim - t->ndim);
    return own < 0 || t->shape[own] == 1 ? 0 : t->stride[own];
}

/* Sets *nd to an index over n (at most TERN_ND_TENSORS) tensors broadcast to `shape`. t[0] is the
 * result. */
void tern_nd_index_make(tern_nd_index *nd, const tern_shape *shape, tern_tensor *const *t, int n);

/* Like tern_nd_index_make, for elementwise kernels, whose rows (last dims) must be dense. Inputs
 * (tensors 1 and up) with other rows are replaced in t by dense copies, owned by the open scope. A
 * result with other rows is returned in *strided, and t[0] is a dense tensor for the kernel to
 * write, which tern_nd_index_finish copies to *strided. For n = 3, one of the inputs may be
 * broadcast along rows. */
tern_status tern_nd_index_rows(tern_nd_index *nd, const tern_shape *shape, tern_tensor **t, int n,
                               tern_tensor **strided);
tern_status tern_nd_index_finish(tern_tensor *dense, tern_tensor *strided);

/* Sets *turn from the index over the result and the source of a copy. Returns true if both are
 * contiguous along different dims and large enough for tiles. */
bool tern_transposition_make(tern_transposition *turn, const tern_nd_index *nd);

/* Returns the dtype of the kernel that moves elements of this size: there is one for each size. */
static inline tern_dtype tern_mover(tern_dtype dtype)
{
    switch (tern_dtype_size(dtype)) {
    case 1:
        return TERN_U8;
    case 2:
        return TERN_F16;
    case 4:
        return TERN_F32;
    default:
        return TERN_I64;
    }
}

/* Returns the grid of a launch over the index: one work-item for each element. */
static inline tern_grid tern_nd_index_grid(const tern_nd_index *nd)
{
    return tern_items(nd->rows * nd->inner);
}

#endif
