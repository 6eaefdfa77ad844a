/* nn/norm.h -- normalisation as modules; ops/norm.h has the functions that they call. */
#ifndef TERN_NN_NORM_H
#define TERN_NN_NORM_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_batch_norm_options {
    double eps;      /* default 1e-5 */
    double momentum; /* default 0.1; TERN_ZERO for 0 */
    bool cumulative; /* momentum=None: the average of all batches so far; each step in training
                      * waits for the device */
    bool no_affine;  /* without the parameters weight and bias */
    bool no_track_running_stats; /* use the statistics of the batch in evaluation too */
    bool no_bias;                /* a weight alone */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_batch_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_batch_norm_options tern_batch_norm_defaults(void);

/* A module that normalises the channels of (N, C) or (N, C, L). The parameters are weight and bias
 * (C), ones and zeros at first; the buffers are running_mean and running_var (C) and
 * num_batches_tracked (int64). */
TERN_API tern_module *tern_nn_batch_norm1d(int64_t num_features,
                                           const tern_batch_norm_options *options);
/* A module that normalises the channels of (N, C, H, W), with the same parameters and buffers. */
TERN_API tern_module *tern_nn_batch_norm2d(int64_t num_features,
                                           const tern_batch_norm_options *options);
/* A module that normalises the channels of (N, C, D, H, W), with the same parameters and
 * buffers. */
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
/* A module that normalises groups of channels of (N, C, *), with the parameters weight and bias
 * (C), ones and zeros at first. */
TERN_API tern_module *tern_nn_group_norm(int64_t num_groups, int64_t num_channels,
                                         const tern_group_norm_options *options);

typedef struct tern_instance_norm_options {
    double eps;               /* default 1e-5 */
    double momentum;          /* default 0.1; TERN_ZERO for 0 */
    bool affine;              /* with the parameters weight and bias */
    bool track_running_stats; /* keep running statistics, and use them in evaluation */
    bool no_bias;             /* with affine: without bias */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_instance_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_instance_norm_options tern_instance_norm_defaults(void);
/* A module that normalises each channel of each item of (N, C, L) or (C, L). Parameters and buffers
 * have the names of batch norm's. */
TERN_API tern_module *tern_nn_instance_norm1d(int64_t num_features,
                                              const tern_instance_norm_options *options);
/* A module that normalises each channel of each item of (N, C, H, W) or (C, H, W). */
TERN_API tern_module *tern_nn_instance_norm2d(int64_t num_features,
                                              const tern_instance_norm_options *options);
/* A module that normalises each channel of each item of (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_module *tern_nn_instance_norm3d(int64_t num_features,
                                              const tern_instance_norm_options *options);

typedef struct tern_rms_norm_options {
    double eps; /* default (and -1): the distance from 1 to the next larger number of the input's
                 * dtype */
    bool no_elementwise_affine;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_rms_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rms_norm_options tern_rms_norm_defaults(void);
/* A module that normalises over the last dims, whose sizes are normalized_shape. The parameter is
 * weight of normalized_shape, ones at first. */
TERN_API tern_module *tern_nn_rms_norm(tern_shape normalized_shape,
                                       const tern_rms_norm_options *options);

typedef struct tern_local_response_norm_options {
    double alpha, beta, k; /* default 1e-4, 0.75, 1; TERN_ZERO for 0 */
    uint64_t reserved[4];
} tern_local_response_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_local_response_norm_options tern_local_response_norm_defaults(void);
/* A module that calls tern_local_response_norm on (N, C, *). */
TERN_API tern_module *tern_nn_local_response_norm(int64_t size,
                                                  const tern_local_response_norm_options *options);

/* ---- parameters that are computed from others (torch.nn.utils) ----------------------------------
 * These replace m's own parameter `name` (NULL: "weight") by new parameters, from which it is
 * computed before each forward. Create the optimizer afterwards. They return m. The functions that
 * undo this make it a parameter again, with its current value. */

/* Computes the weight as name_g v / ||name_v|| from the new parameters "<name>_g" and "<name>_v"
 * (Salimans, Kingma 2016). The norm is over all dims but dim (PyTorch's default: 0), and over all
 * dims if dim is -1. */
TERN_API tern_module *tern_nn_weight_norm(tern_module *m, const char *name, int dim);
/* Undoes tern_nn_weight_norm. */
TERN_API tern_module *tern_nn_remove_weight_norm(tern_module *m, const char *name);

typedef struct tern_spectral_norm_options {
    int n_power_iterations; /* iterations in each forward in training; default 1 */
    double eps;             /* default 1e-12 */
    int dim;                /* the dim of the outputs: 0, or 1 for transposed convolutions */
    uint64_t reserved[4];
} tern_spectral_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_spectral_norm_options tern_spectral_norm_defaults(void);
/* Computes the weight as the new parameter "<name>_orig" divided by its largest singular value,
 * which power iterations estimate (buffers "<name>_u" and "<name>_v"; Miyato et al. 2018). */
TERN_API tern_module *tern_nn_spectral_norm(tern_module *m, const char *name,
                                            const tern_spectral_norm_options *options);
/* Undoes tern_nn_spectral_norm. */
TERN_API tern_module *tern_nn_remove_spectral_norm(tern_module *m, const char *name);

TERN_END_DECLS
#endif
