/* nn/norm.h -- normalisation over a batch as modules; see ops/norm.h for what they compute. */
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
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_batch_norm_options;

/* (N, C) or (N, C, L); (N, C, H, W); (N, C, D, H, W). Parameters weight and bias (C), ones and
 * zeros at first; buffers running_mean, running_var (C) and num_batches_tracked (int64). */
TERN_API tern_module *tern_nn_batch_norm1d(int64_t num_features,
                                           const tern_batch_norm_options *options);
TERN_API tern_module *tern_nn_batch_norm2d(int64_t num_features,
                                           const tern_batch_norm_options *options);
TERN_API tern_module *tern_nn_batch_norm3d(int64_t num_features,
                                           const tern_batch_norm_options *options);

TERN_END_DECLS
#endif
