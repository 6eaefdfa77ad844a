/* tape.c -- recording: whether an operation is recorded, its node's edges and saved tensors. */
#include "tensor/frame.h"
#include "tensor/fuse/fuse.h"
#include "tensor/history.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>

bool tern_is_grad_enabled(void)
{
    return !tern_thread.mode.no_grad;
}

void tern_set_grad_enabled(bool enabled)
{
    tern_thread.mode.no_grad = !enabled;
}

tern_grad_block tern_grad_block_enter(bool enabled)
{
    tern_grad_block block = {.active = 1, .saved = !tern_thread.mode.no_grad};
    tern_thread.mode.no_grad = !enabled;
    return block;
}

void tern_grad_block_leave(tern_grad_block *block)
{
    tern_thread.mode.no_grad = !block->saved;
}

/* ---- edges ------------------------------------------------------------------------------- */

bool tern_must_record(const tern_op *op, tern_tensor *const *in, int n)
{
    if (op->not_differentiable)
        return false;
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->requires_grad)
            return !tern_thread.mode.no_grad;
    return false;
}

tern_edge tern_edge_to(tern_tensor *x)
{
    tern_edge edge = {0};
    if (!x || !x->requires_grad)
        return edge;
    if (x->history && x->history->node) {
        edge.node = x->history->node;
        edge.output = x->history->output;
        tern_node_retain(edge.node);
    } else {
        edge.leaf = tern_keep(x);
    }
    return edge;
}

tern_status tern_node_attach(tern_node *node, int i, tern_tensor *x)
{
    tern_history *history = tern_history_of(x);
    if (!history)
        return TERN_ERR_MEMORY;
    tern_node_retain(node);
    if (history->retains_grad) { /* after a write in place, the new value's gradient is retained */
        if (history->node)
            history->node->output[history->output].retainer = NULL;
        node->output[i].retainer = x;
    }
    tern_node_release(history->node);
    history->node = node;
    history->output = i;
    x->requires_grad = true;
    return TERN_OK;
}

/* ---- saved tensors, or their numbers in a checkpoint's frame ------------------------------- */

int64_t tern_frame_number(tern_frame *f, tern_tensor *x)
{
    if (!f->again) {
        tern_release(x);
        return f->let_go++;
    }
    if (f->n_kept == f->capacity) {
        int64_t capacity = f->capacity ? 2 * f->capacity : 32;
        tern_saved *kept = tern_grow(f->kept, sizeof *kept * (size_t)capacity);
        if (kept) {
            f->kept = kept;
            f->capacity = capacity;
        }
    }
    /* The tensor is stored without its history, which would hold the nodes of the second run. */
    tern_tensor *detached = f->n_kept < f->capacity ? tern_tensor_detached(x) : NULL;
    tern_release(x);
    if (!detached)
        return -1;
    f->kept[f->n_kept] = (tern_saved){.tensor = detached, .version = tern_tensor_version(detached)};
    return f->n_kept++;
}

static tern_status save_in_frame(tern_frame *f, tern_node *node, int slot, tern_tensor *x)
{
    int64_t i = tern_frame_number(f, x);
    if (i < 0)
        return TERN_ERR_MEMORY;
    node->saved[slot].version = -1 - i;
    if (!node->frame) {
        atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
        node->frame = f;
    }
    return TERN_OK;
}

/* A leaf is saved even in a checkpoint: the program holds it, so its memory would not be freed. */
tern_status tern_node_keep(tern_node *node, int slot, tern_tensor *x)
{
    tern_frame *f = tern_thread.mode.frame;
    if (f && !(slot < node->n_in && node->edge[slot].leaf))
        return save_in_frame(f, node, slot, x);
    return tern_node_pack(node, slot, x);
}

void tern_node_saved_written(tern_node *node, int slot, const tern_tensor *x)
{
    tern_frame *f = tern_thread.mode.frame;
    tern_saved *s = &node->saved[slot];
    if (s->tensor)
        s->version = tern_tensor_version(x);
    else if (f && f->again)
        f->kept[-1 - s->version].version = tern_tensor_version(x);
}

/* ---- recording --------------------------------------------------------------------------- */

static tern_status save(tern_node *node, const tern_call *call, tern_tensor *const *in)
{
    const tern_op *op = call->op;
    uint32_t saves = op->choose_saves ? op->choose_saves(call) : op->saves;
    for (int i = 0; i < call->n_in; i++)
        if (in[i] && saves & TERN_SAVE_IN(i))
            TERN_TRY(tern_node_keep(node, i, tern_keep(in[i])));
    for (int i = 0; i < call->n_out; i++)
        if (i == 0 && saves & TERN_SAVE_OUT(i) && tern_fuse_finds_relu(node, call)) {
            TERN_TRY(tern_node_leave_relu(node));
        } else if (saves & TERN_SAVE_OUT(i)) {
            tern_tensor *detached = tern_tensor_detached(call->out[i]);
            if (!detached)
                return TERN_ERR_MEMORY;
            TERN_TRY(tern_node_keep(node, call->n_in + i, detached));
        }
    return TERN_OK;
}

tern_status tern_node_fill(tern_node *node, const tern_call *call, tern_tensor *const *in)
{
    for (int i = 0; i < call->n_in; i++) {
        if (!in[i])
            continue;
        node->edge[i] = tern_edge_to(in[i]);
        tern_read_shape(in[i], &node->in_shape[i]);
    }
    for (int i = 0; i < call->n_out; i++) {
        tern_node_output *out = &node->output[i];
        out->dtype = call->out[i]->dtype;
        out->differentiable =
            tern_dtype_is_floating_point(out->dtype) && !(call->op->no_grad_out >> i & 1);
    }
    return save(node, call, in);
}

/* Fills the node of a call, attaches it to the outputs and releases the caller's reference. */
static tern_status hang(tern_node *node, const tern_call *call, tern_tensor *const *in)
{
    tern_status status = tern_node_fill(node, call, in);
    for (int i = 0; i < call->n_out && status == TERN_OK; i++)
        if (node->output[i].differentiable)
            status = tern_node_attach(node, i, call->out[i]);
    tern_node_release(node);
    return status;
}

tern_status tern_record(const tern_call *call, tern_tensor *const *in, size_t attribute_bytes)
{
    tern_node *node = tern_node_new(call->op, call->place, call->n_in, call->n_out,
                                    call->attributes, attribute_bytes);
    return node ? hang(node, call, in) : TERN_ERR_MEMORY;
}

tern_status tern_record_made(const tern_op *op, tern_tensor *in, tern_tensor *out, void *attributes,
                             size_t attribute_bytes)
{
    tern_call call;
    call.op = op;
    call.in = &in;
    call.n_in = call.n_out = 1;
    call.out[0] = out;
    tern_node *node = tern_node_new(op, in->storage->place, 1, 1, attributes, attribute_bytes);
    if (!node && op->release)
        op->release(attributes);
    return node ? hang(node, &call, &in) : TERN_ERR_MEMORY;
}
