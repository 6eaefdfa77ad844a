/* metric.h -- a metric: its states, and the functions of its kind. */
#ifndef TERN_METRICS_METRIC_H
#define TERN_METRICS_METRIC_H
#include "base/option.h"
#include "base/error.h"
#include <tern/tern.h>

enum { METRIC_STATES = 4 };

/* A state tensor. A state of TERN_METRIC_CAT is a list of pieces, concatenated along dim 0. */
typedef struct tern_metric_state {
    const char *name;
    tern_metric_reduction reduction;
    bool on_host;         /* stays on the cpu, where the host computes it */
    double initial;       /* value of every element before the first update */
    tern_tensor *value;   /* owned; NULL for TERN_METRIC_CAT */
    tern_tensor **pieces; /* owned, `count` of them */
    int64_t count, capacity;
} tern_metric_state;

typedef struct tern_metric_kind {
    const char *name; /* name of the constructor */
    /* Sets the increments of a batch, one for each state; NULL leaves a state unchanged. */
    tern_status (*update)(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                          tern_tensor *increments[METRIC_STATES]);
    /* Returns the metric of the states; an empty state of TERN_METRIC_CAT is NULL. */
    tern_tensor *(*compute)(const tern_metric *self, tern_tensor *const states[METRIC_STATES]);
    bool takes_numbers; /* allows tern_metric_update_number */
    bool takes_text;    /* allows tern_metric_update_text only */
} tern_metric_kind;

struct tern_metric {
    const tern_metric_kind *kind;
    tern_metric_state states[METRIC_STATES];
    int n_states;
    /* The arguments of the constructors. */
    tern_task task;
    int64_t n; /* number of classes, labels or outputs */
    tern_average average;
    int64_t top_k, size; /* size: thresholds, bins, window, n_gram, adjusted */
    double threshold, zero_division;
    tern_optional_int ignore_index;
    int mode;          /* an enum of the kind */
    double numbers[8]; /* coefficients (stat_scores.c), weights (text.c) */
};

/* Returns a metric without states, or NULL after an error. */
tern_metric *tern_metric_new(const tern_metric_kind *kind);
/* Adds a state, on the default device. Returns m, or frees m and returns NULL. */
tern_metric *tern_metric_with(tern_metric *m, const char *name, tern_metric_reduction reduction,
                              tern_shape shape, tern_dtype dtype, double initial);
/* Adds a state that always stays on the cpu. */
tern_metric *tern_metric_with_host(tern_metric *m, const char *name, tern_shape shape);
/* Adds a state of TERN_METRIC_CAT. */
tern_metric *tern_metric_with_list(tern_metric *m, const char *name);

/* ---- functions shared by the kinds ----------------------------------------------------------- */
/* Returns TERN_ERR_ARGUMENT if task is not a tern_task, or if n is below 2 classes or 1 label. */
tern_status tern_metric_check_task(const char *function, tern_task task, int64_t n);
/* Returns the average of options, or `otherwise` if it is the default. */
tern_average tern_metric_average(tern_average average, tern_average otherwise);
/* Returns x in float32, or x itself if it is float64. */
tern_tensor *tern_metric_real(tern_tensor *x);
/* Returns probabilities: x, or if any element is not in [0, 1], its sigmoid or softmax over dim
 * 1. */
tern_tensor *tern_metric_probabilities(tern_tensor *x, bool softmax);
/* Returns num / den in float32, with `otherwise` where den is 0. */
tern_tensor *tern_metric_divide(tern_tensor *num, tern_tensor *den, double otherwise);
/* Returns the sums (bins) of source (n) by index (n). */
tern_tensor *tern_metric_bins(tern_tensor *index, tern_tensor *source, int64_t bins);
/* Returns 1 for each element that counts, 0 for ignore_index, int64 (n). */
tern_tensor *tern_metric_counts(const tern_metric *self, tern_tensor *target);
/* Returns target with ignore_index replaced by `otherwise`. */
tern_tensor *tern_metric_without_ignored(const tern_metric *self, tern_tensor *target,
                                         int64_t otherwise);
/* Sets whether each label (BINARY, MULTILABEL) is predicted, whether its target is 0, whether 1. */
tern_status tern_metric_labels(const tern_metric *self, tern_tensor *preds, tern_tensor *target,
                               tern_tensor *out[3]);
/* Sets the predicted classes and the targets, int64 (n), after checking the shapes. */
tern_status tern_metric_classes(const tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                tern_tensor *out[2]);
/* Returns TERN_ERR_SHAPE unless preds and target have one shape. */
tern_status tern_metric_same_shape(const tern_metric *self, const tern_tensor *preds,
                                   const tern_tensor *target);

#endif
