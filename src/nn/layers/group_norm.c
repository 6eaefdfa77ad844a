/* group_norm.c -- group norm, RMS norm and local response norm.
 *
 *   group norm: (x - mean) / sqrt(var + eps) weight + bias, over groups of channels of a sample
 *   RMS norm: x / sqrt(mean(x^2) + eps) weight, over the last dims
 *   local response norm: x / (k + alpha mean(x^2 of size channels around it))^beta */
#include "nn/layers/layer.h"

/* ---- group norm ------------------------------------------------------------------------------ */

typedef struct group_norm {
    int64_t groups, channels;
    double eps;
} group_norm;

static tern_tensor *group_forward(tern_module *self, tern_tensor *x)
{
    const group_norm *g = tern_nn_data(self);
    return tern_group_norm(x, g->groups, tern_nn_parameter(self, "weight"),
                           tern_nn_parameter(self, "bias"), g->eps);
}

/* Adds a weight of ones, which is absent unless `wanted`, and, if `bias` is a name, a bias of
 * zeros, which is absent unless `biased`. */
static tern_status add_affine(tern_module *m, tern_shape shape, bool wanted, const char *bias,
                              bool biased, tern_dtype dtype, const char *device)
{
    tern_tensor *w = wanted ? tern_ones(shape, dtype, device) : NULL;
    tern_tensor *b = biased ? tern_zeros(shape, dtype, device) : NULL;
    if (!m || (wanted && (!w || (biased && !b))))
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", w));
    return bias ? tern_layer_parameter(m, bias, b) : TERN_OK;
}

tern_module *tern_nn_group_norm(int64_t num_groups, int64_t num_channels,
                                const tern_group_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_group_norm_options o = tern_read_group_norm(options);
    group_norm g = {num_groups, num_channels, o.eps};
    if (num_groups < 1 || num_channels % num_groups)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_group_norm: num_channels must be divisible by num_groups "
                              "(%lld, %lld)",
                              (long long)num_channels, (long long)num_groups);
    const bool biased = !o.no_affine && !o.no_bias;
    tern_module *m = tern_layer("GroupNorm", group_forward, &g, sizeof g);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = add_affine(m, TERN_SHAPE(num_channels), !o.no_affine, "bias", biased, o.dtype,
                            o.device);
    if (status == TERN_OK)
        status =
            tern_nn_set_extra(m, "%lld, %lld, eps=%s, affine=%s, bias=%s", (long long)num_groups,
                              (long long)num_channels, TERN_NUMBER_TEXT(g.eps),
                              o.no_affine ? "False" : "True", biased ? "True" : "False");
    return tern_layer_if(m, status);
}

/* ---- RMS norm -------------------------------------------------------------------------------- */

typedef struct rms_norm {
    tern_shape shape;
    double eps; /* negative for the default of the dtype */
} rms_norm;

static tern_tensor *rms_forward(tern_module *self, tern_tensor *x)
{
    const rms_norm *r = tern_nn_data(self);
    return tern_rms_norm(x, r->shape, tern_nn_parameter(self, "weight"), r->eps);
}

static tern_status describe(tern_module *m, const rms_norm *r, bool affine)
{
    tern_text shape = {0};
    for (int i = 0; i < r->shape.ndim; i++)
        tern_text_add(&shape, "%s%lld", i ? ", " : "", (long long)r->shape.dims[i]);
    tern_status status =
        shape.failed
            ? TERN_ERR_MEMORY
            : tern_nn_set_extra(m, "(%s%s), eps=%s, elementwise_affine=%s",
                                shape.data ? shape.data : "", r->shape.ndim == 1 ? "," : "",
                                r->eps < 0 ? "None" : TERN_NUMBER_TEXT(r->eps),
                                affine ? "True" : "False");
    tern_text_free(&shape);
    return status;
}

tern_module *tern_nn_rms_norm(tern_shape normalized_shape, const tern_rms_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_rms_norm_options o = tern_read_rms_norm(options);
    rms_norm r = {normalized_shape, o.eps};
    if (normalized_shape.ndim < 1 || normalized_shape.ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_nn_rms_norm: Expected normalized_shape to be at least "
                              "1-dimensional, i.e., containing at least one element, but got %d "
                              "dims",
                              normalized_shape.ndim);
    tern_module *m = tern_layer("RMSNorm", rms_forward, &r, sizeof r);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = add_affine(m, normalized_shape, !o.no_elementwise_affine, NULL, false, o.dtype,
                            o.device);
    if (status == TERN_OK)
        status = describe(m, &r, !o.no_elementwise_affine);
    return tern_layer_if(m, status);
}

/* ---- local response norm --------------------------------------------------------------------- */

typedef struct response_norm {
    int64_t size;
    double alpha, beta, k;
} response_norm;

static tern_tensor *response_forward(tern_module *self, tern_tensor *x)
{
    const response_norm *l = tern_nn_data(self);
    return tern_local_response_norm(x, l->size, l->alpha, l->beta, l->k);
}

tern_module *tern_nn_local_response_norm(int64_t size,
                                         const tern_local_response_norm_options *options)
{
    tern_local_response_norm_options o = tern_read_local_response_norm(options);
    response_norm l = {size, o.alpha, o.beta, o.k};
    tern_module *m = tern_layer("LocalResponseNorm", response_forward, &l, sizeof l);
    return tern_layer_if(m, tern_nn_set_extra(m, "%lld, alpha=%s, beta=%s, k=%s", (long long)size,
                                              TERN_NUMBER_TEXT(l.alpha), TERN_NUMBER_TEXT(l.beta),
                                              TERN_NUMBER_TEXT(l.k)));
}
