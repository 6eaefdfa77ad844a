/* scatter.h -- writing by an index tensor, for scatter, index_add, put and index_put. */
#ifndef TERN_SRC_OPS_SCATTER_H
#define TERN_SRC_OPS_SCATTER_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

typedef struct tern_scatter_way {
    int dim;   /* the dim that index counts in */
    int mode;  /* TERN_SCATTER_SET ... */
    int fault; /* fault code of an index out of range */
    bool wrap; /* negative indices count from the end */
    bool in_place;
} tern_scatter_way;

/* Returns x with src written to x[..., index, ...]: index (int64) and src have one shape, which may
 * be smaller than x in dims other than dim. Products, maxima and minima have no gradient here. */
tern_tensor *tern_scatter_into(tern_tensor *x, tern_tensor *index, tern_tensor *src,
                               const tern_scatter_way *way);
/* Returns the same with a vector of indices along dim. */
tern_tensor *tern_scatter_rows(tern_tensor *x, tern_tensor *index, tern_tensor *src,
                               const tern_scatter_way *way);
/* Returns x unchanged, for an empty index. The gradient of src is zeros, which propagate. */
tern_tensor *tern_scatter_nothing(tern_tensor *x, tern_tensor *src, bool in_place);
/* Checks the arguments of scatter with PyTorch's messages, and makes index and src at least
 * one-dimensional, src narrowed to the size of index. */
bool tern_scatter_check(tern_tensor *x, int dim, tern_tensor **index, tern_tensor **src,
                        int *wrapped, const char *function);
/* Scatter for the public functions: checks the arguments and wraps dim; x may have no dims. */
tern_tensor *tern_scatter_as(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                             int mode, bool in_place, const char *function);
/* Returns an index of int64 or int32 as int64, or NULL after an error in PyTorch's words. */
tern_tensor *tern_index_tensor(tern_tensor *index, const char *function);

#endif
