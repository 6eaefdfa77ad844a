/* layer.h -- linear layers and embeddings whose weights are the undecoded blocks of a GGUF file. */
#ifndef TERN_SRC_MODELS_GGUF_LAYER_H
#define TERN_SRC_MODELS_GGUF_LAYER_H
#include "io/gguf.h"
#include "models/model.h"

/* The data of a layer. Its buffer "weight" (rows, bytes of a row) is u8; a row is an output or a
 * token. */
typedef struct gguf_layer {
    const io_block *block;
    int64_t rows, columns;
} gguf_layer;

/* Return a new "LinearGGUF" or "EmbeddingGGUF", or NULL after an error. bias: (rows) or NULL. */
tern_module *gguf_linear(gguf_layer l, tern_tensor *blocks, tern_tensor *bias);
tern_module *gguf_embedding(gguf_layer l, tern_tensor *blocks);
bool gguf_is_linear(tern_module *m);
bool gguf_is_layer(tern_module *m);
/* Returns the whole weight, (rows, columns) in float32. */
tern_tensor *gguf_weight(tern_module *m);

/* Returns rows from .. from + n of the blocks in float32 (decode.c). */
tern_tensor *gguf_decode(const gguf_layer *l, tern_tensor *blocks, int64_t from, int64_t n);

/* gguf_is_skinny: whether x is a few rows on the cpu, as in generation. gguf_multiply_skinny
 * returns x W^T for such x from the blocks, without a decoded weight. */
bool gguf_is_skinny(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks);
tern_tensor *gguf_multiply_skinny(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks);

/* Returns the number of rows that are decoded at a time. */
int64_t gguf_rows_of_tile(const gguf_layer *l);
/* Returns the mean cross entropy of labels (M) for the head's logits of x (..., columns), M rows,
 * without storing all logits (loss.c). */
tern_tensor *gguf_cross_entropy(tern_module *head, tern_tensor *x, tern_tensor *labels);

/* ---- reading (layers.c) -------------------------------------------------------------------- */

/* Replaces the linear layers and embeddings of m whose matrices are blocks in the file by layers
 * over these blocks, on device; calls used with each name that was read. Biases are not filled. */
tern_status gguf_read_layers(models_model *m, tern_file *file, const char *device,
                             void (*used)(void *user, const char *name), void *user);

#endif
