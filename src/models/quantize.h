/* quantize.h -- quantized linear layers. */
#ifndef TERN_SRC_MODELS_QUANTIZE_H
#define TERN_SRC_MODELS_QUANTIZE_H
#include "models/model.h"
#include <tern/models/quantize.h>

/* The data of a quantized layer. Its buffers: "weight" (codes) and "absmax" (scales); for int8
 * "steps"; for NF4 "quant_map" and "pairs"; for INT4 "codes", "scale" and "zero"; if ordered
 * "order" (in), the input of each column of the codes. */
typedef struct quantize_layer {
    tern_quantization type;
    int64_t out, in;
    bool ordered;
    int64_t version; /* version of the tensor that "steps" or "pairs" were computed from */
} quantize_layer;
/* Names of the buffers of codes, of scales, and of the third part of the decoding, by type. */
extern const char *const quantize_buffers[TERN_QUANTIZE_INT4 + 1][3];
bool quantize_is_type(tern_quantization type);

/* Returns a new quantized layer, or NULL after an error; map: the 16 values of NF4. */
tern_module *quantize_make(quantize_layer l, tern_tensor *const parts[3], const float map[16],
                           tern_tensor *bias);
/* Sets parts to codes, scales, and zeros, int8's steps or NF4's pairs; the last two are recomputed
 * after a state was loaded. */
void quantize_parts(tern_module *m, tern_tensor *parts[3]);
/* Returns the INT4 group size of rows of `in` elements; `in` itself if no power of two divides
 * it. */
int64_t quantize_group(int64_t in);
/* Packs n codes of 4 bits, one per byte, into the layout of tern_linear_packed. */
void quantize_pack(const uint8_t *codes, int64_t n, int64_t group, uint8_t *bytes);
bool quantize_is(tern_module *m);
/* Whether m can be quantized. */
bool quantize_can(tern_module *m);
/* Replaces the linear layer at path of model by `made`. If the head was tied to the embedding, the
 * embedding is not trained afterwards: the head has codes of its own. */
tern_status quantize_put(tern_module *model, const char *path, tern_module *made);
/* Quantizes other weights (out, in) with the layer's own type. */
tern_status quantize_set(tern_module *layer, tern_tensor *weight);

/* Whether path names a buffer of a quantized layer of m; false for its bias. */
bool quantize_has(const models_model *m, const char *path);

/* ---- files of quantized models (quantize_hub.c) ---------------------------------------------- */

/* quant_method in config.json of layers in the format of tern_nn_state_dict. */
#define QUANTIZE_METHOD "tern"

/* An open file, a callback that receives the names that were read, and the device of the layers. */
typedef struct quantize_source {
    tern_file *file;
    void (*used)(void *user, const char *name);
    void *user;
    const char *device;
} quantize_source;
/* Fails with TERN_ERR_UNSUPPORTED if quantization_config cannot be read. */
tern_status quantize_check(const models_model *m);
/* Reads the linear layers of m that the file holds in 8 or 4 bits. */
tern_status quantize_read_layers(models_model *m, const quantize_source *source);

#endif
