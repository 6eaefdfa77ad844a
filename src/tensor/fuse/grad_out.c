/* grad_out.c -- gradients that the operation itself writes into the leaf's bucket view (leaf.h),
 * instead of a copy when the leaf is finished. */
#include "tensor/fuse/internal.h"
#include "tensor/history.h"
#include "tensor/tensor.h"

/* Returns the bucket view of a leaf; NULL if a hook or the caller gets the gradient first, or if a
 * gradient has arrived already. */
static tern_tensor *bucket_view(tern_backward_pass *w, const tern_edge *edge)
{
    tern_history *h = edge->leaf ? edge->leaf->history : NULL;
    if (!h || !h->leaf || !h->leaf->bucket_view || h->hooks || w->create || w->wanted)
        return NULL;
    tern_arrival *a = tern_pass_leaf(w, edge->leaf);
    return a && !a->grad && tern_fuse_claim(w, a) ? h->leaf->bucket_view : NULL;
}

/* Returns whether node's backward may read x's memory: the gradient of an earlier step may be an
 * input. */
static bool is_read(const tern_node *node, const tern_tensor *x)
{
    for (int i = 0; i < node->n_in + node->n_out; i++)
        if (node->saved[i].tensor && node->saved[i].tensor->storage == x->storage)
            return true;
    for (int i = 0; i < node->n_out; i++)
        if (node->output[i].dout && node->output[i].dout->storage == x->storage)
            return true;
    return false;
}

/* If a leaf is several inputs, one of them gets its bucket view. */
void tern_grad_outs_offer(tern_backward_pass *w, const tern_node *node, tern_fused_gradient *f)
{
    const uint32_t all = tern_fusion_of(node)->grad_outs;
    for (int i = 0; all && i < node->n_in && i < TERN_MAX_GRAD_OUTS; i++) {
        tern_tensor *out =
            all >> i & 1 ? bucket_view(w, tern_edge_past_cast(node, i, f->f32_grads)) : NULL;
        for (int k = 0; k < i && out; k++)
            out = f->grad_out[k] == out ? NULL : out;
        f->grad_out[i] = out && !is_read(node, out) ? out : NULL;
    }
}

/* The version is incremented, because a node may have saved the gradient of an earlier step. */
void tern_grad_outs_take(const tern_gradient *g)
{
    tern_tensor *const *out = g->fused->grad_out;
    for (int i = 0; i < g->n_in && i < TERN_MAX_GRAD_OUTS; i++)
        if (out[i] && g->din[i] == out[i])
            tern_bump_version(out[i]);
}
