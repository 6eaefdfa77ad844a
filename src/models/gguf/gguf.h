/* gguf.h -- models and tokenizers of GGUF files. */
#ifndef TERN_SRC_MODELS_GGUF_H
#define TERN_SRC_MODELS_GGUF_H
#include "io/gguf.h"
#include "models/model.h"

/* Whether a path is a regular file that begins as GGUF does. */
bool gguf_is_file(const char *path);

/* ---- keys (keys.c): errors name the file and the key ----------------------------------------- */

typedef struct gguf_file {
    tern_file *file;
    const char *function, *path; /* for messages */
    const char *arch;            /* general.architecture, in front of the model's keys */
    char arch_text[64];
} gguf_file;

/* TERN_ERR_IO: "<function>: "<path>": ...". */
tern_status gguf_bad(const gguf_file *g, const char *format, ...) TERN_PRINTF_(2, 3);
/* Fills *g, whose file stays the caller's; refuses a part of several that was given alone. */
tern_status gguf_begin(gguf_file *g, tern_file *file, const char *function, const char *path);
/* ARCH.name of an architecture's key. */
const char *gguf_key(const gguf_file *g, const char *name, char key[128]);
bool gguf_has(const gguf_file *g, const char *key);
/* A whole number from least to INT32_MAX, or an array of equal ones; absent: what it is without the
 * key, below least an error. */
tern_status gguf_size(const gguf_file *g, const char *key, int64_t least, int64_t absent,
                      int64_t *x);
/* A finite number; absent NaN: the key must be there. */
tern_status gguf_real(const gguf_file *g, const char *key, double absent, double *x);
tern_status gguf_flag(const gguf_file *g, const char *key, bool absent, bool *x);
/* A text, NULL without the key; it lives as long as the file. */
tern_status gguf_text(const gguf_file *g, const char *key, const char **text);

/* ---- config.json (config.c) ------------------------------------------------------------------ */

/* What config.json would say of the model; NULL after an error. */
json_t *gguf_config(const gguf_file *g);

/* ---- names and values (tensor_names.c) ------------------------------------------------------- */

/* The file's name for a parameter; false where it has none. */
bool gguf_name(const models_model *m, const char *path, char *name, size_t bytes);
/* Whether the file has the columns of the parameter as rows. */
bool gguf_is_transposed(const models_model *m, const char *path);
/* What the file has for the parameter at path as the module has it. */
tern_tensor *gguf_values(const models_model *m, const char *path, tern_tensor *x);
/* Tensors that are no parameters: their numbers are in the config. */
bool gguf_is_extra(const char *name);

/* ---- tokenizers (vocabulary.c, tokenizer.c) -------------------------------------------------- */

/* Whether the arrays of the tokenizer agree with each other; without a tokenizer they do. */
tern_status gguf_check_vocabulary(const gguf_file *g);
/* The tokenizer of a file; NULL after an error. */
struct tern_tokenizer *gguf_tokenizer(const char *function, const char *path);

#endif
