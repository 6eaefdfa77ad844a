/* regression.c -- regression metrics: mean squared and absolute error, R2, cosine similarity. */
#include "metrics/metric.h"

static tern_status check(const tern_metric *self, tern_tensor **preds, tern_tensor **target)
{
    TERN_TRY(tern_metric_same_shape(self, *preds, *target));
    *preds = tern_metric_real(*preds);
    *target = tern_metric_real(*target);
    return TERN_OK;
}

static tern_tensor *number(int64_t value, const tern_tensor *beside)
{
    return tern_tensor_scalar(TERN_SCALAR(value), TERN_I64, tern_device(beside));
}

/* ---- mean squared and absolute error --------------------------------------------------------- */

typedef enum error { SQUARED, ROOT, ABSOLUTE } error;

static tern_status update_error(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                tern_tensor *out[METRIC_STATES])
{
    TERN_TRY(check(self, &preds, &target));
    bool columns = self->n > 1;
    if (columns && (tern_dim(preds) != 2 || tern_size(preds, 1) != self->n))
        return tern_fail(TERN_ERR_SHAPE, "%s: expected preds and target of shape (N, %lld)",
                         self->kind->name, (long long)self->n);
    tern_tensor *d = tern_sub(preds, target);
    d = self->mode == ABSOLUTE ? tern_abs(d) : tern_square(d);
    out[0] = columns ? tern_sum_dim(d, TERN_DIMS(0), false) : tern_sum(d);
    out[1] = number(columns ? tern_size(preds, 0) : tern_numel(preds), preds);
    return TERN_OK;
}

static tern_tensor *compute_error(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    tern_tensor *mean = tern_div(states[0], tern_to_dtype(states[1], tern_dtype_of(states[0])));
    return self->mode == ROOT ? tern_sqrt(mean) : mean;
}

static tern_metric *mean_error(const tern_metric_kind *kind, error mode, const char *sum,
                               int64_t num_outputs)
{
    if (num_outputs < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected num_outputs to be a positive integer but got %lld",
                              kind->name, (long long)num_outputs);
    tern_metric *m = tern_metric_new(kind);
    if (!m)
        return NULL;
    m->n = num_outputs;
    m->mode = (int)mode;
    m = tern_metric_with(m, sum, TERN_METRIC_SUM,
                         num_outputs > 1 ? TERN_SHAPE(num_outputs) : TERN_SHAPE_SCALAR, TERN_F32,
                         0);
    return tern_metric_with(m, "total", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_I64, 0);
}

tern_metric *tern_metrics_mean_squared_error(bool squared, int64_t num_outputs)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update_error, compute_error, false, false};
    return mean_error(&kind, squared ? SQUARED : ROOT, "sum_squared_error", num_outputs);
}

tern_metric *tern_metrics_mean_absolute_error(int64_t num_outputs)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update_error, compute_error, false, false};
    return mean_error(&kind, ABSOLUTE, "sum_abs_error", num_outputs);
}

/* ---- R2 -------------------------------------------------------------------------------------- */

/* The number of outputs is known only with the first batch: the states are lists with a row for
 * each batch. */
static tern_status update_r2(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                             tern_tensor *out[METRIC_STATES])
{
    TERN_TRY(check(self, &preds, &target));
    if (tern_dim(preds) != 1 && tern_dim(preds) != 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Expected both prediction and target to be 1D or 2D tensors, but "
                         "received tensors with dimension %d",
                         self->kind->name, tern_dim(preds));
    int64_t outputs = tern_dim(preds) == 2 ? tern_size(preds, 1) : 1;
    if (self->states[0].count && tern_size(self->states[0].pieces[0], 1) != outputs)
        return tern_fail(TERN_ERR_SHAPE, "%s: %lld outputs after batches of %lld", self->kind->name,
                         (long long)outputs, (long long)tern_size(self->states[0].pieces[0], 1));
    tern_shape rows = TERN_SHAPE(tern_size(preds, 0), outputs);
    preds = tern_reshape(preds, rows);
    target = tern_reshape(target, rows);
    out[0] = tern_sum_dim(tern_square(target), TERN_DIMS(0), true);
    out[1] = tern_sum_dim(target, TERN_DIMS(0), true);
    out[2] = tern_sum_dim(tern_square(tern_sub(target, preds)), TERN_DIMS(0), true);
    out[3] = number(rows.dims[0], preds);
    return TERN_OK;
}

static tern_tensor *compute_r2(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    int64_t samples = tern_item_int(states[3]);
    if (samples < 2)
        return tern_fail_null(TERN_ERR_STATE,
                              "%s: Needs at least two samples to calculate r2 score.",
                              self->kind->name);
    tern_tensor *squares = tern_sum_dim(states[0], TERN_DIMS(0), false);
    tern_tensor *sum = tern_sum_dim(states[1], TERN_DIMS(0), false);
    tern_tensor *rss = tern_sum_dim(states[2], TERN_DIMS(0), false);
    tern_tensor *tss =
        tern_sub(squares, tern_div_scalar(tern_square(sum), TERN_SCALAR((double)samples)));
    /* 1 without a residual; 0 with a residual if the targets do not vary */
    tern_tensor *residual = tern_gt_scalar(tern_abs(rss), TERN_SCALAR(1e-4));
    tern_tensor *varies = tern_gt_scalar(tern_abs(tss), TERN_SCALAR(1e-4));
    tern_tensor *score = tern_rsub_scalar(tern_div(rss, tss), TERN_SCALAR(1));
    score = tern_masked_fill(score, tern_logical_not(varies), TERN_SCALAR(0));
    score = tern_masked_fill(score, tern_logical_not(residual), TERN_SCALAR(1));
    if (self->mode == TERN_UNIFORM_AVERAGE)
        score = tern_mean(score);
    else if (self->mode == TERN_VARIANCE_WEIGHTED)
        score = tern_sum(tern_mul(tern_div(tss, tern_sum(tss)), score));
    if (!self->size || self->size >= samples - 1)
        return score;
    double factor = (double)(samples - 1) / (double)(samples - self->size - 1);
    return tern_rsub_scalar(
        tern_mul_scalar(tern_rsub_scalar(score, TERN_SCALAR(1)), TERN_SCALAR(factor)),
        TERN_SCALAR(1));
}

tern_metric *tern_metrics_r2_score(int64_t adjusted, tern_multioutput multioutput)
{
    static const tern_metric_kind kind = {"tern_metrics_r2_score", update_r2, compute_r2, false,
                                          false};
    if (tern_check_enum(kind.name, "multioutput", (int)multioutput, TERN_VARIANCE_WEIGHTED,
                        "tern_multioutput") != TERN_OK)
        return NULL;
    if (adjusted < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: `adjusted` parameter should be an integer larger or equal to 0, "
                              "but got %lld",
                              kind.name, (long long)adjusted);
    tern_metric *m = tern_metric_new(&kind);
    if (!m)
        return NULL;
    m->mode = (int)multioutput;
    m->size = adjusted;
    m = tern_metric_with_list(m, "sum_squared_error");
    m = tern_metric_with_list(m, "sum_error");
    m = tern_metric_with_list(m, "residual");
    return tern_metric_with(m, "total", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_I64, 0);
}

/* ---- cosine similarity ----------------------------------------------------------------------- */

static tern_tensor *length(tern_tensor *x)
{
    return tern_linalg_vector_norm(x, 2, TERN_DIMS(-1), false);
}

static tern_status update_cosine(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                 tern_tensor *out[METRIC_STATES])
{
    TERN_TRY(check(self, &preds, &target));
    if (tern_dim(preds) != 2)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: Expected input to cosine similarity to be 2D tensors of shape `[N,D]` "
            "where `N` is the number of samples and `D` is the number of dimensions, "
            "but got %d dimensions",
            self->kind->name, tern_dim(preds));
    tern_tensor *dot = tern_sum_dim(tern_mul(preds, target), TERN_DIMS(-1), false);
    tern_tensor *each = tern_div(dot, tern_mul(length(preds), length(target)));
    out[0] = self->mode == TERN_REDUCTION_NONE ? each : tern_sum(each);
    if (self->mode != TERN_REDUCTION_NONE)
        out[1] = number(tern_size(preds, 0), preds);
    return TERN_OK;
}

static tern_tensor *compute_cosine(const tern_metric *self,
                                   tern_tensor *const states[METRIC_STATES])
{
    if (self->mode != TERN_REDUCTION_MEAN)
        return states[0];
    return tern_div(states[0], tern_to_dtype(states[1], tern_dtype_of(states[0])));
}

tern_metric *tern_metrics_cosine_similarity(tern_reduction reduction)
{
    static const tern_metric_kind kind = {"tern_metrics_cosine_similarity", update_cosine,
                                          compute_cosine, false, false};
    if (tern_check_enum(kind.name, "reduction", (int)reduction, TERN_REDUCTION_NONE,
                        "tern_reduction") != TERN_OK)
        return NULL;
    tern_metric *m = tern_metric_new(&kind);
    if (!m)
        return NULL;
    m->mode = (int)reduction;
    if (reduction == TERN_REDUCTION_NONE)
        return tern_metric_with_list(m, "similarity");
    m = tern_metric_with(m, "similarity", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_F32, 0);
    return tern_metric_with(m, "total", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_I64, 0);
}
