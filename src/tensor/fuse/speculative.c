/* speculative.c -- relu or a cast after a norm: on devices with work-groups the norm's kernel
 * computes the result of relu or of the cast too.
 *
 * Relu is called after the norm. So the norm's weight stores what was applied to the norm's last
 * result: relu (as the dtype of the result) or a cast (as its dtype). The next call with that
 * weight computes this output too, and relu or the cast takes it. If another operation follows
 * instead, the output was computed in vain, and the weight stores nothing. */
#include "base/debug.h"
#include "tensor/fuse/internal.h"
#include "tensor/history.h"
#include "tensor/tensor.h"

bool tern_may_fuse(const tern_place *place)
{
    return tern_place_is_grouped(place) && !tern_thread.mode.trace &&
           !tern_thread.mode.anomaly.on && !tern_debugging;
}

tern_dtype tern_speculate(const tern_call *call, tern_tensor *weight)
{
    if (!weight || !tern_may_fuse(call->place) || tern_thread.mode.frame ||
        !tern_must_record(call->op, call->in, call->n_in))
        return TERN_DTYPE_DEFAULT;
    return (tern_dtype)atomic_exchange_explicit(&weight->speculation, TERN_DTYPE_DEFAULT,
                                                memory_order_relaxed);
}

/* Returns relu of x, or x cast to another dtype, if the norm computed it and it was not taken yet;
 * else NULL. Stores in the weight that it was wanted. */
static tern_tensor *take(const tern_tensor *x, tern_dtype dtype)
{
    const tern_history *history = x->history;
    tern_node *node = history ? history->node : NULL;
    const int k = node ? tern_fusion_of(node)->speculative_output : 0;
    if (k == 0 || history->output != 0 || node->frame || tern_tensor_version(x) != 0 ||
        node->op->fusion->speculative_cast != (dtype != x->dtype))
        return NULL;
    tern_tensor *weight = node->edge[1].leaf;
    if (weight)
        atomic_store_explicit(&weight->speculation, (unsigned char)dtype, memory_order_relaxed);
    if (k >= node->n_out)
        return NULL;
    tern_tensor **saved = &node->saved[node->n_in + k].tensor;
    if (!*saved || (*saved)->dtype != dtype)
        return NULL;
    return __atomic_exchange_n(saved, NULL, __ATOMIC_ACQ_REL);
}

bool tern_take_speculative(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    tern_tensor *out = call->out[0];
    if (out == x || out->numel == 0)
        return false;
    tern_tensor *y = take(x, out->dtype);
    if (!y)
        return false;
    tern_release(out);
    call->out[0] = y;
    return true;
}
