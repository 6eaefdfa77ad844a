/* confusion_matrix.c -- the confusion matrix, and intersection over union, computed from it. */
#include "metrics/metric.h"

/* Returns the index t * n + p of each prediction p and target t. A class outside of the matrix has
 * an index outside of it. */
static tern_tensor *places(tern_tensor *p, tern_tensor *t, int64_t n)
{
    tern_tensor *low = tern_minimum(p, t), *high = tern_maximum(p, t);
    tern_tensor *outside =
        tern_logical_or(tern_lt_scalar(low, TERN_SCALAR(0)), tern_ge_scalar(high, TERN_SCALAR(n)));
    tern_tensor *place = tern_add(tern_mul_scalar(t, TERN_SCALAR(n)), p);
    return tern_masked_fill(place, outside, TERN_SCALAR(n * n));
}

static tern_status update(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                          tern_tensor *out[METRIC_STATES])
{
    tern_tensor *is[3];
    if (self->task == TERN_TASK_MULTICLASS) {
        TERN_TRY(tern_metric_classes(self, preds, target, is));
        tern_tensor *counted = tern_metric_counts(self, is[1]);
        tern_tensor *t = tern_metric_without_ignored(self, is[1], 0);
        out[0] =
            tern_reshape(tern_metric_bins(places(is[0], t, self->n), counted, self->n * self->n),
                         TERN_SHAPE(self->n, self->n));
        return TERN_OK;
    }
    TERN_TRY(tern_metric_labels(self, preds, target, is));
    tern_tensor *counted = tern_to_dtype(tern_logical_or(is[1], is[2]), TERN_I64);
    tern_tensor *place = tern_add(tern_mul_scalar(tern_to_dtype(is[2], TERN_I64), TERN_SCALAR(2)),
                                  tern_to_dtype(is[0], TERN_I64));
    if (self->task == TERN_TASK_MULTILABEL) {
        tern_tensor *label = tern_arange(0, (double)self->n, 1, TERN_I64, tern_device(preds));
        place = tern_reshape(place, TERN_SHAPE(tern_size(place, 0), self->n, -1));
        place = tern_add(
            place, tern_reshape(tern_mul_scalar(label, TERN_SCALAR(4)), TERN_SHAPE(1, self->n, 1)));
    }
    tern_tensor *bins =
        tern_metric_bins(tern_flatten(place, 0, -1), tern_flatten(counted, 0, -1), 4 * self->n);
    out[0] = tern_reshape(bins, self->task == TERN_TASK_BINARY ? TERN_SHAPE(2, 2)
                                                               : TERN_SHAPE(self->n, 2, 2));
    return TERN_OK;
}

static tern_tensor *compute(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    tern_tensor *x = states[0], *sum = NULL;
    switch ((tern_confusion_normalize)self->mode) {
    case TERN_NORMALIZE_NONE:
        return x;
    case TERN_NORMALIZE_TRUE:
        sum = tern_sum_dim(x, TERN_DIMS(-1), true);
        break;
    case TERN_NORMALIZE_PRED:
        sum = tern_sum_dim(x, TERN_DIMS(-2), true);
        break;
    case TERN_NORMALIZE_ALL:
        sum = tern_sum_dim(x, TERN_DIMS(-2, -1), true);
        break;
    }
    return tern_metric_divide(x, sum, 0);
}

static tern_metric *confusion_matrix(const tern_metric_kind *kind, tern_task task, int64_t n,
                                     double threshold, tern_optional_int ignore_index)
{
    if (tern_metric_check_task(kind->name, task, n) != TERN_OK)
        return NULL;
    if (!(threshold >= 0 && threshold <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected argument `threshold` to be in the [0,1] range, but got "
                              "%g",
                              kind->name, threshold);
    tern_metric *m = tern_metric_new(kind);
    if (!m)
        return NULL;
    m->task = task;
    m->n = task == TERN_TASK_BINARY ? 1 : n;
    m->top_k = 1;
    m->threshold = threshold;
    m->ignore_index = ignore_index;
    tern_shape shape = task == TERN_TASK_BINARY       ? TERN_SHAPE(2, 2)
                       : task == TERN_TASK_MULTICLASS ? TERN_SHAPE(n, n)
                                                      : TERN_SHAPE(n, 2, 2);
    return tern_metric_with(m, "confmat", TERN_METRIC_SUM, shape, TERN_I64, 0);
}

tern_metric *tern_metrics_confusion_matrix(tern_task task, int64_t n,
                                           const tern_confusion_matrix_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update, compute, false, false};
    tern_confusion_matrix_options o = tern_read_confusion_matrix(options);
    if (tern_check_enum(kind.name, "normalize", (int)o.normalize, TERN_NORMALIZE_ALL,
                        "tern_confusion_normalize") != TERN_OK)
        return NULL;
    tern_metric *m = confusion_matrix(&kind, task, n, o.threshold, o.ignore_index);
    if (m)
        m->mode = (int)o.normalize;
    return m;
}

/* ---- intersection over union ----------------------------------------------------------------- */

static tern_tensor *cell(tern_tensor *matrices, int64_t row, int64_t column)
{
    return tern_select(tern_select(matrices, -2, row), -1, column);
}

/* Returns 1 for each class that the mean includes, else 0. */
static tern_tensor *counted_classes(const tern_metric *self, tern_tensor *matrix,
                                    tern_tensor *score)
{
    if (self->task == TERN_TASK_MULTILABEL)
        return tern_ones_like(score);
    tern_tensor *rows = tern_sum_dim(matrix, TERN_DIMS(1), false);
    tern_tensor *columns = tern_sum_dim(matrix, TERN_DIMS(0), false);
    tern_tensor *weights =
        tern_to_dtype(tern_ne_scalar(tern_add(rows, columns), TERN_SCALAR(0)), TERN_F32);
    int64_t ignored = self->ignore_index.set ? self->ignore_index.value : -1;
    if (weights && ignored >= 0 && ignored < self->n)
        tern_zero_(tern_select(weights, 0, ignored));
    return weights;
}

static tern_tensor *intersection_over_union(const tern_metric *self,
                                            tern_tensor *const states[METRIC_STATES])
{
    tern_tensor *matrix = states[0], *both, *either, *of_target;
    if (self->task == TERN_TASK_MULTICLASS) {
        both = tern_diagonal(matrix, 0, 0, 1);
        of_target = tern_sum_dim(matrix, TERN_DIMS(1), false);
        either = tern_sub(tern_add(tern_sum_dim(matrix, TERN_DIMS(0), false), of_target), both);
    } else {
        both = cell(matrix, 1, 1);
        of_target = tern_add(both, cell(matrix, 1, 0));
        either = tern_add(of_target, cell(matrix, 0, 1));
    }
    if (self->task != TERN_TASK_BINARY && self->average == TERN_AVERAGE_MICRO) {
        int64_t ignored = self->ignore_index.set ? self->ignore_index.value : -1;
        tern_tensor *all = tern_sum(either);
        if (self->task == TERN_TASK_MULTICLASS && ignored >= 0 && ignored < self->n)
            all = tern_sub(all, tern_select(either, 0, ignored));
        return tern_metric_divide(tern_sum(both), all, self->zero_division);
    }
    tern_tensor *score = tern_metric_divide(both, either, self->zero_division);
    if (self->task == TERN_TASK_BINARY || self->average == TERN_AVERAGE_NONE)
        return score;
    tern_tensor *weights = self->average == TERN_AVERAGE_WEIGHTED
                               ? tern_to_dtype(of_target, TERN_F32)
                               : counted_classes(self, matrix, score);
    return tern_sum(tern_div(tern_mul(weights, score), tern_sum(weights)));
}

tern_metric *tern_metrics_jaccard_index(tern_task task, int64_t n,
                                        const tern_classification_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update, intersection_over_union, false, false};
    tern_classification_options o = tern_read_classification(options);
    if (tern_check_enum(kind.name, "average", (int)o.average, TERN_AVERAGE_NONE, "tern_average") !=
        TERN_OK)
        return NULL;
    if (o.top_k != 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: top_k is 1, not %lld", kind.name,
                              (long long)o.top_k);
    tern_metric *m = confusion_matrix(&kind, task, n, o.threshold, o.ignore_index);
    if (m) {
        m->average = tern_metric_average(o.average, TERN_AVERAGE_MACRO);
        m->zero_division = o.zero_division;
    }
    return m;
}
