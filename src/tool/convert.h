/* convert.h -- files of tensors that the tool writes itself, and what kinds of files there are. */
#ifndef TERN_TOOL_CONVERT_H
#define TERN_TOOL_CONVERT_H
#include "io/out.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tern/tern.h>

/* ---- kinds (kinds.c) ------------------------------------------------------------------------- */

typedef enum tool_holds {
    TOOL_HOLDS_UNKNOWN,
    TOOL_HOLDS_TENSORS,
    TOOL_HOLDS_MODEL, /* ONNX */
    TOOL_HOLDS_IMAGE,
    TOOL_HOLDS_SOUND,
    TOOL_HOLDS_IDX,
    TOOL_HOLDS_TOKENIZER,
    TOOL_HOLDS_ARCHIVE, /* tar, perhaps packed */
    TOOL_HOLDS_PACKED,  /* by gzip or zstd */
    TOOL_HOLDS_TABLE,
    TOOL_HOLDS_TEXT /* lines, perhaps a table */
} tool_holds;

typedef struct tool_kind {
    tool_holds holds;
    char name[96]; /* "GGUF", "safetensors"; "unknown" */
} tool_kind;

/* By the contents of a file, not by its name. */
tool_kind tool_kind_of(const char *path);

/* ---- a file that takes its name when it is whole (convert_files.c) --------------------------- */

typedef struct tool_out {
    io_out out;
    uint64_t at; /* bytes so far */
    size_t held; /* of them in the buffer */
    tern_status status;
    char buffer[1 << 16];
} tool_out;

/* False after an error, which was printed. */
bool tool_out_open(tool_out *out, const char *path);
void tool_out_bytes(tool_out *out, const void *bytes, size_t n);
void tool_out_number(tool_out *out, uint64_t x, int bytes);
/* Zeros up to a multiple. */
void tool_out_pad(tool_out *out, uint64_t multiple);
/* An exit code; the file has its name, or nothing is left of it. */
int tool_out_close(tool_out *out, bool good);

/* ---- tensors on their way from a file to another (convert.c) --------------------------------- */

typedef struct tool_tensors {
    tern_file *file;
    tern_dtype dtype; /* that floats become; TERN_DTYPE_DEFAULT: they stay */
} tool_tensors;

/* The type in which a tensor is written; TERN_DTYPE_DEFAULT after an error, which was printed. */
tern_dtype tool_tensor_dtype(const tool_tensors *from, const char *name);
/* A tensor in that type, dense, on the cpu, of the innermost scope; NULL after an error. */
tern_tensor *tool_tensor_get(const tool_tensors *from, int i);

/* torch.save(dict, path) (convert_torch.c); a GGUF with the tensors under their names, of a GGUF
 * with its blocks and its metadata as they are (convert_gguf.c): exit codes. */
int tool_write_torch(const tool_tensors *from, const char *path);
int tool_write_gguf(const tool_tensors *from, const char *path);
/* A model that llama.cpp runs, of a folder of the Hub or a GGUF, with matrices of type (NULL: as
 * they are); an exit code (models.c). */
int tool_write_model(const char *from, const char *path, const char *type);

/* ---- what libtern_models reads (models.c) ---------------------------------------------------- */

/* Prints what a tokenizer is, of a file, or of a folder; false and an error where there is none. */
bool tool_show_tokenizer(const char *path);
bool tool_is_tokenizer(const char *path);
/* The same of a sound. */
bool tool_show_sound(const char *path);
/* Text of a file, of which nothing is obeyed by a terminal. */
void tool_print_text(const char *text);

#endif
