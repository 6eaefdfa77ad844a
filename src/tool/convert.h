/* convert.h -- files that the tool writes, and the detection of file formats. */
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
    TOOL_HOLDS_MODEL, /* an ONNX model */
    TOOL_HOLDS_IMAGE,
    TOOL_HOLDS_SOUND,
    TOOL_HOLDS_IDX,
    TOOL_HOLDS_TOKENIZER,
    TOOL_HOLDS_ARCHIVE, /* a tar archive, perhaps compressed */
    TOOL_HOLDS_PACKED,  /* compressed by gzip or zstd */
    TOOL_HOLDS_TABLE,
    TOOL_HOLDS_TEXT /* lines of text, perhaps a table */
} tool_holds;

typedef struct tool_kind {
    tool_holds holds;
    char name[96]; /* format, for example "GGUF" or "safetensors"; "unknown" */
} tool_kind;

/* Determines the format from the file's contents, not from its name. */
tool_kind tool_kind_of(const char *path);

/* ---- a file that gets its name when it is complete (convert_files.c) ------------------------- */

typedef struct tool_out {
    io_out out;
    uint64_t at; /* bytes written so far */
    size_t held; /* bytes in the buffer, not yet in the file */
    tern_status status;
    char buffer[1 << 16];
} tool_out;

/* Returns false after an error, which is printed. */
bool tool_out_open(tool_out *out, const char *path);
void tool_out_bytes(tool_out *out, const void *bytes, size_t n);
void tool_out_number(tool_out *out, uint64_t x, int bytes);
/* Writes zeros up to a multiple of `multiple` bytes. */
void tool_out_pad(tool_out *out, uint64_t multiple);
/* Returns an exit code; if not good or after an error, no file is left. */
int tool_out_close(tool_out *out, bool good);

/* ---- tensors that are copied from a file to another (convert.c) ------------------------------ */

typedef struct tool_tensors {
    tern_file *file;
    tern_dtype dtype; /* dtype to convert floats to; TERN_DTYPE_DEFAULT: none */
} tool_tensors;

/* Returns the dtype in which a tensor is written, or TERN_DTYPE_DEFAULT after an error, which is
 * printed. */
tern_dtype tool_tensor_dtype(const tool_tensors *from, const char *name);
/* Returns tensor i in that dtype, dense, on the cpu, in the innermost scope; NULL after an
 * error. */
tern_tensor *tool_tensor_get(const tool_tensors *from, int i);

/* tool_write_torch writes a file like torch.save(dict, path) (convert_torch.c). tool_write_gguf
 * writes a GGUF with the tensors under their names; blocks and metadata of a GGUF are copied
 * unchanged (convert_gguf.c). Both return exit codes. */
int tool_write_torch(const tool_tensors *from, const char *path);
int tool_write_gguf(const tool_tensors *from, const char *path);
/* Writes a GGUF model for llama.cpp from a folder of the Hub or from a GGUF, with matrices of the
 * type (NULL: unchanged); returns an exit code (models.c). */
int tool_write_model(const char *from, const char *path, const char *type);

/* ---- files that libtern_models reads (models.c) ---------------------------------------------- */

/* Prints a description of the tokenizer in a file or folder; returns false, with an error, if there
 * is none. */
bool tool_show_tokenizer(const char *path);
bool tool_is_tokenizer(const char *path);
/* Prints a description of an audio file; returns false, with an error, if it is none. */
bool tool_show_sound(const char *path);
/* Prints the start of a text from a file with control characters escaped, so that a terminal does
 * not interpret them. */
void tool_print_text(const char *text);

#endif
