/* block.h -- element types of GGUF: blocks of elements with common scales, which are decoded to
 * float32. */
#ifndef TERN_IO_BLOCK_H
#define TERN_IO_BLOCK_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An element type: `elements` elements of a row are a block of `bytes` bytes. */
typedef struct io_block {
    uint32_t id;
    const char *name;
    int elements, bytes; /* bytes is 0 for a type removed from the format, of unknown size */
    /* Decodes a block. NULL for single elements, which io_type has, and for a type that is not
     * decoded. */
    void (*decode)(const unsigned char *block, float *y);
} io_block;

/* The levels of IQ4_NL and IQ4_XS. */
#define IO_BLOCK_POINTS                                                                            \
    {                                                                                              \
        -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113                   \
    }

/* Returns the little-endian float16 at b. */
static inline float io_half(const unsigned char *b)
{
    uint32_t h = (uint32_t)b[0] | (uint32_t)b[1] << 8, mantissa = h & 0x3ff,
             exponent = h >> 10 & 31;
    uint32_t bits = (h & 0x8000) << 16;
    float x;
    if (!exponent) {
        x = (float)mantissa * 0x1p-24f;
        return bits ? -x : x;
    }
    bits |= mantissa << 13 | (exponent == 31 ? 255 : exponent + 112) << 23;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Both return a type's row, by number or by name, or NULL. */
const io_block *io_block_of(uint32_t id);
TERN_PRIVATE const io_block *io_block_named(const char *name);

#endif
