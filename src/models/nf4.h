/* nf4.h -- weights of NF4 as they lie: codes of 4 bits, two a byte, the first in the high half, a
 * scale for 64. */
#ifndef TERN_SRC_MODELS_NF4_H
#define TERN_SRC_MODELS_NF4_H
#include "models/quantize.h"

enum { NF4_BLOCK = 64, NF4_ROWS = 8 };

/* Whether the two below can be used: not in what is recorded, whose replays they are no part of. */
bool nf4_is_direct(const quantize_layer *l, tern_tensor *const parts[3]);
/* Rows from .. from + n of the weight in float32, from l->in being whole blocks. */
tern_tensor *nf4_decode(const quantize_layer *l, tern_tensor *const parts[3], int64_t from,
                        int64_t n);
/* x (..., in), of up to NF4_ROWS rows, times the weight: (..., out) of x's type; rows of the weight
 * are whole blocks. */
tern_tensor *nf4_linear(const quantize_layer *l, tern_tensor *x, tern_tensor *const parts[3]);

#endif
