/* masks.c -- relu behind a norm: on devices with work-groups the norm's kernels do its part, both ways.
 *
 * On the way back relu's gradient is a mask on what came to it. If that goes on to an operation that takes a mask, and nobody
 * looks at it on its way, the operation's own kernel masks what it reads.
 *
 * On the way there relu is called when the norm is done. Which norms it follows is remembered: one whose result went to relu
 * makes that with its result the next time, and relu takes it. What is remembered is a guess, by the weight's address:
 * where it is wrong, a tensor was made that nobody wants, once. */
#include "base/debug.h"
#include "tensor/walk.h"

/* ---- the way back ---------------------------------------------------------------------------- */

bool tern_walk_leave_mask(const tern_walk *w, tern_node *node)
{
    if (!node->op->masks)
        return false;
    const tern_edge *edge = &node->edge[0];
    tern_tensor *dout = node->output[0].dout, *mask = node->saved[node->n_in].tensor;
    if (!edge->node || !edge->node->op->takes_mask || edge->output != 0 || !dout || !mask ||
        w->create || w->wanted || tern_thread.mode.anomaly.on ||
        !tern_place_is_grouped(node->place))
        return false;
    tern_node_output *out = &edge->node->output[0];
    if (out->dout || out->hooks || out->retainer || !dout->contiguous || !mask->contiguous ||
        dout->dtype != mask->dtype || mask->dtype != out->dtype || dout->numel == 0 ||
        !tern_same_shape(dout, mask))
        return false;
    out->dout = tern_keep(dout);
    out->mask = tern_keep(mask);
    return true;
}

tern_status tern_walk_unmask(tern_node_output *out)
{
    if (!out->mask)
        return TERN_OK;
    tern_tensor *masked = tern_hook_masked(out->dout, out->mask);
    if (!masked)
        return tern_last_status();
    tern_keep(masked);
    tern_release(out->dout);
    tern_release(out->mask);
    out->dout = masked;
    out->mask = NULL;
    return TERN_OK;
}

/* ---- the way there --------------------------------------------------------------------------- */

/* By weights' addresses; two may share one. */
static atomic_uchar *followed(const tern_tensor *weight)
{
    static atomic_uchar seen[4096];
    return &seen[((uintptr_t)weight >> 4) * 0x9e3779b1u >> 8 & 4095];
}

bool tern_companion_is_wanted(const tern_call *call, const tern_tensor *weight)
{
    return weight && tern_place_is_grouped(call->place) && !tern_thread.mode.frame &&
           !tern_thread.mode.trace && !tern_thread.mode.anomaly.on && !tern_debugging &&
           tern_must_record(call->op, call->in, call->n_in) &&
           atomic_exchange_explicit(followed(weight), 0, memory_order_relaxed);
}

tern_tensor *tern_take_companion(const tern_tensor *x)
{
    const tern_history *history = x->history;
    tern_node *node = history ? history->node : NULL;
    if (!node || !node->op->companion || history->output != 0 || node->frame ||
        tern_tensor_version(x) != 0)
        return NULL;
    if (node->edge[1].leaf)
        atomic_store_explicit(followed(node->edge[1].leaf), 1, memory_order_relaxed);
    if (node->op->companion >= node->n_out)
        return NULL;
    tern_tensor **saved = &node->saved[node->n_in + node->op->companion].tensor;
    return __atomic_exchange_n(saved, NULL, __ATOMIC_ACQ_REL);
}
