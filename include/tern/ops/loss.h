/* ops/loss.h -- loss functions, and the distances that some of them use.
 *
 * tern_x is torch.nn.functional.x; nn/loss.h has the modules. Unless stated otherwise input and
 * target are broadcast, the formula below is the loss of one element, and options->reduction
 * chooses what is returned: the mean of all losses (the default), their sum, or all of them in the
 * broadcast shape. options NULL means PyTorch's defaults. Results belong to the innermost scope;
 * NULL after an error: TERN_ERR_SHAPE, TERN_ERR_DTYPE, TERN_ERR_ARGUMENT with PyTorch's messages.
 * https://pytorch.org/docs/stable/nn.functional.html#loss-functions */
#ifndef TERN_OPS_LOSS_H
#define TERN_OPS_LOSS_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef enum tern_reduction {
    TERN_REDUCTION_MEAN = 0,
    TERN_REDUCTION_SUM,
    TERN_REDUCTION_NONE,
    TERN_REDUCTION_BATCHMEAN /* only for tern_kl_div: the sum divided by the size of dim 0 */
} tern_reduction;
/* The options of losses that have no others. */
typedef struct tern_loss_options {
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_loss_options tern_loss_defaults(void);

/* ---- regression ------------------------------------------------------------------------------ */

/* The squared error: (input - target)^2. */
TERN_API tern_tensor *tern_mse_loss(tern_tensor *input, tern_tensor *target,
                                    const tern_loss_options *options);
/* The absolute error: |input - target|. */
TERN_API tern_tensor *tern_l1_loss(tern_tensor *input, tern_tensor *target,
                                   const tern_loss_options *options);

typedef struct tern_smooth_l1_loss_options {
    double beta; /* default 1; with TERN_ZERO the loss is tern_l1_loss */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_smooth_l1_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_smooth_l1_loss_options tern_smooth_l1_loss_defaults(void);
/* With d = |input - target|: d^2 / (2 beta) where d is below beta, d - beta / 2 elsewhere. */
TERN_API tern_tensor *tern_smooth_l1_loss(tern_tensor *input, tern_tensor *target,
                                          const tern_smooth_l1_loss_options *options);

typedef struct tern_huber_loss_options {
    double delta; /* > 0; default 1 */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_huber_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_huber_loss_options tern_huber_loss_defaults(void);
/* With d = |input - target|: d^2 / 2 where d is below delta, delta (d - delta / 2) elsewhere. */
TERN_API tern_tensor *tern_huber_loss(tern_tensor *input, tern_tensor *target,
                                      const tern_huber_loss_options *options);

typedef struct tern_poisson_nll_loss_options {
    bool no_log_input; /* input is the rate, not its logarithm */
    bool full;         /* add Stirling's approximation of log(target!) */
    double eps;        /* default 1e-8; added to the rate before its logarithm is taken */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_poisson_nll_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_poisson_nll_loss_options tern_poisson_nll_loss_defaults(void);
/* The negative log likelihood of a Poisson distribution: e^input - target input, or with
 * no_log_input: input - target log(input + eps). */
TERN_API tern_tensor *tern_poisson_nll_loss(tern_tensor *input, tern_tensor *target,
                                            const tern_poisson_nll_loss_options *options);

typedef struct tern_gaussian_nll_loss_options {
    bool full;  /* add the constant log(2 pi) / 2 */
    double eps; /* default 1e-6; smaller variances are raised to it */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_gaussian_nll_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_gaussian_nll_loss_options tern_gaussian_nll_loss_defaults(void);
/* The negative log likelihood of a normal distribution: (log var + (input - target)^2 / var) / 2.
 * var has the shape of input, or lacks its last dim, or has size 1 there. Errors: TERN_ERR_ARGUMENT
 * for a negative variance; to find one, the host waits for the device. */
TERN_API tern_tensor *tern_gaussian_nll_loss(tern_tensor *input, tern_tensor *target,
                                             tern_tensor *var,
                                             const tern_gaussian_nll_loss_options *options);

/* ---- classification and probability distributions -------------------------------------------- */

typedef struct tern_kl_div_options {
    bool log_target;          /* target holds logarithms of probabilities, as input does */
    tern_reduction reduction; /* TERN_REDUCTION_BATCHMEAN is the sum divided by the size of dim 0 */
    uint64_t reserved[4];
} tern_kl_div_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_kl_div_options tern_kl_div_defaults(void);
/* The Kullback-Leibler divergence: target (log target - input), and 0 where target is 0 and input
 * is finite. input holds logarithms of probabilities. */
TERN_API tern_tensor *tern_kl_div(tern_tensor *input, tern_tensor *target,
                                  const tern_kl_div_options *options);

typedef struct tern_weighted_loss_options {
    tern_tensor *weight; /* of each element, broadcast */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_weighted_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_weighted_loss_options tern_weighted_loss_defaults(void);
/* -(target log input + (1 - target) log(1 - input)), with logarithms limited to at least -100.
 * input and target have one shape and are in [0, 1]. */
TERN_API tern_tensor *tern_binary_cross_entropy(tern_tensor *input, tern_tensor *target,
                                                const tern_weighted_loss_options *options);

typedef struct tern_binary_cross_entropy_with_logits_options {
    tern_tensor *weight;     /* of each element, broadcast */
    tern_tensor *pos_weight; /* the weight of positive examples, broadcast: (C) if classes are
                              * the last dim */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_binary_cross_entropy_with_logits_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_binary_cross_entropy_with_logits_options
tern_binary_cross_entropy_with_logits_defaults(void);
/* tern_binary_cross_entropy of sigmoid(input), computed without overflow. */
TERN_API tern_tensor *tern_binary_cross_entropy_with_logits(
    tern_tensor *input, tern_tensor *target,
    const tern_binary_cross_entropy_with_logits_options *options);

typedef struct tern_cross_entropy_options {
    tern_tensor *weight;            /* (C): of each class */
    tern_optional_int ignore_index; /* default -100 */
    tern_reduction reduction;
    double label_smoothing; /* 0..1 */
    uint64_t reserved[4];
} tern_cross_entropy_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_cross_entropy_options tern_cross_entropy_defaults(void);
/* The cross entropy of softmax(input) and target. input holds logits (N, C), (C) or (N, C, d1,
 * ...). target holds class indices (N), () or (N, d1, ...) of int64, or probabilities in the shape
 * of the logits. */
TERN_API tern_tensor *tern_cross_entropy(tern_tensor *input, tern_tensor *target,
                                         const tern_cross_entropy_options *options);

typedef struct tern_linear_cross_entropy_options {
    tern_tensor *linear_bias;       /* (C) */
    tern_tensor *weight;            /* (C): of each class */
    tern_optional_int ignore_index; /* default -100 */
    tern_reduction reduction;
    double label_smoothing; /* 0..1 */
    int64_t chunk_size;     /* the number of rows whose logits are computed at a time; the
                             * default depends on the sizes */
    tern_dtype dtype;       /* the dtype of the loss; default: that of input */
    uint64_t reserved[4];
} tern_linear_cross_entropy_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_linear_cross_entropy_options tern_linear_cross_entropy_defaults(void);
/* tern_cross_entropy of tern_linear(input, linear_weight, linear_bias), without the memory for all
 * logits: input (N, in), linear_weight (C, in), target (N) of int64. The logits (N, C) are stored
 * as a whole only if linear_weight needs a gradient and they take no more memory than that
 * gradient; otherwise both this function and backward compute chunks of them. If only input needs a
 * gradient, the gradient of a sum or a mean is computed here, with the loss. float16 and bfloat16
 * are summed in float32. */
TERN_API tern_tensor *tern_linear_cross_entropy(tern_tensor *input, tern_tensor *linear_weight,
                                                tern_tensor *target,
                                                const tern_linear_cross_entropy_options *options);

typedef struct tern_nll_loss_options {
    tern_tensor *weight;            /* (C): of each class */
    tern_optional_int ignore_index; /* default -100 */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_nll_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_nll_loss_options tern_nll_loss_defaults(void);
/* The negative log likelihood: -weight[target] input[target]. input holds logarithms of
 * probabilities (C), (N, C) or (N, C, d1, ...), target class indices (), (N) or (N, d1, ...) of
 * int64. The mean divides by the sum of the weights. */
TERN_API tern_tensor *tern_nll_loss(tern_tensor *input, tern_tensor *target,
                                    const tern_nll_loss_options *options);

typedef struct tern_ctc_loss_options {
    int64_t blank;      /* the class of the blank; default 0 */
    bool zero_infinity; /* the loss of a target that is too long for its input is 0, not infinity */
    tern_reduction reduction; /* the mean is that of each loss divided by the length of its
                               * target */
    uint64_t reserved[4];
} tern_ctc_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_ctc_loss_options tern_ctc_loss_defaults(void);
/* The connectionist temporal classification loss (Graves et al. 2006), one for each of N sequences.
 * log_probs (T, N, C) or (T, C) are the result of log_softmax, in float32 or float64. targets are
 * (N, S), (S), or concatenated (sum of the lengths), of int64 or int32. The lengths are (N) or ().
 * The device computes in log space. The gradient is right only if log_probs come from log_softmax,
 * as in PyTorch, and cannot be differentiated again. If targets are concatenated, the host waits
 * for the device to read their lengths. */
TERN_API tern_tensor *tern_ctc_loss(tern_tensor *log_probs, tern_tensor *targets,
                                    tern_tensor *input_lengths, tern_tensor *target_lengths,
                                    const tern_ctc_loss_options *options);

/* ---- margins --------------------------------------------------------------------------------- */

/* log(1 + e^(-target input)), where target is 1 or -1. */
TERN_API tern_tensor *tern_soft_margin_loss(tern_tensor *input, tern_tensor *target,
                                            const tern_loss_options *options);
/* The binary cross entropy of logits (N, C) or (C), averaged over the classes -> (N) or (). */
TERN_API tern_tensor *tern_multilabel_soft_margin_loss(tern_tensor *input, tern_tensor *target,
                                                       const tern_weighted_loss_options *options);

typedef struct tern_margin_loss_options {
    double margin; /* default 0; for tern_hinge_embedding_loss 1 (TERN_ZERO for 0); NaN means the
                    * default */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_margin_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_margin_loss_options tern_margin_loss_defaults(void);
/* max(0, -target (input1 - input2) + margin), where target is 1 or -1. The three tensors have the
 * same number of dims. */
TERN_API tern_tensor *tern_margin_ranking_loss(tern_tensor *input1, tern_tensor *input2,
                                               tern_tensor *target,
                                               const tern_margin_loss_options *options);
/* input where target is 1, max(0, margin - input) where target is -1. */
TERN_API tern_tensor *tern_hinge_embedding_loss(tern_tensor *input, tern_tensor *target,
                                                const tern_margin_loss_options *options);
/* 1 - cos where target is 1, max(0, cos - margin) where target is -1, where cos is the cosine
 * similarity of the inputs. The inputs are (N, D) and target (N), or the inputs are (D) and target
 * (). */
TERN_API tern_tensor *tern_cosine_embedding_loss(tern_tensor *input1, tern_tensor *input2,
                                                 tern_tensor *target,
                                                 const tern_margin_loss_options *options);

typedef struct tern_triplet_margin_loss_options {
    double margin; /* > 0; default 1 */
    double p;      /* the norm of the distance; default 2 */
    double eps;    /* default 1e-6 */
    bool swap; /* take the smaller of the negative's distances to the anchor and to the positive */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_triplet_margin_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_triplet_margin_loss_options tern_triplet_margin_loss_defaults(void);
/* max(0, d(anchor, positive) - d(anchor, negative) + margin) with the distance d: (N, D) -> (N). */
TERN_API tern_tensor *tern_triplet_margin_loss(tern_tensor *anchor, tern_tensor *positive,
                                               tern_tensor *negative,
                                               const tern_triplet_margin_loss_options *options);
/* A distance that the caller computes with differentiable operations: (N, D), (N, D) -> (N). */
typedef tern_tensor *(*tern_distance_function)(tern_tensor *a, tern_tensor *b, void *user);
/* Does the same with another distance, which is called with user; NULL means
 * tern_pairwise_distance. p and eps are ignored. */
TERN_API tern_tensor *tern_triplet_margin_with_distance_loss(
    tern_tensor *anchor, tern_tensor *positive, tern_tensor *negative,
    tern_distance_function distance, void *user, const tern_triplet_margin_loss_options *options);

typedef struct tern_multi_margin_loss_options {
    int p;               /* 1 (the default) or 2 */
    double margin;       /* default 1 */
    tern_tensor *weight; /* (C): of each class */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_multi_margin_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_multi_margin_loss_options tern_multi_margin_loss_defaults(void);
/* weight[y] sum max(0, margin - x[y] + x[i])^p / C, summed over all classes i except the target y.
 * input is (N, C) or (C), target (N) or () of int64. */
TERN_API tern_tensor *tern_multi_margin_loss(tern_tensor *input, tern_tensor *target,
                                             const tern_multi_margin_loss_options *options);
/* sum max(0, 1 - (x[y] - x[i])) / C, summed over the target classes y and all other classes i.
 * input and target are (N, C) or (C); a row of target (int64) lists its classes up to the first
 * -1. */
TERN_API tern_tensor *tern_multilabel_margin_loss(tern_tensor *input, tern_tensor *target,
                                                  const tern_loss_options *options);

/* ---- distances ------------------------------------------------------------------------------- */

/* Returns x1 x2 / (max(|x1|, eps) max(|x2|, eps)), summed along dim, which is removed; shapes are
 * broadcast. PyTorch's defaults: dim 1, eps 1e-8. */
TERN_API tern_tensor *tern_cosine_similarity(tern_tensor *x1, tern_tensor *x2, int dim, double eps);
/* Returns the p-norm of x1 - x2 + eps along the last dim. PyTorch's defaults: p 2, eps 1e-6. */
TERN_API tern_tensor *tern_pairwise_distance(tern_tensor *x1, tern_tensor *x2, double p, double eps,
                                             bool keepdim);
/* Returns the p-norm distance of every pair of points of two sets: (B, P, M), (B, R, M) -> (B, P,
 * R), where B is broadcast and p >= 0. For many points and p 2 the distances come from a product of
 * matrices; else memory for all differences is needed. */
TERN_API tern_tensor *tern_cdist(tern_tensor *x1, tern_tensor *x2, double p);
/* Returns the p-norm distance of every pair of different points of one set: (N, M) -> (N (N - 1) /
 * 2). */
TERN_API tern_tensor *tern_pdist(tern_tensor *x, double p);

TERN_END_DECLS
#endif
