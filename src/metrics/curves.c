/* curves.c -- areas under curves over a threshold: ROC, and precision over recall.
 *
 * A curve is tp and fp, the numbers of true and false positives, as the threshold falls from above
 * the highest score to the lowest. If all predictions are kept, every score is a threshold;
 * otherwise the thresholds are 0 .. 1, and histograms of the scores of positives and of negatives
 * are kept. */
#include "metrics/metric.h"
#include <math.h>

/* Numbers of true and false positives, int64 (k), as the threshold falls. */
typedef struct curve {
    tern_tensor *tp, *fp;
} curve;

typedef enum area { UNDER_ROC, UNDER_PRECISION } area;

/* ---- updates --------------------------------------------------------------------------------- */

/* Flattens scores to (N, n) and targets to (N) for classes, or (N, n) for labels. */
static tern_status flatten(const tern_metric *self, tern_tensor **preds, tern_tensor **target)
{
    tern_tensor *p = *preds, *t = *target;
    const char *name = self->kind->name;
    if (!tern_dtype_is_floating_point(tern_dtype_of(p)))
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Expected argument `preds` to be a floating tensor with "
                         "probability/logit scores, but got tensor with dtype %s",
                         name, tern_dtype_name(tern_dtype_of(p)));
    bool classes = self->task == TERN_TASK_MULTICLASS;
    if (!classes)
        TERN_TRY(tern_metric_same_shape(self, p, t));
    if (self->task != TERN_TASK_BINARY) {
        bool fits = tern_dim(p) >= 2 && tern_size(p, 1) == self->n;
        if (classes) {
            fits = fits && tern_dim(p) == tern_dim(t) + 1 && tern_size(p, 0) == tern_size(t, 0);
            for (int d = 1; fits && d < tern_dim(t); d++)
                fits = tern_size(p, d + 1) == tern_size(t, d);
        }
        if (!fits)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: Expected `preds` of shape (N, %lld, ...) and `target` of its "
                             "shape%s",
                             name, (long long)self->n, classes ? " without the classes" : "");
    }
    p = tern_metric_probabilities(p, classes);
    t = tern_to_dtype(t, TERN_I64);
    if (self->task == TERN_TASK_BINARY) {
        p = tern_reshape(p, TERN_SHAPE(-1, 1));
        t = tern_reshape(t, TERN_SHAPE(-1, 1));
    } else {
        p = tern_reshape(tern_movedim(p, TERN_DIMS(1), TERN_DIMS(-1)), TERN_SHAPE(-1, self->n));
        t = classes ? tern_flatten(t, 0, -1)
                    : tern_reshape(tern_movedim(t, TERN_DIMS(1), TERN_DIMS(-1)),
                                   TERN_SHAPE(-1, self->n));
    }
    *preds = p;
    *target = t;
    return TERN_OK;
}

static tern_status keep_all(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                            tern_tensor *out[METRIC_STATES])
{
    TERN_TRY(flatten(self, &preds, &target));
    out[0] = tern_clone(preds);
    out[1] = tern_clone(target);
    return TERN_OK;
}

/* Sets for each (N, n) whether the target is the class, or has the label, and whether it counts. */
static void positives(const tern_metric *self, tern_tensor *target, tern_tensor **is,
                      tern_tensor **counts)
{
    tern_tensor *counted = tern_metric_counts(self, target);
    if (self->task == TERN_TASK_MULTICLASS) {
        tern_tensor *classes = tern_arange(0, (double)self->n, 1, TERN_I64, tern_device(target));
        target = tern_unsqueeze(target, 1);
        *is = tern_eq(target, classes);
        *counts = tern_mul(tern_unsqueeze(counted, 1), tern_ones_like(classes));
    } else {
        *is = tern_eq_scalar(target, TERN_SCALAR(1));
        *counts = counted;
    }
}

/* Computes histograms: bin k counts the scores from threshold k - 1 to below threshold k. */
static tern_status count_bins(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                              tern_tensor *out[METRIC_STATES])
{
    TERN_TRY(flatten(self, &preds, &target));
    tern_tensor *is, *counts;
    positives(self, target, &is, &counts);
    int64_t bins = self->size + 1;
    const char *device = tern_device(preds);
    tern_tensor *thresholds = tern_linspace(0, 1, self->size, TERN_F32, device);
    thresholds = tern_to_dtype(thresholds, tern_dtype_of(preds));
    tern_tensor *first = tern_arange(0, (double)(self->n * bins), (double)bins, TERN_I64, device);
    tern_tensor *place = tern_add(tern_bucketize(tern_contiguous(preds), thresholds, true), first);
    place = tern_flatten(place, 0, -1);
    tern_tensor *of_is = tern_mul(tern_to_dtype(is, TERN_I64), counts);
    tern_tensor *of_not = tern_sub(counts, of_is);
    tern_shape shape = TERN_SHAPE(self->n, bins);
    out[0] =
        tern_reshape(tern_metric_bins(place, tern_flatten(of_is, 0, -1), self->n * bins), shape);
    out[1] =
        tern_reshape(tern_metric_bins(place, tern_flatten(of_not, 0, -1), self->n * bins), shape);
    return TERN_OK;
}

/* ---- curves and their areas ------------------------------------------------------------------ */

/* Returns the curve of scores (N) and `is` (N), bool, whether each is a positive. */
static curve exact_curve(tern_tensor *scores, tern_tensor *is)
{
    tern_values_indices sorted = {NULL, NULL};
    if (tern_sort(scores, 0, true, &sorted) != TERN_OK)
        return (curve){NULL, NULL};
    int64_t n = tern_numel(scores);
    tern_tensor *tp =
        tern_cumsum(tern_to_dtype(tern_index_select(is, 0, sorted.indices), TERN_I64), 0);
    /* only the last of equal scores is a threshold */
    tern_tensor *last = tern_ones(TERN_SHAPE(1), TERN_BOOL, tern_device(scores));
    if (n > 1) {
        tern_tensor *step = tern_ne(tern_narrow(sorted.values, 0, 1, n - 1),
                                    tern_narrow(sorted.values, 0, 0, n - 1));
        last = tern_cat((tern_tensor *[]){step, last}, 2, 0);
    }
    tern_tensor *at = tern_flatten(tern_nonzero(last), 0, -1);
    tp = tern_index_select(tp, 0, at);
    return (curve){tp, tern_sub(tern_add_scalar(at, TERN_SCALAR(1)), tp)};
}

/* Returns the curve from histograms (bins): the counts at or above each threshold. */
static curve binned_curve(tern_tensor *of_is, tern_tensor *of_not)
{
    int64_t thresholds = tern_numel(of_is) - 1;
    tern_tensor *tp = tern_cumsum(tern_flip(of_is, TERN_DIMS(0)), 0);
    tern_tensor *fp = tern_cumsum(tern_flip(of_not, TERN_DIMS(0)), 0);
    return (curve){tern_narrow(tp, 0, 0, thresholds), tern_narrow(fp, 0, 0, thresholds)};
}

/* Returns a zero followed by x. */
static tern_tensor *from_zero(tern_tensor *x)
{
    return tern_cat((tern_tensor *[]){tern_zeros_like(tern_narrow(x, 0, 0, 1)), x}, 2, 0);
}

static tern_tensor *rate(tern_tensor *x, double otherwise)
{
    return tern_metric_divide(x, tern_select(x, 0, -1), otherwise);
}

static tern_tensor *area_under(const tern_metric *self, curve c)
{
    if (!c.tp || !c.fp)
        return NULL;
    bool exact = self->size == 0;
    if (self->mode == UNDER_ROC) {
        tern_tensor *tp = rate(exact ? from_zero(c.tp) : c.tp, 0);
        tern_tensor *fp = rate(exact ? from_zero(c.fp) : c.fp, 0);
        return tern_trapezoid(tp, fp, 1, 0);
    }
    tern_tensor *precision = tern_metric_divide(c.tp, tern_add(c.tp, c.fp), 0);
    /* without positives the recall is 1 if all scores are kept, else 0 */
    tern_tensor *recall = from_zero(rate(c.tp, exact ? 1 : 0));
    return tern_sum(tern_mul(tern_diff(recall, 1, 0, NULL, NULL), precision));
}

/* ---- averages -------------------------------------------------------------------------------- */

/* Returns the elements of x that count. */
static tern_tensor *chosen(tern_tensor *x, tern_tensor *counted)
{
    return tern_masked_select(x, tern_ne_scalar(counted, TERN_SCALAR(0)));
}

static curve curve_of(const tern_metric *self, tern_tensor *const states[], int64_t i)
{
    if (self->size)
        return binned_curve(tern_select(states[0], 0, i), tern_select(states[1], 0, i));
    tern_tensor *scores = tern_select(states[0], 1, i), *is, *counted;
    if (self->task == TERN_TASK_MULTICLASS) {
        is = tern_eq_scalar(states[1], TERN_SCALAR(i));
        counted = tern_metric_counts(self, states[1]);
    } else {
        tern_tensor *target = tern_select(states[1], 1, i);
        is = tern_eq_scalar(target, TERN_SCALAR(1));
        counted = tern_metric_counts(self, target);
    }
    return self->ignore_index.set ? exact_curve(chosen(scores, counted), chosen(is, counted))
                                  : exact_curve(scores, is);
}

static curve curve_of_all(const tern_metric *self, tern_tensor *const states[])
{
    if (self->size)
        return binned_curve(tern_sum_dim(states[0], TERN_DIMS(0), false),
                            tern_sum_dim(states[1], TERN_DIMS(0), false));
    tern_tensor *counted = tern_metric_counts(self, states[1]);
    return exact_curve(chosen(states[0], counted),
                       chosen(tern_eq_scalar(states[1], TERN_SCALAR(1)), counted));
}

/* Returns the number of targets of each class, float32 (n). */
static tern_tensor *supports(const tern_metric *self, tern_tensor *const states[])
{
    tern_tensor *is, *counts;
    if (self->size)
        return tern_to_dtype(tern_sum_dim(states[0], TERN_DIMS(1), false), TERN_F32);
    positives(self, states[1], &is, &counts);
    is = tern_mul(tern_to_dtype(is, TERN_I64), counts);
    return tern_to_dtype(tern_sum_dim(is, TERN_DIMS(0), false), TERN_F32);
}

static tern_tensor *compute(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    if (self->task == TERN_TASK_BINARY)
        return area_under(self, curve_of(self, states, 0));
    if (self->average == TERN_AVERAGE_MICRO)
        return area_under(self, curve_of_all(self, states));
    tern_tensor *all = NULL;
    for (int64_t i = 0; i < self->n; i++) {
        tern_tensor *one = tern_reshape(area_under(self, curve_of(self, states, i)), TERN_SHAPE(1));
        if (!one)
            return NULL;
        all = all ? tern_cat((tern_tensor *[]){all, one}, 2, 0) : one;
    }
    if (self->average == TERN_AVERAGE_NONE)
        return all;
    if (self->average == TERN_AVERAGE_MACRO)
        return tern_mean(all);
    tern_tensor *weights = supports(self, states);
    return tern_sum(tern_mul(all, tern_metric_divide(weights, tern_sum(weights), 0)));
}

static tern_metric *under_curve(const tern_metric_kind kinds[2], area under, tern_task task,
                                int64_t n, const tern_curve_options *options)
{
    tern_curve_options o = tern_read_curve(options);
    const tern_metric_kind *kind = &kinds[o.thresholds != 0];
    if (tern_metric_check_task(kind->name, task, n) != TERN_OK ||
        tern_check_enum(kind->name, "average", (int)o.average, TERN_AVERAGE_NONE, "tern_average") !=
            TERN_OK)
        return NULL;
    if (o.thresholds < 0 || o.thresholds == 1)
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "%s: If argument `thresholds` is an integer, expected it to be larger "
            "than 1, but got %lld",
            kind->name, (long long)o.thresholds);
    if (task == TERN_TASK_MULTICLASS && o.average == TERN_AVERAGE_MICRO)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected argument `average` to be one of macro, weighted, none, "
                              "but got micro",
                              kind->name);
    tern_metric *m = tern_metric_new(kind);
    if (!m)
        return NULL;
    m->task = task;
    m->n = task == TERN_TASK_BINARY ? 1 : n;
    m->average = tern_metric_average(o.average, TERN_AVERAGE_MACRO);
    m->size = o.thresholds;
    m->ignore_index = o.ignore_index;
    m->mode = (int)under;
    if (!o.thresholds)
        return tern_metric_with_list(tern_metric_with_list(m, "preds"), "target");
    tern_shape shape = TERN_SHAPE(m->n, o.thresholds + 1);
    m = tern_metric_with(m, "positives", TERN_METRIC_SUM, shape, TERN_I64, 0);
    return tern_metric_with(m, "negatives", TERN_METRIC_SUM, shape, TERN_I64, 0);
}

tern_metric *tern_metrics_auroc(tern_task task, int64_t n, const tern_curve_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kinds[] = {{__func__, keep_all, compute, false, false},
                                             {__func__, count_bins, compute, false, false}};
    return under_curve(kinds, UNDER_ROC, task, n, options);
}

tern_metric *tern_metrics_average_precision(tern_task task, int64_t n,
                                            const tern_curve_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kinds[] = {{__func__, keep_all, compute, false, false},
                                             {__func__, count_bins, compute, false, false}};
    return under_curve(kinds, UNDER_PRECISION, task, n, options);
}
