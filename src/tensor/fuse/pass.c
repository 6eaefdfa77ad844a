/* pass.c -- the steps of fusion in a backward pass, in the order in which the pass calls them. */
#include "tensor/fuse/internal.h"

tern_status tern_fuse_defer(tern_backward_pass *w, tern_node *node, bool *deferred,
                            tern_node **next)
{
    *next = NULL;
    *deferred = false;
    if (!node->op->fusion)
        return TERN_OK;
    TERN_TRY(tern_batch_node(w, node, deferred));
    if (*deferred || !tern_defer_gradient(w, node))
        return TERN_OK;
    *deferred = true;
    *next = node->edge[0].node;
    return TERN_OK;
}

bool tern_fuse_begin(tern_backward_pass *w, const tern_node *node, tern_gradient *g,
                     tern_fused_gradient *f)
{
    *f = (tern_fused_gradient){.f32_grads = tern_f32_grads_wanted(w, node)};
    g->fused = f;
    if (!node->op->fusion)
        return false;
    f->half_copy_dtype = tern_half_copy_wanted(w, node);
    f->relu = node->output[0].fused.relu;
    f->finds_relu = node->output[0].fused.finds_relu;
    tern_accumulate_offer(w, node, f);
    tern_grad_outs_offer(w, node, f);
    f->may_overwrite = tern_overwrite_offer(w, node);
    f->again = tern_again_offer(node);
    g->din[0] = tern_seed_gradient(w, node, g->needs);
    if (!g->din[0] && !w->create)
        g->din[0] = node->output[0].fused.din;
    return g->din[0] != NULL;
}

void tern_fuse_end(const tern_gradient *g)
{
    tern_grad_outs_take(g);
    g->fused->made = g->din[0];
    if (g->fused->accumulated)
        tern_accumulate_take(g);
}

const tern_edge *tern_fuse_route(const tern_node *node, const tern_gradient *g, int i)
{
    const tern_edge *edge = &node->edge[i];
    const tern_node_output *out = &node->output[0];
    tern_tensor *half = out->fused.half_copy;
    if (half && g->din[i] == out->dout && edge->node &&
        edge->node->output[edge->output].dtype == half->dtype)
        g->din[i] = half;
    return g->din[i]->dtype == TERN_F32 ? tern_edge_past_cast(node, i, g->fused->f32_grads) : edge;
}

/* If the next node's dout is the gradient that backward computed, its copy in half precision, and
 * the gradient computed with it (again_din), are stored there too. */
void tern_fuse_routed(const tern_node *node, const tern_gradient *g)
{
    const tern_edge *edge = &node->edge[0];
    if (!edge->node || !(g->fused->half_copy || g->fused->accumulated || g->fused->again_din))
        return;
    tern_node_output *out = &edge->node->output[edge->output];
    if (out->dout != g->fused->made)
        return;
    tern_release(out->fused.din);
    out->fused.din = g->fused->again_din ? tern_keep(g->fused->again_din) : NULL;
    tern_release(out->fused.half_copy);
    out->fused.half_copy = tern_keep(g->fused->half_copy);
}

void tern_fuse_free(tern_backward_pass *w)
{
    tern_batched_drop(w);
    tern_seed_free(w);
}
