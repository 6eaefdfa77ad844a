/* metrics.h -- how good a model is: metrics that are gathered batch by batch, and stopping early
 * (torchmetrics; tern_metrics_x is its class X in snake case).
 *
 *   tern_metric *accuracy = tern_metrics_accuracy(TERN_TASK_MULTICLASS, 10, NULL);
 *   TERN_EACH_BATCH(batch, loader)
 *       tern_metric_update(accuracy, tern_nn_forward(model, batch.tensors[0]), batch.tensors[1]);
 *   printf("%.4f\n", tern_item(tern_metric_compute(accuracy)));
 *   tern_metric_reset(accuracy);
 *
 * A metric keeps sums (its states) on the device of what it is given, and nothing waits for that
 * device before tern_metric_compute's result is looked at. Predictions in half precision are
 * computed in float32; states of real numbers are float32, and float64 from the first float64 input
 * on. No gradient is recorded. An update that fails leaves the states as they were. */
#ifndef TERN_METRICS_H
#define TERN_METRICS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_metric tern_metric;

/* Take a batch: predictions and what they should have been, in the shapes of the constructor's
 * comment; on one device. Errors: TERN_ERR_SHAPE, TERN_ERR_DTYPE; a class outside of the number of
 * classes is an error of indices, which a device reports when it is next waited for. */
TERN_API tern_status tern_metric_update(tern_metric *metric, tern_tensor *preds,
                                        tern_tensor *target);
/* For sum, mean, max, min and running_mean: take a number of the host's. */
TERN_API tern_status tern_metric_update_number(tern_metric *metric, double value, double weight);
/* The metric over all batches since it was made or reset: 0-d, or one value for each class with
 * TERN_AVERAGE_NONE. Belongs to the scope. Those that keep predictions (curves without thresholds)
 * are TERN_ERR_STATE before the first update. */
TERN_API tern_tensor *tern_metric_compute(tern_metric *metric);
/* Forget all batches. */
TERN_API tern_status tern_metric_reset(tern_metric *metric);
/* Frees it; NULL is fine. */
TERN_API void tern_metric_free(tern_metric *metric);

/* How what two processes, or two halves of the data, gathered becomes one state. */
typedef enum tern_metric_reduction {
    TERN_METRIC_SUM,
    TERN_METRIC_MAX,
    TERN_METRIC_MIN,
    TERN_METRIC_CAT, /* one behind the other along dim 0 */
    TERN_METRIC_LAST /* each keeps its own */
} tern_metric_reduction;
/* Visit the states by name: to save them, or to sum them over ranks in place. A state that is
 * empty (TERN_METRIC_CAT before the first update) is not visited. */
TERN_API tern_status tern_metric_each_state(tern_metric *metric, tern_tensor_visit visit,
                                            void *user);
/* What a state of that name wants; TERN_METRIC_LAST and an error for a name that is not there. */
TERN_API tern_metric_reduction tern_metric_state_reduction(const tern_metric *metric,
                                                           const char *name);
/* Put a copy of x in place of a state; from any device. Errors: TERN_ERR_ARGUMENT for a name that
 * is not there, TERN_ERR_SHAPE, TERN_ERR_DTYPE. */
TERN_API tern_status tern_metric_set_state(tern_metric *metric, const char *name, tern_tensor *x);
/* Add what other, made with the same arguments, has gathered (merge_state). */
TERN_API tern_status tern_metric_merge(tern_metric *metric, tern_metric *other);
/* Move the states; an update moves them to its input too. */
TERN_API tern_status tern_metric_to(tern_metric *metric, const char *device);

/* ---- classification --------------------------------------------------------------------------
 * Shapes, with n classes or labels and any number of further dims:
 *   BINARY      preds (N, ...): labels 0 and 1, probabilities, or logits (what has a value outside
 *               of [0, 1] goes through a sigmoid); target (N, ...)
 *   MULTICLASS  preds (N, ...) of classes, or (N, n, ...) of scores, whose largest counts;
 *               target (N, ...) of classes 0 .. n - 1
 *   MULTILABEL  preds and target (N, n, ...), each label as in BINARY
 * Results are float32. */
typedef enum tern_task { TERN_TASK_BINARY, TERN_TASK_MULTICLASS, TERN_TASK_MULTILABEL } tern_task;

/* How the values of the classes become one; nothing of it for BINARY. */
typedef enum tern_average {
    TERN_AVERAGE_DEFAULT,  /* what the constructor says */
    TERN_AVERAGE_MICRO,    /* of the sums over all classes */
    TERN_AVERAGE_MACRO,    /* the mean over the classes that occur */
    TERN_AVERAGE_WEIGHTED, /* the mean by how often each class is the target */
    TERN_AVERAGE_NONE      /* one value for each class: (n) */
} tern_average;

typedef struct tern_classification_options {
    tern_average average;
    int64_t top_k;                  /* default 1: right if among the k largest; MULTICLASS */
    double threshold;               /* default 0.5; BINARY, MULTILABEL */
    tern_optional_int ignore_index; /* targets of this value do not count */
    double zero_division;           /* the value of 0 / 0 */
    uint64_t reserved[4];
} tern_classification_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_classification_options tern_classification_defaults(void);

/* The part that is right; average: micro. n: classes or labels, of which BINARY has one. */
TERN_API tern_metric *tern_metrics_accuracy(tern_task task, int64_t n,
                                            const tern_classification_options *options);
/* True positives / predicted positives; average: micro. */
TERN_API tern_metric *tern_metrics_precision(tern_task task, int64_t n,
                                             const tern_classification_options *options);
/* True positives / positives; average: micro. */
TERN_API tern_metric *tern_metrics_recall(tern_task task, int64_t n,
                                          const tern_classification_options *options);
/* True negatives / negatives; average: micro. */
TERN_API tern_metric *tern_metrics_specificity(tern_task task, int64_t n,
                                               const tern_classification_options *options);
/* (1 + beta^2) precision recall / (beta^2 precision + recall), beta > 0; average: micro. */
TERN_API tern_metric *tern_metrics_fbeta_score(tern_task task, int64_t n, double beta,
                                               const tern_classification_options *options);
/* The same with beta 1. */
TERN_API tern_metric *tern_metrics_f1_score(tern_task task, int64_t n,
                                            const tern_classification_options *options);
/* Intersection over union of prediction and target; average: macro. top_k is not for it. */
TERN_API tern_metric *tern_metrics_jaccard_index(tern_task task, int64_t n,
                                                 const tern_classification_options *options);

/* What is divided by, of the counts in a confusion matrix. */
typedef enum tern_confusion_normalize {
    TERN_NORMALIZE_NONE,
    TERN_NORMALIZE_TRUE, /* how often the class is the target */
    TERN_NORMALIZE_PRED, /* how often it was predicted */
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
/* How often class j (column) was predicted where i (row) was right: (2, 2), (n, n), or for each
 * label (n, 2, 2); int64, or float32 if normalised, where 0 / 0 is 0. */
TERN_API tern_metric *tern_metrics_confusion_matrix(tern_task task, int64_t n,
                                                    const tern_confusion_matrix_options *options);

typedef struct tern_curve_options {
    tern_average average; /* default MACRO; MICRO for MULTILABEL alone */
    /* 0: exact, all predictions are kept on the device. k > 1: at the thresholds 0, 1 / (k - 1),
     * .., 1, in memory that does not grow. */
    int64_t thresholds;
    tern_optional_int ignore_index;
    uint64_t reserved[4];
} tern_curve_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_curve_options tern_curve_defaults(void);
/* The area under the curve of true positive rate over false positive rate; preds are scores. */
TERN_API tern_metric *tern_metrics_auroc(tern_task task, int64_t n,
                                         const tern_curve_options *options);
/* The mean of precision, weighted by the steps of recall; preds are scores. */
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
/* How far confidence and accuracy are apart in the bins of confidence; BINARY (preds are
 * probabilities of 1) and MULTICLASS. */
TERN_API tern_metric *tern_metrics_calibration_error(tern_task task, int64_t n,
                                                     const tern_calibration_error_options *options);

/* ---- regression: preds and target of one shape and of floating point ------------------------ */
/* Mean of (preds - target)^2: over all elements, or with num_outputs > 1 over rows of
 * (N, num_outputs), one value for each column. Its root if !squared. */
TERN_API tern_metric *tern_metrics_mean_squared_error(bool squared, int64_t num_outputs);
/* Mean of |preds - target|, likewise. */
TERN_API tern_metric *tern_metrics_mean_absolute_error(int64_t num_outputs);

typedef enum tern_multioutput {
    TERN_UNIFORM_AVERAGE,
    TERN_RAW_VALUES, /* one value for each column */
    TERN_VARIANCE_WEIGHTED
} tern_multioutput;
/* 1 - residual / variance of (N) or (N, outputs), the coefficient of determination. adjusted: the
 * number of independent regressors, 0 for the plain one. TERN_ERR_STATE below two samples. */
TERN_API tern_metric *tern_metrics_r2_score(int64_t adjusted, tern_multioutput multioutput);
/* preds target / (|preds| |target|) of the rows of (N, D): their sum, mean, or each (N). */
TERN_API tern_metric *tern_metrics_cosine_similarity(tern_reduction reduction);

/* ---- text ------------------------------------------------------------------------------------ */
/* exp of the mean negative log likelihood: logits (or log-probabilities) (N, T, V), target (N, T)
 * of int64. */
TERN_API tern_metric *tern_metrics_perplexity(tern_optional_int ignore_index);

typedef struct tern_bleu_score_options {
    int64_t n_gram;        /* default 4 */
    bool smooth;           /* add one to each precision but the first */
    const double *weights; /* of n_gram; NULL: all 1 / n_gram */
    uint64_t reserved[4];
} tern_bleu_score_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_bleu_score_options tern_bleu_score_defaults(void);
/* How much of translations' n-grams is in their references (Papineni et al. 2002), words being what
 * stands between white space. Updated by tern_metric_update_text alone. */
TERN_API tern_metric *tern_metrics_bleu_score(const tern_bleu_score_options *options);
/* n translations; targets[i] are the references of preds[i], ended by NULL. */
TERN_API tern_status tern_metric_update_text(tern_metric *metric, const char *const *preds,
                                             const char *const *const *targets, int n);

/* ---- aggregation -------------------------------------------------------------------------------
 * Updated with a tensor of values, and of weights that broadcast to it (mean; NULL: 1; NULL for the
 * others). Values that are NaN do not count. */
TERN_API tern_metric *tern_metrics_mean(void);
/* The sum of all values. */
TERN_API tern_metric *tern_metrics_sum(void);
/* The largest; -inf before the first. */
TERN_API tern_metric *tern_metrics_max(void);
/* The smallest; inf before the first. */
TERN_API tern_metric *tern_metrics_min(void);
/* The mean over the last `window` updates (RunningMean; torchmetrics: 5). */
TERN_API tern_metric *tern_metrics_running_mean(int64_t window);

/* ---- stopping early -------------------------------------------------------------------------- */
typedef struct tern_early_stopping tern_early_stopping;
typedef struct tern_early_stopping_options {
    bool maximize;        /* the larger the better: an accuracy; else a loss */
    int64_t patience;     /* default 3: stop after so many values in a row that are no better */
    double min_delta;     /* better by more than this */
    bool allow_nonfinite; /* else the first NaN or infinity stops */
    bool has_stopping_threshold; /* stop once the value is better than stopping_threshold */
    double stopping_threshold;
    bool has_divergence_threshold; /* stop once it is worse than divergence_threshold */
    double divergence_threshold;
    uint64_t reserved[4];
} tern_early_stopping_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_early_stopping_options tern_early_stopping_defaults(void);
/* Watches one number, as Lightning's EarlyStopping; freed with tern_early_stopping_free. */
TERN_API tern_early_stopping *tern_early_stopping_new(const tern_early_stopping_options *options);
/* The number after an epoch: true when it is time to stop. True with an error for NULL. */
TERN_API bool tern_early_stopping_step(tern_early_stopping *stopping, double value);
/* Whether the last number is the best: time for tern_snapshot_save. */
TERN_API bool tern_early_stopping_is_best(const tern_early_stopping *stopping);
/* The best number so far; infinite before the first. */
TERN_API double tern_early_stopping_best(const tern_early_stopping *stopping);
/* Where it is, to be saved. */
typedef struct tern_early_stopping_state {
    double best;
    int64_t wait_count; /* values in a row that were no better */
    bool is_best, stopped;
    uint64_t reserved[4];
} tern_early_stopping_state;
/* Into *state. */
TERN_API tern_status tern_early_stopping_get_state(const tern_early_stopping *stopping,
                                                   tern_early_stopping_state *state);
/* As tern_early_stopping_get_state gave it. */
TERN_API tern_status tern_early_stopping_set_state(tern_early_stopping *stopping,
                                                   const tern_early_stopping_state *state);
/* Frees it; NULL is fine. */
TERN_API void tern_early_stopping_free(tern_early_stopping *stopping);

TERN_END_DECLS
#endif
