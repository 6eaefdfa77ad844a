/* gguf.h -- reading models and tokenizers from GGUF files. */
#ifndef TERN_SRC_MODELS_GGUF_H
#define TERN_SRC_MODELS_GGUF_H
#include "io/gguf.h"
#include "models/model.h"

/* Whether path is a regular file that begins with GGUF's magic bytes. */
bool gguf_is_file(const char *path);

/* ---- keys (keys.c): errors name the file and the key ----------------------------------------- */

typedef struct gguf_file {
    tern_file *file;
    const char *function, *path; /* for error messages */
    const char *arch;            /* general.architecture, the prefix of the model's keys */
    char arch_text[64];
} gguf_file;

/* Fails with TERN_ERR_IO and the message "<function>: "<path>": ...". */
tern_status gguf_bad(const gguf_file *g, const char *format, ...) TERN_PRINTF_(2, 3);
/* Fills *g; the caller keeps owning file. Refuses a single part of a file that was split. */
tern_status gguf_begin(gguf_file *g, tern_file *file, const char *function, const char *path);
/* Writes "ARCH.name" to key and returns key. */
const char *gguf_key(const gguf_file *g, const char *name, char key[128]);
bool gguf_has(const gguf_file *g, const char *key);
/* Reads a whole number from least to INT32_MAX, or an array of equal ones; absent: the value
 * without the key, which is an error if below least. */
tern_status gguf_size(const gguf_file *g, const char *key, int64_t least, int64_t absent,
                      int64_t *x);
/* Reads a finite number; absent: the value without the key, or NaN if the key is required. */
tern_status gguf_real(const gguf_file *g, const char *key, double absent, double *x);
tern_status gguf_flag(const gguf_file *g, const char *key, bool absent, bool *x);
/* Sets *text to a string of the file, which lives as long as the file, or to NULL without the
 * key. */
tern_status gguf_text(const gguf_file *g, const char *key, const char **text);

/* ---- config.json (config.c) ------------------------------------------------------------------ */

/* Returns the model's config.json as derived from the file's keys, or NULL after an error. */
json_t *gguf_config(const gguf_file *g);

/* ---- names and values (tensor_names.c) ------------------------------------------------------- */

/* Writes the file's name of a parameter to name; returns false if the file has none. */
bool gguf_name(const models_model *m, const char *path, char *name, size_t bytes);
/* Whether the file's matrix is the transpose of the parameter. */
bool gguf_is_transposed(const models_model *m, const char *path);
/* Returns x, the file's tensor for the parameter at path, in the module's layout. */
tern_tensor *gguf_values(const models_model *m, const char *path, tern_tensor *x);
/* Whether a tensor is no parameter: its values are part of the config. */
bool gguf_is_extra(const char *name);

/* ---- tokenizers (vocabulary.c, tokenizer.c) -------------------------------------------------- */

/* Checks that the arrays of the tokenizer have matching lengths and values; a file without a
 * tokenizer is accepted. */
tern_status gguf_check_vocabulary(const gguf_file *g);
/* Returns the tokenizer of a file, or NULL after an error. */
struct tern_tokenizer *gguf_tokenizer(const char *function, const char *path);

#endif
