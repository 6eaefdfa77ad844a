/* metric.h -- a metric: its states, and what its kind does with them. */
#ifndef TERN_METRICS_METRIC_H
#define TERN_METRICS_METRIC_H
#include "base/option.h"
#include "base/error.h"
#include <tern/tern.h>

enum { METRIC_STATES = 4 };

/* A tensor that is gathered. One of TERN_METRIC_CAT is what its pieces give along dim 0. */
typedef struct tern_metric_state {
    const char *name;
    tern_metric_reduction reduction;
    bool on_host;         /* stays on the cpu, where the host computes it */
    double initial;       /* what every element is before the first update */
    tern_tensor *value;   /* kept; NULL for TERN_METRIC_CAT */
    tern_tensor **pieces; /* of `count`, kept */
    int64_t count, capacity;
} tern_metric_state;

typedef struct tern_metric_kind {
    const char *name; /* of the constructor */
    /* The increments of a batch, one for each state; NULL for a state that stays as it is. */
    tern_status (*update)(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                          tern_tensor *increments[METRIC_STATES]);
    /* The metric of states, of which one of TERN_METRIC_CAT is NULL before the first update. */
    tern_tensor *(*compute)(const tern_metric *self, tern_tensor *const states[METRIC_STATES]);
    bool takes_numbers; /* tern_metric_update_number */
    bool takes_text;    /* tern_metric_update_text alone */
} tern_metric_kind;

struct tern_metric {
    const tern_metric_kind *kind;
    tern_metric_state states[METRIC_STATES];
    int n_states;
    /* What the constructors below were given. */
    tern_task task;
    int64_t n; /* classes, labels, outputs */
    tern_average average;
    int64_t top_k, size; /* thresholds, bins, window, n_gram, adjusted */
    double threshold, zero_division;
    tern_optional_int ignore_index;
    int mode;          /* an enum of the kind's */
    double numbers[8]; /* coefficients (stat_scores.c), weights (bleu_score.c) */
};

/* A metric without states; NULL after an error. */
tern_metric *tern_metric_new(const tern_metric_kind *kind);
/* Another state, on the default device. m, or NULL with m freed. */
tern_metric *tern_metric_with(tern_metric *m, const char *name, tern_metric_reduction reduction,
                              tern_shape shape, tern_dtype dtype, double initial);
/* The same on the cpu for good. */
tern_metric *tern_metric_with_host(tern_metric *m, const char *name, tern_shape shape);
/* One of TERN_METRIC_CAT. */
tern_metric *tern_metric_with_list(tern_metric *m, const char *name);

/* ---- what kinds share ------------------------------------------------------------------------ */
/* TERN_ERR_ARGUMENT if task is none, n is not positive, or the average is none; average of o. */
tern_status tern_metric_check_task(const char *function, tern_task task, int64_t n);
/* The average of options, or its default. */
tern_average tern_metric_average(tern_average average, tern_average otherwise);
/* x in float32, or float64 as it is. */
tern_tensor *tern_metric_real(tern_tensor *x);
/* Probabilities: x, or if any element is outside of [0, 1] its sigmoid, or softmax over dim 1. */
tern_tensor *tern_metric_probabilities(tern_tensor *x, bool softmax);
/* num / den in float32, `otherwise` where den is 0. */
tern_tensor *tern_metric_divide(tern_tensor *num, tern_tensor *den, double otherwise);
/* (bins) sums of source (n) at the places index (n). */
tern_tensor *tern_metric_bins(tern_tensor *index, tern_tensor *source, int64_t bins);
/* Whether each element counts, as int64 (n): not ignore_index. */
tern_tensor *tern_metric_counts(const tern_metric *self, tern_tensor *target);
/* target with what is ignored as `otherwise`. */
tern_tensor *tern_metric_without_ignored(const tern_metric *self, tern_tensor *target,
                                         int64_t otherwise);
/* Of labels (BINARY, MULTILABEL): whether each is predicted, whether its target is 0, whether 1. */
tern_status tern_metric_labels(const tern_metric *self, tern_tensor *preds, tern_tensor *target,
                               tern_tensor *out[3]);
/* Classes predicted for each target, and targets, (n) of int64, after checking their shapes. */
tern_status tern_metric_classes(const tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                tern_tensor *out[2]);
/* TERN_ERR_SHAPE unless both have one shape. */
tern_status tern_metric_same_shape(const tern_metric *self, const tern_tensor *preds,
                                   const tern_tensor *target);

#endif
