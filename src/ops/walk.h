/* walk.h -- from tensors to the tern_walk that elementwise kernels follow. */
#ifndef TERN_OPS_WALK_H
#define TERN_OPS_WALK_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

/* A walk over n (at most TERN_WALK_TENSORS) tensors broadcast to shape; t[0] is the result. */
void tern_walk_make(tern_walk *walk, const tern_shape *shape, tern_tensor *const *t, int n);

/* Items and the work they are, for a launch over the walk. */
static inline tern_grid tern_walk_grid(const tern_walk *walk)
{
    return tern_items(walk->rows * walk->inner);
}

#endif
