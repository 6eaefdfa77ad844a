/* fast.h -- the block types that people's files are made of, for processors with AVX2. */
#ifndef TERN_SRC_MODELS_GGUF_FAST_H
#define TERN_SRC_MODELS_GGUF_FAST_H
#include "io/gguf.h"

/* What decodes a block of that type here: the same numbers as block->decode. */
typedef void (*gguf_decoder)(const unsigned char *block, float *y);
gguf_decoder gguf_decoder_of(const io_block *block);
/* The sums over a row of blocks times each of n rows of x (n, columns), into y[0], y[step], ...; n
 * is at most GGUF_SKINNY. */
enum { GGUF_SKINNY = 4 };
void gguf_dot(const io_block *block, const unsigned char *row, int64_t columns, const float *x,
              int n, float *y, int64_t step);

#endif
