/* accumulate.c -- a gradient that its kernel adds to the gradient that has already arrived
 * (accumulate_into). */
#include "tensor/fuse/internal.h"

/* Returns the address of the gradient to which that of input 0 can be added; NULL if there is none.
 * In passes that keep each gradient visible (create_graph, anomaly detection) there is none. */
static tern_tensor **already_there(tern_backward_pass *w, const tern_node *node)
{
    if (!tern_fusion_of(node)->accumulates || w->create || tern_thread.mode.anomaly.gradients)
        return NULL;
    const tern_edge *edge = &node->edge[0];
    tern_node_output *out = edge->node ? &edge->node->output[edge->output] : NULL;
    tern_arrival *leaf = edge->leaf ? tern_pass_leaf(w, edge->leaf) : NULL;
    tern_tensor **grad = out ? &out->dout : leaf ? &leaf->grad : NULL;
    if (!grad || !*grad || (out && (out->fused.relu || out->fused.finds_relu)) ||
        !(*grad)->contiguous || (*grad)->storage->place != node->place)
        return NULL;
    tern_shape shape;
    tern_read_shape(*grad, &shape);
    tern_dtype dtype = out ? out->dtype : edge->leaf->dtype;
    return tern_shape_equal(&shape, &node->in_shape[0]) && (*grad)->dtype == dtype ? grad : NULL;
}

void tern_accumulate_offer(tern_backward_pass *w, const tern_node *node, tern_fused_gradient *f)
{
    f->sum = already_there(w, node);
    if (!f->sum)
        return;
    f->accumulate_into = *f->sum;
    f->accumulates_in_place = atomic_load(&f->accumulate_into->handle.refs) == 1 &&
                              atomic_load(&f->accumulate_into->storage->refs) == 1;
}

void tern_accumulate_take(const tern_gradient *g)
{
    tern_tensor **sum = g->fused->sum;
    tern_keep(g->din[0]);
    tern_release(*sum);
    *sum = g->din[0];
    g->din[0] = NULL;
}
