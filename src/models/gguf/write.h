/* write.h -- GGUF files that are written: metadata, tensors, the types that numbers are encoded
 * in. */
#ifndef TERN_SRC_MODELS_GGUF_WRITE_H
#define TERN_SRC_MODELS_GGUF_WRITE_H
#include "io/out.h"
#include "models/gguf/gguf.h"
#include "models/gguf/layer.h"
#include "models/tokenizer/maker.h"

/* ---- types (encode.c) ------------------------------------------------------------------------ */

typedef struct gguf_encoder {
    const char *name;  /* as io_block's */
    int64_t file_type; /* of a file whose matrices are of it */
    void (*encode)(const float *x, unsigned char *block);
    const char *otherwise; /* of rows that are not whole blocks; NULL: F16 */
} gguf_encoder;
/* By its name in any case; NULL: none writes it. */
const gguf_encoder *gguf_encoder_named(const char *name);

/* ---- files (write.c) ------------------------------------------------------------------------- */

/* A tensor on its way: (rows, columns), or a vector of one row. */
typedef struct gguf_item {
    char *name;
    tern_shape shape; /* as PyTorch has it */
    const io_block *block;
    const gguf_encoder *encoder; /* of values; NULL: they are bytes of blocks */
    tern_tensor *values;         /* borrowed; NULL: the writer's get has them */
    const char *path;            /* of the parameter; borrowed; or NULL */
    tern_module *layer;          /* whose blocks are to be decoded first; or NULL */
    uint64_t bytes;
} gguf_item;

typedef struct gguf_writer {
    const char *function, *path;
    tern_status status; /* of the first value that a key does not take */
    tk_out pairs;
    uint64_t n_pairs;
    gguf_item *items;
    int n, capacity;
    uint64_t alignment; /* 0: 32 */
    /* What is written for an item; NULL: item->values. The result is of the innermost scope. */
    tern_tensor *(*get)(void *user, const gguf_item *item);
    void *user;
} gguf_writer;

void gguf_write_text(gguf_writer *w, const char *key, const char *text);
/* A number from 0 to 2^32 - 1; for another one the file is refused with TERN_ERR_UNSUPPORTED. */
void gguf_write_u32(gguf_writer *w, const char *key, int64_t x);
void gguf_write_f32(gguf_writer *w, const char *key, double x);
void gguf_write_bool(gguf_writer *w, const char *key, bool x);
/* A value of a file as it is. */
void gguf_write_value(gguf_writer *w, const char *key, const io_gguf_value *value);
/* The head of an array, behind which are its elements. */
void gguf_write_array(gguf_writer *w, const char *key, io_gguf_kind kind, uint64_t count);
/* An element that is a text: the prefix and n bytes. */
void gguf_write_element(gguf_writer *w, const char *prefix, const char *text, size_t n);
/* An element that is a number, as it lies in memory. */
void gguf_write_bits(gguf_writer *w, const void *x, size_t n);
/* A tensor that will be encoded, or bytes of blocks: of block->elements a block. TERN_ERR_ARGUMENT
 * where rows are not whole blocks. */
tern_status gguf_write_tensor(gguf_writer *w, const gguf_item *item);
/* All of it into the file, which appears whole or not at all. */
tern_status gguf_write_file(gguf_writer *w);
void gguf_writer_free(gguf_writer *w);

/* ---- what is written (adapter.c, export.c) --------------------------------------------------- */

/* Whether a path ends in .gguf. */
bool gguf_is_name(const char *path);
/* What gguf_values does, undone: of the parameter at path, or of its blocks' bytes. */
tern_tensor *gguf_unvalues(const models_model *m, const char *path, tern_tensor *x);
/* The name of a model's architecture there; NULL after an error that names function. */
const char *gguf_architecture(const models_model *m, const char *function);
/* The keys that the config.json and the tokenizer.json of a model's directory become, and tensors
 * of factors; TERN_ERR_UNSUPPORTED for what no key says. Without a tokenizer.json there are none of
 * a tokenizer. */
tern_status gguf_write_config(gguf_writer *w, const models_model *m, const char *arch);
tern_status gguf_write_tokenizer(gguf_writer *w, const models_model *m);
tern_status gguf_save_model(models_model *m, const char *path, const char *type,
                            const char *function);
/* Of the active adapter; dict: its tensors under PEFT's names. */
tern_status gguf_save_adapter(models_model *m, const char *path, const tern_state_dict *dict,
                              const json_t *config, const char *function);
/* An adapter under PEFT's names, and its config; NULL after an error. */
tern_state_dict *gguf_load_adapter(models_model *m, const char *path, json_t **config,
                                   const char *function);

#endif
