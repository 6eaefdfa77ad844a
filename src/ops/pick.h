/* pick.h -- picking entries of a dim by a vector of indices, for operations made of it. */
#ifndef TERN_OPS_PICK_H
#define TERN_OPS_PICK_H
#include "tensor/op.h"

/* Entries index (int64, any shape; negative ones count from the end) of x's dim, as a tensor of
 * `shape`, which has as many elements. */
tern_tensor *tern_pick(tern_tensor *x, tern_tensor *index, int dim, tern_shape shape, int fault);

#endif
