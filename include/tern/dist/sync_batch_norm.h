/* dist/sync_batch_norm.h -- batch norm whose batch is that of all ranks
 * (torch.nn.SyncBatchNorm). */
#ifndef TERN_DIST_SYNC_BATCH_NORM_H
#define TERN_DIST_SYNC_BATCH_NORM_H
#include <tern/dist.h>
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_sync_batch_norm_options {
    double eps;                  /* default 1e-5 */
    double momentum;             /* default 0.1; TERN_ZERO for 0 */
    bool cumulative;             /* momentum=None: the average of all batches so far */
    bool no_affine;              /* no weight, no bias */
    bool no_track_running_stats; /* statistics of the batch in evaluation too, of this rank's */
    bool no_bias;                /* a weight alone */
    tern_dtype dtype;
    const char *device;
    tern_dist_group *group; /* NULL: all processes */
    uint64_t reserved[4];
} tern_sync_batch_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_sync_batch_norm_options tern_sync_batch_norm_defaults(void);

/* Of (N, C, *), with the parameters and buffers of tern_nn_batch_norm1d. In training mean and
 * variance are those of the rows of all ranks of the group, which may have different numbers of
 * rows, 0 too; y, the gradient of x and the running statistics are what one process computes of the
 * whole batch. Those of weight and bias are of this rank's rows, as others are:
 * DistributedDataParallel adds them up. All ranks run it, and go back through it, in the same
 * order. In evaluation, and in a job of one process, as tern_nn_batch_norm. Errors: TERN_ERR_PEER;
 * TERN_ERR_STATE for second derivatives over several ranks. */
TERN_API tern_module *tern_nn_sync_batch_norm(int64_t num_features,
                                              const tern_sync_batch_norm_options *options);
/* Put a SyncBatchNorm in place of each batch norm in m, with the same parameters, buffers and
 * settings, as PyTorch's convert_sync_batchnorm; hooks of those do not move over. Returns m, or the
 * new module where m is a batch norm itself, which is freed then, and must have no parent
 * (TERN_ERR_ARGUMENT). group NULL: all processes. NULL after an error. To be called before
 * DistributedDataParallel. */
TERN_API tern_module *tern_nn_convert_sync_batch_norm(tern_module *m, tern_dist_group *group);

TERN_END_DECLS
#endif
