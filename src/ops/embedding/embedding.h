/* embedding.h -- what embedding and embedding_bag share. */
#ifndef TERN_SRC_OPS_EMBEDDING_H
#define TERN_SRC_OPS_EMBEDDING_H
#include "tensor/op.h"

/* Integers, and a table of two dims. */
tern_status tern_embedding_check(const tern_tensor *indices, const tern_tensor *weight,
                                 const char *function);
/* The row that a padding_idx means, -1 for none. */
tern_status tern_embedding_padding(tern_optional_int padding, int64_t rows, int64_t *skip,
                                   const char *function);
/* Scale the rows of weight that indices name and whose norm is above max_norm down to that, in
 * place; 0: nothing. */
tern_status tern_embedding_renorm(tern_tensor *weight, tern_tensor *indices, double max_norm,
                                  double norm_type);
/* How often each entry of index (int64, of a table of so many rows) stands in index. */
tern_tensor *tern_embedding_frequency(tern_tensor *index, int64_t rows, tern_dtype dtype);

#endif
