/* gather.h -- reading entries of a dim by an index tensor, for operations made of it. */
#ifndef TERN_SRC_OPS_GATHER_H
#define TERN_SRC_OPS_GATHER_H
#include "tensor/op.h"

/* Entries index (int64, any shape; negative ones count from the end) of x's dim, as a tensor of
 * `shape`, which has as many elements. */
tern_tensor *tern_index_entries(tern_tensor *x, tern_tensor *index, int dim, tern_shape shape,
                                int fault);

/* What an operation of its own that reads so has as its attributes, or as their first member. */
typedef struct tern_gather_attributes {
    tern_shape shape;   /* of the result */
    tern_shape x_shape; /* of what is read, along dim */
    int64_t skip;       /* this index gives no gradient; -1: none */
    int32_t dim, fault; /* fault: of an index out of range */
    bool wrap;          /* negative indices count from the end */
    bool each;          /* an index for each element, else one for each entry of dim */
} tern_gather_attributes;

/* Inputs x and index, both dense, index int64. */
tern_status tern_gather_infer(tern_call *call);
tern_status tern_gather_forward(tern_call *call);
/* Zeros of x_shape to which dy is added where index (dense int64) points. Differentiable. */
tern_tensor *tern_gather_gradient(tern_tensor *dy, tern_tensor *index,
                                  const tern_gather_attributes *at);

/* dy is added to dx where index points: without a new tensor of x_shape. dx, of float32 or float64
 * as dy is, dense, is nobody else's. */
tern_status tern_gather_add_gradient(tern_tensor *dx, const tern_tensor *dy,
                                     const tern_tensor *index, const tern_gather_attributes *at);

/* *shape: index's dims, then x's after the first. */
tern_status tern_index_shape(const tern_tensor *x, const tern_tensor *index, tern_shape *shape,
                             const char *function);

#endif
