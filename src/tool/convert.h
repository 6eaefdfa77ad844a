/* convert.h -- files of tensors that the tool writes itself. */
#ifndef TERN_TOOL_CONVERT_H
#define TERN_TOOL_CONVERT_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tern/tern.h>

/* What a file is called: "GGUF", "safetensors"; "unknown". By its first bytes. */
const char *tool_kind_of(const char *path);

/* A file that takes its name when it is whole; at: bytes so far. */
typedef struct tool_out {
    FILE *file;
    const char *path;
    char part[4200];
    uint64_t at;
    bool failed;
} tool_out;

bool tool_out_open(tool_out *out, const char *path);
void tool_out_bytes(tool_out *out, const void *bytes, size_t n);
void tool_out_number(tool_out *out, uint64_t x, int bytes);
/* Zeros up to a multiple. */
void tool_out_pad(tool_out *out, uint64_t multiple);
/* An exit code; the file has its name, or nothing is left of it. */
int tool_out_close(tool_out *out, bool good);
/* The elements of x as they lie in memory on the cpu, to be freed; NULL after an error. */
void *tool_elements(tern_tensor *x, size_t *bytes);

/* torch.save(dict, path); GGUF with the tensors under their names: exit codes (convert_files.c). */
int tool_write_torch(const tern_state_dict *dict, const char *path);
int tool_write_gguf(const tern_state_dict *dict, const char *path);

#endif
