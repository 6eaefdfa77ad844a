/* block.h -- element types of GGUF: blocks of elements that share their scales, decoded to float32. */
#ifndef TERN_IO_BLOCK_H
#define TERN_IO_BLOCK_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block of a row: so many elements in so many bytes. */
typedef struct io_block {
    uint32_t id;
    const char *name;
    int elements, bytes; /* 0: the type was taken out of the format, and its size is not known */
    /* NULL: single elements that io_type knows, and types that are not decoded. */
    void (*decode)(const unsigned char *block, float *y);
} io_block;

/* The row of a type's number, or of its name; NULL: there is none. */
const io_block *io_block_of(uint32_t id);
TERN_PRIVATE const io_block *io_block_named(const char *name);

#endif
