/* dist/tensor_parallel.h -- layers whose weights the ranks of a group share out, and which compute
 * together (torch.distributed.tensor.parallel, Megatron's layers).
 *
 *   tern_dist_group *groups[2];
 *   tern_dist_init_device_mesh(TERN_SHAPE(ranks / 4, 4), groups); 4 ranks compute each layer, as
 *       many rows as there are fours
 *   const tern_parallel_plan plan[] = {{"layers.*.up", TERN_PARALLEL_COLWISE}, {"layers.*.down",
 *       TERN_PARALLEL_ROWWISE}};
 *   tern_nn_parallelize_module(net, plan, 2, groups[1]);
 *   tern_module *model = tern_nn_distributed_data_parallel(net, &(...){.group = groups[0]});
 *
 * All ranks of a group call the same, forwards and backward passes too, with the same inputs where
 * an input is whole. */
#ifndef TERN_DIST_TENSOR_PARALLEL_H
#define TERN_DIST_TENSOR_PARALLEL_H
#include <tern/dist.h>
#include <tern/nn.h>
#include <tern/ops/loss.h>

TERN_BEGIN_DECLS

/* The job's ranks as a mesh of these sizes, whose product is their number, in row-major order:
 * groups[d] becomes that of the ranks whose other coordinates are this one's. All processes call
 * it. Errors: TERN_ERR_SHAPE. PyTorch: init_device_mesh(...)[d].get_group(). */
TERN_API tern_status tern_dist_init_device_mesh(tern_shape sizes, tern_dist_group **groups);

/* ---- layers ---------------------------------------------------------------------------------- */

/* What an activation is on the ranks of the group. */
typedef enum tern_parallel_layout {
    TERN_LAYOUT_DEFAULT = 0,
    TERN_LAYOUT_REPLICATE = 1, /* whole, on each */
    TERN_LAYOUT_SHARD = 2,     /* its part of the last dim */
    TERN_LAYOUT_SEQUENCE = 3   /* its part of sequence_dim */
} tern_parallel_layout;

typedef struct tern_parallel_options {
    tern_dist_group *group; /* NULL: all processes */
    tern_parallel_layout input, output;
    tern_optional_int sequence_dim; /* default 1, as of (N, L, C) */
    uint64_t reserved[4];
} tern_parallel_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_parallel_options tern_parallel_defaults(void);

/* A Linear, or an Embedding, of which each rank keeps its part of the outputs: rows of weight and
 * bias, or columns of the table, as tern_chunk cuts them. The parameters are the same tensors as
 * before, with the values of the group's first rank; clipping counts the other shards. input:
 * REPLICATE (default), or SEQUENCE, which is gathered. output: SHARD (default), or REPLICATE, which
 * gathers it. Returns m; before optimizers and DistributedDataParallel. Errors: TERN_ERR_ARGUMENT
 * for other modules, layouts that are not there, and what is cut already; TERN_ERR_SHAPE, later,
 * for a gathered dim that is no multiple of the ranks. PyTorch: ColwiseParallel. */
TERN_API tern_module *tern_nn_colwise_parallel(tern_module *m,
                                               const tern_parallel_options *options);
/* The same with its part of the inputs: columns of a Linear's weight, or rows of the table, those
 * of some words. What the ranks compute is added up. input of a Linear: SHARD (default), as a
 * colwise layer gives it, or REPLICATE, of which it takes its part. output: REPLICATE (default), or
 * SEQUENCE, which is a part of the sum. PyTorch: RowwiseParallel. */
TERN_API tern_module *tern_nn_rowwise_parallel(tern_module *m,
                                               const tern_parallel_options *options);
/* A norm, or any module with whole parameters, that runs on this rank's part of a sequence:
 * gradients of its parameters are added up over the group. Activations are left as they are.
 * PyTorch: SequenceParallel. */
TERN_API tern_module *tern_nn_sequence_parallel(tern_module *m,
                                                const tern_parallel_options *options);

typedef enum tern_parallel_style {
    TERN_PARALLEL_COLWISE,
    TERN_PARALLEL_ROWWISE,
    TERN_PARALLEL_SEQUENCE
} tern_parallel_style;
typedef struct tern_parallel_plan {
    const char *path; /* of modules; * stands for one name of it */
    tern_parallel_style style;
    tern_parallel_layout input, output;
} tern_parallel_plan;
/* Each module below m whose path fits a row of the plan becomes such a layer. Parameters that two
 * modules share stay shared where both cut them alike. Errors: as above; TERN_ERR_ARGUMENT for a
 * row that fits none. options: the group and the sequence's dim; NULL for the defaults. PyTorch:
 * parallelize_module. */
TERN_API tern_status tern_nn_parallelize_module(tern_module *m, const tern_parallel_plan *plan,
                                                int n, const tern_parallel_options *options);

typedef struct tern_vocab_parallel_cross_entropy_options {
    tern_dist_group *group;         /* NULL: all processes */
    tern_optional_int ignore_index; /* default -100 */
    tern_reduction reduction;
    double label_smoothing; /* 0..1 */
    int64_t classes; /* of all ranks; 0: as many as this rank has times the ranks. Wanted where they
                    don't divide */
    uint64_t reserved[4];
} tern_vocab_parallel_cross_entropy_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_vocab_parallel_cross_entropy_options tern_vocab_parallel_cross_entropy_defaults(void);
/* Cross entropy of logits (*, C), of which each rank has its classes, the last dim's part as a
 * colwise layer gives it, against class indices (*) of int64 over all classes: the same on all
 * ranks, and logits are never gathered. Halves are computed in float32. Errors: TERN_ERR_SHAPE,
 * TERN_ERR_DTYPE. PyTorch: loss_parallel. */
TERN_API tern_tensor *tern_vocab_parallel_cross_entropy(
    tern_tensor *logits, tern_tensor *target,
    const tern_vocab_parallel_cross_entropy_options *options);

/* ---- activations between ranks, with gradients (Megatron's regions) -----------------------------
 * group NULL: all processes. dim may count from the end; where it is cut it must be a multiple of
 * the ranks. */

/* x, whole on each rank, to what each computes a part of; its gradient is the sum of theirs. */
TERN_API tern_tensor *tern_dist_copy_to_group(tern_tensor *x, tern_dist_group *group);
/* The sum over the ranks; the gradient goes to each. */
TERN_API tern_tensor *tern_dist_reduce_from_group(tern_tensor *x, tern_dist_group *group);
/* The parts of all ranks along dim; the gradient's part comes back. */
TERN_API tern_tensor *tern_dist_gather_from_group(tern_tensor *x, int dim, tern_dist_group *group);
/* This rank's part of x, whole on each; gradients are gathered. */
TERN_API tern_tensor *tern_dist_scatter_to_group(tern_tensor *x, int dim, tern_dist_group *group);
/* The parts of all ranks, to what each computes a part of: the gradient is the part of the sum of
 * theirs. */
TERN_API tern_tensor *tern_dist_all_gather_to_group(tern_tensor *x, int dim,
                                                    tern_dist_group *group);
/* This rank's part of the sum over the ranks; gradients are gathered. */
TERN_API tern_tensor *tern_dist_reduce_scatter_from_group(tern_tensor *x, int dim,
                                                          tern_dist_group *group);

TERN_END_DECLS
#endif
