/* aggregation.c -- sums, means and extremes of values that the program computes itself. */
#include "metrics/metric.h"
#include <math.h>

/* Returns value in floating point with NaN replaced by `otherwise`, and sets *there to whether each
 * element is not NaN. */
static tern_tensor *without_nan(tern_tensor *value, double otherwise, tern_tensor **there)
{
    value = tern_metric_real(value);
    tern_tensor *nan = tern_isnan(value);
    if (there)
        *there = tern_logical_not(nan);
    return tern_masked_fill(value, nan, TERN_SCALAR(otherwise));
}

static tern_status no_weights(const tern_metric *self, const tern_tensor *weight)
{
    if (!weight)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: has no weights; the second tensor is NULL",
                     self->kind->name);
}

/* Computes the weighted sum of all elements that are not NaN, and the sum of their weights. */
static void weigh(tern_tensor *value, tern_tensor *weight, tern_tensor **sum, tern_tensor **weights)
{
    tern_tensor *there, *weight_there;
    value = without_nan(value, 0, &there);
    if (weight) {
        weight = tern_expand_as(without_nan(weight, 0, &weight_there), value);
        there = tern_logical_and(there, weight_there);
        value = tern_mul(value, weight);
        *weights = tern_sum(tern_masked_fill(weight, tern_logical_not(there), TERN_SCALAR(0)));
    } else
        *weights = tern_sum(tern_to_dtype(there, TERN_F32));
    *sum = tern_sum(value);
}

static tern_status update_mean(tern_metric *self, tern_tensor *value, tern_tensor *weight,
                               tern_tensor *out[METRIC_STATES])
{
    (void)self;
    weigh(value, weight, &out[0], &out[1]);
    return TERN_OK;
}

static tern_tensor *compute_mean(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    (void)self;
    return tern_div(states[0], states[1]);
}

tern_metric *tern_metrics_mean(void)
{
    static const tern_metric_kind kind = {"tern_metrics_mean", update_mean, compute_mean, true,
                                          false};
    tern_metric *m = tern_metric_new(&kind);
    m = tern_metric_with(m, "mean_value", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_F32, 0);
    return tern_metric_with(m, "weight", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_F32, 0);
}

static tern_tensor *compute_value(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    (void)self;
    return states[0];
}

#define AGGREGATE(NAME, state, reduction, nothing, aggregate)                                      \
    static tern_status update_##NAME(tern_metric *self, tern_tensor *value, tern_tensor *weight,   \
                                     tern_tensor *out[METRIC_STATES])                              \
    {                                                                                              \
        TERN_TRY(no_weights(self, weight));                                                        \
        if (tern_numel(value))                                                                     \
            out[0] = aggregate(without_nan(value, nothing, NULL));                                 \
        return TERN_OK;                                                                            \
    }                                                                                              \
    tern_metric *tern_metrics_##NAME(void)                                                         \
    {                                                                                              \
        static const tern_metric_kind kind = {"tern_metrics_" #NAME, update_##NAME, compute_value, \
                                              true, false};                                        \
        return tern_metric_with(tern_metric_new(&kind), state, reduction, TERN_SHAPE_SCALAR,       \
                                TERN_F32, nothing);                                                \
    }
AGGREGATE(sum, "sum_value", TERN_METRIC_SUM, 0, tern_sum)
AGGREGATE(max, "max_value", TERN_METRIC_MAX, -(double)INFINITY, tern_max)
AGGREGATE(min, "min_value", TERN_METRIC_MIN, (double)INFINITY, tern_min)

/* ---- the mean over the last updates ---------------------------------------------------------- */

/* Returns a ring of sums, or of their weights, in which `newest` replaces the oldest entry; the
 * ring is rolled so that the oldest entry has a fixed place. An index on the host would not be
 * saved with the state. */
static tern_tensor *rolled(tern_tensor *ring, tern_tensor *newest)
{
    int64_t n = tern_numel(ring);
    newest = tern_to_dtype(tern_reshape(newest, TERN_SHAPE(1)), tern_dtype_of(ring));
    if (n == 1)
        return newest;
    return tern_cat((tern_tensor *[]){tern_narrow(ring, 0, 1, n - 1), newest}, 2, 0);
}

static tern_status update_running(tern_metric *self, tern_tensor *value, tern_tensor *weight,
                                  tern_tensor *out[METRIC_STATES])
{
    tern_tensor *sum, *weights;
    weigh(value, weight, &sum, &weights);
    out[0] = rolled(self->states[0].value, sum);
    out[1] = rolled(self->states[1].value, weights);
    return TERN_OK;
}

static tern_tensor *compute_running(const tern_metric *self,
                                    tern_tensor *const states[METRIC_STATES])
{
    (void)self;
    return tern_div(tern_sum(states[0]), tern_sum(states[1]));
}

tern_metric *tern_metrics_running_mean(int64_t window)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_metric_kind kind = {__func__, update_running, compute_running, true, false};
    if (window < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Argument `window` should be a positive integer but got %lld",
                              kind.name, (long long)window);
    tern_metric *m = tern_metric_new(&kind);
    m = tern_metric_with(m, "mean_value", TERN_METRIC_LAST, TERN_SHAPE(window), TERN_F32, 0);
    return tern_metric_with(m, "weight", TERN_METRIC_LAST, TERN_SHAPE(window), TERN_F32, 0);
}
