/* gguf.h -- GGUF files: typed metadata, from which libtern_models makes models and tokenizers. */
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
    IO_GGUF_TEXT, /* u64 length, then bytes */
    IO_GGUF_ARRAY,
    IO_GGUF_U64,
    IO_GGUF_I64,
    IO_GGUF_F64,
    IO_GGUF_KINDS
} io_gguf_kind;

/* A value in the mapped file. Other programs may write to the file, so each read is checked against
 * `end`. */
typedef struct io_gguf_value {
    io_gguf_kind kind; /* kind of the value, or of an array's elements */
    bool is_array;
    uint64_t count; /* number of elements */
    const unsigned char *bytes, *end;
} io_gguf_value;

/* Finds a key's value. Returns false, with *value zeroed, if the file is no GGUF or has no such
 * key. */
TERN_PRIVATE bool io_gguf_find(const tern_file *file, const char *key, io_gguf_value *value);
TERN_PRIVATE bool io_gguf_is(const tern_file *file);
/* Returns the i-th key in the file's order and sets *value, or returns NULL after the last. */
TERN_PRIVATE const char *io_gguf_pair_at(const tern_file *file, int i, io_gguf_value *value);
/* Returns the encoded blocks of a tensor as u8 (rows, bytes of a row) on device, of the innermost
 * scope. Returns NULL after an error, also if the tensor does not have blocks that can be
 * decoded. */
TERN_PRIVATE tern_tensor *io_gguf_blocks(tern_file *file, const char *name, const char *device);
/* Returns the bytes of a number of that kind; 0 for texts and arrays. */
TERN_PRIVATE size_t io_gguf_size(io_gguf_kind kind);
/* Sets *x to an integer of any kind; returns false for other kinds. */
TERN_PRIVATE bool io_gguf_integer(io_gguf_kind kind, const unsigned char *bytes, int64_t *x);
/* Returns a number of any kind. */
TERN_PRIVATE double io_gguf_real(io_gguf_kind kind, const unsigned char *bytes);
/* Reads the text at *at and moves *at behind it. Returns false if the text exceeds end. */
TERN_PRIVATE bool io_gguf_text(const unsigned char **at, const unsigned char *end,
                               const char **text, uint64_t *n);

/* ---- inside of libtern ----------------------------------------------------------------------- */

struct io_gguf;
/* Returns whether a file begins as GGUF or its predecessors, which io_gguf_open refuses by name. */
bool io_gguf_is_head(const char head[4]);
tern_status io_gguf_open(tern_file *file);
void io_gguf_free(struct io_gguf *gguf);
/* Opens one file, also one of a split (gguf.c); io_gguf_open finds the others (gguf_split.c). */
tern_status io_gguf_open_one(tern_file *file);

#endif
