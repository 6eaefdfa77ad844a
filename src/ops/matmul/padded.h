/* padded.h -- matrices whose rows and columns are padded to multiples that tensor cores need
 * (tern_place_wants_multiples). */
#ifndef TERN_SRC_PADDED_H
#define TERN_SRC_PADDED_H
#include "tensor/op.h"

/* Sizes of a product: (m, k) times (k, n). */
typedef struct tern_extents {
    int64_t m, n, k;
} tern_extents;
/* Returns e with multiples along the dims that are contiguous in memory: the result's columns, and
 * one dim of each matrix, which is its columns if a_straight or b_straight is set. */
tern_extents tern_multiples_of(tern_extents e, bool a_straight, bool b_straight);

/* tern_padded_empty returns uninitialized memory of x's shape, padded to multiples.
 * tern_padded_copy returns a copy of x in such memory, with zeros in the padding. Both return NULL
 * after an error, and belong to no scope. */
tern_tensor *tern_padded_empty(const tern_tensor *x);
tern_tensor *tern_padded_copy(const tern_tensor *x);
/* Returns x, each row of which is multiplied with `other` columns, as a zero-padded copy with rows
 * aligned for the device, to be used in several products. Returns x itself if its rows are aligned,
 * or if the device does not need alignment. */
tern_tensor *tern_product_padded(tern_tensor *x, int64_t other);
/* Returns whether the rows of x are dense and none is repeated (stride 0), but not all begin at
 * multiples. */
bool tern_has_odd_rows(const tern_tensor *x);
/* tern_zero_padded records that the padding of x, allocated by tern_tensor_padded, is zero.
 * tern_is_zero_padded returns whether x is such a tensor as a whole. */
void tern_zero_padded(tern_tensor *x);
bool tern_is_zero_padded(const tern_tensor *x);

#endif
