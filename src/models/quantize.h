/* quantize.h -- quantized linear layers, as adapters see them. */
#ifndef TERN_SRC_MODELS_QUANTIZE_H
#define TERN_SRC_MODELS_QUANTIZE_H
#include "models/model.h"
#include <tern/models/quantize.h>

/* The data of a layer, whose buffers are "weight" (codes), "absmax" (scales), of int8 "steps", of
 * NF4 "quant_map" and "pairs"; of INT4 "codes", "scale" and "zero", and of ordered ones "order",
 * (in): which input each column of the codes belongs to. */
typedef struct quantize_layer {
    tern_quantization type;
    int64_t out, in;
    bool ordered;
    int64_t version; /* of what "steps" or "pairs" were made of */
} quantize_layer;
/* Where codes, scales, and what else decodes them are, of each type. */
extern const char *const quantize_buffers[TERN_QUANTIZE_INT4 + 1][3];
bool quantize_is_type(tern_quantization type);

/* map: 16 numbers of NF4; NULL after an error. */
tern_module *quantize_make(quantize_layer l, tern_tensor *const parts[3], const float map[16],
                           tern_tensor *bias);
/* Codes, scales, and zeros, int8's steps or NF4's pairs, which are made again where a state was
 * loaded. */
void quantize_parts(tern_module *m, tern_tensor *parts[3]);
/* Neighbours of a row of so many that INT4 has a scale for; all of them where no power of two goes
 * into it. */
int64_t quantize_group(int64_t in);
/* n codes of 4 bits, a byte each, as tern_linear_packed has them. */
void quantize_pack(const uint8_t *codes, int64_t n, int64_t group, uint8_t *bytes);
bool quantize_is(tern_module *m);
/* Whether m can be made one. */
bool quantize_can(tern_module *m);
/* made in place of the linear layer at path of model. The embedding of a model whose head was tied
 * to it is not trained then: the head has codes of its own. */
tern_status quantize_put(tern_module *model, const char *path, tern_module *made);
/* Other weights (out, in) in a layer's own type. */
tern_status quantize_set(tern_module *layer, tern_tensor *weight);

/* Whether path is of what a quantized layer of m keeps, but of its bias. */
bool quantize_has(const models_model *m, const char *path);

/* ---- files of quantized models (quantize_hub.c) ---------------------------------------------- */

/* What quantization_config of config.json says of layers as tern_nn_state_dict has them. */
#define QUANTIZE_METHOD "tern"

/* A file that is read, the callback that receives the names that were used, and where layers go. */
typedef struct quantize_source {
    tern_file *file;
    void (*used)(void *user, const char *name);
    void *user;
    const char *device;
} quantize_source;
/* TERN_ERR_UNSUPPORTED for a quantization_config that is not read. */
tern_status quantize_check(const models_model *m);
/* The linear layers of m that the file has in 8 or 4 bits. */
tern_status quantize_read_layers(models_model *m, const quantize_source *source);

#endif
