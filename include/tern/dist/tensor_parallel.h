/* dist/tensor_parallel.h -- tensor parallelism: layers whose weights are split over the ranks of a
 * group (torch.distributed.tensor.parallel, Megatron's layers).
 *
 *   tern_dist_group *groups[2];
 *   tern_dist_init_device_mesh(TERN_SHAPE(ranks / 4, 4), groups); 4 ranks compute each layer, as
 *       many rows as there are fours
 *   const tern_parallel_plan plan[] = {{"layers.*.up", TERN_PARALLEL_COLWISE}, {"layers.*.down",
 *       TERN_PARALLEL_ROWWISE}};
 *   tern_nn_parallelize_module(net, plan, 2, groups[1]);
 *   tern_module *model = tern_nn_distributed_data_parallel(net, &(...){.group = groups[0]});
 *
 * All ranks of a group make the same calls, forward and backward too. An input that is not split is
 * the same on all ranks. */
#ifndef TERN_DIST_TENSOR_PARALLEL_H
#define TERN_DIST_TENSOR_PARALLEL_H
#include <tern/dist.h>
#include <tern/nn.h>
#include <tern/ops/loss.h>

TERN_BEGIN_DECLS

/* Arranges the ranks of the job as a mesh with these sizes, in row-major order; their product is
 * the number of ranks. groups[d] becomes the group of the ranks that differ from this one only in
 * coordinate d (init_device_mesh(...)[d].get_group()). All processes call it. Errors:
 * TERN_ERR_SHAPE. */
TERN_API tern_status tern_dist_init_device_mesh(tern_shape sizes, tern_dist_group **groups);

/* ---- layers ---------------------------------------------------------------------------------- */

/* How an activation is distributed over the ranks of the group. */
typedef enum tern_parallel_layout {
    TERN_LAYOUT_DEFAULT = 0,
    TERN_LAYOUT_REPLICATE = 1, /* each rank has the whole tensor */
    TERN_LAYOUT_SHARD = 2,     /* each rank has its part of the last dim */
    TERN_LAYOUT_SEQUENCE = 3   /* each rank has its part of sequence_dim */
} tern_parallel_layout;

typedef struct tern_parallel_options {
    tern_dist_group *group; /* NULL: all processes */
    tern_parallel_layout input, output;
    tern_optional_int sequence_dim; /* default 1, for (N, L, C) */
    uint64_t reserved[4];
} tern_parallel_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_parallel_options tern_parallel_defaults(void);

/* Splits a Linear or an Embedding by its outputs: each rank keeps its part of the rows of weight
 * and bias, or of the columns of the table, as tern_chunk splits them (ColwiseParallel). The
 * parameters are the same tensors as before, with the values of the group's first rank; gradient
 * norms for clipping include the other ranks' parts. input is REPLICATE (default) or SEQUENCE,
 * which is gathered. output is SHARD (default) or REPLICATE, which gathers it. Returns m. Call it
 * before creating optimizers and a DistributedDataParallel. Errors: TERN_ERR_ARGUMENT for other
 * modules, for layouts that are not supported, and for a module that is already split; later
 * TERN_ERR_SHAPE for a gathered dim that is not a multiple of the number of ranks. */
TERN_API tern_module *tern_nn_colwise_parallel(tern_module *m,
                                               const tern_parallel_options *options);
/* Splits a Linear or an Embedding by its inputs: each rank keeps its part of the columns of a
 * Linear's weight, or of the rows of the table, and the results of the ranks are summed
 * (RowwiseParallel). The input of a Linear is SHARD (default), the output of a colwise layer, or
 * REPLICATE, of which it takes its part. output is REPLICATE (default) or SEQUENCE, a part of the
 * sum. Otherwise it is as tern_nn_colwise_parallel. */
TERN_API tern_module *tern_nn_rowwise_parallel(tern_module *m,
                                               const tern_parallel_options *options);
/* Makes a norm, or any module with whole parameters, run on this rank's part of a sequence: the
 * gradients of its parameters are summed over the group, and activations are not changed
 * (SequenceParallel). */
TERN_API tern_module *tern_nn_sequence_parallel(tern_module *m,
                                                const tern_parallel_options *options);

typedef enum tern_parallel_style {
    TERN_PARALLEL_COLWISE,
    TERN_PARALLEL_ROWWISE,
    TERN_PARALLEL_SEQUENCE
} tern_parallel_style;
typedef struct tern_parallel_plan {
    const char *path; /* the path of modules; * stands for one name in it */
    tern_parallel_style style;
    tern_parallel_layout input, output;
} tern_parallel_plan;
/* Splits each module below m whose path matches a row of the plan (parallelize_module). Parameters
 * that two modules share stay shared if both split them alike. options has the group and the
 * sequence's dim; NULL means the defaults. Errors: those of the functions above; TERN_ERR_ARGUMENT
 * for a row that matches no module. */
TERN_API tern_status tern_nn_parallelize_module(tern_module *m, const tern_parallel_plan *plan,
                                                int n, const tern_parallel_options *options);

typedef struct tern_vocab_parallel_cross_entropy_options {
    tern_dist_group *group;         /* NULL: all processes */
    tern_optional_int ignore_index; /* default -100 */
    tern_reduction reduction;
    double label_smoothing; /* 0..1 */
    int64_t classes;        /* the number of classes of all ranks; 0: this rank's number times the
                      * number of ranks. Required if the classes are not split evenly */
    uint64_t reserved[4];
} tern_vocab_parallel_cross_entropy_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_vocab_parallel_cross_entropy_options tern_vocab_parallel_cross_entropy_defaults(void);
/* Returns the cross entropy of logits (*, C), of which each rank has its part of the classes, the
 * last dim, as a colwise layer returns them, and class indices (*) of int64 over all classes
 * (loss_parallel). The result is the same on all ranks, and logits are never gathered. Half
 * precision is computed in float32. Errors: TERN_ERR_SHAPE, TERN_ERR_DTYPE. */
TERN_API tern_tensor *tern_vocab_parallel_cross_entropy(
    tern_tensor *logits, tern_tensor *target,
    const tern_vocab_parallel_cross_entropy_options *options);

/* ---- collectives with gradients (Megatron's regions) --------------------------------------------
 * group NULL means all processes. A negative dim counts from the end. The size of a dim that is
 * split must be a multiple of the number of ranks. */

/* Passes x, which is whole on each rank, to computations that are split over the ranks; its
 * gradient is the sum of theirs. */
TERN_API tern_tensor *tern_dist_copy_to_group(tern_tensor *x, tern_dist_group *group);
/* Returns the sum of x over the ranks; each rank gets the whole gradient. */
TERN_API tern_tensor *tern_dist_reduce_from_group(tern_tensor *x, tern_dist_group *group);
/* Returns the parts of all ranks, concatenated along dim; each rank gets its part of the
 * gradient. */
TERN_API tern_tensor *tern_dist_gather_from_group(tern_tensor *x, int dim, tern_dist_group *group);
/* Returns this rank's part of x, which is whole on each rank, along dim; the gradients are
 * gathered. */
TERN_API tern_tensor *tern_dist_scatter_to_group(tern_tensor *x, int dim, tern_dist_group *group);
/* Returns the parts of all ranks, concatenated along dim, for computations that are split over the
 * ranks; each rank gets its part of the sum of the gradients. */
TERN_API tern_tensor *tern_dist_all_gather_to_group(tern_tensor *x, int dim,
                                                    tern_dist_group *group);
/* Returns this rank's part, along dim, of the sum of x over the ranks; the gradients are
 * gathered. */
TERN_API tern_tensor *tern_dist_reduce_scatter_from_group(tern_tensor *x, int dim,
                                                          tern_dist_group *group);

TERN_END_DECLS
#endif
