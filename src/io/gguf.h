/* gguf.h -- GGUF files: metadata with its types, which libtern_models makes models and tokenizers
 * of. */
#ifndef TERN_IO_GGUF_H
#define TERN_IO_GGUF_H
#include "base/error.h"
#include "io/block.h"
#include <tern/io/file.h>

typedef enum io_gguf_kind {
    IO_GGUF_U8,
    IO_GGUF_I8,
    IO_GGUF_U16,
    IO_GGUF_I16,
    IO_GGUF_U32,
    IO_GGUF_I32,
    IO_GGUF_F32,
    IO_GGUF_BOOL,
    IO_GGUF_TEXT, /* u64 length, bytes */
    IO_GGUF_ARRAY,
    IO_GGUF_U64,
    IO_GGUF_I64,
    IO_GGUF_F64,
    IO_GGUF_KINDS
} io_gguf_kind;

/* The value of a key, in the pages of the file, which others may write to: what is read of them is
 * compared with `end` each time. */
typedef struct io_gguf_value {
    io_gguf_kind kind; /* of the value; of an array of its elements */
    bool is_array;
    uint64_t count; /* of elements */
    const unsigned char *bytes, *end;
} io_gguf_value;

/* False: the file is no GGUF, or has no such key; *value is zeroed then. */
TERN_PRIVATE bool io_gguf_find(const tern_file *file, const char *key, io_gguf_value *value);
TERN_PRIVATE bool io_gguf_is(const tern_file *file);
/* The i-th key in the order of the file, and its value; NULL behind the last. */
TERN_PRIVATE const char *io_gguf_pair_at(const tern_file *file, int i, io_gguf_value *value);
/* The blocks of a tensor as they lie, (rows, bytes of a row) of u8, onto device; of the innermost
 * scope. NULL after an error, and where the tensor is none of blocks that are decoded. */
TERN_PRIVATE tern_tensor *io_gguf_blocks(tern_file *file, const char *name, const char *device);
/* Bytes of a number of that kind; 0 of texts and arrays. */
TERN_PRIVATE size_t io_gguf_size(io_gguf_kind kind);
/* A number that is whole, by value; false for others. */
TERN_PRIVATE bool io_gguf_integer(io_gguf_kind kind, const unsigned char *bytes, int64_t *x);
/* A number of any kind. */
TERN_PRIVATE double io_gguf_real(io_gguf_kind kind, const unsigned char *bytes);
/* The text at *at, which goes on behind it; false where it reaches beyond end. */
TERN_PRIVATE bool io_gguf_text(const unsigned char **at, const unsigned char *end,
                               const char **text, uint64_t *n);

/* ---- inside of libtern ----------------------------------------------------------------------- */

struct io_gguf;
/* Whether a file begins as GGUF or its predecessors; open refuses the latter by name. */
bool io_gguf_is_head(const char head[4]);
tern_status io_gguf_open(tern_file *file);
void io_gguf_free(struct io_gguf *gguf);
/* One file, of whatever split (gguf.c); io_gguf_open finds the others (gguf_split.c). */
tern_status io_gguf_open_one(tern_file *file);

#endif
