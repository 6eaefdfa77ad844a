/* padded.h -- matrices in memory for multiples of rows and of columns, as tensor cores take them
 * (tern_place_wants_multiples). */
#ifndef TERN_SRC_PADDED_H
#define TERN_SRC_PADDED_H
#include "tensor/op.h"

/* What is multiplied: at least (m, k) times (k, n). */
typedef struct tern_extents {
    int64_t m, n, k;
} tern_extents;
/* The same with multiples along the dims that are contiguous in memory: the result's columns, and a
 * dim of each matrix, its columns where it is straight. */
tern_extents tern_multiples_of(tern_extents e, bool a_straight, bool b_straight);

/* Memory of x's shape with room for multiples, undefined; and a copy of x there, with zeros in what
 * is more. Not in any scope. */
tern_tensor *tern_padded_empty(const tern_tensor *x);
tern_tensor *tern_padded_copy(const tern_tensor *x);
/* x, of which each row meets `other` numbers in a product, with rows that begin where the device
 * wants them and zeros between, for several products; x itself where they do, or where one without
 * is as good. */
tern_tensor *tern_product_padded(tern_tensor *x, int64_t other);
/* Rows without gaps in them, none of which is there twice, that begin at no multiples. */
bool tern_has_odd_rows(const tern_tensor *x);
/* Memory that tern_tensor_padded made is all x and zeros; whether x is all of such memory. */
void tern_zero_padded(tern_tensor *x);
bool tern_is_zero_padded(const tern_tensor *x);

#endif
