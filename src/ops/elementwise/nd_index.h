/* nd_index.h -- from tensors to the tern_nd_index that elementwise kernels follow. */
#ifndef TERN_SRC_OPS_ND_INDEX_H
#define TERN_SRC_OPS_ND_INDEX_H
#include "device/device.h"
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

/* Stride of t along dim d of the broadcast shape: 0 where t is broadcast. */
static inline i64 tern_nd_index_stride(const tern_tensor *t, int ndim, int d)
{
    int own = d - (ndim - t->ndim);
    return own < 0 || t->shape[own] == 1 ? 0 : t->stride[own];
}

/* An index over n (at most TERN_ND_TENSORS) tensors broadcast to shape; t[0] is the result. */
void tern_nd_index_make(tern_nd_index *nd, const tern_shape *shape, tern_tensor *const *t, int n);

/* The same for elementwise kernels, whose rows (last dims) must be dense: inputs that are not
 * (tensors 1 and up) become dense copies in t, owned by the open scope; a result that is not is
 * given back in *strided and t[0] is a dense one to write first, copied with tern_nd_index_finish.
 * n = 3: one of the inputs may repeat along rows instead. */
tern_status tern_nd_index_rows(tern_nd_index *nd, const tern_shape *shape, tern_tensor **t, int n,
                               tern_tensor **strided);
tern_status tern_nd_index_finish(tern_tensor *dense, tern_tensor *strided);

/* From the index over a result and what is copied to it: true where both are contiguous along
 * different dims and large enough for tiles. */
bool tern_transposition_make(tern_transposition *turn, const tern_nd_index *nd);

/* Kernels that only move elements exist for one type of each size. */
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

/* Items and the work they are, for a launch over the index. */
static inline tern_grid tern_nd_index_grid(const tern_nd_index *nd)
{
    return tern_items(nd->rows * nd->inner);
}

#endif
