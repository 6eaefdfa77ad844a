/* skinny.h -- products of a few rows with codes of 8 and 4 bits on processors with AVX2. */
#ifndef TERN_SRC_MODELS_SKINNY_H
#define TERN_SRC_MODELS_SKINNY_H
#include "models/quantize.h"

/* A weight as tern_linear_packed takes it. */
typedef struct skinny {
    tern_tensor *codes, *scales, *zeros; /* zeros: or NULL */
} skinny;

/* Whether skinny_linear can be used: on a cpu with AVX2, not in what is recorded, of sizes that are
 * whole vectors. */
bool skinny_takes(const quantize_layer *l, tern_tensor *x, const skinny *w);
/* What tern_linear_packed gives for x (..., in), in half of its instructions. */
tern_tensor *skinny_linear(const quantize_layer *l, tern_tensor *x, const skinny *w);

#endif
