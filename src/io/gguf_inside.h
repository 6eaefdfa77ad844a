/* gguf_inside.h -- shared by the readers of GGUF. */
#ifndef TERN_IO_GGUF_INSIDE_H
#define TERN_IO_GGUF_INSIDE_H
#include "base/keys.h"
#include "io/gguf.h"
#include "io/save.h"

typedef struct io_gguf_pair {
    char *key;
    io_gguf_value value;
} io_gguf_pair;

/* Metadata, in the order of the file. */
struct io_gguf {
    io_gguf_pair *pairs;
    int count;
    tern_keys keys;
};

/* Returns a little-endian number. */
static inline uint64_t io_gguf_bits(const unsigned char *at, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes - 1; i >= 0; i--)
        x = x << 8 | at[i];
    return x;
}

/* Adds the pair as text for tern_file_metadata: valid UTF-8 is unchanged, and of long arrays only
 * the number of elements is given. */
tern_status io_gguf_note(tern_state_dict *notes, const io_gguf_pair *pair);

#endif
