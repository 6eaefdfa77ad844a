/* scatter.h -- the operation that writes where an index tensor points, from which scatter,
 * index_add, put and index_put are made. */
#ifndef TERN_SRC_OPS_SCATTER_H
#define TERN_SRC_OPS_SCATTER_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

typedef struct tern_scatter_way {
    int dim;   /* along which index points */
    int mode;  /* TERN_SCATTER_SET ... */
    int fault; /* of an index out of range */
    bool wrap; /* negative indices count from the end */
    bool in_place;
} tern_scatter_way;

/* x with src written to x[..., index, ...]: index (int64) and src are of one shape, which may be
 * smaller than x's in other dims than dim. Products, maxima and minima have no gradient here. */
tern_tensor *tern_scatter_into(tern_tensor *x, tern_tensor *index, tern_tensor *src,
                               const tern_scatter_way *way);
/* The same with a vector of indices along dim. */
tern_tensor *tern_scatter_rows(tern_tensor *x, tern_tensor *index, tern_tensor *src,
                               const tern_scatter_way *way);
/* x with nothing of src written to it: an index that is empty. The gradient of src is zeros, which
 * flow on. */
tern_tensor *tern_scatter_nothing(tern_tensor *x, tern_tensor *src, bool in_place);
/* Scatter's arguments: refused in PyTorch's words, or made one-dimensional at least, src cut to
 * index's size. */
bool tern_scatter_check(tern_tensor *x, int dim, tern_tensor **index, tern_tensor **src,
                        int *wrapped, const char *function);
/* scatter's public functions: checked, wrapped, of scalars too. */
tern_tensor *tern_scatter_as(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                             int mode, bool in_place, const char *function);
/* int64 from int64 or int32; NULL after an error in PyTorch's words. */
tern_tensor *tern_index_tensor(tern_tensor *index, const char *function);

#endif
