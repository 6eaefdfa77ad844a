/* heap.c -- the nodes that are to run in a backward pass, ordered by descending serial number, or
 * first by urgency if all nodes in the heap may run. */
#include "tensor/node.h"

static uint64_t order(const tern_node_heap *h, const tern_node *node)
{
    return h->counts ? (uint64_t)node->urgency << 62 | node->serial : node->serial;
}

tern_status tern_heap_push(tern_node_heap *h, tern_node *node)
{
    if (node->queued)
        return TERN_OK;
    if (h->count == h->capacity) {
        size_t capacity = h->capacity ? 2 * h->capacity : 64;
        tern_node **grown = tern_grow(h->node, capacity * sizeof *grown);
        if (!grown)
            return TERN_ERR_MEMORY;
        h->node = grown;
        h->capacity = capacity;
    }
    tern_node_retain(node);
    node->queued = true;
    size_t i = h->count++;
    const uint64_t at = order(h, node);
    while (i > 0 && order(h, h->node[(i - 1) / 2]) < at) {
        h->node[i] = h->node[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->node[i] = node;
    return TERN_OK;
}

tern_node *tern_heap_pop(tern_node_heap *h)
{
    tern_node *top = h->node[0], *last = h->node[--h->count];
    size_t i = 0, child;
    const uint64_t at = order(h, last);
    while ((child = 2 * i + 1) < h->count) {
        if (child + 1 < h->count && order(h, h->node[child + 1]) > order(h, h->node[child]))
            child++;
        if (order(h, h->node[child]) <= at)
            break;
        h->node[i] = h->node[child];
        i = child;
    }
    h->node[i] = last;
    top->queued = false;
    return top;
}
