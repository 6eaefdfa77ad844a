/* dropout.c -- in training y = x mask / (1 - p), where mask is 0 with probability p for each
 * element, or for each channel (dropout1d and so on). The alpha forms set dropped elements to the
 * limit of selu for large negative inputs and rescale, so that mean and variance are preserved. */
#include "nn/layers/layer.h"

static tern_module *make(const char *function, const char *name, tern_module_forward forward,
                         const tern_dropout_options *options)
{
    const double p = tern_read_dropout(options).p;
    if (!(p >= 0 && p <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_%s: dropout probability has to be between 0 and 1, but got "
                              "%s",
                              function, TERN_NUMBER_TEXT(p));
    tern_module *m = tern_layer(name, forward, &p, sizeof p);
    m = tern_layer_if(m, tern_nn_set_extra(m, "p=%s, inplace=False", TERN_NUMBER_TEXT(p)));
    return tern_layer_with_inplace(m, INPLACE_SHOWN, options && options->inplace);
}

#define DROPOUT(FUNCTION, NAME)                                                                    \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        double p = *(const double *)tern_nn_data(self);                                            \
        bool training = tern_nn_is_training(self);                                                 \
        return tern_layer_is_inplace(self) ? tern_##FUNCTION##_(x, p, training)                    \
                                           : tern_##FUNCTION(x, p, training);                      \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(const tern_dropout_options *options)                           \
    {                                                                                              \
        return make(#FUNCTION, NAME, FUNCTION##_forward, options);                                 \
    }
DROPOUT(dropout, "Dropout")
DROPOUT(dropout1d, "Dropout1d")
DROPOUT(dropout2d, "Dropout2d")
DROPOUT(dropout3d, "Dropout3d")
DROPOUT(alpha_dropout, "AlphaDropout")
DROPOUT(feature_alpha_dropout, "FeatureAlphaDropout")
