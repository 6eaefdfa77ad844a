/* nf4.h -- products with NF4 weights without decoding them first: codes of 4 bits, two per byte,
 * the first in the high half, and a scale for 64 elements. */
#ifndef TERN_SRC_MODELS_NF4_H
#define TERN_SRC_MODELS_NF4_H
#include "models/quantize.h"

enum { NF4_BLOCK = 64, NF4_ROWS = 8 };

/* Whether nf4_decode and nf4_linear can be used: not in a recording, because its replays would omit
 * them. */
bool nf4_is_direct(const quantize_layer *l, tern_tensor *const parts[3]);
/* Returns rows from .. from + n of the weight in float32; l->in must be a multiple of the block
 * size. */
tern_tensor *nf4_decode(const quantize_layer *l, tern_tensor *const parts[3], int64_t from,
                        int64_t n);
/* Returns x (..., in), of up to NF4_ROWS rows, times the weight: (..., out) in x's dtype; rows of
 * the weight must be whole blocks. */
tern_tensor *nf4_linear(const quantize_layer *l, tern_tensor *x, tern_tensor *const parts[3]);

#endif
