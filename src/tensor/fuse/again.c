/* again.c -- recomputed inputs: a product's input, together with the gradient of the operation that
 * computed it; and relu's result after a norm, of which backward needs a mask. */
#include "tensor/fuse/internal.h"
#include "base/debug.h"
#include "tensor/history.h"
#include "tensor/tensor.h"

int64_t tern_again_from = 1 << 24; /* recomputing fewer bytes is not worth a launch */

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

bool tern_fuse_finds_relu(const tern_node *node, const tern_call *call)
{
    if (!tern_fusion_of(node)->is_relu)
        return false;
    const tern_node *maker = node->edge[0].node;
    const tern_fusion *fusion = maker ? tern_fusion_of(maker) : NULL;
    if (!fusion || !fusion->relu_again || call->in_place || node->edge[0].output != 0 ||
        maker->frame || maker->freed || tern_debugging || tern_thread.saved_hooks.pack ||
        tern_thread.mode.frame || tern_tensor_version(call->in[0]) != 0)
        return false;
    const int k = fusion->speculative_output;
    const tern_saved *of = &maker->saved[0];
    return k < maker->n_out && !maker->saved[maker->n_in + k].tensor && of->tensor &&
           tern_tensor_version(of->tensor) == of->version;
}

tern_tensor *tern_fuse_relu_again(const tern_node *maker)
{
    if (tern_node_check_saved(maker) != TERN_OK)
        return NULL;
    tern_tensor *in[maker->n_in];
    for (int i = 0; i < maker->n_in; i++)
        in[i] = maker->saved[i].tensor;
    return tern_fusion_of(maker)->relu_again(maker->op, maker->attributes, in);
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
    if (!x)
        return NULL;
    if (!dout || !dout->contiguous || dout->dtype != x->dtype || !tern_same_shape(dout, x))
        return tern_fuse_again(packed->maker, x);
    return packed->maker->fusion->again_with_gradient(packed->maker, x, dout, &g->fused->again_din);
}
