/* fast.h -- AVX2 and NEON code for the most common block types. */
#ifndef TERN_SRC_MODELS_GGUF_FAST_H
#define TERN_SRC_MODELS_GGUF_FAST_H
#include "io/gguf.h"

/* Returns the fastest decoder of the block type on this processor; all give the same numbers as
 * block->decode. */
typedef void (*gguf_decoder)(const unsigned char *block, float *y);
gguf_decoder gguf_decoder_of(const io_block *block);
/* Computes the dot products of one row of blocks with each of n <= GGUF_SKINNY rows of x (n,
 * columns), into y[0], y[step], ... */
enum { GGUF_SKINNY = 4 };
void gguf_dot(const io_block *block, const unsigned char *row, int64_t columns, const float *x,
              int n, float *y, int64_t step);

#endif
