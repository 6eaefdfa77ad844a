/* together.c -- nodes that run at the end of a walk back, all in one: those before leaves whose gradients nobody waits for. */
#include "tensor/fuse/fuse.h"
#include "tensor/walk.h"

tern_status tern_walk_put_off(tern_walk *w, tern_node *node, bool *waits)
{
    *waits = node->op->fusion && node->op->fusion->batched_backward && node->edge[0].leaf &&
             node->output[0].dout && !w->create && !w->wanted && !w->heap.counts &&
             !tern_thread.mode.anomaly.on;
    if (!*waits)
        return TERN_OK;
    if (w->n_later == w->later_capacity) {
        int capacity = w->later_capacity ? 2 * w->later_capacity : 64;
        tern_put_off *later = tern_grow(w->later, sizeof *later * (size_t)capacity);
        if (!later)
            return TERN_ERR_MEMORY;
        w->later = later;
        w->later_capacity = capacity;
    }
    tern_node_retain(node);
    w->later[w->n_later++] = (tern_put_off){node, tern_keep(node->output[0].dout)};
    return TERN_OK;
}

/* Of nodes `from` to `to`, which are of one operation. */
static tern_status run(tern_walk *w, int from, int to)
{
    int n = to - from;
    void *attributes[n];
    tern_tensor *dout[n], *din[n];
    for (int i = 0; i < n; i++) {
        attributes[i] = w->later[from + i].node->attributes;
        dout[i] = w->later[from + i].dout;
        din[i] = NULL;
    }
    TERN_TRY(w->later[from].node->op->fusion->batched_backward(attributes, dout, din, n));
    TERN_TRY(tern_failed_since(w->failures));
    for (int i = 0; i < n; i++) {
        const tern_edge *edge = &w->later[from + i].node->edge[0];
        TERN_TRY(tern_fit_edge(&din[i], edge));
        TERN_TRY(tern_walk_to_leaf(w, edge->leaf, din[i]));
    }
    return TERN_OK;
}

tern_status tern_walk_run_later(tern_walk *w)
{
    enum { MOST = 1024 }; /* their tensors are on the stack */
    tern_status status = TERN_OK;
    for (int from = 0, to; from < w->n_later && status == TERN_OK; from = to) {
        const tern_op *op = w->later[from].node->op;
        to = from + 1;
        while (to < w->n_later && to - from < MOST && w->later[to].node->op == op)
            to++;
        TERN_SCOPE
            status = run(w, from, to);
    }
    tern_walk_drop_later(w);
    return status;
}

void tern_walk_drop_later(tern_walk *w)
{
    for (int i = 0; i < w->n_later; i++) {
        tern_release(w->later[i].dout);
        tern_node_release(w->later[i].node);
    }
    tern_free(w->later);
    w->later = NULL;
    w->n_later = w->later_capacity = 0;
}
