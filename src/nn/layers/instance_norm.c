/* instance_norm.c -- instance norm with one, two and three spatial dims: batch norm with the mean
 * and variance of each sample and channel. */
#include "nn/layers/layer.h"

/* The differences between InstanceNorm1d, InstanceNorm2d and InstanceNorm3d. */
typedef struct instance_kind {
    const char *name, *dims;
    int single; /* number of dims of an input without a batch */
} instance_kind;

typedef struct instance_norm {
    const instance_kind *kind;
    double eps, momentum;
    bool tracks;
} instance_norm;

static tern_tensor *normalized(tern_module *self, tern_tensor *x, tern_tensor *mean,
                               tern_tensor *var)
{
    const instance_norm *i = tern_nn_data(self);
    return tern_instance_norm(x, mean, var, tern_nn_parameter(self, "weight"),
                              tern_nn_parameter(self, "bias"),
                              tern_nn_is_training(self) || !i->tracks, i->momentum, i->eps);
}

/* Normalizes x as a batch of one. The running statistics are copied and set at the end, since
 * removing the batch dim can fail and a failed forward must not change them. */
static tern_tensor *without_batch(tern_module *self, tern_tensor *x, tern_tensor *const *running)
{
    tern_tensor *copy[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++)
        if (running[k] && !(copy[k] = tern_clone(running[k])))
            return NULL;
    x = tern_unsqueeze(x, 0);
    tern_tensor *y = x ? normalized(self, x, copy[0], copy[1]) : NULL;
    y = y ? tern_squeeze_dim(y, 0) : NULL;
    for (int k = 0; k < 2 && y && tern_nn_is_training(self); k++)
        if (running[k] && !tern_copy_(running[k], copy[k]))
            y = NULL;
    return y;
}

static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    const instance_norm *i = tern_nn_data(self);
    int dims = tern_dim(x);
    if (dims != i->kind->single && dims != i->kind->single + 1)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_nn_%s: expected %s input (got %dD input)",
                              i->kind->name, i->kind->dims, dims);
    tern_tensor *running[] = {tern_nn_buffer(self, "running_mean"),
                              tern_nn_buffer(self, "running_var")};
    return dims > i->kind->single ? normalized(self, x, running[0], running[1])
                                  : without_batch(self, x, running);
}

/* Adds the parameters and buffers that the options select. The others are NULL. */
static tern_module *make(const instance_kind *kind, const char *name, int64_t features,
                         const tern_instance_norm_options *options)
{
    tern_instance_norm_options o = tern_read_instance_norm(options);
    instance_norm i = {kind, o.eps, o.momentum, o.track_running_stats};
    const bool biased = o.affine && !o.no_bias;
    tern_module *m = tern_layer(name, forward, &i, sizeof i);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        TERN_SCOPE
            status = tern_layer_running(m, features, o.affine, biased, o.track_running_stats,
                                        o.dtype, o.device);
    if (status == TERN_OK)
        status = tern_nn_set_extra(
            m, "%lld, eps=%s, momentum=%s, affine=%s, bias=%s, track_running_stats=%s",
            (long long)features, TERN_NUMBER_TEXT(i.eps), TERN_NUMBER_TEXT(i.momentum),
            o.affine ? "True" : "False", biased ? "True" : "False", i.tracks ? "True" : "False");
    return tern_layer_if(m, status);
}

tern_module *tern_nn_instance_norm1d(int64_t num_features,
                                     const tern_instance_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const instance_kind kind = {"instance_norm1d", "2D or 3D", 2};
    return make(&kind, "InstanceNorm1d", num_features, options);
}

tern_module *tern_nn_instance_norm2d(int64_t num_features,
                                     const tern_instance_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const instance_kind kind = {"instance_norm2d", "3D or 4D", 3};
    return make(&kind, "InstanceNorm2d", num_features, options);
}

tern_module *tern_nn_instance_norm3d(int64_t num_features,
                                     const tern_instance_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const instance_kind kind = {"instance_norm3d", "4D or 5D", 4};
    return make(&kind, "InstanceNorm3d", num_features, options);
}
