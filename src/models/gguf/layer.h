/* layer.h -- linear layers and embeddings over the blocks of a GGUF, which stay as they lie in the
 * file. */
#ifndef TERN_SRC_MODELS_GGUF_LAYER_H
#define TERN_SRC_MODELS_GGUF_LAYER_H
#include "io/gguf.h"
#include "models/model.h"

/* The data of such a layer, whose buffer "weight" is (rows, bytes of a row) of u8: a row is an
 * output, or a token. */
typedef struct gguf_layer {
    const io_block *block;
    int64_t rows, columns;
} gguf_layer;

/* "LinearGGUF" and "EmbeddingGGUF": NULL after an error. bias: (rows) or NULL. */
tern_module *gguf_linear(gguf_layer l, tern_tensor *blocks, tern_tensor *bias);
tern_module *gguf_embedding(gguf_layer l, tern_tensor *blocks);
bool gguf_is_linear(tern_module *m);
bool gguf_is_layer(tern_module *m);
/* The whole weight, (rows, columns) of float32. */
tern_tensor *gguf_weight(tern_module *m);

/* Rows from .. from + n of blocks as float32 (decode.c). */
tern_tensor *gguf_decode(const gguf_layer *l, tern_tensor *blocks, int64_t from, int64_t n);

/* Whether x is a few rows on the cpu, as tokens that are generated are; x W^T of them reads blocks
 * as they lie. */
bool gguf_is_skinny(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks);
tern_tensor *gguf_multiply_skinny(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks);

/* How many rows are decoded at a time. */
int64_t gguf_rows_of_tile(const gguf_layer *l);
/* The mean cross entropy of labels (M) behind the head, of x (..., columns) of M rows, without
 * logits (loss.c). */
tern_tensor *gguf_cross_entropy(tern_module *head, tern_tensor *x, tern_tensor *labels);

/* ---- of a file (layers.c) -------------------------------------------------------------------- */

/* Linear layers and embeddings of m whose matrices are blocks in the file become layers over them,
 * on device; `used` hears of the names. Biases have no values yet. */
tern_status gguf_read_layers(models_model *m, tern_file *file, const char *device,
                             void (*used)(void *user, const char *name), void *user);

#endif
