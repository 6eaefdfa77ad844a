/* transformer.h -- internals of transformer layers that stacks of layers use. */
#ifndef TERN_NN_TRANSFORMER_H
#define TERN_NN_TRANSFORMER_H
#include "nn/layers/layer.h"

/* Returns a copy of the layer with its own parameters of the same values, or NULL after an
 * error. */
tern_module *tern_transformer_layer_copy(tern_module *layer, const char *function);

#endif
