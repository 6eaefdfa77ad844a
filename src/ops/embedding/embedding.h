/* embedding.h -- functions shared by embedding and embedding_bag. */
#ifndef TERN_SRC_OPS_EMBEDDING_H
#define TERN_SRC_OPS_EMBEDDING_H
#include "tensor/op.h"

/* Checks that indices are integers and that weight has two dims. */
tern_status tern_embedding_check(const tern_tensor *indices, const tern_tensor *weight,
                                 const char *function);
/* Sets *skip to the row of padding_idx, or -1 for none. */
tern_status tern_embedding_padding(tern_optional_int padding, int64_t rows, int64_t *skip,
                                   const char *function);
/* Scales each row of weight that is in indices and whose norm exceeds max_norm down to max_norm, in
 * place; max_norm 0 changes nothing. */
tern_status tern_embedding_renorm(tern_tensor *weight, tern_tensor *indices, double max_norm,
                                  double norm_type);
/* Returns for each entry of index (int64, below rows) the number of its occurrences in index. */
tern_tensor *tern_embedding_frequency(tern_tensor *index, int64_t rows, tern_dtype dtype);

#endif
