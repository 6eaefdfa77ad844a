/* batched.c -- nodes that run together at the end of a backward pass, in one launch: nodes whose
 * input is a leaf, if nothing waits for the leaf's gradient. */
#include "tensor/fuse/internal.h"

tern_status tern_batch_node(tern_backward_pass *w, tern_node *node, bool *batched)
{
    tern_fused_pass *f = &w->fused;
    *batched = tern_fusion_of(node)->batched_backward && node->edge[0].leaf &&
               node->output[0].dout && !w->create && !w->wanted && !w->heap.counts &&
               !tern_thread.mode.anomaly.on;
    if (!*batched)
        return TERN_OK;
    if (f->n_batched == f->batched_capacity) {
        int capacity = f->batched_capacity ? 2 * f->batched_capacity : 64;
        tern_batched_node *grown = tern_grow(f->batched, sizeof *grown * (size_t)capacity);
        if (!grown)
            return TERN_ERR_MEMORY;
        f->batched = grown;
        f->batched_capacity = capacity;
    }
    tern_node_retain(node);
    f->batched[f->n_batched++] = (tern_batched_node){node, tern_keep(node->output[0].dout)};
    return TERN_OK;
}

/* Runs n nodes of one operation. */
static tern_status run(tern_backward_pass *w, const tern_batched_node *nodes, int n)
{
    void *attributes[n];
    tern_tensor *dout[n], *din[n];
    for (int i = 0; i < n; i++) {
        attributes[i] = nodes[i].node->attributes;
        dout[i] = nodes[i].dout;
        din[i] = NULL;
    }
    TERN_TRY(nodes[0].node->op->fusion->batched_backward(attributes, dout, din, n));
    TERN_TRY(tern_failed_since(w->failures));
    for (int i = 0; i < n; i++) {
        const tern_edge *edge = &nodes[i].node->edge[0];
        TERN_TRY(tern_fit_edge(&din[i], edge));
        TERN_TRY(tern_pass_to_leaf(w, edge->leaf, din[i]));
    }
    return TERN_OK;
}

tern_status tern_fuse_run_batched(tern_backward_pass *w)
{
    enum { MOST = 1024 }; /* limits the arrays on the stack of run */
    const tern_fused_pass *f = &w->fused;
    tern_status status = TERN_OK;
    for (int from = 0, to; from < f->n_batched && status == TERN_OK; from = to) {
        const tern_op *op = f->batched[from].node->op;
        to = from + 1;
        while (to < f->n_batched && to - from < MOST && f->batched[to].node->op == op)
            to++;
        TERN_SCOPE
            status = run(w, f->batched + from, to - from);
    }
    tern_batched_drop(w);
    return status;
}

void tern_batched_drop(tern_backward_pass *w)
{
    tern_fused_pass *f = &w->fused;
    for (int i = 0; i < f->n_batched; i++) {
        tern_release(f->batched[i].dout);
        tern_node_release(f->batched[i].node);
    }
    tern_free(f->batched);
    f->batched = NULL;
    f->n_batched = f->batched_capacity = 0;
}
