/* bilinear.c -- y_k = x1^T A_k x2 + b_k, for two inputs. */
#include "nn/layers/layer.h"
#include <math.h>

static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    if (n != 2 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: Bilinear takes two tensors and gives one, not %d and %d", n,
                         k);
    out[0] = tern_bilinear(in[0], in[1], tern_nn_parameter(self, "weight"),
                           tern_nn_parameter(self, "bias"));
    return out[0] ? TERN_OK : tern_last_status();
}

/* Adds parameters that are uniform in +-1/sqrt(in1_features), as PyTorch's are. */
static tern_status add_parameters(tern_module *m, int64_t in1, int64_t in2, int64_t out,
                                  const tern_linear_options *o)
{
    double bound = in1 > 0 ? 1 / sqrt((double)in1) : 0;
    tern_tensor *weight = tern_nn_init_uniform_(
        tern_empty(TERN_SHAPE(out, in1, in2), o->dtype, o->device), -bound, bound);
    tern_tensor *bias =
        o->no_bias ? NULL
                   : tern_nn_init_uniform_(tern_empty(TERN_SHAPE(out), o->dtype, o->device), -bound,
                                           bound);
    if (!m || !weight || (!bias && !o->no_bias))
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", weight));
    TERN_TRY(tern_layer_parameter(m, "bias", bias));
    return tern_nn_set_extra(m, "in1_features=%lld, in2_features=%lld, out_features=%lld, bias=%s",
                             (long long)in1, (long long)in2, (long long)out,
                             bias ? "True" : "False");
}

tern_module *tern_nn_bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
                              const tern_linear_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_linear_options none;
    tern_module *m = tern_nn_module_with_call("Bilinear", call, NULL);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status =
            add_parameters(m, in1_features, in2_features, out_features, options ? options : &none);
    return tern_layer_if(m, status);
}
