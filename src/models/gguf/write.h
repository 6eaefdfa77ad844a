/* write.h -- writing GGUF files: metadata, tensors, and the types that values are encoded in. */
#ifndef TERN_SRC_MODELS_GGUF_WRITE_H
#define TERN_SRC_MODELS_GGUF_WRITE_H
#include "io/out.h"
#include "models/gguf/gguf.h"
#include "models/gguf/layer.h"
#include "models/tokenizer/maker.h"

/* ---- types (encode.c) ------------------------------------------------------------------------ */

typedef struct gguf_encoder {
    const char *name;  /* the block type's name, as in io_block */
    int64_t file_type; /* general.file_type of a file whose matrices have this type */
    void (*encode)(const float *x, unsigned char *block);
    const char *otherwise; /* type for rows that are not whole blocks; NULL: F16 */
} gguf_encoder;
/* Returns the encoder of a name in any case, or NULL if there is none. */
const gguf_encoder *gguf_encoder_named(const char *name);

/* ---- files (write.c) ------------------------------------------------------------------------- */

/* A tensor to write: (rows, columns), or a vector, which is one row. */
typedef struct gguf_item {
    char *name;
    tern_shape shape; /* in PyTorch's order */
    const io_block *block;
    const gguf_encoder *encoder; /* encodes the values; NULL: the data are bytes of blocks */
    tern_tensor *values;         /* borrowed; NULL: from the writer's get */
    const char *path;            /* the parameter's path, borrowed; or NULL */
    tern_module *layer;          /* layer whose blocks are decoded first; or NULL */
    uint64_t bytes;
} gguf_item;

typedef struct gguf_writer {
    const char *function, *path;
    tern_status status; /* error of the first value that does not fit its key */
    tk_out pairs;
    uint64_t n_pairs;
    gguf_item *items;
    int n, capacity;
    uint64_t alignment; /* alignment of tensor data in bytes; 0: 32 */
    /* Returns the data of an item, in the innermost scope; NULL: item->values is written. */
    tern_tensor *(*get)(void *user, const gguf_item *item);
    void *user;
} gguf_writer;

void gguf_write_text(gguf_writer *w, const char *key, const char *text);
/* Writes a number from 0 to 2^32 - 1; another number makes the writer fail with
 * TERN_ERR_UNSUPPORTED. */
void gguf_write_u32(gguf_writer *w, const char *key, int64_t x);
void gguf_write_f32(gguf_writer *w, const char *key, double x);
void gguf_write_bool(gguf_writer *w, const char *key, bool x);
/* Writes a value of another file unchanged. */
void gguf_write_value(gguf_writer *w, const char *key, const io_gguf_value *value);
/* Writes the head of an array; the caller then writes its elements. */
void gguf_write_array(gguf_writer *w, const char *key, io_gguf_kind kind, uint64_t count);
/* Writes a string element: the prefix and n bytes. */
void gguf_write_element(gguf_writer *w, const char *prefix, const char *text, size_t n);
/* Writes a number element, n bytes in memory order. */
void gguf_write_bits(gguf_writer *w, const void *x, size_t n);
/* Adds a tensor that will be encoded, or bytes of blocks. Fails with TERN_ERR_ARGUMENT if rows are
 * not whole blocks. */
tern_status gguf_write_tensor(gguf_writer *w, const gguf_item *item);
/* Writes the file, which appears at the path complete or not at all. */
tern_status gguf_write_file(gguf_writer *w);
void gguf_writer_free(gguf_writer *w);

/* ---- contents (adapter.c, export.c) --------------------------------------------------------- */

/* Whether a path ends in .gguf. */
bool gguf_is_name(const char *path);
/* The inverse of gguf_values, for the parameter at path or for bytes of its blocks. */
tern_tensor *gguf_unvalues(const models_model *m, const char *path, tern_tensor *x);
/* Returns general.architecture for the model, or NULL after an error that names function. */
const char *gguf_architecture(const models_model *m, const char *function);
/* Write the keys for config.json and for tokenizer.json of the model's directory, and tensors of
 * rope factors; fail with TERN_ERR_UNSUPPORTED for what no key can express. Without a
 * tokenizer.json no keys of a tokenizer are written. */
tern_status gguf_write_config(gguf_writer *w, const models_model *m, const char *arch);
tern_status gguf_write_tokenizer(gguf_writer *w, const models_model *m);
tern_status gguf_save_model(models_model *m, const char *path, const char *type,
                            const char *function);
/* Writes the active adapter; dict: its tensors under PEFT's names. */
tern_status gguf_save_adapter(models_model *m, const char *path, const tern_state_dict *dict,
                              const json_t *config, const char *function);
/* Returns the adapter's tensors under PEFT's names and sets *config; NULL after an error. */
tern_state_dict *gguf_load_adapter(models_model *m, const char *path, json_t **config,
                                   const char *function);

#endif
