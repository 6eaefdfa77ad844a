/* masks.c -- relu and casts behind a norm: on devices with work-groups the norm's kernels do their part.
 *
 * On the way back relu's gradient is a mask on what came to it. If that goes on to an operation that takes a mask, and nobody
 * looks at it on its way, the operation's own kernel masks what it reads. A cast's gradient goes on in half precision likewise.
 *
 * On the way there relu is called when the norm is done. Which norms it follows is remembered: one whose result went to relu
 * makes that with its result the next time, and relu takes it. A cast to half precision behind a norm is made likewise. What
 * is remembered is a guess, by the weight's address: where it is wrong, a tensor was made that nobody wants, once. */
#include "base/debug.h"
#include "tensor/fuse/fuse.h"
#include "tensor/memory_format.h"
#include "tensor/walk.h"
#include <tern/ops/copy.h>

/* ---- the way back ---------------------------------------------------------------------------- */

static bool is_half(tern_dtype dtype)
{
    return dtype == TERN_F16 || dtype == TERN_BF16;
}

/* Whether node's gradient may go on as it is: nobody sees it on its way. */
static bool may_leave(const tern_walk *w, const tern_node *node)
{
    const tern_edge *edge = &node->edge[0];
    const tern_tensor *dout = node->output[0].dout;
    if (!edge->node || edge->output != 0 || !dout || dout->numel == 0 || w->create || w->wanted ||
        tern_thread.mode.anomaly.on || !tern_place_is_grouped(node->place))
        return false;
    const tern_node_output *out = &edge->node->output[0];
    return !out->dout && !out->hooks && !out->retainer;
}

bool tern_walk_leave_mask(const tern_walk *w, tern_node *node)
{
    const tern_fusion *op = node->op->fusion;
    if (!op || (!op->is_relu && !op->is_cast) || !may_leave(w, node))
        return false;
    const tern_fusion *next = node->edge[0].node->op->fusion;
    tern_node_output *out = &node->edge[0].node->output[0];
    tern_tensor *dout = node->output[0].dout, *mask = node->saved[node->n_in].tensor;
    if (!next)
        return false;
    if (op->is_cast ? !next->takes_half_grad || !is_half(dout->dtype) || out->dtype != TERN_F32 ||
                          !dout->contiguous
                    : !next->takes_deferred_relu || !mask || dout->dtype != mask->dtype ||
                          mask->dtype != out->dtype || !tern_same_shape(dout, mask) ||
                          !tern_lies_as(dout, mask) || !tern_lies_as(mask, dout))
        return false;
    out->dout = tern_keep(dout);
    out->mask = op->is_relu ? tern_keep(mask) : NULL;
    return true;
}

/* Either is still to be done, as somebody wants to see it. */
tern_status tern_walk_unmask(tern_node_output *out)
{
    if (!out->dout || (!out->mask && out->dout->dtype == out->dtype))
        return TERN_OK;
    tern_tensor *done =
        out->mask ? tern_hook_masked(out->dout, out->mask) : tern_to_dtype(out->dout, out->dtype);
    if (!done)
        return tern_last_status();
    tern_keep(done);
    tern_release(out->dout);
    tern_release(out->mask);
    out->dout = done;
    out->mask = NULL;
    return TERN_OK;
}

/* ---- dx in half precision too ------------------------------------------------------------------ */

/* A sum of float32 and halves, as residuals are under autocast, gives its gradient to both: what makes that gradient
 * writes it in both types, where it can. */
tern_dtype tern_walk_also(const tern_walk *w, const tern_node *node)
{
    const tern_node *sum = node->edge[0].node;
    if (!node->op->fusion || !node->op->fusion->takes_half_grad || !sum || !sum->op->fusion ||
        !sum->op->fusion->mixes_dtypes || w->create || w->wanted || tern_thread.mode.anomaly.on)
        return TERN_DTYPE_DEFAULT;
    for (int i = 0; i < sum->n_in; i++) {
        const tern_edge *edge = &sum->edge[i];
        if (edge->node && is_half(edge->node->output[edge->output].dtype))
            return edge->node->output[edge->output].dtype;
    }
    return TERN_DTYPE_DEFAULT;
}

uint32_t tern_walk_wide(const tern_walk *w, const tern_node *node)
{
    uint32_t wide = 0;
    if (w->create || w->wanted || w->heap.counts || tern_thread.mode.anomaly.on ||
        !tern_place_is_grouped(node->place))
        return 0;
    for (int i = 0; i < node->n_in && i < 32; i++) {
        const tern_node *cast = node->edge[i].node;
        if (!cast || !cast->op->fusion || !cast->op->fusion->is_cast || !cast->edge[0].leaf ||
            cast->edge[0].leaf->dtype != TERN_F32)
            continue;
        const tern_node_output *out = &cast->output[0];
        if (is_half(out->dtype) && !out->hooks && !out->retainer)
            wide |= 1u << i;
    }
    return wide;
}

void tern_walk_forget_half(tern_node_output *out)
{
    tern_release(out->half);
    out->half = NULL;
}

/* ---- the way there --------------------------------------------------------------------------- */

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

bool tern_may_fuse(const tern_place *place)
{
    return tern_place_is_grouped(place) && !tern_thread.mode.trace &&
           !tern_thread.mode.anomaly.on && !tern_debugging;
}

tern_dtype tern_companion_is_wanted(const tern_call *call, const tern_tensor *weight)
{
    if (!weight || !tern_may_fuse(call->place) || tern_thread.mode.frame ||
        !tern_must_record(call->op, call->in, call->n_in))
        return TERN_DTYPE_DEFAULT;
    atomic_uintptr_t *place = followed(weight, false);
    const uintptr_t number = place ? atomic_exchange_explicit(place, 0, memory_order_relaxed) : 0;
    return number - (uintptr_t)weight < sizeof *weight ? (tern_dtype)(number - (uintptr_t)weight)
                                                       : TERN_DTYPE_DEFAULT;
}

tern_tensor *tern_take_companion(const tern_tensor *x, tern_dtype dtype)
{
    const tern_history *history = x->history;
    tern_node *node = history ? history->node : NULL;
    if (!node || !node->op->fusion || !node->op->fusion->speculative_output ||
        history->output != 0 || node->frame || tern_tensor_version(x) != 0 ||
        node->op->fusion->speculative_cast != (dtype != x->dtype))
        return NULL;
    const tern_tensor *weight = node->edge[1].leaf;
    if (weight)
        atomic_store_explicit(followed(weight, true), (uintptr_t)weight + (uintptr_t)dtype,
                              memory_order_relaxed);
    if (node->op->fusion->speculative_output >= node->n_out)
        return NULL;
    tern_tensor **saved = &node->saved[node->n_in + node->op->fusion->speculative_output].tensor;
    if (!*saved || (*saved)->dtype != dtype)
        return NULL;
    return __atomic_exchange_n(saved, NULL, __ATOMIC_ACQ_REL);
}
