/* dist/sharding.h -- models larger than a device: parameters, gradients and optimizer states
 * sharded over the ranks of a job (torch.distributed.fsdp.fully_shard). */
#ifndef TERN_DIST_SHARDING_H
#define TERN_DIST_SHARDING_H
#include <tern/dist.h>
#include <tern/nn.h>
#include <tern/optim.h>

TERN_BEGIN_DECLS

typedef struct tern_fully_shard_options {
    /* Keep whole parameters from forward to backward: more memory, a third less communication
     * (ZeRO-2). A module that is not inside another unit always does so. */
    bool no_reshard_after_forward;
    /* Always keep whole parameters, and gather them when they have changed: ZeRO-2, or with
     * tern_dist_set_requires_gradient_sync ZeRO-1. Gradients and optimizer states are sharded in
     * any case. */
    bool keep_whole;
    tern_dtype
        param_dtype; /* the dtype of forward and backward, float16 or bfloat16; 0: that of the
                      * parameters */
    tern_dtype reduce_dtype; /* the dtype in which gradients are averaged; 0: that of the whole
                              * parameters */
    tern_dist_group *group;  /* the ranks over which parameters are sharded; NULL: all */
    /* Hybrid sharding: the ranks that have the same part as this one, one of each sharding group,
     * over which gradients are averaged too; NULL: each part is on one rank. */
    tern_dist_group *replicate;
    uint64_t reserved[4];
} tern_fully_shard_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_fully_shard_options tern_fully_shard_defaults(void);

/* Shards the parameters of the module that are not sharded yet. Call it for blocks first, and then
 * for the module that contains them. Each call makes a unit. When its module runs, the parameters
 * of the unit are gathered in one message for each dtype; they are released after it, gathered
 * again for its backward, and the gradients are averaged over the ranks, of which each keeps its
 * part. If the outermost module is sharded too, the parameters that are needed next are gathered in
 * the background.
 *
 * Each parameter (the same tensor as before) becomes the rows of this rank: dim 0 is split as by
 * tern_chunk, and the last ranks may have fewer rows, or none. Move the module to its device before
 * this, and create optimizers after it. Gradient norms for clipping, and infinite gradients that
 * skip a step, are those of all ranks. tern_nn_state_dict has the parts of this rank. The parameter
 * of a tensor-parallel layer is this rank's part of the layer, and is split once more; the group
 * must have no other rank of the layer's group (use groups of tern_dist_init_device_mesh), else the
 * error is TERN_ERR_ARGUMENT. Each rank has its own buffers. Hooks, checkpoints, autocast, several
 * forwards for one backward, and gradients accumulated over steps work as without sharding; frozen
 * parameters are sharded too. A parameter that no rank used has no gradient.
 *
 * All ranks of the group make the same calls, with the same parameters, and start with the
 * parameters and buffers of its first rank. The function borrows the module and returns it. NULL
 * after an error: TERN_ERR_PEER, with the first parameter that differs and its rank; TERN_ERR_STATE
 * for a parameter that is shared with a module outside, and for a module that is already sharded;
 * TERN_ERR_SHAPE for a parameter without dims. If a rank fails later, forward or backward returns
 * that error and all parameters are unchanged. Second derivatives are TERN_ERR_UNSUPPORTED, and so
 * are optimizers that need whole parameters (Muon, LAMB, L-BFGS). */
TERN_API tern_module *tern_dist_fully_shard(tern_module *module,
                                            const tern_fully_shard_options *options);

/* Sets whether backward averages the gradients of all units in the module; at first it does. While
 * it does not, each rank accumulates whole gradients, and the next backward that averages takes
 * them too: less communication for several micro-batches. All ranks do so alike. PyTorch:
 * FSDPModule.set_requires_gradient_sync. */
TERN_API tern_status tern_dist_set_requires_gradient_sync(tern_module *module, bool sync);

/* Returns an optimizer whose states are sharded over all ranks (ZeRO-1;
 * torch.distributed.optim.ZeroRedundancyOptimizer). It calls tern_dist_fully_shard with keep_whole,
 * and then make(module, user), which creates the optimizer of this rank's parts
 * (tern_optim_adamw(module, ...)). backward averages the gradients, so the module must not be in a
 * DistributedDataParallel. NULL after an error, also of make; the module is then already
 * sharded. */
TERN_API tern_optimizer *tern_dist_zero_redundancy_optimizer(
    tern_module *module, tern_optimizer *(*make)(tern_module *module, void *user), void *user);

/* Returns the whole parameters and persistent buffers of the module, copied to the cpu: what
 * tern_nn_state_dict would return without sharding, tensor-parallel layers and stages of other
 * ranks. All ranks of the groups call it, and all get it. The caller frees it with
 * tern_state_dict_free; NULL after an error. PyTorch: get_model_state_dict(full_state_dict=True,
 * cpu_offload=True). */
TERN_API tern_state_dict *tern_dist_full_state_dict(tern_module *module);
/* Does what tern_nn_load_state_dict does with whole tensors, of which each rank takes its part,
 * without communication. options may be NULL. PyTorch:
 * set_model_state_dict(full_state_dict=True). */
TERN_API tern_status tern_dist_load_full_state_dict(tern_module *module,
                                                    const tern_state_dict *dict,
                                                    const tern_load_state_dict_options *options);

TERN_END_DECLS
#endif
