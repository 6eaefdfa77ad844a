/* deferred.c -- gradients of relu and of casts that the operation before computes, on devices with
 * work-groups.
 *
 * The gradient of relu is a mask on the gradient of its result. If the next node's operation takes
 * a deferred relu gradient, and no hook or caller sees the gradient in between, that operation's
 * kernel masks what it reads. The gradient of a cast is passed on in half precision likewise. */
#include "tensor/fuse/internal.h"
#include "device/device.h"
#include "tensor/from_ops.h"
#include "tensor/memory_format.h"

/* Returns whether node may pass its gradient on unchanged: no hook or caller sees it in between. */
static bool may_defer(const tern_backward_pass *w, const tern_node *node)
{
    const tern_edge *edge = &node->edge[0];
    const tern_tensor *dout = node->output[0].dout;
    if (!edge->node || edge->output != 0 || !dout || dout->numel == 0 || w->create || w->wanted ||
        tern_thread.mode.anomaly.on || !tern_place_is_grouped(node->place))
        return false;
    const tern_node_output *out = &edge->node->output[0];
    return !out->dout && !out->hooks && !out->retainer;
}

static bool takes_half(const tern_fusion *next, const tern_tensor *dout,
                       const tern_node_output *out)
{
    return next->takes_half_grad && tern_dtype_is_half(dout->dtype) && out->dtype == TERN_F32 &&
           dout->contiguous;
}

/* relu: its result, or a tensor of the same shape, dtype and memory format. */
static bool takes_relu(const tern_fusion *next, const tern_tensor *dout, const tern_tensor *relu,
                       const tern_node_output *out)
{
    return next->takes_deferred_relu && relu && dout->dtype == relu->dtype &&
           relu->dtype == out->dtype && tern_same_shape(dout, relu) && tern_lies_as(dout, relu) &&
           tern_lies_as(relu, dout);
}

bool tern_defer_gradient(const tern_backward_pass *w, tern_node *node)
{
    const tern_fusion *fusion = tern_fusion_of(node);
    if ((!fusion->is_relu && !fusion->is_cast) || !may_defer(w, node))
        return false;
    const tern_fusion *next = tern_fusion_of(node->edge[0].node);
    tern_node_output *out = &node->edge[0].node->output[0];
    const tern_saved *saved = &node->saved[node->n_in];
    const bool finds = fusion->is_relu && !saved->tensor && saved->packed && saved->packed->maker;
    tern_tensor *dout = node->output[0].dout, *relu = saved->tensor;
    const tern_tensor *like = finds ? node->edge[0].node->saved[0].tensor : relu;
    if (fusion->is_cast ? !takes_half(next, dout, out) : !takes_relu(next, dout, like, out))
        return false;
    out->dout = tern_keep(dout);
    out->fused.relu = fusion->is_relu && !finds ? tern_keep(relu) : NULL;
    out->fused.finds_relu = finds;
    return true;
}

tern_status tern_fuse_settle(const tern_node *node, tern_node_output *out)
{
    const bool finds = out->fused.finds_relu;
    if (out->dout && (out->fused.relu || finds || out->dout->dtype != out->dtype)) {
        tern_tensor *relu = finds ? tern_fuse_relu_again(node) : out->fused.relu, *done = NULL;
        if (finds && !relu)
            return tern_last_status();
        done = relu ? tern_from_ops->relu_dx(out->dout, relu)
                    : tern_from_ops->to_dtype(out->dout, out->dtype);
        if (!done)
            return tern_last_status();
        tern_keep(done);
        tern_release(out->dout);
        out->dout = done;
    }
    tern_fused_output_clear(&out->fused);
    return TERN_OK;
}
