/* tape.c -- recording: nodes, their edges, what they save, and letting them go. */
#include "tensor/node.h"
#include <string.h>

static atomic_ullong serials;

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

/* ---- nodes ------------------------------------------------------------------------------- */

tern_node *tern_node_new(const tern_op *op, tern_place *place, int n_in, int n_out,
                         const void *attributes, size_t attribute_bytes)
{
    size_t in = (size_t)n_in, out = (size_t)n_out;
    size_t bytes = sizeof(tern_node) + in * (sizeof(tern_edge) + sizeof(tern_shape)) +
                   (in + out) * sizeof(tern_saved) + out * sizeof(tern_node_output) +
                   (attribute_bytes + 15) / 16 * 16;
    tern_node *node = tern_alloc(bytes);
    if (!node)
        return NULL;
    atomic_init(&node->refs, 1);
    node->op = op;
    node->place = place;
    node->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    node->n_in = n_in;
    node->n_out = n_out;
    node->edge = (tern_edge *)(node + 1);
    node->saved = (tern_saved *)(node->edge + in);
    node->in_shape = (tern_shape *)(node->saved + in + out);
    node->output = (tern_node_output *)(node->in_shape + in);
    node->attributes = node->output + out;
    if (attribute_bytes)
        memcpy(node->attributes, attributes, attribute_bytes);
    if (tern_thread.mode.anomaly.on)
        node->where = tern_anomaly_where();
    return node;
}

const char *tern_node_name(const tern_node *node)
{
    return node->op->name;
}

void tern_node_retain(tern_node *node)
{
    if (node)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

void tern_node_free_saved(tern_node *node)
{
    for (int i = 0; i < node->n_in + node->n_out; i++) {
        tern_tensor *x = node->saved[i].tensor;
        node->saved[i].tensor = NULL;
        tern_release(x);
    }
    node->freed = true;
    tern_frame_release(node->frame);
    node->frame = NULL;
    if (node->inner)
        tern_node_free_saved(node->inner);
}

static void free_node(tern_node *node)
{
    tern_node_free_saved(node);
    tern_free(node->where);
    tern_node_release(node->inner);
    for (int i = 0; i < node->n_in; i++) {
        tern_node_release(node->edge[i].node);
        tern_release(node->edge[i].leaf);
    }
    for (int i = 0; i < node->n_out; i++) {
        tern_release(node->output[i].dout);
        while (node->output[i].hooks) {
            tern_hook *next = node->output[i].hooks->next;
            tern_free(node->output[i].hooks);
            node->output[i].hooks = next;
        }
    }
    if (node->op->release)
        node->op->release(node->attributes);
    tern_free(node);
}

/* Freeing a node may free those before it: a list instead of recursion, so that the length of a
 * chain does not matter. */
void tern_node_release(tern_node *node)
{
    if (!node || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) > 1)
        return;
    tern_dead_nodes *dead = &tern_thread.dead;
    node->next_free = dead->first;
    dead->first = node;
    if (dead->draining)
        return;
    dead->draining = true;
    while ((node = dead->first)) {
        dead->first = node->next_free;
        free_node(node);
    }
    dead->draining = false;
}

/* ---- recording --------------------------------------------------------------------------- */

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

static void save_one(tern_node *node, int slot, tern_tensor *x)
{
    node->saved[slot].tensor = x;
    node->saved[slot].version = x ? tern_tensor_version(x) : 0;
}

tern_status tern_node_attach(tern_node *node, int i, tern_tensor *x)
{
    tern_history *history = tern_history_of(x);
    if (!history)
        return TERN_ERR_MEMORY;
    tern_node_retain(node);
    if (history->retains_grad) { /* a write in place: the gradient kept is the new value's */
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

void tern_node_saved_written(tern_node *node, int slot, const tern_tensor *x)
{
    if (node->saved[slot].tensor)
        node->saved[slot].version = tern_tensor_version(x);
    else
        tern_frame_written(node->saved[slot].version, tern_tensor_version(x));
}

/* Leaves are there anyway: a checkpoint would gain nothing by letting them go. */
tern_status tern_node_keep(tern_node *node, int slot, tern_tensor *x)
{
    if (tern_thread.mode.frame && !(slot < node->n_in && node->edge[slot].leaf))
        return tern_frame_save(node, slot, x);
    save_one(node, slot, x);
    return TERN_OK;
}

static tern_status save(tern_node *node, const tern_call *call, tern_tensor *const *in)
{
    const tern_op *op = call->op;
    uint32_t saves = op->choose_saves ? op->choose_saves(call) : op->saves;
    for (int i = 0; i < call->n_in; i++)
        if (in[i] && saves & TERN_SAVE_IN(i))
            TERN_TRY(tern_node_keep(node, i, tern_keep(in[i])));
    for (int i = 0; i < call->n_out; i++)
        if (saves & TERN_SAVE_OUT(i)) {
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

tern_status tern_record(const tern_call *call, tern_tensor *const *in, size_t attribute_bytes)
{
    tern_node *node = tern_node_new(call->op, call->place, call->n_in, call->n_out,
                                    call->attributes, attribute_bytes);
    if (!node)
        return TERN_ERR_MEMORY;
    tern_status status = tern_node_fill(node, call, in);
    for (int i = 0; i < call->n_out && status == TERN_OK; i++)
        if (node->output[i].differentiable)
            status = tern_node_attach(node, i, call->out[i]);
    tern_node_release(node);
    return status;
}
