/* dropout.c -- zeros at random while training. */
#include "nn/layers/layer.h"

static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    const double *p = tern_nn_data(self);
    return tern_dropout(x, *p, tern_nn_is_training(self));
}

tern_module *tern_nn_dropout(const tern_dropout_options *options)
{
    double p = tern_option(options ? options->p : 0, 0.5);
    if (!(p >= 0 && p <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_dropout: dropout probability has to be between 0 and 1, but "
                              "got %s",
                              TERN_NUMBER_TEXT(p));
    tern_module *m = tern_layer("Dropout", forward, &p, sizeof p);
    return tern_layer_if(m, tern_nn_set_extra(m, "p=%s, inplace=False", TERN_NUMBER_TEXT(p)));
}
