/* dist/ddp.h -- one module trained by the processes of a job
 * (torch.nn.parallel.DistributedDataParallel). */
#ifndef TERN_DIST_DDP_H
#define TERN_DIST_DDP_H
#include <tern/dist.h>
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_distributed_data_parallel_options {
    double bucket_cap_mb; /* gradients are sent in buckets of this many MiB, the first one of 1;
                           * 0: 25 */
    bool no_broadcast_buffers; /* each rank keeps its own buffers */
    tern_dtype compress;       /* TERN_F16 or TERN_BF16: gradients are sent in this dtype and summed
                             * in float32 */
    tern_dist_group *group;    /* NULL: all processes */
    int shards; /* the number of forwards and backwards of a step over all ranks, which give the
                 * same bits on any number of ranks; 0: one per rank */
    uint64_t reserved[4];
} tern_distributed_data_parallel_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_distributed_data_parallel_options tern_distributed_data_parallel_defaults(void);

/* A module that runs `module`, its child "module", on the rows of this rank, and whose backward
 * gives all ranks the same gradients: the mean over the ranks, or as tern_ddp_divide_by specifies.
 * All ranks create it with the same parameters in the same order; at first they get the parameters
 * and buffers of rank 0.
 *
 * Gradients are stored in buckets, each of one dtype and device, in the reverse order of the
 * parameters. A bucket is summed over the ranks as soon as the backward pass has filled it, while
 * the pass continues. tern_backward returns when all sums are complete. A parameter that no rank
 * used has no gradient (tern_on_warning gets its name); a parameter that only some ranks used
 * counts as 0 on the others; nothing needs to be declared for this. Each forward after a step
 * begins with the buffers of rank 0. After the first step the buckets are arranged anew, in the
 * order in which gradients were computed on rank 0.
 *
 * With .shards = V, a power of two that is a multiple of the number of ranks (which may be 1), a
 * batch consists of V shards of equal size. tern_ddp_shards returns which of them belong to this
 * rank, and the program calls forward and backward for each. The gradients are complete after the
 * last one: the mean over the shards, summed as a binary tree over the shard numbers, so that 1, 2,
 * 4, ... V ranks give the same bits. Another kind of device gives the same bits only if its kernels
 * do: elementwise operations and random numbers agree, sums along a dim agree if the vectors have
 * the same width. Random numbers in the module (dropout) depend on the number of the shard and on
 * the generator at the first forward of the step, which all ranks have seeded alike. Gradients must
 * be zeroed before each step (else forward returns TERN_ERR_STATE); buffers are those of rank 0, as
 * without shards.
 *
 * A step may be recorded (tern/graph.h) if all ranks do so: every replay then sends buffers and
 * buckets. The set of parameters that are used, and the rows of tern_ddp_divide_by, are those of
 * the recording. Steps with .shards and steps in TERN_JOIN cannot be recorded.
 *
 * If module is a tern_nn_data_parallel, each rank can use several devices. The result owns module,
 * and frees it if this fails. Create it after moving module to a device, and before optimizers.
 * Errors: TERN_ERR_PEER, with the first parameter that differs and its rank, if the models are not
 * the same; tern_backward and tern_nn_forward return those of tern_dist_all_reduce. */
TERN_API tern_module *tern_nn_distributed_data_parallel(
    tern_module *module, const tern_distributed_data_parallel_options *options);

/* For losses that are sums: the next gradients are the sum over all ranks divided by the number of
 * all rows that were given to this function since the last ones, over ranks and over the steps
 * inside TERN_NO_SYNC. So they are exact even if ranks have different numbers of rows, or none.
 * Gradients must be zeroed in between (else tern_backward returns TERN_ERR_STATE). rows >= 0. */
TERN_API tern_status tern_ddp_divide_by(tern_module *ddp, double rows);

/* With .shards: returns how many shards belong to this rank, and writes the number of the first to
 * *first (NULL is fine). Without: one per rank. -1 after an error. */
TERN_API int tern_ddp_shards(tern_module *ddp, int *first);

/* TERN_NO_SYNC(model) { forward and backward }: gradients are accumulated on this rank only, and
 * summed over the ranks by the next backward whose forward is outside of the block (torch's
 * no_sync). All ranks use it alike. */
typedef struct tern_no_sync_block {
    int active;
    bool saved;
    tern_module *ddp;
} tern_no_sync_block;
/* Opens the block of TERN_NO_SYNC. */
TERN_API tern_no_sync_block tern_no_sync_block_enter(tern_module *ddp);
/* Closes the block, and restores the setting from before it. */
TERN_API void tern_no_sync_block_leave(tern_no_sync_block *block);
#define TERN_NO_SYNC(ddp)                                                                          \
    TERN_BLOCK_(tern_no_sync_block, tern_no_sync_block_enter(ddp), tern_no_sync_block_leave)
#define TERN_NO_SYNC_HERE(ddp)                                                                     \
    TERN_HERE_(tern_no_sync_block, tern_no_sync_block_enter(ddp), tern_no_sync_block_leave)

/* TERN_JOIN(model) { all batches of this rank }: ranks may have different numbers of batches
 * (torch's join). A rank that has left the block takes part in the sums of the others with zeros
 * until all ranks have left, and then gets the parameters and buffers of a rank that trained last.
 * Means are still divided by the number of all ranks, PyTorch's default, or with tern_ddp_divide_by
 * by the number of rows. Buffers come from a rank that is still training. Inside, each forward with
 * gradients is followed by its backward pass. A SyncBatchNorm in training needs all ranks: when the
 * first rank has no batch left, all ranks get TERN_ERR_STATE, the others from their next forward
 * (PyTorch's throw_on_early_termination). The end of the block records errors: see
 * tern_last_status. All ranks enter the block. */
typedef struct tern_join_block {
    int active;
    tern_module *ddp;
} tern_join_block;
/* Opens the block of TERN_JOIN. */
TERN_API tern_join_block tern_join_block_enter(tern_module *ddp);
/* Closes the block, and returns when all ranks have closed theirs. */
TERN_API void tern_join_block_leave(tern_join_block *block);
#define TERN_JOIN(ddp)                                                                             \
    TERN_BLOCK_(tern_join_block, tern_join_block_enter(ddp), tern_join_block_leave)
#define TERN_JOIN_HERE(ddp)                                                                        \
    TERN_HERE_(tern_join_block, tern_join_block_enter(ddp), tern_join_block_leave)

TERN_END_DECLS
#endif
