/* batch_norm.c -- batch norm of one, two and three spatial dims, with its running statistics.
 *
 *   y = (x - mean) / sqrt(var + eps) weight + bias,   for each channel, over the batch
 *   running = (1 - momentum) running + momentum batch */
#include "nn/layers/batch_norm.h"
#include "nn/layers/layer.h"

/* The differences between BatchNorm1d, BatchNorm2d and BatchNorm3d. */
typedef struct batch_kind {
    const char *name, *dims;
    int least, most; /* smallest and largest number of dims of an input */
} batch_kind;

typedef struct batch_norm {
    const batch_kind *kind;
    int64_t features;
    double eps, momentum;
    bool cumulative, tracks;
    bool averages;             /* cumulative until tern_batch_norm_average(m, false) */
    tern_batch_norm_over over; /* forward function in training, or NULL for tern_batch_norm */
    void *others;
} batch_norm;

/* Adds `by` to num_batches_tracked: 1 for a new batch, -1 to undo that if the batch failed. */
static tern_status count_batch(tern_module *self, int by)
{
    tern_tensor *count = tern_nn_buffer(self, "num_batches_tracked");
    return tern_add_scalar_(count, tern_scalar_int(by)) ? TERN_OK : tern_last_status();
}

/* Sets *momentum to the option, or to 1 / n for a cumulative average over n batches. */
static tern_status momentum_now(tern_module *self, const batch_norm *b, double *momentum)
{
    const uint64_t failures = tern_failures();
    *momentum = b->momentum;
    if (b->cumulative || b->averages)
        *momentum = 1 / (double)tern_item_int(tern_nn_buffer(self, "num_batches_tracked"));
    return tern_failed_since(failures);
}

/* Uses the statistics of the batch in training, or if there are no running statistics. */
static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    const batch_norm *b = tern_nn_data(self);
    bool training = tern_nn_is_training(self), counts = training && b->tracks;
    tern_tensor *y = NULL;
    double momentum = 0;
    if (tern_dim(x) < b->kind->least || tern_dim(x) > b->kind->most)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_nn_%s: expected %s input (got %dD input)",
                              b->kind->name, b->kind->dims, tern_dim(x));
    if (counts && !b->cumulative && !b->averages && !b->over)
        return tern_batch_norm_counted(
            x, tern_nn_buffer(self, "running_mean"), tern_nn_buffer(self, "running_var"),
            tern_nn_buffer(self, "num_batches_tracked"), tern_nn_parameter(self, "weight"),
            tern_nn_parameter(self, "bias"), b->momentum, b->eps);
    if (counts && count_batch(self, 1) != TERN_OK)
        return NULL;
    if (!counts || momentum_now(self, b, &momentum) == TERN_OK) {
        tern_tensor *mean = tern_nn_buffer(self, "running_mean"),
                    *var = tern_nn_buffer(self, "running_var"),
                    *weight = tern_nn_parameter(self, "weight"),
                    *bias = tern_nn_parameter(self, "bias");
        y = training && b->over ? b->over(b->others, x, mean, var, weight, bias, momentum, b->eps)
                                : tern_batch_norm(x, mean, var, weight, bias,
                                                  training || !b->tracks, momentum, b->eps);
    }
    if (!y && counts)
        count_batch(self, -1);
    return y;
}

tern_status tern_layer_running(tern_module *m, int64_t features, bool affine, bool biased,
                               bool tracks, tern_dtype dtype, const char *device)
{
    tern_shape each = TERN_SHAPE(features);
    tern_tensor *weight = affine ? tern_ones(each, dtype, device) : NULL;
    tern_tensor *bias = biased ? tern_zeros(each, dtype, device) : NULL;
    tern_tensor *mean = tracks ? tern_zeros(each, dtype, device) : NULL;
    tern_tensor *var = tracks ? tern_ones(each, dtype, device) : NULL;
    tern_tensor *count = tracks ? tern_zeros(TERN_SHAPE_SCALAR, TERN_I64, device) : NULL;
    if ((affine && !weight) || (biased && !bias) || (tracks && (!mean || !var || !count)))
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", weight));
    TERN_TRY(tern_layer_parameter(m, "bias", bias));
    TERN_TRY(tern_layer_buffer(m, "running_mean", mean));
    TERN_TRY(tern_layer_buffer(m, "running_var", var));
    return tern_layer_buffer(m, "num_batches_tracked", count);
}

static tern_status describe(tern_module *m, const batch_norm *b, bool affine, bool biased)
{
    return tern_nn_set_extra(
        m, "%lld, eps=%s, momentum=%s, affine=%s, bias=%s, track_running_stats=%s",
        (long long)b->features, TERN_NUMBER_TEXT(b->eps),
        b->cumulative ? "None" : TERN_NUMBER_TEXT(b->momentum), affine ? "True" : "False",
        biased ? "True" : "False", b->tracks ? "True" : "False");
}

static tern_module *make(const batch_kind *kind, const char *name, int64_t features,
                         const tern_batch_norm_options *options, tern_batch_norm_over over,
                         void *others)
{
    tern_batch_norm_options o = tern_read_batch_norm(options);
    batch_norm b = {.kind = kind,
                    .features = features,
                    .eps = o.eps,
                    .momentum = o.momentum,
                    .cumulative = o.cumulative,
                    .tracks = !o.no_track_running_stats,
                    .over = over,
                    .others = others};
    const bool affine = !o.no_affine, biased = affine && !o.no_bias;
    tern_module *m = tern_layer(name, forward, &b, sizeof b);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        TERN_SCOPE
            status = tern_layer_running(m, features, affine, biased, b.tracks, o.dtype, o.device);
    if (status == TERN_OK)
        status = describe(m, &b, affine, biased);
    return tern_layer_if(m, status);
}

tern_module *tern_nn_batch_norm1d(int64_t num_features, const tern_batch_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const batch_kind kind = {"batch_norm1d", "2D or 3D", 2, 3};
    return make(&kind, "BatchNorm1d", num_features, options, NULL, NULL);
}

tern_module *tern_nn_batch_norm2d(int64_t num_features, const tern_batch_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const batch_kind kind = {"batch_norm2d", "4D", 4, 4};
    return make(&kind, "BatchNorm2d", num_features, options, NULL, NULL);
}

tern_module *tern_nn_batch_norm3d(int64_t num_features, const tern_batch_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const batch_kind kind = {"batch_norm3d", "5D", 5, 5};
    return make(&kind, "BatchNorm3d", num_features, options, NULL, NULL);
}

bool tern_batch_norm_tracks(tern_module *m)
{
    return tern_layer_runs(m, forward) && ((const batch_norm *)tern_nn_data(m))->tracks;
}

void tern_batch_norm_average(tern_module *m, bool on)
{
    ((batch_norm *)tern_nn_data(m))->averages = on;
}

static const batch_kind any = {"sync_batch_norm", "at least 2D", 2, TERN_MAX_DIMS};

tern_module *tern_batch_norm_with(const char *name, int64_t features,
                                  const tern_batch_norm_options *options, tern_batch_norm_over over,
                                  void *others)
{
    return make(&any, name, features, options, over, others);
}

tern_module *tern_batch_norm_like(const char *name, tern_module *m, tern_batch_norm_over over,
                                  void *others)
{
    static const char *const buffers[] = {"running_mean", "running_var", "num_batches_tracked"};
    if (!tern_layer_runs(m, forward))
        return NULL;
    batch_norm b = *(const batch_norm *)tern_nn_data(m);
    tern_tensor *p[] = {tern_nn_parameter(m, "weight"), tern_nn_parameter(m, "bias")};
    bool trained[] = {p[0] && tern_requires_grad(p[0]), p[1] && tern_requires_grad(p[1])};
    b.kind = &any;
    b.over = over;
    b.others = others;
    tern_module *like = tern_layer(name, forward, &b, sizeof b);
    tern_status status = like ? TERN_OK : TERN_ERR_MEMORY;
    for (int i = 0; i < 2 && status == TERN_OK; i++) {
        status = tern_layer_parameter(like, i ? "bias" : "weight", p[i]);
        if (p[i])
            tern_requires_grad_(p[i], trained[i]);
    }
    for (int i = 0; i < 3 && status == TERN_OK; i++)
        status = tern_layer_buffer(like, buffers[i], tern_nn_buffer(m, buffers[i]));
    if (status == TERN_OK)
        status = describe(like, &b, p[0] != NULL, p[1] != NULL);
    if (status == TERN_OK && !tern_nn_is_training(m))
        tern_nn_eval(like);
    return tern_layer_if(like, status);
}
