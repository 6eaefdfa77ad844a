/* dependencies.c -- backward passes that count dependencies: they count the edges of all nodes
 * first, and subtract them as nodes run. So it is known when the last gradient of a leaf or a node
 * has arrived. The gradient of a leaf is then final before the pass ends, and of the nodes that can
 * run, those that keep devices busy run first. */
#include "tensor/backward_pass.h"
#include "device/device.h"
#include "tensor/history.h"

static tern_status push(tern_node_heap *stack, tern_node *node)
{
    if (stack->count == stack->capacity) {
        size_t capacity = stack->capacity ? 2 * stack->capacity : 64;
        tern_node **grown = tern_grow(stack->node, capacity * sizeof *grown);
        if (!grown)
            return TERN_ERR_MEMORY;
        stack->node = grown;
        stack->capacity = capacity;
    }
    stack->node[stack->count++] = node;
    return TERN_OK;
}

/* Returns the urgency of a node. 3: its gradient goes to another device, which waits for it. 2: it
 * runs on an asynchronous device. 1: it runs on the host. 0: its gradient goes to a leaf on another
 * device, which takes a wait for the node's device. */
static uint8_t urgency_of(const tern_node *node)
{
    const tern_edge *edge = &node->edge[0];
    const tern_place *below = !node->n_in  ? node->place
                              : edge->leaf ? edge->leaf->storage->place
                              : edge->node ? edge->node->place
                                           : node->place;
    if (below != node->place)
        return edge->leaf ? 0 : 3;
    return tern_place_is_synchronous(node->place) ? 1 : 2;
}

static tern_status meet(tern_backward_pass *w, tern_node *node)
{
    if (node->pass == w->number)
        return TERN_OK;
    node->pass = w->number;
    node->awaited = 0;
    node->urgency = urgency_of(node);
    return push(&w->stack, node);
}

static tern_status count_edge(tern_backward_pass *w, const tern_edge *edge)
{
    if (edge->node) {
        TERN_TRY(meet(w, edge->node));
        edge->node->awaited++;
    } else if (edge->leaf) {
        tern_arrival *leaf = tern_pass_leaf(w, edge->leaf);
        if (!leaf)
            return TERN_ERR_MEMORY;
        leaf->awaited++;
    }
    return TERN_OK;
}

tern_status tern_pass_count(tern_backward_pass *w)
{
    if (!tern_passes_do_count() || w->wanted)
        return TERN_OK;
    for (size_t i = 0; i < w->heap.count; i++)
        TERN_TRY(meet(w, w->heap.node[i]));
    while (w->stack.count > 0) {
        const tern_node *node = w->stack.node[--w->stack.count];
        for (int i = 0; i < node->n_in; i++)
            TERN_TRY(count_edge(w, &node->edge[i]));
    }
    w->heap.counts = true;
    return TERN_OK;
}

static bool has_gradient(const tern_node *node)
{
    for (int i = 0; i < node->n_out; i++)
        if (node->output[i].dout)
            return true;
    return false;
}

/* Subtracts a processed edge. A node that gets no gradient is processed without running. */
static tern_status take_off(tern_backward_pass *w, const tern_edge *edge)
{
    if (edge->node && --edge->node->awaited == 0)
        return has_gradient(edge->node) ? tern_heap_push(&w->heap, edge->node)
                                        : push(&w->stack, edge->node);
    if (!edge->leaf)
        return TERN_OK;
    tern_arrival *leaf = tern_pass_leaf(w, edge->leaf);
    if (!leaf)
        return TERN_ERR_MEMORY;
    return --leaf->awaited == 0 ? tern_pass_finish_leaf(w, leaf) : TERN_OK;
}

tern_status tern_pass_settle(tern_backward_pass *w, tern_node *node)
{
    if (!w->heap.counts)
        return TERN_OK;
    tern_thread.running.backward = NULL;
    TERN_TRY(push(&w->stack, node));
    while (w->stack.count > 0) {
        node = w->stack.node[--w->stack.count];
        for (int i = 0; i < node->n_in; i++)
            TERN_TRY(take_off(w, &node->edge[i]));
    }
    return TERN_OK;
}
