/* nn/loss.h -- losses as modules; ops/loss.h has the functions that they call. tern_nn_loss calls a
 * loss of two tensors. tern_nn_call calls one of more tensors, which come in the order of the
 * function's arguments. Weights in the options are kept as buffers of the same names, which move
 * with tern_nn_to. */
#ifndef TERN_NN_LOSS_H
#define TERN_NN_LOSS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* A module that calls tern_mse_loss. */
TERN_API tern_module *tern_nn_mse_loss(const tern_loss_options *options);
/* A module that calls tern_cross_entropy. options->weight is kept as the buffer "weight". */
TERN_API tern_module *tern_nn_cross_entropy_loss(const tern_cross_entropy_options *options);

/* A module that calls tern_l1_loss. */
TERN_API tern_module *tern_nn_l1_loss(const tern_loss_options *options);
/* A module that calls tern_smooth_l1_loss. */
TERN_API tern_module *tern_nn_smooth_l1_loss(const tern_smooth_l1_loss_options *options);
/* A module that calls tern_huber_loss. */
TERN_API tern_module *tern_nn_huber_loss(const tern_huber_loss_options *options);
/* A module that calls tern_poisson_nll_loss. */
TERN_API tern_module *tern_nn_poisson_nll_loss(const tern_poisson_nll_loss_options *options);
/* A module that calls tern_gaussian_nll_loss on three tensors. */
TERN_API tern_module *tern_nn_gaussian_nll_loss(const tern_gaussian_nll_loss_options *options);
/* A module that calls tern_kl_div. */
TERN_API tern_module *tern_nn_kl_div_loss(const tern_kl_div_options *options);
/* A module that calls tern_binary_cross_entropy. */
TERN_API tern_module *tern_nn_bce_loss(const tern_weighted_loss_options *options);
/* A module that calls tern_binary_cross_entropy_with_logits. */
TERN_API tern_module *tern_nn_bce_with_logits_loss(
    const tern_binary_cross_entropy_with_logits_options *options);
/* A module that calls tern_nll_loss. */
TERN_API tern_module *tern_nn_nll_loss(const tern_nll_loss_options *options);
/* A module that calls tern_ctc_loss on four tensors. */
TERN_API tern_module *tern_nn_ctc_loss(const tern_ctc_loss_options *options);
/* A module that calls tern_soft_margin_loss. */
TERN_API tern_module *tern_nn_soft_margin_loss(const tern_loss_options *options);
/* A module that calls tern_margin_ranking_loss on three tensors. */
TERN_API tern_module *tern_nn_margin_ranking_loss(const tern_margin_loss_options *options);
/* A module that calls tern_hinge_embedding_loss. */
TERN_API tern_module *tern_nn_hinge_embedding_loss(const tern_margin_loss_options *options);
/* A module that calls tern_cosine_embedding_loss on three tensors. */
TERN_API tern_module *tern_nn_cosine_embedding_loss(const tern_margin_loss_options *options);
/* A module that calls tern_triplet_margin_loss on three tensors. */
TERN_API tern_module *tern_nn_triplet_margin_loss(const tern_triplet_margin_loss_options *options);
/* A module that calls tern_triplet_margin_with_distance_loss on three tensors. */
TERN_API tern_module *tern_nn_triplet_margin_with_distance_loss(
    tern_distance_function distance, void *user, const tern_triplet_margin_loss_options *options);
/* A module that calls tern_multi_margin_loss. */
TERN_API tern_module *tern_nn_multi_margin_loss(const tern_multi_margin_loss_options *options);
/* A module that calls tern_multilabel_margin_loss. */
TERN_API tern_module *tern_nn_multi_label_margin_loss(const tern_loss_options *options);
/* A module that calls tern_multilabel_soft_margin_loss. */
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
/* A module that calls tern_cosine_similarity on two tensors, by tern_nn_call. */
TERN_API tern_module *tern_nn_cosine_similarity(const tern_cosine_similarity_options *options);
typedef struct tern_pairwise_distance_options {
    double p;   /* default 2 */
    double eps; /* default 1e-6 */
    bool keepdim;
    uint64_t reserved[4];
} tern_pairwise_distance_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pairwise_distance_options tern_pairwise_distance_defaults(void);
/* A module that calls tern_pairwise_distance on two tensors, by tern_nn_call. */
TERN_API tern_module *tern_nn_pairwise_distance(const tern_pairwise_distance_options *options);

typedef struct tern_adaptive_log_softmax_with_loss_options {
    double div_value; /* default 4: the ratio of the width of a cluster to that of the next one */
    bool head_bias;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_adaptive_log_softmax_with_loss_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_adaptive_log_softmax_with_loss_options
tern_adaptive_log_softmax_with_loss_defaults(void);
/* A module for a softmax over many classes, which are ordered by frequency (Grave et al. 2017). The
 * cutoffs, at most 11, divide the classes into the most frequent ones ("head") and clusters
 * ("tail"). tern_nn_call with input (N, in_features) and target (N), or both without N, gives {the
 * log probability of each target (N), the loss}; with one result it gives the loss. It waits for
 * the device, because the host reads how many rows each cluster has. */
TERN_API tern_module *tern_nn_adaptive_log_softmax_with_loss(
    int64_t in_features, int64_t n_classes, tern_shape cutoffs,
    const tern_adaptive_log_softmax_with_loss_options *options);
/* Returns the log probabilities of all classes (N, n_classes) for x (N, in_features). */
TERN_API tern_tensor *tern_nn_adaptive_log_softmax_log_prob(tern_module *m, tern_tensor *x);
/* Returns the most probable class of each row of x (N, in_features) -> (N). */
TERN_API tern_tensor *tern_nn_adaptive_log_softmax_predict(tern_module *m, tern_tensor *x);

TERN_END_DECLS
#endif
