/* dist/ddp.h -- one module trained by the processes of a job
 * (torch.nn.parallel.DistributedDataParallel). */
#ifndef TERN_DIST_DDP_H
#define TERN_DIST_DDP_H
#include <tern/dist.h>
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_distributed_data_parallel_options {
    double bucket_cap_mb; /* gradients travel in buckets of that many MiB, the first of 1; 0: 25 */
    bool no_broadcast_buffers; /* buffers stay each rank's own */
    tern_dtype compress;       /* TERN_F16, TERN_BF16: gradients travel so, added in float32 */
    tern_dist_group *group;    /* NULL: all processes */
    int shards; /* a step is so many forwards and backwards over all ranks, with the same bits on
                   any number; 0: one a rank */
    uint64_t reserved[4];
} tern_distributed_data_parallel_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_distributed_data_parallel_options tern_distributed_data_parallel_defaults(void);

/* A module that runs `module`, its child "module", on this rank's rows, and whose backward leaves
 * the same gradients on all ranks: the mean over ranks of theirs, or as tern_ddp_divide_by says.
 * All ranks make it, with the same parameters in the same order, and begin with rank 0's parameters
 * and buffers.
 *
 * Gradients lie in buckets, one dtype and device each, in the reverse order of the parameters; a
 * bucket is summed over the ranks as soon as the backward pass has filled it, while that goes on.
 * tern_backward returns when all are there. A parameter that no rank used has no gradient
 * (tern_on_warning receives its name), one that only some used counts as 0 on the others; nothing
 * needs to be said before. Buffers are rank 0's at the start of each forward that is after a step.
 *
 * After the first step buckets are dealt out anew, in the order in which gradients came on rank 0.
 *
 * With .shards = V, a power of two that the number of ranks, one too, divides, a batch is V shards
 * of equal size, of which tern_ddp_shards says which are this rank's: for each it calls forward and
 * backward. Gradients are there after the last: the mean of those of the shards, added up as a
 * binary tree over their numbers, so that 1, 2, 4, ... V ranks have the same bits. Another kind of
 * device has them too where its kernels do: elementwise operations and what they draw agree, sums
 * along a dim as their compilers' vectors have one width. What the module draws (dropout) follows
 * from the shard's number and the generator at the step's first forward, which ranks have seeded
 * alike. Gradients are to be zeroed before each step (TERN_ERR_STATE out of forward); buffers are
 * rank 0's as without it.
 *
 * A step may be recorded (tern/graph.h), by all ranks alike: buffers and buckets then travel in
 * every replay. Which parameters are used, and the rows of tern_ddp_divide_by, are those of the
 * recording. Steps of .shards and of TERN_JOIN can't be.
 *
 * With tern_nn_data_parallel inside each rank may have several devices. The result owns module,
 * also when this fails. Errors: TERN_ERR_PEER, with the first parameter that differs and its rank,
 * where models are not the same; later as those of tern_dist_all_reduce, out of tern_backward and
 * tern_nn_forward. To be made before optimizers, after moves to a device. */
TERN_API tern_module *tern_nn_distributed_data_parallel(
    tern_module *module, const tern_distributed_data_parallel_options *options);

/* For losses that are sums: the next gradients are the sum over all ranks divided by the sum of all
 * rows that were said since the last, over ranks and over the steps inside TERN_NO_SYNC. So they
 * are exact where ranks have different numbers of rows, 0 too. Gradients must have been zeroed in
 * between (TERN_ERR_STATE out of tern_backward). rows >= 0. */
TERN_API tern_status tern_ddp_divide_by(tern_module *ddp, double rows);

/* With .shards: how many of them are this rank's, from *first on (NULL is fine). Without: one for
 * each rank. -1 after an error. */
TERN_API int tern_ddp_shards(tern_module *ddp, int *first);

/* TERN_NO_SYNC(model) { forward and backward }: gradients are added up on this rank alone, and
 * summed over ranks by the next backward whose forward is outside (torch's no_sync). All ranks do
 * so alike. */
typedef struct tern_no_sync_block {
    int active;
    bool saved;
    tern_module *ddp;
} tern_no_sync_block;
/* Opens the block of TERN_NO_SYNC. */
TERN_API tern_no_sync_block tern_no_sync_block_enter(tern_module *ddp);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_no_sync_block_leave(tern_no_sync_block *block);
#define TERN_NO_SYNC(ddp)                                                                          \
    TERN_BLOCK_(tern_no_sync_block, tern_no_sync_block_enter(ddp), tern_no_sync_block_leave)
#define TERN_NO_SYNC_HERE(ddp)                                                                     \
    TERN_HERE_(tern_no_sync_block, tern_no_sync_block_enter(ddp), tern_no_sync_block_leave)

/* TERN_JOIN(model) { all batches of this rank }: ranks may have different numbers of batches
 * (torch's join). One that has left the block takes part in the others' sums with zeros until all
 * have left theirs, and then has the parameters and buffers of one that was the last to train. What
 * was a mean stays divided by all ranks, as PyTorch's default; with tern_ddp_divide_by it is by the
 * rows there were. Buffers follow a rank that trains still. Inside, each forward with gradients is
 * followed by its backward pass. A SyncBatchNorm that is trained needs all ranks: when the first
 * has no batch left all get TERN_ERR_STATE, the others from their next forward (PyTorch's
 * throw_on_early_termination). An error in it is that of the block's end: tern_last_status. All
 * ranks enter it. */
typedef struct tern_join_block {
    int active;
    tern_module *ddp;
} tern_join_block;
/* Opens the block of TERN_JOIN. */
TERN_API tern_join_block tern_join_block_enter(tern_module *ddp);
/* Returns when all ranks have left theirs. */
TERN_API void tern_join_block_leave(tern_join_block *block);
#define TERN_JOIN(ddp)                                                                             \
    TERN_BLOCK_(tern_join_block, tern_join_block_enter(ddp), tern_join_block_leave)
#define TERN_JOIN_HERE(ddp)                                                                        \
    TERN_HERE_(tern_join_block, tern_join_block_enter(ddp), tern_join_block_leave)

TERN_END_DECLS
#endif
