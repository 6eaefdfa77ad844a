/* ops/loss.h -- losses, and the distances that some are made of.
 *
 * tern_x is torch.nn.functional.x; the modules are in nn/loss.h. Where nothing else is said: input
 * and target broadcast, the loss of each element has their shape, and options->reduction makes the
 * mean (the default), the sum or nothing of it. options NULL: PyTorch's defaults. Results belong to
 * the innermost scope; NULL after an error: TERN_ERR_SHAPE, TERN_ERR_DTYPE, TERN_ERR_ARGUMENT in
 * PyTorch's words. https://pytorch.org/docs/stable/nn.functional.html#loss-functions */
#ifndef TERN_OPS_LOSS_H
#define TERN_OPS_LOSS_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef enum tern_reduction {
    TERN_REDUCTION_MEAN = 0,
    TERN_REDUCTION_SUM,
    TERN_REDUCTION_NONE,
    TERN_REDUCTION_BATCHMEAN /* of tern_kl_div alone */
} tern_reduction;
/* Of losses that have no options but this one. */
typedef struct tern_loss_options {
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_loss_options tern_loss_defaults(void);

/* ---- of numbers ------------------------------------------------------------------------------ */

/* (input - target) squared. */
TERN_API tern_tensor *tern_mse_loss(tern_tensor *input, tern_tensor *target,
                                    const tern_loss_options *options);
/* |input - target| */
TERN_API tern_tensor *tern_l1_loss(tern_tensor *input, tern_tensor *target,
                                   const tern_loss_options *options);

typedef struct tern_smooth_l1_loss_options {
    double beta; /* default 1; TERN_ZERO: the same as l1 */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_smooth_l1_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_smooth_l1_loss_options tern_smooth_l1_loss_defaults(void);
/* d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2. */
TERN_API tern_tensor *tern_smooth_l1_loss(tern_tensor *input, tern_tensor *target,
                                          const tern_smooth_l1_loss_options *options);

typedef struct tern_huber_loss_options {
    double delta; /* > 0; default 1 */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_huber_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_huber_loss_options tern_huber_loss_defaults(void);
/* d^2 / 2 where d is below delta, else delta (d - delta / 2). */
TERN_API tern_tensor *tern_huber_loss(tern_tensor *input, tern_tensor *target,
                                      const tern_huber_loss_options *options);

typedef struct tern_poisson_nll_loss_options {
    bool no_log_input; /* input is the rate, not its logarithm */
    bool full;         /* with Stirling's approximation of log target! */
    double eps;        /* default 1e-8; added to a rate before its logarithm */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_poisson_nll_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_poisson_nll_loss_options tern_poisson_nll_loss_defaults(void);
/* e^input - target input, or input - target log(input + eps). */
TERN_API tern_tensor *tern_poisson_nll_loss(tern_tensor *input, tern_tensor *target,
                                            const tern_poisson_nll_loss_options *options);

typedef struct tern_gaussian_nll_loss_options {
    bool full;  /* with log(2 pi) / 2 */
    double eps; /* default 1e-6: the least variance */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_gaussian_nll_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_gaussian_nll_loss_options tern_gaussian_nll_loss_defaults(void);
/* (log var + (input - target)^2 / var) / 2; var of input's shape, or without its last dim, or with
 * 1 there. A negative variance is an error, for which the device is waited for. */
TERN_API tern_tensor *tern_gaussian_nll_loss(tern_tensor *input, tern_tensor *target,
                                             tern_tensor *var,
                                             const tern_gaussian_nll_loss_options *options);

/* ---- of distributions ------------------------------------------------------------------------ */

typedef struct tern_kl_div_options {
    bool log_target;          /* target is a logarithm, too */
    tern_reduction reduction; /* TERN_REDUCTION_BATCHMEAN: the sum by the size of dim 0 */
    uint64_t reserved[4];
} tern_kl_div_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_kl_div_options tern_kl_div_defaults(void);
/* target (log target - input), 0 where target is 0; input is log probabilities. */
TERN_API tern_tensor *tern_kl_div(tern_tensor *input, tern_tensor *target,
                                  const tern_kl_div_options *options);

typedef struct tern_weighted_loss_options {
    tern_tensor *weight; /* of each element, broadcast */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_weighted_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_weighted_loss_options tern_weighted_loss_defaults(void);
/* - target log input - (1 - target) log(1 - input), logarithms not below -100; input and
 * target of one shape, in [0, 1]. */
TERN_API tern_tensor *tern_binary_cross_entropy(tern_tensor *input, tern_tensor *target,
                                                const tern_weighted_loss_options *options);

typedef struct tern_binary_cross_entropy_with_logits_options {
    tern_tensor *weight;     /* of each element, broadcast */
    tern_tensor *pos_weight; /* of positive examples, broadcast: (C) for classes last */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_binary_cross_entropy_with_logits_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_binary_cross_entropy_with_logits_options
tern_binary_cross_entropy_with_logits_defaults(void);
/* The same of sigmoid(input), without its overflow. */
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
/* Of logits (N, C), (C) or (N, C, d1, ...) against class indices (N), () or (N, d1, ...) of int64,
 * or probabilities of the shape of the logits. */
TERN_API tern_tensor *tern_cross_entropy(tern_tensor *input, tern_tensor *target,
                                         const tern_cross_entropy_options *options);

typedef struct tern_linear_cross_entropy_options {
    tern_tensor *linear_bias;       /* (C) */
    tern_tensor *weight;            /* (C): of each class */
    tern_optional_int ignore_index; /* default -100 */
    tern_reduction reduction;
    double label_smoothing; /* 0..1 */
    int64_t chunk_size;     /* rows whose logits are there at a time; default by the sizes */
    tern_dtype dtype;       /* of the loss; default: input's */
    uint64_t reserved[4];
} tern_linear_cross_entropy_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_linear_cross_entropy_options tern_linear_cross_entropy_defaults(void);
/* tern_cross_entropy of tern_linear(input, linear_weight), input (N, in), linear_weight (C, in) and
 * target (N) of int64, whose logits (N, C) are in memory as a whole only where linear_weight wants
 * a gradient and they take no more room than that; else neither here nor in backward, which
 * computes them again. Where input alone wants a gradient, that of a sum or a mean is made here.
 * Half precision is summed in float32. */
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
/* - weight[target] input[target] of log probabilities (C), (N, C) or (N, C, d1, ...) and classes
 * (), (N) or (N, d1, ...) of int64; the mean is by the sum of the weights. */
TERN_API tern_tensor *tern_nll_loss(tern_tensor *input, tern_tensor *target,
                                    const tern_nll_loss_options *options);

typedef struct tern_ctc_loss_options {
    int64_t blank;      /* the class that means nothing; default 0 */
    bool zero_infinity; /* 0 for targets that do not fit into their input, instead of infinity */
    tern_reduction reduction; /* the mean is of each loss by its target's length */
    uint64_t reserved[4];
} tern_ctc_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_ctc_loss_options tern_ctc_loss_defaults(void);
/* Connectionist temporal classification (Graves et al. 2006): log_probs (T, N, C) or (T, C),
 * float32 or float64, log_softmax of something; targets (N, S), (S) or all of them one after the
 * other (sum of lengths), of int64 or int32; lengths (N) or (). The loss of each of N, in log space
 * on the device. Its gradient, PyTorch's, holds behind log_softmax and is not differentiable again.
 * Waits for the device to see the lengths of targets that come one after the other. */
TERN_API tern_tensor *tern_ctc_loss(tern_tensor *log_probs, tern_tensor *targets,
                                    tern_tensor *input_lengths, tern_tensor *target_lengths,
                                    const tern_ctc_loss_options *options);

/* ---- of margins ------------------------------------------------------------------------------ */

/* log(1 + e^(- target input)), target being 1 or -1. */
TERN_API tern_tensor *tern_soft_margin_loss(tern_tensor *input, tern_tensor *target,
                                            const tern_loss_options *options);
/* Binary cross entropy of logits (N, C) or (C), the mean over classes: (N) or (). */
TERN_API tern_tensor *tern_multilabel_soft_margin_loss(tern_tensor *input, tern_tensor *target,
                                                       const tern_weighted_loss_options *options);

typedef struct tern_margin_loss_options {
    double margin; /* default 0; of hinge_embedding 1 (TERN_ZERO for 0); NaN is the default */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_margin_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_margin_loss_options tern_margin_loss_defaults(void);
/* max(0, - target (input1 - input2) + margin), target being 1 or -1; as many dims each. */
TERN_API tern_tensor *tern_margin_ranking_loss(tern_tensor *input1, tern_tensor *input2,
                                               tern_tensor *target,
                                               const tern_margin_loss_options *options);
/* input where target is 1, max(0, margin - input) where it is -1. */
TERN_API tern_tensor *tern_hinge_embedding_loss(tern_tensor *input, tern_tensor *target,
                                                const tern_margin_loss_options *options);
/* 1 - cos where target is 1, max(0, cos - margin) where it is -1; inputs (N, D) with target (N), or
 * (D) with (). */
TERN_API tern_tensor *tern_cosine_embedding_loss(tern_tensor *input1, tern_tensor *input2,
                                                 tern_tensor *target,
                                                 const tern_margin_loss_options *options);

typedef struct tern_triplet_margin_loss_options {
    double margin; /* more than 0; default 1 */
    double p;      /* of the distance; default 2 */
    double eps;    /* default 1e-6 */
    bool swap;     /* the negative's distance is the smaller of those to the other two */
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_triplet_margin_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_triplet_margin_loss_options tern_triplet_margin_loss_defaults(void);
/* max(0, d(anchor, positive) - d(anchor, negative) + margin): (N, D) -> (N). */
TERN_API tern_tensor *tern_triplet_margin_loss(tern_tensor *anchor, tern_tensor *positive,
                                               tern_tensor *negative,
                                               const tern_triplet_margin_loss_options *options);
/* A distance of the caller's, made of differentiable operations: (N, D), (N, D) -> (N). */
typedef tern_tensor *(*tern_distance_function)(tern_tensor *a, tern_tensor *b, void *user);
/* The same with distance, which gets user (NULL: pairwise_distance); p and eps are not used. */
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
/* weight[y] sum max(0, margin - x[y] + x[i])^p / C over the classes i but y: input (N, C) or (C),
 * target (N) or () of int64. */
TERN_API tern_tensor *tern_multi_margin_loss(tern_tensor *input, tern_tensor *target,
                                             const tern_multi_margin_loss_options *options);
/* sum max(0, 1 - (x[y] - x[i])) / C over target classes y and other classes i: input and target (N,
 * C) or (C), target int64, a row's classes up to the first -1. */
TERN_API tern_tensor *tern_multilabel_margin_loss(tern_tensor *input, tern_tensor *target,
                                                  const tern_loss_options *options);

/* ---- distances ------------------------------------------------------------------------------- */

/* x1 x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, which disappears; shapes broadcast. PyTorch's
 * defaults: dim 1, eps 1e-8. */
TERN_API tern_tensor *tern_cosine_similarity(tern_tensor *x1, tern_tensor *x2, int dim, double eps);
/* The p-norm of x1 - x2 + eps along the last dim. PyTorch's defaults: p 2, eps 1e-6. */
TERN_API tern_tensor *tern_pairwise_distance(tern_tensor *x1, tern_tensor *x2, double p, double eps,
                                             bool keepdim);
/* The p-norms of the differences of all pairs of points: (B, P, M), (B, R, M) -> (B, P, R), where B
 * broadcasts; p >= 0. Of many points and p 2 from products of matrices, else with room for all
 * differences. */
TERN_API tern_tensor *tern_cdist(tern_tensor *x1, tern_tensor *x2, double p);
/* The same of each pair of different points of one set: (N, M) -> (N (N - 1) / 2). */
TERN_API tern_tensor *tern_pdist(tern_tensor *x, double p);

TERN_END_DECLS
#endif
