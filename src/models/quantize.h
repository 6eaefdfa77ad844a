/* quantize.h -- quantized linear layers, as adapters see them. */
#ifndef TERN_SRC_MODELS_QUANTIZE_H
#define TERN_SRC_MODELS_QUANTIZE_H
#include "models/model.h"
#include <tern/models/quantize.h>

/* The data of a layer, whose buffers are "weight" (codes), "absmax" (scales), and of NF4 "quant_map" and "pairs". */
typedef struct quantize_layer {
    tern_quantization type;
    int64_t out, in;
} quantize_layer;

/* map: 16 numbers of NF4; NULL after an error. */
tern_module *quantize_make(quantize_layer l, tern_tensor *codes, tern_tensor *scales,
                           const float map[16], tern_tensor *bias);
bool quantize_is(tern_module *m);
/* Other weights (out, in) in a layer's own type. */
tern_status quantize_set(tern_module *layer, tern_tensor *weight);

#endif
