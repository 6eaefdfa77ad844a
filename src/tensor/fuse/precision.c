/* precision.c -- gradients in the one or two precisions that the next nodes need. */
#include "tensor/fuse/internal.h"
#include "device/device.h"

/* The gradient of a sum of float32 and half precision (residuals under autocast) is needed in both
 * types: the kernel that computes it writes both, if it can. */
tern_dtype tern_half_copy_wanted(const tern_backward_pass *w, const tern_node *node)
{
    if (!tern_fusion_of(node)->takes_half_grad || w->create || w->wanted ||
        tern_thread.mode.anomaly.on)
        return TERN_DTYPE_DEFAULT;
    const tern_node *sum = node->edge[0].node;
    if (!sum || !tern_fusion_of(sum)->mixes_dtypes)
        return TERN_DTYPE_DEFAULT;
    for (int i = 0; i < sum->n_in; i++) {
        const tern_edge *edge = &sum->edge[i];
        if (edge->node && tern_dtype_is_half(edge->node->output[edge->output].dtype))
            return edge->node->output[edge->output].dtype;
    }
    return TERN_DTYPE_DEFAULT;
}

uint32_t tern_f32_grads_wanted(const tern_backward_pass *w, const tern_node *node)
{
    uint32_t wanted = 0;
    if (w->create || w->wanted || w->heap.counts || tern_thread.mode.anomaly.on ||
        !tern_place_is_grouped(node->place))
        return 0;
    for (int i = 0; i < node->n_in && i < 32; i++) {
        const tern_node *cast = node->edge[i].node;
        if (!cast || !tern_fusion_of(cast)->is_cast || !cast->edge[0].leaf ||
            cast->edge[0].leaf->dtype != TERN_F32)
            continue;
        const tern_node_output *out = &cast->output[0];
        if (tern_dtype_is_half(out->dtype) && !out->hooks && !out->retainer)
            wanted |= 1u << i;
    }
    return wanted;
}

const tern_edge *tern_edge_past_cast(const tern_node *node, int i, uint32_t f32_grads)
{
    const tern_edge *edge = &node->edge[i];
    return i < 32 && f32_grads >> i & 1 ? &edge->node->edge[0] : edge;
}
