/* nn/layers.h -- linear layers, embeddings, layer norm, dropout and flatten as modules. Parameters
 * start from the same distributions as PyTorch's. */
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
/* A module that computes x W^T + b: (*, in) -> (*, out). The parameters are weight (out, in) and
 * bias (out), uniform in +-1/sqrt(in) at first. */
TERN_API tern_module *tern_nn_linear(int64_t in_features, int64_t out_features,
                                     const tern_linear_options *options);

/* A module that computes x1 A x2 + b -> (*, out): tern_nn_call with {x1 (*, in1), x2 (*, in2)}. The
 * parameters are weight (out, in1, in2) and bias (out), uniform in +-1/sqrt(in1) at first. */
TERN_API tern_module *tern_nn_bilinear(int64_t in1_features, int64_t in2_features,
                                       int64_t out_features, const tern_linear_options *options);

typedef struct tern_embedding_options {
    tern_optional_int padding_idx; /* the row that starts as zeros and gets no gradient */
    double max_norm;               /* this and the next two are those of tern_embedding */
    double norm_type;
    bool scale_grad_by_freq;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_embedding_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_embedding_options tern_embedding_defaults(void);
/* A module that looks up rows: int64 or int32 (*) -> (*, embedding_dim). The parameter weight
 * (num_embeddings, embedding_dim) starts from a standard normal distribution. */
TERN_API tern_module *tern_nn_embedding(int64_t num_embeddings, int64_t embedding_dim,
                                        const tern_embedding_options *options);
/* Does the same with embeddings (num_embeddings, embedding_dim) as weight, which shares their
 * elements and has their dtype and device. With freeze the weight does not require a gradient. */
TERN_API tern_module *tern_nn_embedding_from_pretrained(tern_tensor *embeddings, bool freeze,
                                                        const tern_embedding_options *options);

typedef struct tern_embedding_bag_options {
    tern_embedding_bag_mode
        mode; /* default: the mean; this and the next fields are those of tern_embedding_bag */
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
/* A module that returns the mean, sum or maximum of the rows in each bag. The input of
 * tern_nn_forward is indices (B, N); tern_nn_call takes {indices, offsets} and for sums {indices,
 * offsets, per_sample_weights}, where offsets may be NULL. */
TERN_API tern_module *tern_nn_embedding_bag(int64_t num_embeddings, int64_t embedding_dim,
                                            const tern_embedding_bag_options *options);
/* Does the same with embeddings as weight, as tern_nn_embedding_from_pretrained. */
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
/* A module that normalises over the last dims, whose sizes are normalized_shape. The parameters are
 * weight and bias of normalized_shape, ones and zeros at first. */
TERN_API tern_module *tern_nn_layer_norm(tern_shape normalized_shape,
                                         const tern_layer_norm_options *options);

typedef struct tern_dropout_options {
    double p;     /* default 0.5; TERN_ZERO for 0 */
    bool inplace; /* write into the input, as tern_nn_inplace does */
    uint64_t reserved[4];
} tern_dropout_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_dropout_options tern_dropout_defaults(void);
/* A module that calls tern_dropout in training mode, and returns x in evaluation mode. */
TERN_API tern_module *tern_nn_dropout(const tern_dropout_options *options);
/* A module that calls tern_dropout1d in training mode, and returns x in evaluation mode. */
TERN_API tern_module *tern_nn_dropout1d(const tern_dropout_options *options);
/* A module that calls tern_dropout2d in training mode, and returns x in evaluation mode. */
TERN_API tern_module *tern_nn_dropout2d(const tern_dropout_options *options);
/* A module that calls tern_dropout3d in training mode, and returns x in evaluation mode. */
TERN_API tern_module *tern_nn_dropout3d(const tern_dropout_options *options);
/* A module that calls tern_alpha_dropout in training mode, and returns x in evaluation mode. */
TERN_API tern_module *tern_nn_alpha_dropout(const tern_dropout_options *options);
/* A module that calls tern_feature_alpha_dropout in training mode, and returns x in evaluation
 * mode. */
TERN_API tern_module *tern_nn_feature_alpha_dropout(const tern_dropout_options *options);

/* A module that flattens all dims but the first: (N, *) -> (N, product of *). */
TERN_API tern_module *tern_nn_flatten(void);
/* A module that flattens dims start_dim..end_dim (torch.nn.Flatten(start_dim, end_dim)). */
TERN_API tern_module *tern_nn_flatten_dims(int start_dim, int end_dim);
/* A module that splits dim `dim` into dims of these sizes, one of which may be -1. */
TERN_API tern_module *tern_nn_unflatten(int dim, tern_shape unflattened_size);
/* A module that returns x itself. */
TERN_API tern_module *tern_nn_identity(void);

TERN_END_DECLS
#endif
