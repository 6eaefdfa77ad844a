/* speculative.c -- relu and casts behind a norm: on devices with work-groups the norm's kernel makes their results too.
 *
 * Relu is called when the norm is done. Which norms it follows is remembered: a norm whose result went to relu makes that with
 * its result the next time, and relu takes it. A cast to half precision behind a norm is made likewise. What is remembered is
 * a guess, by the weight's address: where it is wrong, a tensor was made that nobody wants, once. */
#include "base/debug.h"
#include "tensor/fuse/parts.h"

bool tern_may_fuse(const tern_place *place)
{
    return tern_place_is_grouped(place) && !tern_thread.mode.trace &&
           !tern_thread.mode.anomaly.on && !tern_debugging;
}

/* The weight's address and the dtype in one number: 0 where there is none. */
enum { SEEN = 4096, NEAR = 4 };
static atomic_uintptr_t seen[SEEN + NEAR];

/* Where a weight's number is; else, to put it there, a free place near or that of another. NULL: there is none. */
static atomic_uintptr_t *followed(const tern_tensor *weight, bool put)
{
    const uintptr_t at = (uintptr_t)weight;
    atomic_uintptr_t *first = &seen[(at >> 4) * 0x9e3779b1u >> 8 & (SEEN - 1)], *free = NULL;
    for (int k = 0; k < NEAR; k++) {
        const uintptr_t number = atomic_load_explicit(first + k, memory_order_relaxed);
        if (number - at < sizeof *weight)
            return first + k;
        free = !number && !free ? first + k : free;
    }
    return !put ? NULL : free ? free : first;
}

tern_dtype tern_speculate(const tern_call *call, const tern_tensor *weight)
{
    if (!weight || !tern_may_fuse(call->place) || tern_thread.mode.frame ||
        !tern_must_record(call->op, call->in, call->n_in))
        return TERN_DTYPE_DEFAULT;
    atomic_uintptr_t *place = followed(weight, false);
    const uintptr_t number = place ? atomic_exchange_explicit(place, 0, memory_order_relaxed) : 0;
    return number - (uintptr_t)weight < sizeof *weight ? (tern_dtype)(number - (uintptr_t)weight)
                                                       : TERN_DTYPE_DEFAULT;
}

/* relu of x, or with another dtype x in that, once; NULL: nobody made it. */
static tern_tensor *take(const tern_tensor *x, tern_dtype dtype)
{
    const tern_history *history = x->history;
    tern_node *node = history ? history->node : NULL;
    const int k = node ? tern_fusion_of(node)->speculative_output : 0;
    if (k == 0 || history->output != 0 || node->frame || tern_tensor_version(x) != 0 ||
        node->op->fusion->speculative_cast != (dtype != x->dtype))
        return NULL;
    const tern_tensor *weight = node->edge[1].leaf;
    if (weight)
        atomic_store_explicit(followed(weight, true), (uintptr_t)weight + (uintptr_t)dtype,
                              memory_order_relaxed);
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
