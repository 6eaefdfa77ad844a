/* activation.c -- activations: those of activation.def, and those with more than a number or two.
 */
#include "nn/layers/layer.h"

static tern_tensor *softmax_of_channels(tern_tensor *x)
{
    if (tern_dim(x) != 3 && tern_dim(x) != 4)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_nn_softmax2d: Softmax2d requires a 3D or 4D tensor as input, "
                              "got %dD",
                              tern_dim(x));
    return tern_softmax(x, -3);
}

/* ---- the rows of activation.def -------------------------------------------------------------- */

#define PLAIN(FUNCTION, NAME, VALUE)                                                               \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        (void)self;                                                                                \
        return VALUE;                                                                              \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(void)                                                          \
    {                                                                                              \
        return tern_nn_module(NAME, FUNCTION##_forward, NULL);                                     \
    }

#define DIM(FUNCTION, NAME, VALUE)                                                                 \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        int dim = *(const int *)tern_nn_data(self);                                                \
        return VALUE;                                                                              \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(int dim)                                                       \
    {                                                                                              \
        tern_module *m = tern_layer(NAME, FUNCTION##_forward, &dim, sizeof dim);                   \
        return tern_layer_if(m, tern_nn_set_extra(m, "dim=%d", dim));                              \
    }

#define ONE(FUNCTION, NAME, OPTION, DEFAULT, FORMAT, VALUE)                                        \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        double a = *(const double *)tern_nn_data(self);                                            \
        return VALUE;                                                                              \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(const tern_##FUNCTION##_options *options)                      \
    {                                                                                              \
        double a = tern_option(options ? options->OPTION : 0, DEFAULT);                            \
        tern_module *m = tern_layer(NAME, FUNCTION##_forward, &a, sizeof a);                       \
        return tern_layer_if(m, tern_nn_set_extra(m, FORMAT, TERN_NUMBER_TEXT(a)));                \
    }

#include "nn/layers/activation.def"

/* ---- the others ------------------------------------------------------------------------------ */

static tern_tensor *gelu_forward(tern_module *self, tern_tensor *x)
{
    const tern_gelu_options *o = tern_nn_data(self);
    return o->approximate_tanh ? tern_gelu_tanh(x) : tern_gelu(x);
}

tern_module *tern_nn_gelu(const tern_gelu_options *options)
{
    tern_gelu_options o = options ? *options : (tern_gelu_options){0};
    tern_module *m = tern_layer("GELU", gelu_forward, &o, sizeof o);
    return tern_layer_if(
        m, tern_nn_set_extra(m, "approximate='%s'", o.approximate_tanh ? "tanh" : "none"));
}
