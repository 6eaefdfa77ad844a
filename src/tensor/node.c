/* node.c -- creating, retaining and freeing nodes of the graph and frames of checkpoints. */
#include "tensor/frame.h"
#include <string.h>

static atomic_ullong serials;

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
    node->modules = tern_thread.running.modules;
    if (tern_thread.mode.anomaly.on && tern_anomaly_where(&node->where) != TERN_OK) {
        tern_free(node);
        return NULL;
    }
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

/* ---- letting go -------------------------------------------------------------------------- */

void tern_frame_forget_inputs(tern_frame *f)
{
    for (int i = 0; i < f->n; i++) {
        tern_release(f->in[i].tensor);
        f->in[i].tensor = NULL;
    }
    tern_frame_release(f->outer);
    f->outer = NULL;
}

void tern_frame_forget_kept(tern_frame *f)
{
    for (int64_t i = 0; i < f->n_kept; i++)
        tern_release(f->kept[i].tensor);
    tern_free(f->kept);
    f->kept = NULL;
    f->n_kept = f->capacity = 0;
}

void tern_frame_release(tern_frame *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) > 1)
        return;
    tern_frame_forget_inputs(f);
    tern_frame_forget_kept(f);
    if (f->free_data)
        f->free_data(f->data);
    tern_free(f->in);
    tern_free(f->rng);
    tern_free(f);
}

static void free_packed(tern_packed *packed)
{
    if (packed)
        tern_release(packed->held.tensor);
    tern_free(packed);
}

void tern_node_free_saved(tern_node *node)
{
    for (int i = 0; i < node->n_in + node->n_out; i++) {
        tern_tensor *x = node->saved[i].tensor;
        node->saved[i].tensor = NULL;
        tern_release(x);
        free_packed(node->saved[i].packed);
        node->saved[i].packed = NULL;
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
        tern_fused_output_clear(&node->output[i].fused);
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

/* Freeing a node may release the nodes before it. They are put into a list that this loop empties,
 * because recursion would overflow the stack in a long graph. */
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
