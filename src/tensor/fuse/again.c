/* again.c -- results that a product does not keep, made again with the gradient of their maker. */
#include "tensor/fuse/parts.h"
#include "base/debug.h"
#include "tensor/history.h"
#include "tensor/tensor.h"

int64_t tern_again_from = 1 << 24; /* what is smaller is not worth a command */

const tern_node *tern_fuse_maker(const tern_node *node, const tern_tensor *x)
{
    const tern_fusion *fusion = node->op->fusion;
    const tern_history *history = fusion && fusion->asks_again ? x->history : NULL;
    const tern_node *maker = history && !history->base ? history->node : NULL;
    if (!maker || history->output != 0 || !maker->op->fusion || !maker->op->fusion->again ||
        maker->frame || !x->contiguous || tern_tensor_version(x) != 0 || tern_debugging ||
        x->numel * (int64_t)tern_dtype_size(x->dtype) < tern_again_from ||
        !tern_place_is_grouped(x->storage->place))
        return NULL;
    const tern_saved *of = &maker->saved[0];
    return of->tensor && of->tensor->contiguous && tern_same_shape(of->tensor, x) &&
                   tern_tensor_version(of->tensor) == of->version
               ? maker
               : NULL;
}

tern_tensor *tern_fuse_again(const tern_op *maker, tern_tensor *x)
{
    return maker->fusion->again(maker, x);
}

tern_tensor *tern_packed_held(const tern_packed *packed)
{
    if (tern_tensor_version(packed->held.tensor) == packed->held.version)
        return packed->held.tensor;
    return tern_fail_null(
        TERN_ERR_STATE,
        "tern_backward: one of the variables needed for gradient computation has been modified by "
        "an inplace operation: [%s %s], which is an input of %s, is at version %lld; expected "
        "version %lld instead",
        tern_dtype_name(packed->dtype), TERN_TENSOR_TEXT(packed->held.tensor), packed->maker->name,
        (long long)tern_tensor_version(packed->held.tensor), (long long)packed->held.version);
}

tern_packed *tern_again_offer(const tern_node *node)
{
    tern_packed *packed = node->n_in > 0 ? node->saved[0].packed : NULL;
    return packed && !node->saved[0].tensor ? packed : NULL;
}

tern_tensor *tern_made_again(const tern_gradient *g)
{
    tern_packed *packed = g->fused ? g->fused->again : NULL;
    if (!packed)
        return g->in[0];
    tern_tensor *x = tern_packed_held(packed), *dout = g->din[0];
    if (!x || !dout)
        return NULL;
    if (!dout->contiguous || dout->dtype != x->dtype || !tern_same_shape(dout, x))
        return tern_fuse_again(packed->maker, x);
    return packed->maker->fusion->again_with_gradient(packed->maker, x, dout, &g->fused->again_din);
}
