/* nn/loss.h -- losses as modules: their tensors move with tern_nn_to. Call them
 * with tern_nn_loss. */
#ifndef TERN_NN_LOSS_H
#define TERN_NN_LOSS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* tern_mse_loss. */
TERN_API tern_module *tern_nn_mse_loss(const tern_loss_options *options);
/* Keeps options->weight as the buffer "weight". */
TERN_API tern_module *tern_nn_cross_entropy_loss(const tern_cross_entropy_options *options);

/* ops/loss.h says what these compute. Those of two tensors take them by tern_nn_loss, the others by
 * tern_nn_call, in the order of the functions. Weights in the options are kept as buffers of their
 * names. */
TERN_API tern_module *tern_nn_l1_loss(const tern_loss_options *options);
/* tern_smooth_l1_loss. */
TERN_API tern_module *tern_nn_smooth_l1_loss(const tern_smooth_l1_loss_options *options);
/* tern_huber_loss. */
TERN_API tern_module *tern_nn_huber_loss(const tern_huber_loss_options *options);
/* tern_poisson_nll_loss. */
TERN_API tern_module *tern_nn_poisson_nll_loss(const tern_poisson_nll_loss_options *options);
/* tern_gaussian_nll_loss, of three tensors. */
TERN_API tern_module *tern_nn_gaussian_nll_loss(const tern_gaussian_nll_loss_options *options);
/* tern_kl_div. */
TERN_API tern_module *tern_nn_kl_div_loss(const tern_kl_div_options *options);
/* tern_binary_cross_entropy. */
TERN_API tern_module *tern_nn_bce_loss(const tern_weighted_loss_options *options);
/* tern_binary_cross_entropy_with_logits. */
TERN_API tern_module *tern_nn_bce_with_logits_loss(
    const tern_binary_cross_entropy_with_logits_options *options);
/* tern_nll_loss. */
TERN_API tern_module *tern_nn_nll_loss(const tern_nll_loss_options *options);
/* tern_ctc_loss, of four tensors. */
TERN_API tern_module *tern_nn_ctc_loss(const tern_ctc_loss_options *options);
/* tern_soft_margin_loss. */
TERN_API tern_module *tern_nn_soft_margin_loss(const tern_loss_options *options);
/* tern_margin_ranking_loss, of three tensors. */
TERN_API tern_module *tern_nn_margin_ranking_loss(const tern_margin_loss_options *options);
/* tern_hinge_embedding_loss. */
TERN_API tern_module *tern_nn_hinge_embedding_loss(const tern_margin_loss_options *options);
/* tern_cosine_embedding_loss, of three tensors. */
TERN_API tern_module *tern_nn_cosine_embedding_loss(const tern_margin_loss_options *options);
/* tern_triplet_margin_loss, of three tensors. */
TERN_API tern_module *tern_nn_triplet_margin_loss(const tern_triplet_margin_loss_options *options);
/* tern_triplet_margin_with_distance_loss, of three tensors. */
TERN_API tern_module *tern_nn_triplet_margin_with_distance_loss(
    tern_distance_function distance, void *user, const tern_triplet_margin_loss_options *options);
/* tern_multi_margin_loss. */
TERN_API tern_module *tern_nn_multi_margin_loss(const tern_multi_margin_loss_options *options);
/* tern_multilabel_margin_loss. */
TERN_API tern_module *tern_nn_multi_label_margin_loss(const tern_loss_options *options);
/* tern_multilabel_soft_margin_loss. */
TERN_API tern_module *tern_nn_multi_label_soft_margin_loss(
    const tern_weighted_loss_options *options);

/* ---- distances ----------------------------------------------------------------------------- */
typedef struct tern_cosine_similarity_options {
    tern_optional_int dim; /* default 1 */
    double eps;            /* default 1e-8 */
    uint64_t reserved[4];
} tern_cosine_similarity_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_cosine_similarity_options tern_cosine_similarity_defaults(void);
/* tern_cosine_similarity of two tensors, by tern_nn_call. */
TERN_API tern_module *tern_nn_cosine_similarity(const tern_cosine_similarity_options *options);
typedef struct tern_pairwise_distance_options {
    double p;   /* default 2 */
    double eps; /* default 1e-6 */
    bool keepdim;
    uint64_t reserved[4];
} tern_pairwise_distance_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pairwise_distance_options tern_pairwise_distance_defaults(void);
/* tern_pairwise_distance of two tensors, by tern_nn_call. */
TERN_API tern_module *tern_nn_pairwise_distance(const tern_pairwise_distance_options *options);

typedef struct tern_adaptive_log_softmax_with_loss_options {
    double div_value; /* default 4: of each cluster's width to the next one's */
    bool head_bias;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_adaptive_log_softmax_with_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_adaptive_log_softmax_with_loss_options
tern_adaptive_log_softmax_with_loss_defaults(void);
/* A softmax of n_classes in the order of their frequency, cut into a head and clusters at cutoffs,
 * 11 of them at most (Grave et al. 2017): "head" and "tail". tern_nn_call with input (N,
 * in_features) and target (N), or without N, gives {each target's log probability (N), the loss},
 * or the loss alone. Waits for the device: the rows of each cluster are counted. */
TERN_API tern_module *tern_nn_adaptive_log_softmax_with_loss(
    int64_t in_features, int64_t n_classes, tern_shape cutoffs,
    const tern_adaptive_log_softmax_with_loss_options *options);
/* Of x (N, in_features): the log probabilities of all classes (N, n_classes); the likeliest one
 * (N). */
TERN_API tern_tensor *tern_nn_adaptive_log_softmax_log_prob(tern_module *m, tern_tensor *x);
/* The likeliest class of each row (N). */
TERN_API tern_tensor *tern_nn_adaptive_log_softmax_predict(tern_module *m, tern_tensor *x);

TERN_END_DECLS
#endif
