/* gather.h -- reading entries of a dim by an index tensor, for operations composed of it. */
#ifndef TERN_SRC_OPS_GATHER_H
#define TERN_SRC_OPS_GATHER_H
#include "tensor/op.h"

/* Returns the entries `index` (int64, any shape; negative indices count from the end) of dim of x,
 * as a tensor of `shape`, which has the same number of elements. */
tern_tensor *tern_index_entries(tern_tensor *x, tern_tensor *index, int dim, tern_shape shape,
                                int fault);

/* Attributes of an operation that reads by index, or their first member. */
typedef struct tern_gather_attributes {
    tern_shape shape;   /* of the result */
    tern_shape x_shape; /* of x, which is read along dim */
    int64_t skip;       /* an index without a gradient; -1: no such index */
    int32_t dim, fault; /* fault: code for an index out of range */
    bool wrap;          /* negative indices count from the end */
    bool each;          /* one index for each element, else for each entry of dim */
} tern_gather_attributes;

/* infer and forward of such an operation. Inputs are x and index (int64), both dense. */
tern_status tern_gather_infer(tern_call *call);
tern_status tern_gather_forward(tern_call *call);
/* Returns zeros of x_shape with dy added at index (dense, int64). Differentiable. */
tern_tensor *tern_gather_gradient(tern_tensor *dy, tern_tensor *index,
                                  const tern_gather_attributes *at);

/* Adds dy to dx at index, without a new tensor of x_shape. dx is dense, float32 or float64 as dy,
 * and shares its memory with no other tensor. */
tern_status tern_gather_add_gradient(tern_tensor *dx, const tern_tensor *dy,
                                     const tern_tensor *index, const tern_gather_attributes *at);

/* Sets *shape to the dims of index, then the dims of x after the first. */
tern_status tern_index_shape(const tern_tensor *x, const tern_tensor *index, tern_shape *shape,
                             const char *function);

#endif
