/* loss_modules.c -- losses and distances as modules, called with input, target and further
 * tensors. */
#include "nn/layers/layer.h"

/* Checks the number of inputs and outputs of a call. */
static tern_status check_count(const char *name, int n, int takes, int k)
{
    if (n == takes && k == 1)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT,
                     "tern_nn_call: %s takes %d tensors and gives one, not %d and %d", name, takes,
                     n, k);
}

/* Defines tern_nn_<ID>, a module that calls Y with its inputs and its options o. */
#define LOSS(ID, NAME, TAKES, OPTIONS, Y)                                                          \
    static tern_status ID##_call(tern_module *self, tern_tensor *const *in, int n,                 \
                                 tern_tensor **out, int k)                                         \
    {                                                                                              \
        const OPTIONS *o = tern_nn_data(self);                                                     \
        TERN_TRY(check_count(NAME, n, TAKES, k));                                                  \
        out[0] = Y;                                                                                \
        return out[0] ? TERN_OK : tern_last_status();                                              \
    }                                                                                              \
    tern_module *tern_nn_##ID(const OPTIONS *options)                                              \
    {                                                                                              \
        OPTIONS o = options ? *options : (OPTIONS){0};                                             \
        return tern_layer_loss(NAME, ID##_call, &o, sizeof o);                                     \
    }
LOSS(l1_loss, "L1Loss", 2, tern_loss_options, tern_l1_loss(in[0], in[1], o))
LOSS(smooth_l1_loss, "SmoothL1Loss", 2, tern_smooth_l1_loss_options,
     tern_smooth_l1_loss(in[0], in[1], o))
LOSS(huber_loss, "HuberLoss", 2, tern_huber_loss_options, tern_huber_loss(in[0], in[1], o))
LOSS(poisson_nll_loss, "PoissonNLLLoss", 2, tern_poisson_nll_loss_options,
     tern_poisson_nll_loss(in[0], in[1], o))
LOSS(gaussian_nll_loss, "GaussianNLLLoss", 3, tern_gaussian_nll_loss_options,
     tern_gaussian_nll_loss(in[0], in[1], in[2], o))
LOSS(kl_div_loss, "KLDivLoss", 2, tern_kl_div_options, tern_kl_div(in[0], in[1], o))
LOSS(ctc_loss, "CTCLoss", 4, tern_ctc_loss_options, tern_ctc_loss(in[0], in[1], in[2], in[3], o))
LOSS(soft_margin_loss, "SoftMarginLoss", 2, tern_loss_options,
     tern_soft_margin_loss(in[0], in[1], o))
LOSS(margin_ranking_loss, "MarginRankingLoss", 3, tern_margin_loss_options,
     tern_margin_ranking_loss(in[0], in[1], in[2], o))
LOSS(hinge_embedding_loss, "HingeEmbeddingLoss", 2, tern_margin_loss_options,
     tern_hinge_embedding_loss(in[0], in[1], o))
LOSS(cosine_embedding_loss, "CosineEmbeddingLoss", 3, tern_margin_loss_options,
     tern_cosine_embedding_loss(in[0], in[1], in[2], o))
LOSS(triplet_margin_loss, "TripletMarginLoss", 3, tern_triplet_margin_loss_options,
     tern_triplet_margin_loss(in[0], in[1], in[2], o))
LOSS(multi_label_margin_loss, "MultiLabelMarginLoss", 2, tern_loss_options,
     tern_multilabel_margin_loss(in[0], in[1], o))

static tern_tensor *cosine_similarity(tern_tensor *const *in,
                                      const tern_cosine_similarity_options *options)
{
    const tern_cosine_similarity_options o = tern_read_cosine_similarity(options);
    return tern_cosine_similarity(in[0], in[1], (int)o.dim.value, o.eps);
}

static tern_tensor *pairwise_distance(tern_tensor *const *in,
                                      const tern_pairwise_distance_options *options)
{
    const tern_pairwise_distance_options o = tern_read_pairwise_distance(options);
    return tern_pairwise_distance(in[0], in[1], o.p, o.eps, o.keepdim);
}
LOSS(cosine_similarity, "CosineSimilarity", 2, tern_cosine_similarity_options,
     cosine_similarity(in, o))
LOSS(pairwise_distance, "PairwiseDistance", 2, tern_pairwise_distance_options,
     pairwise_distance(in, o))

/* Defines the same with the tensor options->weight, which becomes the buffer "weight". */
#define WEIGHTED(ID, NAME, OPTIONS, FUNCTION)                                                      \
    static tern_status ID##_call(tern_module *self, tern_tensor *const *in, int n,                 \
                                 tern_tensor **out, int k)                                         \
    {                                                                                              \
        OPTIONS o = *(const OPTIONS *)tern_nn_data(self);                                          \
        TERN_TRY(check_count(NAME, n, 2, k));                                                      \
        o.weight = tern_nn_buffer(self, "weight");                                                 \
        out[0] = FUNCTION(in[0], in[1], &o);                                                       \
        return out[0] ? TERN_OK : tern_last_status();                                              \
    }                                                                                              \
    tern_module *tern_nn_##ID(const OPTIONS *options)                                              \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        OPTIONS o = options ? *options : (OPTIONS){0};                                             \
        tern_tensor *weight = o.weight;                                                            \
        o.weight = NULL;                                                                           \
        tern_module *m = tern_layer_loss(NAME, ID##_call, &o, sizeof o);                           \
        return tern_layer_if(m, m ? tern_layer_buffer(m, "weight", weight) : tern_last_status());  \
    }
WEIGHTED(bce_loss, "BCELoss", tern_weighted_loss_options, tern_binary_cross_entropy)
WEIGHTED(nll_loss, "NLLLoss", tern_nll_loss_options, tern_nll_loss)
WEIGHTED(multi_label_soft_margin_loss, "MultiLabelSoftMarginLoss", tern_weighted_loss_options,
         tern_multilabel_soft_margin_loss)
WEIGHTED(multi_margin_loss, "MultiMarginLoss", tern_multi_margin_loss_options,
         tern_multi_margin_loss)

/* ---- losses with two tensors or a function of the caller ------------------------------------- */

static tern_status bce_with_logits_call(tern_module *self, tern_tensor *const *in, int n,
                                        tern_tensor **out, int k)
{
    tern_binary_cross_entropy_with_logits_options o =
        *(const tern_binary_cross_entropy_with_logits_options *)tern_nn_data(self);
    TERN_TRY(check_count("BCEWithLogitsLoss", n, 2, k));
    o.weight = tern_nn_buffer(self, "weight");
    o.pos_weight = tern_nn_buffer(self, "pos_weight");
    out[0] = tern_binary_cross_entropy_with_logits(in[0], in[1], &o);
    return out[0] ? TERN_OK : tern_last_status();
}

tern_module *tern_nn_bce_with_logits_loss(
    const tern_binary_cross_entropy_with_logits_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_binary_cross_entropy_with_logits_options o =
        options ? *options : (tern_binary_cross_entropy_with_logits_options){0};
    tern_tensor *weight = o.weight, *pos_weight = o.pos_weight;
    o.weight = o.pos_weight = NULL;
    tern_module *m = tern_layer_loss("BCEWithLogitsLoss", bce_with_logits_call, &o, sizeof o);
    tern_status status = m ? tern_layer_buffer(m, "weight", weight) : tern_last_status();
    if (status == TERN_OK)
        status = tern_layer_buffer(m, "pos_weight", pos_weight);
    return tern_layer_if(m, status);
}

typedef struct triplet {
    tern_triplet_margin_loss_options options;
    tern_distance_function distance;
    void *user;
} triplet;

static tern_status triplet_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                                int k)
{
    const triplet *t = tern_nn_data(self);
    TERN_TRY(check_count("TripletMarginWithDistanceLoss", n, 3, k));
    out[0] = tern_triplet_margin_with_distance_loss(in[0], in[1], in[2], t->distance, t->user,
                                                    &t->options);
    return out[0] ? TERN_OK : tern_last_status();
}

tern_module *tern_nn_triplet_margin_with_distance_loss(
    tern_distance_function distance, void *user, const tern_triplet_margin_loss_options *options)
{
    triplet t = {.distance = distance, .user = user};
    if (options)
        t.options = *options;
    return tern_layer_loss("TripletMarginWithDistanceLoss", triplet_call, &t, sizeof t);
}
