/* block.h -- element types of GGUF: blocks of elements that share their scales, decoded to
 * float32. */
#ifndef TERN_IO_BLOCK_H
#define TERN_IO_BLOCK_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A block of a row: so many elements in so many bytes. */
typedef struct io_block {
    uint32_t id;
    const char *name;
    int elements, bytes; /* 0: the type was taken out of the format, and its size is not known */
    /* NULL: single elements that io_type has, and types that are not decoded. */
    void (*decode)(const unsigned char *block, float *y);
} io_block;

/* The levels of IQ4_NL and IQ4_XS. */
#define IO_BLOCK_POINTS                                                                            \
    {                                                                                              \
        -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113                   \
    }

/* The float16 at b, little-endian. */
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

/* The row of a type's number, or of its name; NULL: there is none. */
const io_block *io_block_of(uint32_t id);
TERN_PRIVATE const io_block *io_block_named(const char *name);

#endif
