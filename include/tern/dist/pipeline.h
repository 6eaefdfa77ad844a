/* dist/pipeline.h -- pipeline parallelism: the children of a Sequential on several devices or
 * ranks, through which micro-batches pass (torch.distributed.pipelining). */
#ifndef TERN_DIST_PIPELINE_H
#define TERN_DIST_PIPELINE_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* The order of each stage's forwards and backwards. */
typedef enum tern_pipeline_schedule {
    TERN_PIPELINE_1F1B =
        0, /* each backward as early as possible: stage s of n keeps at most n - s micro-batches */
    TERN_PIPELINE_GPIPE =
        1, /* all forwards, then all backwards: every stage keeps all micro-batches */
} tern_pipeline_schedule;

typedef struct tern_pipeline_options {
    int micro_batches; /* the number of micro-batches in a batch; 0: one for each stage. The last
                        * may be smaller or absent */
    tern_pipeline_schedule schedule;
    const int *split; /* n - 1 numbers: the first child of each stage but stage 0; NULL: about equal
                 * bytes of parameters. Copied */
    const int *ranks; /* n numbers: the rank of each stage (tern/dist.h); NULL: all are on this
                       * one. Copied */
    /* Sum the losses of micro-batches, for criteria that sum. Otherwise each is weighted by its
     * fraction of the rows, so that a mean is the mean over the batch (PyTorch:
     * scale_grads=False). */
    bool no_scale_grads;
    uint64_t reserved[4];
} tern_pipeline_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pipeline_options tern_pipeline_defaults(void);

typedef struct tern_pipeline tern_pipeline;

/* Makes n stages of the children of `sequential`, which is borrowed and must live as long as the
 * pipeline. The children of a stage are moved to its device; a device may be listed twice. The
 * device of a stage of another rank is NULL, and its children are not moved. Optimizers take the
 * parameters of sequential as usual. Children run by themselves, so hooks of sequential are not
 * called. The caller frees it with tern_dist_pipeline_free. Errors: TERN_ERR_ARGUMENT for fewer
 * children than stages, for a split that is not ascending, and for a stage with neither a device
 * nor a rank.
 *
 * Stages on several ranks are one model from then on, even after the pipeline is freed. Gradient
 * norms for clipping, and infinite gradients that skip a step, are those of all stages, so that all
 * ranks clip and step alike. tern_dist_full_state_dict has each tensor as its stage has it.
 * Snapshots are saved by all ranks of the job, each into its own files (tern/io/snapshot.h); ranks
 * without a stage create the pipeline too if they save. A tensor that two stages share must be on
 * one rank (TERN_ERR_ARGUMENT). Children may be sharded before (tern_dist_fully_shard,
 * tern_nn_parallelize_module). Optimizers that need all parameters (L-BFGS) are
 * TERN_ERR_UNSUPPORTED. */
TERN_API tern_pipeline *tern_dist_pipeline(tern_module *sequential, const char *const *devices,
                                           int n, const tern_pipeline_options *options);
/* Runs forward and backward of a batch. Gradients are added to those of the parameters, as by
 * tern_backward of criterion(sequential(x), y). x and y are split along dim 0. x may be NULL on
 * ranks without the first stage, y and criterion on ranks without the last. All ranks of the
 * pipeline call it. Returns the loss, without a graph, on the cpu if it comes from another rank;
 * NULL after an error. x gets no gradient. Batch norm uses the statistics of micro-batches, as in
 * PyTorch. With a gradient scaler the criterion calls tern_amp_scale; ranks without the last stage
 * need not, and start with init_scale in their first tern_amp_step. */
TERN_API tern_tensor *tern_dist_pipeline_step(tern_pipeline *pipeline, tern_tensor *x,
                                              tern_tensor *y, tern_module *criterion);
/* Returns the stage of a child of the Sequential; -1 after an error. */
TERN_API int tern_dist_pipeline_stage(const tern_pipeline *pipeline, int child);
/* Frees the pipeline, but not the modules; NULL is fine. */
TERN_API void tern_dist_pipeline_free(tern_pipeline *pipeline);

TERN_END_DECLS
#endif
