/* metrics.h -- metrics that are computed batch by batch, and early stopping (torchmetrics;
 * tern_metrics_x is its class X in snake case).
 *
 *   tern_metric *accuracy = tern_metrics_accuracy(TERN_TASK_MULTICLASS, 10, NULL);
 *   TERN_EACH_BATCH(batch, loader)
 *       tern_metric_update(accuracy, tern_nn_forward(model, batch.tensors[0]), batch.tensors[1]);
 *   printf("%.4f\n", tern_item(tern_metric_compute(accuracy)));
 *   tern_metric_reset(accuracy);
 *
 * A metric keeps sums, its states, on the device of its inputs, and nothing waits for that device
 * until the result of tern_metric_compute is read. Half precision predictions are computed in
 * float32. Real states are float32, and float64 from the first float64 input on. No gradient is
 * recorded. An update that fails leaves the states unchanged. */
#ifndef TERN_METRICS_H
#define TERN_METRICS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_metric tern_metric;

/* Adds a batch of predictions and targets, on one device, in the shapes that the constructor's
 * comment gives. Errors: TERN_ERR_SHAPE, TERN_ERR_DTYPE; a class out of range is an error of an
 * index, which a device reports at its next synchronisation. */
TERN_API tern_status tern_metric_update(tern_metric *metric, tern_tensor *preds,
                                        tern_tensor *target);
/* Adds a number of the host to a sum, mean, max, min or running_mean. */
TERN_API tern_status tern_metric_update_number(tern_metric *metric, double value, double weight);
/* Returns the metric over all batches since the metric was created or reset: a scalar (), or with
 * TERN_AVERAGE_NONE one value for each class. It belongs to the innermost scope. Metrics that keep
 * predictions (curves without thresholds) are TERN_ERR_STATE before the first update. */
TERN_API tern_tensor *tern_metric_compute(tern_metric *metric);
/* Removes all batches, so that the metric starts again. */
TERN_API tern_status tern_metric_reset(tern_metric *metric);
/* Frees the metric; NULL is fine. */
TERN_API void tern_metric_free(tern_metric *metric);

/* How the states of two processes, or of two halves of the data, are combined. */
typedef enum tern_metric_reduction {
    TERN_METRIC_SUM,
    TERN_METRIC_MAX,
    TERN_METRIC_MIN,
    TERN_METRIC_CAT, /* concatenated along dim 0 */
    TERN_METRIC_LAST /* not combined: each keeps its own */
} tern_metric_reduction;
/* Visits the states by name, to save them or to reduce them over ranks in place. An empty state
 * (TERN_METRIC_CAT before the first update) is not visited. */
TERN_API tern_status tern_metric_each_state(tern_metric *metric, tern_tensor_visit visit,
                                            void *user);
/* Returns how the state of a name is combined; TERN_METRIC_LAST and an error for a name that does
 * not exist. */
TERN_API tern_metric_reduction tern_metric_state_reduction(const tern_metric *metric,
                                                           const char *name);
/* Replaces a state by a copy of x, which may be on any device. Errors: TERN_ERR_ARGUMENT for a name
 * that does not exist, TERN_ERR_SHAPE, TERN_ERR_DTYPE. */
TERN_API tern_status tern_metric_set_state(tern_metric *metric, const char *name, tern_tensor *x);
/* Adds the states of another metric that was created with the same arguments (merge_state). */
TERN_API tern_status tern_metric_merge(tern_metric *metric, tern_metric *other);
/* Moves the states to a device; an update also moves them to the device of its input. */
TERN_API tern_status tern_metric_to(tern_metric *metric, const char *device);

/* ---- classification -----------------------------------------------------------------------------
 * Shapes, with n classes or labels and any number of further dims:
 *   BINARY      preds (N, ...): labels 0 and 1, probabilities, or logits (if a value is outside of
 *               [0, 1], all go through a sigmoid); target (N, ...)
 *   MULTICLASS  preds (N, ...) of classes, or (N, n, ...) of scores, of which the largest counts;
 *               target (N, ...) of classes 0 .. n - 1
 *   MULTILABEL  preds and target (N, n, ...), each label as in BINARY
 * Results are float32. */
typedef enum tern_task { TERN_TASK_BINARY, TERN_TASK_MULTICLASS, TERN_TASK_MULTILABEL } tern_task;

/* How the values of the classes are averaged; not for BINARY. */
typedef enum tern_average {
    TERN_AVERAGE_DEFAULT,  /* the default of the constructor */
    TERN_AVERAGE_MICRO,    /* computed from the counts of all classes together */
    TERN_AVERAGE_MACRO,    /* the mean over the classes that occur */
    TERN_AVERAGE_WEIGHTED, /* the mean weighted by how often each class is the target */
    TERN_AVERAGE_NONE      /* one value for each class: (n) */
} tern_average;

typedef struct tern_classification_options {
    tern_average average;
    int64_t top_k; /* default 1: correct if the target is among the k largest scores; MULTICLASS */
    double threshold;               /* default 0.5; BINARY, MULTILABEL */
    tern_optional_int ignore_index; /* targets with this value are ignored */
    double zero_division;           /* the value of 0 / 0 */
    uint64_t reserved[4];
} tern_classification_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_classification_options tern_classification_defaults(void);

/* Makes the metric of the fraction of correct predictions; default average: micro. n is the number
 * of classes or labels, 1 for BINARY. */
TERN_API tern_metric *tern_metrics_accuracy(tern_task task, int64_t n,
                                            const tern_classification_options *options);
/* Makes the metric true positives / predicted positives; default average: micro. */
TERN_API tern_metric *tern_metrics_precision(tern_task task, int64_t n,
                                             const tern_classification_options *options);
/* Makes the metric true positives / actual positives; default average: micro. */
TERN_API tern_metric *tern_metrics_recall(tern_task task, int64_t n,
                                          const tern_classification_options *options);
/* Makes the metric true negatives / actual negatives; default average: micro. */
TERN_API tern_metric *tern_metrics_specificity(tern_task task, int64_t n,
                                               const tern_classification_options *options);
/* Makes the metric (1 + beta^2) precision recall / (beta^2 precision + recall), beta > 0; default
 * average: micro. */
TERN_API tern_metric *tern_metrics_fbeta_score(tern_task task, int64_t n, double beta,
                                               const tern_classification_options *options);
/* Makes the metric tern_metrics_fbeta_score with beta 1. */
TERN_API tern_metric *tern_metrics_f1_score(tern_task task, int64_t n,
                                            const tern_classification_options *options);
/* Makes the metric of the intersection over union of predictions and targets; default average:
 * macro. top_k is not supported. */
TERN_API tern_metric *tern_metrics_jaccard_index(tern_task task, int64_t n,
                                                 const tern_classification_options *options);

/* How the counts of a confusion matrix are normalised. */
typedef enum tern_confusion_normalize {
    TERN_NORMALIZE_NONE,
    TERN_NORMALIZE_TRUE, /* divided by how often the class is the target */
    TERN_NORMALIZE_PRED, /* divided by how often the class was predicted */
    TERN_NORMALIZE_ALL
} tern_confusion_normalize;
typedef struct tern_confusion_matrix_options {
    tern_confusion_normalize normalize;
    double threshold; /* default 0.5; BINARY, MULTILABEL */
    tern_optional_int ignore_index;
    uint64_t reserved[4];
} tern_confusion_matrix_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_confusion_matrix_options tern_confusion_matrix_defaults(void);
/* Makes the metric that counts how often class j (column) was predicted for target i (row): (2, 2),
 * (n, n), or (n, 2, 2) for labels. The result is int64, or float32 if normalised, where 0 / 0 is
 * 0. */
TERN_API tern_metric *tern_metrics_confusion_matrix(tern_task task, int64_t n,
                                                    const tern_confusion_matrix_options *options);

typedef struct tern_curve_options {
    tern_average average; /* default MACRO; MICRO only for MULTILABEL */
    /* 0: exact, all predictions are kept on the device. k > 1: computed at the thresholds 0, 1 / (k
     * - 1), ..., 1, in constant memory. */
    int64_t thresholds;
    tern_optional_int ignore_index;
    uint64_t reserved[4];
} tern_curve_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_curve_options tern_curve_defaults(void);
/* Makes the metric of the area under the curve of the true positive rate over the false positive
 * rate; preds are scores. */
TERN_API tern_metric *tern_metrics_auroc(tern_task task, int64_t n,
                                         const tern_curve_options *options);
/* Makes the metric of the mean precision, weighted by the increases of recall; preds are scores. */
TERN_API tern_metric *tern_metrics_average_precision(tern_task task, int64_t n,
                                                     const tern_curve_options *options);

typedef enum tern_calibration_norm {
    TERN_CALIBRATION_L1, /* the expected error */
    TERN_CALIBRATION_L2, /* its root mean square */
    TERN_CALIBRATION_MAX
} tern_calibration_norm;
typedef struct tern_calibration_error_options {
    int64_t n_bins; /* default 15, of equal width */
    tern_calibration_norm norm;
    tern_optional_int ignore_index;
    uint64_t reserved[4];
} tern_calibration_error_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_calibration_error_options tern_calibration_error_defaults(void);
/* Makes the metric of the difference between confidence and accuracy in bins of confidence, for
 * BINARY (preds are probabilities of 1) and MULTICLASS. */
TERN_API tern_metric *tern_metrics_calibration_error(tern_task task, int64_t n,
                                                     const tern_calibration_error_options *options);

/* ---- regression: preds and target of one shape and of floating point ------------------------ */
/* Makes the metric of the mean of (preds - target)^2, or of its root if squared is false: over all
 * elements, or with num_outputs > 1 over the rows of (N, num_outputs), one value for each
 * column. */
TERN_API tern_metric *tern_metrics_mean_squared_error(bool squared, int64_t num_outputs);
/* Makes the metric of the mean of |preds - target|, in the same way. */
TERN_API tern_metric *tern_metrics_mean_absolute_error(int64_t num_outputs);

typedef enum tern_multioutput {
    TERN_UNIFORM_AVERAGE,
    TERN_RAW_VALUES, /* one value for each column */
    TERN_VARIANCE_WEIGHTED
} tern_multioutput;
/* Makes the metric 1 - residual / variance of (N) or (N, outputs), the coefficient of
 * determination. adjusted is the number of independent regressors, 0 for the unadjusted
 * coefficient. Errors: TERN_ERR_STATE with less than two samples. */
TERN_API tern_metric *tern_metrics_r2_score(int64_t adjusted, tern_multioutput multioutput);
/* Makes the metric of the cosine similarity preds target / (|preds| |target|) of the rows of (N,
 * D): the sum or mean of all, or all of them (N). */
TERN_API tern_metric *tern_metrics_cosine_similarity(tern_reduction reduction);

/* ---- text ------------------------------------------------------------------------------------ */
/* Makes the metric of the exponential of the mean negative log likelihood, for logits or log
 * probabilities (N, T, V) and target (N, T) of int64. */
TERN_API tern_metric *tern_metrics_perplexity(tern_optional_int ignore_index);

typedef struct tern_bleu_score_options {
    int64_t n_gram;        /* default 4 */
    bool smooth;           /* add one to each precision but the first */
    const double *weights; /* n_gram weights; NULL: each is 1 / n_gram */
    uint64_t reserved[4];
} tern_bleu_score_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_bleu_score_options tern_bleu_score_defaults(void);
/* Makes the metric of how many n-grams of translations are in their references (Papineni et al.
 * 2002); words are separated by white space. It is updated by tern_metric_update_text only. */
TERN_API tern_metric *tern_metrics_bleu_score(const tern_bleu_score_options *options);
/* Adds n translations; targets[i] lists the references of preds[i] and ends with NULL. */
TERN_API tern_status tern_metric_update_text(tern_metric *metric, const char *const *preds,
                                             const char *const *const *targets, int n);

/* ---- aggregation --------------------------------------------------------------------------------
 * These are updated with a tensor of values, and for the mean with weights that are broadcast to it
 * (NULL: 1); for the others the second tensor is NULL. Values that are NaN are ignored. */
/* Makes the metric of the mean of all values. */
TERN_API tern_metric *tern_metrics_mean(void);
/* Makes the metric of the sum of all values. */
TERN_API tern_metric *tern_metrics_sum(void);
/* Makes the metric of the largest value; -infinity before the first. */
TERN_API tern_metric *tern_metrics_max(void);
/* Makes the metric of the smallest value; infinity before the first. */
TERN_API tern_metric *tern_metrics_min(void);
/* Makes the metric of the mean over the last `window` updates (RunningMean; the default of
 * torchmetrics is 5). */
TERN_API tern_metric *tern_metrics_running_mean(int64_t window);

/* ---- early stopping -------------------------------------------------------------------------- */
typedef struct tern_early_stopping tern_early_stopping;
typedef struct tern_early_stopping_options {
    bool maximize;    /* larger values are better, as for an accuracy; else smaller ones, as for
                       * a loss */
    int64_t patience; /* default 3: stop after this many successive values that are not better */
    double min_delta; /* a value is better only if it differs by more than this */
    bool allow_nonfinite;        /* do not stop at the first NaN or infinity */
    bool has_stopping_threshold; /* stop once the value is better than stopping_threshold */
    double stopping_threshold;
    bool has_divergence_threshold; /* stop once it is worse than divergence_threshold */
    double divergence_threshold;
    uint64_t reserved[4];
} tern_early_stopping_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_early_stopping_options tern_early_stopping_defaults(void);
/* Makes an object that watches one number, as Lightning's EarlyStopping does. The caller frees it
 * with tern_early_stopping_free. */
TERN_API tern_early_stopping *tern_early_stopping_new(const tern_early_stopping_options *options);
/* Takes the number of an epoch, and returns true if training should stop. For NULL it returns true,
 * with an error. */
TERN_API bool tern_early_stopping_step(tern_early_stopping *stopping, double value);
/* Returns whether the last number is the best so far, when a snapshot is worth saving. */
TERN_API bool tern_early_stopping_is_best(const tern_early_stopping *stopping);
/* Returns the best number so far; infinite before the first. */
TERN_API double tern_early_stopping_best(const tern_early_stopping *stopping);
/* The state of an early stopping, to be saved. */
typedef struct tern_early_stopping_state {
    double best;
    int64_t wait_count; /* the number of successive values that were not better */
    bool is_best, stopped;
    uint64_t reserved[4];
} tern_early_stopping_state;
/* Writes the state to *state, to be saved in a checkpoint. */
TERN_API tern_status tern_early_stopping_get_state(const tern_early_stopping *stopping,
                                                   tern_early_stopping_state *state);
/* Restores a state that tern_early_stopping_get_state wrote. */
TERN_API tern_status tern_early_stopping_set_state(tern_early_stopping *stopping,
                                                   const tern_early_stopping_state *state);
/* Frees it; NULL is fine. */
TERN_API void tern_early_stopping_free(tern_early_stopping *stopping);

TERN_END_DECLS
#endif
