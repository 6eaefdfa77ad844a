/* dist/sync_batch_norm.h -- batch norm over the batches of all ranks (torch.nn.SyncBatchNorm). */
#ifndef TERN_DIST_SYNC_BATCH_NORM_H
#define TERN_DIST_SYNC_BATCH_NORM_H
#include <tern/dist.h>
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_sync_batch_norm_options {
    double eps;                  /* default 1e-5 */
    double momentum;             /* default 0.1; TERN_ZERO for 0 */
    bool cumulative;             /* momentum=None: the average of all batches so far */
    bool no_affine;              /* without the parameters weight and bias */
    bool no_track_running_stats; /* use the statistics of the batch in evaluation too, those of
                                  * this rank */
    bool no_bias;                /* without bias */
    tern_dtype dtype;
    const char *device;
    tern_dist_group *group; /* NULL: all processes */
    uint64_t reserved[4];
} tern_sync_batch_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_sync_batch_norm_options tern_sync_batch_norm_defaults(void);

/* A module for (N, C, *), with the parameters and buffers of tern_nn_batch_norm1d. In training,
 * mean and variance are those of the rows of all ranks of the group, which may have different
 * numbers of rows, or none; the result, the gradient of x and the running statistics are those that
 * one process computes for the whole batch. The gradients of weight and bias are those of this
 * rank's rows, and DistributedDataParallel averages them like all others. All ranks run forward and
 * backward in the same order. In evaluation, and in a job of one process, it is
 * tern_nn_batch_norm1d. Errors: TERN_ERR_PEER; TERN_ERR_STATE for second derivatives over several
 * ranks. */
TERN_API tern_module *tern_nn_sync_batch_norm(int64_t num_features,
                                              const tern_sync_batch_norm_options *options);
/* Replaces each batch norm in m by a SyncBatchNorm with the same parameters, buffers and settings,
 * as PyTorch's convert_sync_batchnorm does; hooks of the batch norms are lost. Returns m. If m is a
 * batch norm itself, it is freed and the new module is returned; it must have no parent
 * (TERN_ERR_ARGUMENT). group NULL means all processes. NULL after an error. Call it before creating
 * a DistributedDataParallel. */
TERN_API tern_module *tern_nn_convert_sync_batch_norm(tern_module *m, tern_dist_group *group);

TERN_END_DECLS
#endif
