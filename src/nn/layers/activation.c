/* activation.c -- activations, and modules that only reshape or pass on. */
#include "nn/layers/layer.h"

/* A module of one operation without options: tern_nn_relu() and so on. */
#define PLAIN(FUNCTION, NAME, Y)                                                                   \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        (void)self;                                                                                \
        return Y;                                                                                  \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(void)                                                          \
    {                                                                                              \
        return tern_nn_module(NAME, FUNCTION##_forward, NULL);                                     \
    }
PLAIN(relu, "ReLU", tern_relu(x))
PLAIN(sigmoid, "Sigmoid", tern_sigmoid(x))
PLAIN(tanh, "Tanh", tern_tanh(x))
PLAIN(silu, "SiLU", tern_silu(x))
PLAIN(identity, "Identity", x)

static tern_tensor *flatten_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_flatten(x, 1, -1);
}

tern_module *tern_nn_flatten(void)
{
    tern_module *m = tern_nn_module("Flatten", flatten_forward, NULL);
    return tern_layer_if(m, tern_nn_set_extra(m, "start_dim=1, end_dim=-1"));
}

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

static tern_tensor *leaky_relu_forward(tern_module *self, tern_tensor *x)
{
    const double *slope = tern_nn_data(self);
    return tern_leaky_relu(x, *slope);
}

tern_module *tern_nn_leaky_relu(const tern_leaky_relu_options *options)
{
    double slope = tern_option(options ? options->negative_slope : 0, 0.01);
    tern_module *m = tern_layer("LeakyReLU", leaky_relu_forward, &slope, sizeof slope);
    return tern_layer_if(m, tern_nn_set_extra(m, "negative_slope=%s", TERN_NUMBER_TEXT(slope)));
}
