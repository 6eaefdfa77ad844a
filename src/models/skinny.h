/* skinny.h -- products of a few rows with codes of 8 and 4 bits by AVX2 or NEON. */
#ifndef TERN_SRC_MODELS_SKINNY_H
#define TERN_SRC_MODELS_SKINNY_H
#include "models/quantize.h"

/* A weight in the layout of tern_linear_packed. */
typedef struct skinny {
    tern_tensor *codes, *scales, *zeros; /* zeros may be NULL */
} skinny;

/* Whether skinny_linear can be used: on a cpu with AVX2 or NEON, outside of recordings, for sizes
 * that are whole vectors. */
bool skinny_takes(const quantize_layer *l, tern_tensor *x, const skinny *w);
/* Returns the result of tern_linear_packed for x (..., in), with half of its instructions. */
tern_tensor *skinny_linear(const quantize_layer *l, tern_tensor *x, const skinny *w);

#endif
