/* dist/pipeline.h -- the children of a sequential on several devices, or ranks, that micro-batches
 * go through (torch.distributed.pipelining). */
#ifndef TERN_DIST_PIPELINE_H
#define TERN_DIST_PIPELINE_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* The order of each stage's forwards and backwards. */
typedef enum tern_pipeline_schedule {
    TERN_PIPELINE_1F1B =
        0, /* a backward as soon as there is one: stage s of n keeps n - s micro-batches at most */
    TERN_PIPELINE_GPIPE =
        1, /* all forwards, then all backwards: every stage keeps all micro-batches */
} tern_pipeline_schedule;

typedef struct tern_pipeline_options {
    int micro_batches; /* that a batch is cut into; 0: one for each stage. The last may be smaller,
                          or left out */
    tern_pipeline_schedule schedule;
    const int *
        split; /* n - 1 numbers: with which child each stage but the first begins; NULL: about equal
                  bytes of parameters. Copied */
    const int
        *ranks; /* of n: the process that has each stage (tern/dist.h); NULL: this one has all.
                  Copied */
    /* Losses of micro-batches are added as they are. Without it each counts as its part of the
     * rows, so that a mean is the mean of the batch; for criteria that add (PyTorch:
     * scale_grads=False). */
    bool no_scale_grads;
    uint64_t reserved[4];
} tern_pipeline_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pipeline_options tern_pipeline_defaults(void);

typedef struct tern_pipeline tern_pipeline;

/* n stages out of the children of `sequential`, which is borrowed and must live as long; those of a
 * stage are moved to its device, which may stand there twice. Where a stage is another rank's, its
 * device is NULL and its children stay where they are. An optimizer takes the parameters of
 * sequential as ever; children run by themselves, so that hooks of sequential do not. To be freed
 * with tern_dist_pipeline_free. Errors: TERN_ERR_ARGUMENT where there are fewer children than
 * stages, for a split that does not rise, and where neither a device nor a rank is given.
 *
 * Stages of several ranks are one model from then on, also once the pipeline is freed: norms for
 * clipping, and infinities that skip a step, are those of all, so that all ranks of the pipeline
 * clip and step alike; tern_dist_full_state_dict has each tensor as its stage has it, and snapshots
 * are saved by all ranks of the job, into files of each (tern/io/snapshot.h). A tensor that two
 * stages share must be of one rank (TERN_ERR_ARGUMENT). Ranks without a stage make the pipeline too
 * where they save. Children may be sharded (tern_dist_fully_shard, tern_nn_parallelize_module),
 * before. Optimizers that need all parameters (L-BFGS) are TERN_ERR_UNSUPPORTED. */
TERN_API tern_pipeline *tern_dist_pipeline(tern_module *sequential, const char *const *devices,
                                           int n, const tern_pipeline_options *options);
/* Forward and backward of a batch: gradients are added to those of the parameters, as with
 * tern_backward of criterion(sequential(x), y). x and y are cut along dim 0; x may be NULL where
 * this rank has not the first stage, y and criterion where it has not the last. All ranks of the
 * pipeline call it. Returns the loss, on the cpu where it came from another rank; it is no part of
 * a graph. NULL after an error. Gradients do not go back to x. Batch norm sees micro-batches, as in
 * PyTorch. With a gradient scaler the criterion calls tern_amp_scale; ranks that have not the last
 * stage need not, and begin with init_scale in their first tern_amp_step. */
TERN_API tern_tensor *tern_dist_pipeline_step(tern_pipeline *pipeline, tern_tensor *x,
                                              tern_tensor *y, tern_module *criterion);
/* The stage that a child of the sequential is in; -1 after an error. */
TERN_API int tern_dist_pipeline_stage(const tern_pipeline *pipeline, int child);
/* NULL is fine; the modules stay. */
TERN_API void tern_dist_pipeline_free(tern_pipeline *pipeline);

TERN_END_DECLS
#endif
