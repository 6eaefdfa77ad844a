/* dist/sharding.h -- models larger than a device: parameters, gradients and optimizer states shared
 * out over the ranks of a job (torch.distributed.fsdp.fully_shard). */
#ifndef TERN_DIST_SHARDING_H
#define TERN_DIST_SHARDING_H
#include <tern/dist.h>
#include <tern/nn.h>
#include <tern/optim.h>

TERN_BEGIN_DECLS

typedef struct tern_fully_shard_options {
    /* Whole parameters stay from forward to backward: more memory, a third less traffic (ZeRO-2).
     * So they do anyway in a module that is in no other. */
    bool no_reshard_after_forward;
    /* Whole parameters stay for good, and are gathered when they have changed: ZeRO-2, and with
     * tern_dist_set_requires_gradient_sync ZeRO-1. Parts, gradients and optimizer states are shared
     * out all the same. */
    bool keep_whole;
    tern_dtype
        param_dtype; /* forward and backward compute in it: half precision; 0: the parameters' */
    tern_dtype reduce_dtype; /* gradients are averaged in it; 0: that of the whole parameters */
    tern_dist_group *group;  /* the ranks that share the parameters out; NULL: all */
    /* Hybrid sharding: ranks with the same part, one of each such group, over which gradients are
     * averaged too; NULL: there is one rank for each part. */
    tern_dist_group *replicate;
    uint64_t reserved[4];
} tern_fully_shard_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_fully_shard_options tern_fully_shard_defaults(void);

/* Share out those parameters of the module that are not shared out yet: applied to blocks first,
 * and then to what they are in, each call makes a unit, whose parameters are gathered in one
 * message for each dtype when its module runs, given back after it, gathered again for its
 * backward, and whose gradients are averaged over the ranks, which is when each keeps its part.
 * What will be gathered next is on its way meanwhile, where the outermost module is sharded too.
 *
 * Each parameter (the same tensor as before) becomes this rank's rows of it: dim 0 is cut as
 * tern_chunk cuts it, and the last ranks may have fewer rows, or none. Optimizers are made after
 * this, moves to a device before. Norms for clipping, and infinities that skip a step, are those of
 * all ranks; tern_nn_state_dict has this rank's parts. A tensor parallel layer's parameter is this
 * rank's part of the layer's, and is cut once more; the group has no other rank of the layer's
 * (groups of tern_dist_init_device_mesh), which is TERN_ERR_ARGUMENT else. Buffers are each rank's
 * own. Hooks, checkpoints, autocast, several forwards for one backward and gradients added up over
 * steps work as without it; frozen parameters are shared out as well. One that no rank used has no
 * gradient.
 *
 * All ranks of the group call it alike, with the same parameters, and begin with its first rank's
 * values of parameters and buffers. The module is borrowed, and returned; NULL after an error:
 * TERN_ERR_PEER, with the first parameter that differs and its rank; TERN_ERR_STATE for one that
 * the module shares with others outside of it, and for a module that is sharded already;
 * TERN_ERR_SHAPE for one without dims. Later a rank that fails is an error of forward and backward,
 * which leaves all parameters as they were. Second derivatives are TERN_ERR_UNSUPPORTED, and so are
 * optimizers that need whole parameters (Muon, LAMB, L-BFGS). */
TERN_API tern_module *tern_dist_fully_shard(tern_module *module,
                                            const tern_fully_shard_options *options);

/* Whether backward averages the gradients of all units in the module, which it does from the start.
 * While it does not they are added up whole on each rank, and averaged by the next that does: less
 * traffic for several micro-batches. All ranks alike. PyTorch:
 * FSDPModule.set_requires_gradient_sync. */
TERN_API tern_status tern_dist_set_requires_gradient_sync(tern_module *module, bool sync);

/* An optimizer whose states are shared out over all ranks (ZeRO-1): tern_dist_fully_shard of the
 * module with keep_whole, and make(module, user), the optimizer of this rank's parts
 * (tern_optim_adamw(module, ...)). Gradients are averaged by backward, so that the module is in no
 * DistributedDataParallel. NULL after an error, also make's, after which the module is sharded
 * already. PyTorch: torch.distributed.optim.ZeroRedundancyOptimizer. */
TERN_API tern_optimizer *tern_dist_zero_redundancy_optimizer(
    tern_module *module, tern_optimizer *(*make)(tern_module *module, void *user), void *user);

/* Parameters and persistent buffers of the module, whole, on the cpu: what tern_nn_state_dict would
 * give without sharding, tensor parallel layers and stages of other ranks, as a copy. All ranks of
 * the groups call it, and all get it. To be freed; NULL after an error. PyTorch:
 * get_model_state_dict(full_state_dict=True, cpu_offload=True). */
TERN_API tern_state_dict *tern_dist_full_state_dict(tern_module *module);
/* tern_nn_load_state_dict of whole tensors, of which each rank takes its rows; nothing is sent.
 * options: NULL for the defaults. PyTorch: set_model_state_dict(full_state_dict=True). */
TERN_API tern_status tern_dist_load_full_state_dict(tern_module *module,
                                                    const tern_state_dict *dict,
                                                    const tern_load_state_dict_options *options);

TERN_END_DECLS
#endif
