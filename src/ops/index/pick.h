/* pick.h -- picking entries of a dim by a vector of indices, for operations made of it. */
#ifndef TERN_OPS_PICK_H
#define TERN_OPS_PICK_H
#include "tensor/op.h"

/* Entries index (int64, any shape; negative ones count from the end) of x's dim, as a tensor of
 * `shape`, which has as many elements. */
tern_tensor *tern_pick(tern_tensor *x, tern_tensor *index, int dim, tern_shape shape, int fault);
/* Rows of weight by indices, of any shape; the index skip (-1: none) gives no gradient. */
tern_tensor *tern_pick_embedding(tern_tensor *weight, tern_tensor *indices, int64_t skip,
                                 bool by_frequency);
/* Rows dy, added up in zeros of `shape` where index (int64, one a row) says; the index skip:
 * nowhere. */
tern_tensor *tern_spread_rows(tern_tensor *dy, tern_tensor *index, const tern_shape *shape,
                              int64_t skip);

#endif
