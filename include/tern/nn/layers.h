/* nn/layers.h -- layers with parameters, and dropout. Initial values have
 * PyTorch's distributions. */
#ifndef TERN_NN_LAYERS_H
#define TERN_NN_LAYERS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_linear_options {
    bool no_bias;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_linear_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_linear_options tern_linear_defaults(void);
/* x W^T + b: (*, in) -> (*, out); weight (out, in), bias (out), uniform in +-1/sqrt(in). */
TERN_API tern_module *tern_nn_linear(int64_t in_features, int64_t out_features,
                                     const tern_linear_options *options);

/* tern_nn_call with {x1 (*, in1), x2 (*, in2)} gives x1 A x2 + b (*, out): weight (out, in1, in2),
 * bias (out), uniform in +-1/sqrt(in1). */
TERN_API tern_module *tern_nn_bilinear(int64_t in1_features, int64_t in2_features,
                                       int64_t out_features, const tern_linear_options *options);

typedef struct tern_embedding_options {
    tern_optional_int padding_idx; /* its row starts as zeros and gets no gradient */
    double max_norm;               /* this and the next two: see tern_embedding */
    double norm_type;
    bool scale_grad_by_freq;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_embedding_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_embedding_options tern_embedding_defaults(void);
/* (*) integers -> (*, embedding_dim); weight (num_embeddings, embedding_dim), standard normal. */
TERN_API tern_module *tern_nn_embedding(int64_t num_embeddings, int64_t embedding_dim,
                                        const tern_embedding_options *options);
/* The same with embeddings (num_embeddings, embedding_dim) as weight, which shares their elements;
 * freeze: it does not ask for a gradient. dtype and device are theirs. */
TERN_API tern_module *tern_nn_embedding_from_pretrained(tern_tensor *embeddings, bool freeze,
                                                        const tern_embedding_options *options);

typedef struct tern_embedding_bag_options {
    tern_embedding_bag_mode
        mode; /* default the mean; this and the others: see tern_embedding_bag */
    bool include_last_offset;
    tern_optional_int padding_idx;
    double max_norm, norm_type;
    bool scale_grad_by_freq;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_embedding_bag_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_embedding_bag_options tern_embedding_bag_defaults(void);
/* Bags of rows of weight, as above: indices (B, N), or by tern_nn_call indices, offsets and, of
 * sums, per_sample_weights; the last may be left out, offsets be NULL. */
TERN_API tern_module *tern_nn_embedding_bag(int64_t num_embeddings, int64_t embedding_dim,
                                            const tern_embedding_bag_options *options);
/* The same with embeddings as weight, as tern_nn_embedding_from_pretrained. */
TERN_API tern_module *tern_nn_embedding_bag_from_pretrained(
    tern_tensor *embeddings, bool freeze, const tern_embedding_bag_options *options);

typedef struct tern_layer_norm_options {
    double eps; /* default 1e-5 */
    bool no_elementwise_affine, no_bias;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_layer_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_layer_norm_options tern_layer_norm_defaults(void);
/* Over the last dims; parameters weight and bias of normalized_shape, ones and zeros at first. */
TERN_API tern_module *tern_nn_layer_norm(tern_shape normalized_shape,
                                         const tern_layer_norm_options *options);

typedef struct tern_dropout_options {
    double p;     /* default 0.5; TERN_ZERO for 0 */
    bool inplace; /* see tern_nn_inplace */
    uint64_t reserved[4];
} tern_dropout_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_dropout_options tern_dropout_defaults(void);
/* In training only; ops/random.h says what each does. */
TERN_API tern_module *tern_nn_dropout(const tern_dropout_options *options);
/* tern_dropout1d. */
TERN_API tern_module *tern_nn_dropout1d(const tern_dropout_options *options);
/* tern_dropout2d. */
TERN_API tern_module *tern_nn_dropout2d(const tern_dropout_options *options);
/* tern_dropout3d. */
TERN_API tern_module *tern_nn_dropout3d(const tern_dropout_options *options);
/* tern_alpha_dropout. */
TERN_API tern_module *tern_nn_alpha_dropout(const tern_dropout_options *options);
/* tern_feature_alpha_dropout. */
TERN_API tern_module *tern_nn_feature_alpha_dropout(const tern_dropout_options *options);

/* (N, *) -> (N, product of *). */
TERN_API tern_module *tern_nn_flatten(void);
/* torch.nn.Flatten(start_dim, end_dim) */
TERN_API tern_module *tern_nn_flatten_dims(int start_dim, int end_dim);
/* Dim `dim` as these sizes, of which one may be -1. */
TERN_API tern_module *tern_nn_unflatten(int dim, tern_shape unflattened_size);
/* Gives x itself. */
TERN_API tern_module *tern_nn_identity(void);

TERN_END_DECLS
#endif
