/* transformer.h -- what stacks of layers know of a layer. */
#ifndef TERN_NN_TRANSFORMER_H
#define TERN_NN_TRANSFORMER_H
#include "nn/layers/layer.h"

/* A layer like this one, with its own parameters of equal values; NULL after an error. */
tern_module *tern_transformer_layer_copy(tern_module *layer, const char *function);

#endif
