/* nn/norm.h -- normalisation as modules; see ops/norm.h for what they compute. */
#ifndef TERN_NN_NORM_H
#define TERN_NN_NORM_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_batch_norm_options {
    double eps;                  /* default 1e-5 */
    double momentum;             /* default 0.1; TERN_ZERO for 0 */
    bool cumulative;             /* momentum=None: the average of all batches so far; waits for the
                                  * device at each step in training */
    bool no_affine;              /* no weight, no bias */
    bool no_track_running_stats; /* statistics of the batch in evaluation too */
    bool no_bias;                /* a weight alone */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_batch_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_batch_norm_options tern_batch_norm_defaults(void);

/* Of (N, C) or (N, C, L). Parameters weight and bias (C), ones and
 * zeros at first; buffers running_mean, running_var (C) and num_batches_tracked (int64). */
TERN_API tern_module *tern_nn_batch_norm1d(int64_t num_features,
                                           const tern_batch_norm_options *options);
/* Of (N, C, H, W). */
TERN_API tern_module *tern_nn_batch_norm2d(int64_t num_features,
                                           const tern_batch_norm_options *options);
/* Of (N, C, D, H, W). */
TERN_API tern_module *tern_nn_batch_norm3d(int64_t num_features,
                                           const tern_batch_norm_options *options);

typedef struct tern_group_norm_options {
    double eps; /* default 1e-5 */
    bool no_affine;
    bool no_bias; /* a weight alone */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_group_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_group_norm_options tern_group_norm_defaults(void);
/* (N, C, *) with parameters weight and bias (C). */
TERN_API tern_module *tern_nn_group_norm(int64_t num_groups, int64_t num_channels,
                                         const tern_group_norm_options *options);

typedef struct tern_instance_norm_options {
    double eps;               /* default 1e-5 */
    double momentum;          /* default 0.1; TERN_ZERO for 0 */
    bool affine;              /* weight and bias */
    bool track_running_stats; /* running statistics, used in evaluation */
    bool no_bias;             /* with affine: a weight alone */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_instance_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_instance_norm_options tern_instance_norm_defaults(void);
/* Of (N, C, L), also without N; names as batch norm's. */
TERN_API tern_module *tern_nn_instance_norm1d(int64_t num_features,
                                              const tern_instance_norm_options *options);
/* Of (N, C, H, W). */
TERN_API tern_module *tern_nn_instance_norm2d(int64_t num_features,
                                              const tern_instance_norm_options *options);
/* Of (N, C, D, H, W). */
TERN_API tern_module *tern_nn_instance_norm3d(int64_t num_features,
                                              const tern_instance_norm_options *options);

typedef struct tern_rms_norm_options {
    double eps; /* default: the smallest step from 1 in the input's type, which -1 is */
    bool no_elementwise_affine;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_rms_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rms_norm_options tern_rms_norm_defaults(void);
/* Over the last dims; parameter weight of normalized_shape. */
TERN_API tern_module *tern_nn_rms_norm(tern_shape normalized_shape,
                                       const tern_rms_norm_options *options);

typedef struct tern_local_response_norm_options {
    double alpha, beta, k; /* default 1e-4, 0.75, 1; TERN_ZERO for 0 */
    uint64_t reserved[4];
} tern_local_response_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_local_response_norm_options tern_local_response_norm_defaults(void);
/* (N, C, *) */
TERN_API tern_module *tern_nn_local_response_norm(int64_t size,
                                                  const tern_local_response_norm_options *options);

/* ---- parameters made of others (torch.nn.utils) --------------------------------------------
 * m's own parameter `name` (NULL: "weight") becomes one that is worked out before each forward.
 * Make the optimizer afterwards. Return m. The removing ones make it a parameter again, with the
 * value it has. */

/* name_g v / ||name_v|| of the new parameters "<name>_g" and "<name>_v" (Salimans, Kingma 2016).
 * The norm is over all dims but dim (PyTorch's default: 0); -1: over all. */
TERN_API tern_module *tern_nn_weight_norm(tern_module *m, const char *name, int dim);
/* A plain parameter again. */
TERN_API tern_module *tern_nn_remove_weight_norm(tern_module *m, const char *name);

typedef struct tern_spectral_norm_options {
    int n_power_iterations; /* of each forward in training; default 1 */
    double eps;             /* default 1e-12 */
    int dim;                /* of the outputs: 1 for transposed convolutions */
    uint64_t reserved[4];
} tern_spectral_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_spectral_norm_options tern_spectral_norm_defaults(void);
/* The parameter "<name>_orig" divided by its largest singular value, which power iterations
 * estimate (buffers "<name>_u", "<name>_v"; Miyato et al. 2018). */
TERN_API tern_module *tern_nn_spectral_norm(tern_module *m, const char *name,
                                            const tern_spectral_norm_options *options);
/* A plain parameter again. */
TERN_API tern_module *tern_nn_remove_spectral_norm(tern_module *m, const char *name);

TERN_END_DECLS
#endif
