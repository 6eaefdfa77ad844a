/* ops/functional.h -- what torch.nn.functional has: softmax, norms, embedding, dropout, losses. */
#ifndef TERN_OPS_FUNCTIONAL_H
#define TERN_OPS_FUNCTIONAL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Over dim; all -inf gives NaN, as in PyTorch. Floating point types only. */
TERN_API tern_tensor *tern_softmax(tern_tensor *x, int dim);
TERN_API tern_tensor *tern_log_softmax(tern_tensor *x, int dim);
TERN_API tern_tensor *tern_softmin(tern_tensor *x, int dim); /* softmax of -x */

/* Over the last dims, normalized_shape: (x - mean) / sqrt(var + eps) weight + bias; weight and bias
 * of that shape, or NULL. eps: PyTorch's default is 1e-5. (Ba, Kiros, Hinton 2016.) */
TERN_API tern_tensor *tern_layer_norm(tern_tensor *x, tern_shape normalized_shape,
                                      tern_tensor *weight, tern_tensor *bias, double eps);

typedef struct tern_embedding_function_options {
    tern_optional_int padding_idx; /* this row gets no gradient; negative counts from the end */
    double max_norm;               /* > 0: rows that are looked up and whose norm is larger are
                                    * scaled to it, in weight itself; TERN_ZERO for 0 */
    double norm_type;              /* of that norm; default 2 */
    bool scale_grad_by_freq;       /* gradients by how often their index is there */
    uint64_t reserved[4];
} tern_embedding_function_options;

/* Rows of weight (rows, width) by indices (*), int64 or int32 -> (*, width). */
TERN_API tern_tensor *tern_embedding(tern_tensor *indices, tern_tensor *weight,
                                     const tern_embedding_function_options *options);

typedef enum tern_embedding_bag_mode {
    TERN_EMBEDDING_BAG_MEAN = 0,
    TERN_EMBEDDING_BAG_SUM,
    TERN_EMBEDDING_BAG_MAX
} tern_embedding_bag_mode;

typedef struct tern_embedding_bag_function_options {
    tern_embedding_bag_mode mode;
    tern_tensor *per_sample_weights; /* a factor for each index, for sums; of weight's type */
    bool include_last_offset;        /* the last offset is the end of the last bag */
    tern_optional_int padding_idx;   /* its row is left out of bags, too */
    double max_norm, norm_type;      /* as of embedding */
    bool scale_grad_by_freq;         /* not of maxima */
    uint64_t reserved[4];
} tern_embedding_bag_function_options;

/* The mean, sum or maximum of rows of weight (rows, width), without room for them: of each row of
 * indices (B, N), offsets NULL; or of indices (N) from each of offsets (B) to the next. int64 or
 * int32 -> (B, width), zeros for an empty bag. */
TERN_API tern_tensor *tern_embedding_bag(tern_tensor *indices, tern_tensor *weight,
                                         tern_tensor *offsets,
                                         const tern_embedding_bag_function_options *options);

/* Zero with probability p and scaled by 1 / (1 - p), when training; else x itself. */
TERN_API tern_tensor *tern_dropout(tern_tensor *x, double p, bool training);
/* The same of whole channels of x (N, C, *): dropout1d of (N, C, L) or (C, L), dropout2d of any
 * (N, C, *), dropout3d of (N, C, D, H, W) or without N (Tompson et al. 2015). */
TERN_API tern_tensor *tern_dropout1d(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_dropout2d(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_dropout3d(tern_tensor *x, double p, bool training);
/* What is dropped becomes selu's value at -infinity, and all is scaled so that mean 0 and variance
 * 1 stay (Klambauer et al. 2017): elements, and whole channels. */
TERN_API tern_tensor *tern_alpha_dropout(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_feature_alpha_dropout(tern_tensor *x, double p, bool training);
/* The same in x itself, which is returned; they draw the same numbers. */
TERN_API tern_tensor *tern_dropout_(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_dropout1d_(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_dropout2d_(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_dropout3d_(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_alpha_dropout_(tern_tensor *x, double p, bool training);
TERN_API tern_tensor *tern_feature_alpha_dropout_(tern_tensor *x, double p, bool training);

typedef enum tern_reduction {
    TERN_REDUCTION_MEAN = 0,
    TERN_REDUCTION_SUM,
    TERN_REDUCTION_NONE,
    TERN_REDUCTION_BATCHMEAN /* of tern_kl_div alone */
} tern_reduction;

typedef struct tern_cross_entropy_options {
    tern_tensor *weight;            /* (C): of each class */
    tern_optional_int ignore_index; /* default -100 */
    tern_reduction reduction;
    double label_smoothing; /* 0..1 */
    uint64_t reserved[4];
} tern_cross_entropy_options;

/* Of logits (N, C), (C) or (N, C, d1, ...) against class indices (N), () or (N, d1, ...) of int64,
 * or probabilities of the shape of the logits. */
TERN_API tern_tensor *tern_cross_entropy(tern_tensor *input, tern_tensor *target,
                                         const tern_cross_entropy_options *options);

typedef struct tern_loss_options {
    tern_reduction reduction;
    uint64_t reserved[4];
} tern_loss_options;

/* (input - target) squared; shapes broadcast. */
TERN_API tern_tensor *tern_mse_loss(tern_tensor *input, tern_tensor *target,
                                    const tern_loss_options *options);

TERN_END_DECLS
#endif
