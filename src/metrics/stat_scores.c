/* stat_scores.c -- metrics from true and false positives and negatives: accuracy, precision,
 * recall, specificity, F-beta.
 *
 * Each is num . counts / den . counts, with counts = (tp, fp, tn, fn) of a class or of all
 * classes. */
#include "metrics/metric.h"

enum { TP, FP, TN, FN, COUNTS };
typedef enum numerator { OF_POSITIVES, OF_OTHERS } numerator;

/* Returns the sum of the counts with these weights: numbers[0..3], or as denominator
 * numbers[4..7]. */
static tern_tensor *weighted(tern_tensor *const counts[], const double weights[COUNTS])
{
    tern_tensor *sum = NULL;
    for (int k = 0; k < COUNTS; k++) {
        if (weights[k] == 0)
            continue;
        tern_tensor *part = tern_to_dtype(counts[k], TERN_F32);
        if (weights[k] != 1)
            part = tern_mul_scalar(part, TERN_SCALAR(weights[k]));
        sum = sum ? tern_add(sum, part) : part;
    }
    return sum;
}

static tern_tensor *compute(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    bool one = self->task == TERN_TASK_BINARY || self->average == TERN_AVERAGE_MICRO;
    tern_tensor *counts[COUNTS];
    for (int k = 0; k < COUNTS; k++)
        counts[k] = one ? tern_sum(states[k]) : states[k];
    tern_tensor *score =
        tern_metric_divide(weighted(counts, self->numbers),
                           weighted(counts, self->numbers + COUNTS), self->zero_division);
    if (one || self->average == TERN_AVERAGE_NONE)
        return score;
    tern_tensor *positives = tern_add(counts[TP], counts[FN]), *weights = positives;
    if (self->average == TERN_AVERAGE_MACRO) {
        /* A class that neither occurs nor is predicted does not count, but every label does. With
         * top_k > 1 accuracy, precision and recall leave out a class that does not occur, as in
         * torchmetrics. */
        bool leaves_out = self->top_k > 1 && self->mode == OF_POSITIVES;
        tern_tensor *seen = leaves_out ? positives : tern_add(positives, counts[FP]);
        weights = self->task == TERN_TASK_MULTILABEL ? tern_ones_like(score)
                                                     : tern_ne_scalar(seen, TERN_SCALAR(0));
    }
    weights = tern_to_dtype(weights, TERN_F32);
    return tern_sum(tern_metric_divide(tern_mul(weights, score), tern_sum(weights), 0));
}

/* ---- updates --------------------------------------------------------------------------------- */

static tern_status update_classes(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                  tern_tensor *out[METRIC_STATES])
{
    tern_tensor *given[2];
    TERN_TRY(tern_metric_classes(self, preds, target, given));
    tern_tensor *p = given[0], *t = given[1];
    tern_tensor *counted = tern_metric_counts(self, t);
    t = tern_metric_without_ignored(self, t, 0);
    tern_tensor *hits = tern_mul(tern_to_dtype(tern_eq(p, t), TERN_I64), counted);
    tern_tensor *of_p, *of_t, *all = tern_sum(counted);
    if (self->average == TERN_AVERAGE_MICRO) {
        out[TP] = tern_sum(hits);
        of_p = of_t = all;
        all = tern_mul_scalar(all, TERN_SCALAR(self->n));
    } else {
        out[TP] = tern_metric_bins(t, hits, self->n);
        of_p = tern_metric_bins(p, counted, self->n);
        of_t = tern_metric_bins(t, counted, self->n);
    }
    out[FP] = tern_sub(of_p, out[TP]);
    out[FN] = tern_sub(of_t, out[TP]);
    out[TN] = tern_sub(tern_sub(all, of_p), out[FN]);
    return TERN_OK;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Returns how often both a and b are true, over all dims but the labels. */
static tern_tensor *both(const tern_metric *self, tern_tensor *a, tern_tensor *b)
{
    tern_tensor *x = tern_to_dtype(tern_logical_and(a, b), TERN_I64);
    if (self->task == TERN_TASK_BINARY || self->average == TERN_AVERAGE_MICRO)
        return tern_sum(x);
    x = tern_reshape(x, TERN_SHAPE(tern_size(x, 0), self->n, -1));
    return tern_sum_dim(x, TERN_DIMS(0, 2), false);
}

static tern_status update_labels(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                 tern_tensor *out[METRIC_STATES])
{
    tern_tensor *is[3];
    TERN_TRY(tern_metric_labels(self, preds, target, is));
    tern_tensor *no = tern_logical_not(is[0]);
    out[TP] = both(self, is[0], is[2]);
    out[FP] = both(self, is[0], is[1]);
    out[TN] = both(self, no, is[1]);
    out[FN] = both(self, no, is[2]);
    return TERN_OK;
}

static tern_status update(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                          tern_tensor *out[METRIC_STATES])
{
    return self->task == TERN_TASK_MULTICLASS ? update_classes(self, preds, target, out)
                                              : update_labels(self, preds, target, out);
}

/* ---- constructors ---------------------------------------------------------------------------- */

static tern_metric *stat_scores(const tern_metric_kind *kind, tern_task task, int64_t n,
                                const tern_classification_options *options,
                                const double numbers[2 * COUNTS])
{
    tern_classification_options o = tern_read_classification(options);
    if (tern_metric_check_task(kind->name, task, n) != TERN_OK ||
        tern_check_enum(kind->name, "average", (int)o.average, TERN_AVERAGE_NONE, "tern_average") !=
            TERN_OK)
        return NULL;
    if (o.top_k < 1 || (o.top_k > 1 && (task != TERN_TASK_MULTICLASS || o.top_k > n)))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected argument `top_k` to be an integer from 1 to the number "
                              "of classes, which only MULTICLASS has, but got %lld",
                              kind->name, (long long)o.top_k);
    if (!(o.threshold >= 0 && o.threshold <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected argument `threshold` to be in the [0,1] range, but got "
                              "%g",
                              kind->name, o.threshold);
    tern_metric *m = tern_metric_new(kind);
    if (!m)
        return NULL;
    m->task = task;
    m->n = task == TERN_TASK_BINARY ? 1 : n;
    m->average = tern_metric_average(o.average, TERN_AVERAGE_MICRO);
    m->top_k = o.top_k;
    m->threshold = o.threshold;
    m->ignore_index = o.ignore_index;
    m->zero_division = o.zero_division;
    m->mode = numbers[TP] == 1 ? OF_POSITIVES : OF_OTHERS;
    for (int k = 0; k < 2 * COUNTS; k++)
        m->numbers[k] = numbers[k];
    bool one = task == TERN_TASK_BINARY || m->average == TERN_AVERAGE_MICRO;
    tern_shape shape = one ? TERN_SHAPE_SCALAR : TERN_SHAPE(m->n);
    static const char *const names[] = {"tp", "fp", "tn", "fn"};
    for (int k = 0; k < COUNTS; k++)
        m = tern_metric_with(m, names[k], TERN_METRIC_SUM, shape, TERN_I64, 0);
    return m;
}

#define SCORE(FUNCTION, ...)                                                                       \
    tern_metric *tern_metrics_##FUNCTION(tern_task task, int64_t n,                                \
                                         const tern_classification_options *options)               \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        static const tern_metric_kind kind = {"tern_metrics_" #FUNCTION, update, compute, false,   \
                                              false};                                              \
        static const double numbers[] = {__VA_ARGS__};                                             \
        return stat_scores(&kind, task, n, options, numbers);                                      \
    }
SCORE(precision, 1, 0, 0, 0, 1, 1, 0, 0)
SCORE(recall, 1, 0, 0, 0, 1, 0, 0, 1)
SCORE(specificity, 0, 0, 1, 0, 0, 1, 1, 0)

tern_metric *tern_metrics_accuracy(tern_task task, int64_t n,
                                   const tern_classification_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update, compute, false, false};
    static const double of_classes[] = {1, 0, 0, 0, 1, 0, 0, 1};
    static const double of_labels[] = {1, 0, 1, 0, 1, 1, 1, 1};
    return stat_scores(&kind, task, n, options,
                       task == TERN_TASK_MULTICLASS ? of_classes : of_labels);
}

static tern_metric *f_score(const tern_metric_kind *kind, tern_task task, int64_t n, double beta,
                            const tern_classification_options *options)
{
    if (!(beta > 0))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "%s: Expected argument `beta` to be a float larger than 0, but got %g", kind->name,
            beta);
    double b2 = beta * beta, numbers[] = {1 + b2, 0, 0, 0, 1 + b2, 1, 0, b2};
    return stat_scores(kind, task, n, options, numbers);
}

tern_metric *tern_metrics_fbeta_score(tern_task task, int64_t n, double beta,
                                      const tern_classification_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update, compute, false, false};
    return f_score(&kind, task, n, beta, options);
}

tern_metric *tern_metrics_f1_score(tern_task task, int64_t n,
                                   const tern_classification_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update, compute, false, false};
    return f_score(&kind, task, n, 1, options);
}
