/* linear.c -- x W^T + b. */
#include "nn/layers/layer.h"
#include <math.h>

static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    return tern_linear(x, tern_nn_parameter(self, "weight"), tern_nn_parameter(self, "bias"));
}

static void parameters(tern_stage *stage)
{
    stage->weight = tern_nn_parameter(stage->module, "weight");
    stage->bias = tern_nn_parameter(stage->module, "bias");
}

bool tern_layer_linear_stage(const tern_module *m, tern_stage *stage)
{
    stage->kind = &tern_stage_linear;
    stage->parameters = parameters;
    return tern_layer_runs(m, forward);
}

/* Returns a parameter that is uniform in +-1/sqrt(in), as PyTorch's kaiming_uniform_ with a =
 * sqrt(5) is for the weight. */
static tern_tensor *parameter(tern_shape shape, int64_t in, const tern_linear_options *o)
{
    double bound = in > 0 ? 1 / sqrt((double)in) : 0;
    return tern_nn_init_uniform_(tern_empty(shape, o->dtype, o->device), -bound, bound);
}

/* Adds weight (out, in) and bias (out). */
static tern_status add_parameters(tern_module *m, int64_t in, int64_t out,
                                  const tern_linear_options *o)
{
    tern_tensor *weight = parameter(TERN_SHAPE(out, in), in, o);
    tern_tensor *bias = o->no_bias ? NULL : parameter(TERN_SHAPE(out), in, o);
    if (!m || !weight || (!bias && !o->no_bias))
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", weight));
    TERN_TRY(tern_layer_parameter(m, "bias", bias));
    return tern_nn_set_extra(m, "in_features=%lld, out_features=%lld, bias=%s", (long long)in,
                             (long long)out, bias ? "True" : "False");
}

tern_module *tern_nn_linear(int64_t in_features, int64_t out_features,
                            const tern_linear_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_linear_options none;
    tern_module *m = tern_nn_module("Linear", forward, NULL);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = add_parameters(m, in_features, out_features, options ? options : &none);
    return tern_layer_if(m, status);
}
