/* softmax.c -- softmax and its logarithm over a dim. */
#include "nn/layers/layer.h"

static tern_tensor *softmax_forward(tern_module *self, tern_tensor *x)
{
    const int *dim = tern_nn_data(self);
    return tern_softmax(x, *dim);
}

static tern_tensor *log_softmax_forward(tern_module *self, tern_tensor *x)
{
    const int *dim = tern_nn_data(self);
    return tern_log_softmax(x, *dim);
}

tern_module *tern_nn_softmax(int dim)
{
    tern_module *m = tern_layer("Softmax", softmax_forward, &dim, sizeof dim);
    return tern_layer_if(m, tern_nn_set_extra(m, "dim=%d", dim));
}

tern_module *tern_nn_log_softmax(int dim)
{
    tern_module *m = tern_layer("LogSoftmax", log_softmax_forward, &dim, sizeof dim);
    return tern_layer_if(m, tern_nn_set_extra(m, "dim=%d", dim));
}
