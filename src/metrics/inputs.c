/* inputs.c -- functions shared by metrics: checks of arguments and inputs, and counts. */
#include "metrics/metric.h"
#include "base/text.h"

tern_status tern_metric_check_task(const char *function, tern_task task, int64_t n)
{
    TERN_TRY(tern_check_enum(function, "task", (int)task, TERN_TASK_MULTILABEL, "tern_task"));
    int64_t least = task == TERN_TASK_MULTICLASS ? 2 : 1;
    if (task != TERN_TASK_BINARY && n < least)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Expected argument `%s` to be an integer larger "
                         "than %lld, but got %lld",
                         function, task == TERN_TASK_MULTICLASS ? "num_classes" : "num_labels",
                         (long long)least - 1, (long long)n);
    return TERN_OK;
}

tern_average tern_metric_average(tern_average average, tern_average otherwise)
{
    return average == TERN_AVERAGE_DEFAULT ? otherwise : average;
}

tern_tensor *tern_metric_real(tern_tensor *x)
{
    return tern_dtype_of(x) == TERN_F64 ? tern_detach(x) : tern_to_dtype(tern_detach(x), TERN_F32);
}

tern_tensor *tern_metric_probabilities(tern_tensor *x, bool softmax)
{
    x = tern_metric_real(x);
    tern_tensor *below = tern_lt_scalar(x, TERN_SCALAR(0)),
                *above = tern_gt_scalar(x, TERN_SCALAR(1));
    return tern_where(tern_any(tern_logical_or(below, above)),
                      softmax ? tern_softmax(x, 1) : tern_sigmoid(x), x);
}

tern_tensor *tern_metric_divide(tern_tensor *num, tern_tensor *den, double otherwise)
{
    den = tern_to_dtype(den, TERN_F32);
    tern_tensor *y = tern_div(tern_to_dtype(num, TERN_F32), den);
    return tern_masked_fill(y, tern_eq_scalar(den, TERN_SCALAR(0)), TERN_SCALAR(otherwise));
}

tern_tensor *tern_metric_bins(tern_tensor *index, tern_tensor *source, int64_t bins)
{
    if (!index || !source)
        return NULL;
    tern_tensor *y = tern_zeros(TERN_SHAPE(bins), tern_dtype_of(source), tern_device(source));
    return tern_scatter_add_(y, 0, index, source);
}

tern_tensor *tern_metric_counts(const tern_metric *self, tern_tensor *target)
{
    if (!target)
        return NULL;
    if (!self->ignore_index.set)
        return tern_ones(tern_shape_of(target), TERN_I64, tern_device(target));
    return tern_to_dtype(tern_ne_scalar(target, TERN_SCALAR(self->ignore_index.value)), TERN_I64);
}

tern_tensor *tern_metric_without_ignored(const tern_metric *self, tern_tensor *target,
                                         int64_t otherwise)
{
    if (!self->ignore_index.set)
        return target;
    return tern_masked_fill(target, tern_eq_scalar(target, TERN_SCALAR(self->ignore_index.value)),
                            TERN_SCALAR(otherwise));
}

tern_status tern_metric_same_shape(const tern_metric *self, const tern_tensor *preds,
                                   const tern_tensor *target)
{
    if (tern_same_shape(preds, target))
        return TERN_OK;
    tern_shape p = tern_shape_of(preds), t = tern_shape_of(target);
    char preds_text[128], target_text[128];
    return tern_fail(TERN_ERR_SHAPE,
                     "%s: Predictions and targets are expected to have the same shape, but got %s "
                     "and %s",
                     self->kind->name,
                     tern_format_list(preds_text, sizeof preds_text, p.dims, p.ndim),
                     tern_format_list(target_text, sizeof target_text, t.dims, t.ndim));
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Returns the predicted class for each target: with k > 1 candidates the target if it is among
 * them, else the first. preds is (N, C, ...) of scores, or (N, ...) of classes. */
static tern_tensor *predicted(const tern_metric *self, tern_tensor *preds, tern_tensor *target)
{
    if (tern_dim(preds) == tern_dim(target))
        return tern_flatten(tern_to_dtype(preds, TERN_I64), 0, -1);
    if (self->top_k == 1)
        return tern_flatten(tern_argmax_dim(preds, 1, false), 0, -1);
    tern_values_indices top = {NULL, NULL};
    if (tern_topk(preds, self->top_k, 1, true, true, &top) != TERN_OK)
        return NULL;
    tern_tensor *hit = tern_any_dim(tern_eq(top.indices, tern_unsqueeze(target, 1)), 1, false);
    return tern_flatten(tern_where(hit, target, tern_select(top.indices, 1, 0)), 0, -1);
}

static tern_status check_classes(const tern_metric *self, tern_tensor *preds, tern_tensor *target)
{
    int dims = tern_dim(target);
    if (tern_dim(preds) == dims) {
        if (tern_dtype_is_floating_point(tern_dtype_of(preds)))
            return tern_fail(TERN_ERR_DTYPE,
                             "%s: preds of the target's shape must be classes (integers), not %s",
                             self->kind->name, tern_dtype_name(tern_dtype_of(preds)));
        return tern_metric_same_shape(self, preds, target);
    }
    bool fits = tern_dim(preds) == dims + 1 && dims > 0 && tern_size(preds, 1) == self->n &&
                tern_size(preds, 0) == tern_size(target, 0);
    for (int d = 1; fits && d < dims; d++)
        fits = tern_size(preds, d + 1) == tern_size(target, d);
    if (!fits)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: Either `preds` and `target` both should have the (same) shape (N, ...), "
            "or `target` should be (N, ...) and `preds` should be (N, C, ...) with C = "
            "%lld",
            self->kind->name, (long long)self->n);
    if (!tern_dtype_is_floating_point(tern_dtype_of(preds)))
        return tern_fail(
            TERN_ERR_DTYPE,
            "%s: If `preds` have one dimension more than `target`, `preds` should be a "
            "float tensor, not %s",
            self->kind->name, tern_dtype_name(tern_dtype_of(preds)));
    return TERN_OK;
}

tern_status tern_metric_classes(const tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                tern_tensor *out[2])
{
    TERN_TRY(check_classes(self, preds, target));
    target = tern_to_dtype(target, TERN_I64);
    out[0] = predicted(self, preds, target);
    out[1] = tern_flatten(target, 0, -1);
    return TERN_OK;
}

/* ---- labels ---------------------------------------------------------------------------------- */

tern_status tern_metric_labels(const tern_metric *self, tern_tensor *preds, tern_tensor *target,
                               tern_tensor *out[3])
{
    TERN_TRY(tern_metric_same_shape(self, preds, target));
    if (self->task == TERN_TASK_MULTILABEL &&
        (tern_dim(preds) < 2 || tern_size(preds, 1) != self->n))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Expected both `target.shape[1]` and `preds.shape[1]` to be equal to "
                         "the number of labels, %lld",
                         self->kind->name, (long long)self->n);
    out[0] =
        tern_dtype_is_floating_point(tern_dtype_of(preds))
            ? tern_gt_scalar(tern_metric_probabilities(preds, false), TERN_SCALAR(self->threshold))
            : tern_ne_scalar(preds, TERN_SCALAR(0));
    target = tern_metric_without_ignored(self, tern_to_dtype(target, TERN_I64), -1);
    out[1] = tern_eq_scalar(target, TERN_SCALAR(0));
    out[2] = tern_eq_scalar(target, TERN_SCALAR(1));
    return TERN_OK;
}
