/* calibration_error.c -- the difference of confidence and accuracy (Naeini et al. 2015). */
#include "metrics/metric.h"

enum { COUNT_STATE, CONFIDENCE, RIGHT };

static tern_status update(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                          tern_tensor *out[METRIC_STATES])
{
    if (!tern_dtype_is_floating_point(tern_dtype_of(preds)))
        return tern_fail(TERN_ERR_DTYPE, "%s: preds must be scores of floating point, not %s",
                         self->kind->name, tern_dtype_name(tern_dtype_of(preds)));
    tern_tensor *confidence, *right, *t, *given[2];
    if (self->task == TERN_TASK_BINARY) {
        TERN_TRY(tern_metric_same_shape(self, preds, target));
        confidence = tern_flatten(tern_metric_probabilities(preds, false), 0, -1);
        t = tern_flatten(tern_to_dtype(target, TERN_I64), 0, -1);
        right = t;
    } else {
        if (tern_dim(preds) == tern_dim(target))
            return tern_metric_same_shape(self, preds, target) == TERN_OK
                       ? tern_fail(TERN_ERR_SHAPE,
                                   "%s: preds must have a dim of classes more than "
                                   "target",
                                   self->kind->name)
                       : TERN_ERR_SHAPE;
        TERN_TRY(tern_metric_classes(self, preds, target, given));
        tern_tensor *probabilities = tern_metric_probabilities(preds, true);
        confidence = tern_flatten(tern_amax(probabilities, TERN_DIMS(1), false), 0, -1);
        t = given[1];
        right = tern_eq(given[0], t);
    }
    confidence = tern_to_dtype(confidence, TERN_F32);
    tern_tensor *counted = tern_to_dtype(tern_metric_counts(self, t), TERN_F32);
    tern_tensor *edges = tern_linspace(0, 1, self->size + 1, TERN_F32, tern_device(preds));
    tern_tensor *bin = tern_sub_scalar(tern_bucketize(confidence, edges, true), TERN_SCALAR(1));
    int64_t bins = self->size + 1; /* confidence 1 has a bin of its own */
    out[COUNT_STATE] = tern_metric_bins(bin, tern_to_dtype(counted, TERN_I64), bins);
    out[CONFIDENCE] = tern_metric_bins(bin, tern_mul(confidence, counted), bins);
    right = tern_mul(tern_to_dtype(right, TERN_F32), counted);
    out[RIGHT] = tern_metric_bins(bin, right, bins);
    return TERN_OK;
}

static tern_tensor *compute(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    tern_tensor *count = states[COUNT_STATE];
    tern_tensor *gap = tern_abs(tern_sub(tern_metric_divide(states[RIGHT], count, 0),
                                         tern_metric_divide(states[CONFIDENCE], count, 0)));
    tern_tensor *part = tern_metric_divide(count, tern_sum(count), 0);
    switch ((tern_calibration_norm)self->mode) {
    case TERN_CALIBRATION_MAX:
        return tern_max(gap);
    case TERN_CALIBRATION_L2:
        return tern_sqrt(tern_sum(tern_mul(tern_square(gap), part)));
    case TERN_CALIBRATION_L1:
        break;
    }
    return tern_sum(tern_mul(gap, part));
}

tern_metric *tern_metrics_calibration_error(tern_task task, int64_t n,
                                            const tern_calibration_error_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update, compute, false, false};
    tern_calibration_error_options o = tern_read_calibration_error(options);
    if (tern_metric_check_task(kind.name, task, n) != TERN_OK ||
        tern_check_enum(kind.name, "norm", (int)o.norm, TERN_CALIBRATION_MAX,
                        "tern_calibration_norm") != TERN_OK)
        return NULL;
    if (task == TERN_TASK_MULTILABEL)
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "%s: only BINARY and MULTICLASS have a calibration error", kind.name);
    if (o.n_bins < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected argument `n_bins` to be an integer larger than 0, but "
                              "got %lld",
                              kind.name, (long long)o.n_bins);
    tern_metric *m = tern_metric_new(&kind);
    if (!m)
        return NULL;
    m->task = task;
    m->n = task == TERN_TASK_BINARY ? 1 : n;
    m->top_k = 1;
    m->size = o.n_bins;
    m->mode = (int)o.norm;
    m->ignore_index = o.ignore_index;
    tern_shape shape = TERN_SHAPE(o.n_bins + 1);
    m = tern_metric_with(m, "count", TERN_METRIC_SUM, shape, TERN_I64, 0);
    m = tern_metric_with(m, "confidence", TERN_METRIC_SUM, shape, TERN_F32, 0);
    return tern_metric_with(m, "accuracy", TERN_METRIC_SUM, shape, TERN_F32, 0);
}
