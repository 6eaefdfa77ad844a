/* norm.c -- layer normalization: (x - mean) / sqrt(var + eps) weight + bias, over the last dims. */
#include "nn/layers/layer.h"

typedef struct norm {
    tern_shape shape;
    double eps;
} norm;

static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    const norm *n = tern_nn_data(self);
    return tern_layer_norm(x, n->shape, tern_nn_parameter(self, "weight"),
                           tern_nn_parameter(self, "bias"), n->eps);
}

/* Sets the printed text, such as "(8,), eps=1e-05, elementwise_affine=True". */
static tern_status describe(tern_module *m, const norm *n, bool affine)
{
    tern_text shape = {0};
    for (int i = 0; i < n->shape.ndim; i++)
        tern_text_add(&shape, "%s%lld", i ? ", " : "", (long long)n->shape.dims[i]);
    tern_status status =
        shape.failed
            ? TERN_ERR_MEMORY
            : tern_nn_set_extra(m, "(%s%s), eps=%s, elementwise_affine=%s",
                                shape.data ? shape.data : "", n->shape.ndim == 1 ? "," : "",
                                TERN_NUMBER_TEXT(n->eps), affine ? "True" : "False");
    tern_text_free(&shape);
    return status;
}

static tern_status add_parameters(tern_module *m, const norm *n, const tern_layer_norm_options *o)
{
    bool affine = !o->no_elementwise_affine, wants_bias = affine && !o->no_bias;
    tern_tensor *weight = affine ? tern_ones(n->shape, o->dtype, o->device) : NULL;
    tern_tensor *bias = wants_bias ? tern_zeros(n->shape, o->dtype, o->device) : NULL;
    if (!m || (!weight && affine) || (!bias && wants_bias))
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", weight));
    TERN_TRY(tern_layer_parameter(m, "bias", bias));
    return describe(m, n, affine);
}

tern_module *tern_nn_layer_norm(tern_shape normalized_shape, const tern_layer_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_layer_norm_options o = tern_read_layer_norm(options);
    norm n = {normalized_shape, o.eps};
    if (normalized_shape.ndim < 1 || normalized_shape.ndim > TERN_MAX_DIMS)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_nn_layer_norm: Expected normalized_shape to be at least "
            "1-dimensional, i.e., containing at least one element, but got %d dims",
            normalized_shape.ndim);
    tern_module *m = tern_layer("LayerNorm", forward, &n, sizeof n);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = add_parameters(m, &n, &o);
    return tern_layer_if(m, status);
}
