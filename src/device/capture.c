/* capture.c -- recording: what launch.c and memory.c would have run becomes a list of nodes. */
#include "device/graph.h"
#include "device/registry.h"
#include <string.h>

_Thread_local tern_graph *tern_capturing;
_Thread_local const char *tern_capturing_op;

bool tern_graph_is_on(const tern_graph *graph, const tern_place *place)
{
    return graph->place == place;
}

tern_status tern_capture_refuse(const tern_place *place, const char *what)
{
    tern_capturing->failed = true;
    return tern_fail(TERN_ERR_STATE, "TERN_CAPTURE: %s can't be recorded on %s (%s%s)", what,
                     place->text, tern_capturing_op ? "in tern_" : "outside of an operation",
                     tern_capturing_op ? tern_capturing_op : "");
}

/* ---- what nodes refer to ----------------------------------------------------------------- */

/* Blocks begin with their buffer. */
static tern_block *block_of(const tern_buffer *buffer)
{
    union {
        const tern_buffer *buffer;
        tern_block *block;
    } at = {buffer};
    return at.block;
}

/* A block from outside of the pool must outlive the graph. */
static tern_status hold(tern_graph *graph, const tern_buffer *buffer)
{
    tern_block *block = buffer ? block_of(buffer) : NULL;
    if (!block || block->pool == graph || block->holder == graph)
        return TERN_OK;
    if (graph->n_held == graph->room_held) {
        int64_t room = graph->room_held ? 2 * graph->room_held : 64;
        tern_block **grown = tern_grow(graph->held, sizeof *grown * (size_t)room);
        if (!grown)
            return TERN_ERR_MEMORY;
        graph->held = grown;
        graph->room_held = room;
    }
    pthread_mutex_lock(&graph->place->memory_lock);
    block->holder = graph;
    block->holds++;
    pthread_mutex_unlock(&graph->place->memory_lock);
    graph->held[graph->n_held++] = block;
    return TERN_OK;
}

static tern_status hold_all(tern_graph *graph, const tern_arg *args, int n)
{
    for (int i = 0; i < n; i++)
        TERN_TRY(hold(graph, args[i].buffer));
    return TERN_OK;
}

/* ---- nodes ------------------------------------------------------------------------------- */

static tern_node *add(tern_graph *graph, tern_node_kind kind, size_t more)
{
    if (graph->n_nodes == graph->room) {
        int64_t room = graph->room ? 2 * graph->room : 64;
        tern_node **grown = tern_grow(graph->nodes, sizeof *grown * (size_t)room);
        if (!grown)
            return NULL;
        graph->nodes = grown;
        graph->room = room;
    }
    tern_node *node = tern_alloc(sizeof *node + more);
    if (!node)
        return NULL;
    node->kind = kind;
    graph->nodes[graph->n_nodes++] = node;
    return node;
}

static size_t padded(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* A node with copies of the arguments and of the structs that they refer to. */
static tern_node *add_launch(tern_graph *graph, tern_node_kind kind, void *kernel,
                             const tern_arg *args, int n)
{
    size_t more = padded(sizeof *args * (size_t)n);
    for (int i = 0; i < n; i++)
        if (args[i].by_reference && args[i].value.data)
            more += padded(args[i].bytes);
    tern_node *node =
        hold_all(graph, args, n) == TERN_OK ? add(graph, kind, more + sizeof(max_align_t)) : NULL;
    if (!node)
        return NULL;
    char *room = (char *)node + padded(sizeof *node);
    tern_arg *copies = (void *)room;
    room += padded(sizeof *args * (size_t)n);
    for (int i = 0; i < n; i++) {
        copies[i] = args[i];
        if (args[i].by_reference && args[i].value.data) {
            memcpy(room, args[i].value.data, args[i].bytes);
            copies[i].value.data = room;
            room += padded(args[i].bytes);
        }
    }
    node->what.launch.kernel = kernel;
    node->what.launch.args = copies;
    node->what.launch.n = n;
    return node;
}

static tern_status recorded(tern_graph *graph, const tern_node *node)
{
    if (node)
        return TERN_OK;
    graph->failed = true;
    return tern_last_status();
}

tern_status tern_record_launch(tern_graph *graph, void *kernel, const tern_grid *grid,
                               const tern_arg *args, int n)
{
    tern_node *node = add_launch(graph, TERN_NODE_LAUNCH, kernel, args, n);
    if (node)
        node->what.launch.grid = *grid;
    return recorded(graph, node);
}

tern_status tern_record_user(tern_graph *graph, void *kernel, const tern_kernel_grid *grid,
                             const tern_arg *args, int n)
{
    tern_node *node = add_launch(graph, TERN_NODE_USER, kernel, args, n);
    if (node)
        node->what.launch.user_grid = *grid;
    return recorded(graph, node);
}

tern_status tern_record_gemm(tern_graph *graph, const tern_gemm *gemm)
{
    const tern_buffer *buffers[] = {gemm->a.buffer, gemm->b.buffer, gemm->c.buffer, gemm->bias};
    for (int i = 0; i < 4; i++)
        TERN_TRY(hold(graph, buffers[i]));
    tern_node *node = add(graph, TERN_NODE_GEMM, 0);
    if (node)
        node->what.gemm = *gemm;
    return recorded(graph, node);
}

tern_status tern_record_convolution(tern_graph *graph, const tern_convolution *c)
{
    const tern_arg args[] = {c->x, c->weight, c->y, c->bias};
    TERN_TRY(hold_all(graph, args, 4));
    TERN_TRY(hold(graph, c->scratch));
    tern_node *node = add(graph, TERN_NODE_CONVOLUTION, 0);
    if (node) {
        node->what.convolution.call = *c;
        node->what.convolution.shape = *c->shape;
        node->what.convolution.call.shape = &node->what.convolution.shape;
    }
    return recorded(graph, node);
}

tern_status tern_record_copy(tern_graph *graph, const tern_block *from, size_t from_at,
                             const tern_block *to, size_t to_at, size_t bytes)
{
    TERN_TRY(hold(graph, &from->buffer));
    TERN_TRY(hold(graph, &to->buffer));
    tern_node *node = add(graph, TERN_NODE_COPY, 0);
    if (node) {
        node->what.copy.from = &from->buffer;
        node->what.copy.from_at = from_at;
        node->what.copy.to = &to->buffer;
        node->what.copy.to_at = to_at;
        node->what.copy.bytes = bytes;
    }
    return recorded(graph, node);
}

tern_status tern_record_zero(tern_graph *graph, const tern_block *to, size_t at, size_t bytes)
{
    TERN_TRY(hold(graph, &to->buffer));
    tern_node *node = add(graph, TERN_NODE_ZERO, 0);
    if (node) {
        node->what.copy.to = &to->buffer;
        node->what.copy.to_at = at;
        node->what.copy.bytes = bytes;
    }
    return recorded(graph, node);
}

int64_t tern_record_random(tern_graph *graph, int64_t n)
{
    graph->taken += n;
    return graph->taken - n;
}

void tern_record_faults(tern_graph *graph)
{
    graph->faults = true;
}

/* ---- what lasts longer than a step ------------------------------------------------------- */

tern_unrecorded_block tern_unrecorded_block_enter(void)
{
    return (tern_unrecorded_block){.active = 1, .graph = tern_capture_suspend()};
}

void tern_unrecorded_block_leave(tern_unrecorded_block *block)
{
    if (block->graph)
        tern_capture_resume(block->graph);
}

tern_status tern_capture_constant(tern_place *place, const void *data, size_t bytes,
                                  tern_block **block)
{
    tern_graph *graph = tern_capture_suspend();
    tern_block **grown =
        tern_grow(graph->constants, sizeof *grown * (size_t)(graph->n_constants + 1));
    tern_status status = grown ? TERN_OK : TERN_ERR_MEMORY;
    if (grown) {
        graph->constants = grown;
        *block = tern_block_alloc(place, bytes, "TERN_CAPTURE");
        status = *block ? tern_block_write(*block, 0, data, bytes) : tern_last_status();
        if (*block)
            graph->constants[graph->n_constants++] = *block;
    }
    tern_capture_resume(graph);
    return status;
}

/* ---- the pool ---------------------------------------------------------------------------- */

tern_block *tern_pool_take(tern_graph *graph, int size_class, size_t bytes)
{
    tern_block *block = graph->idle[size_class];
    if (!block || block->buffer.bytes < bytes)
        return NULL;
    graph->idle[size_class] = block->next;
    block->is_idle = false;
    return block;
}

void tern_pool_adopt(tern_graph *graph, tern_block *block)
{
    block->pool = graph;
    block->is_idle = false;
    block->of_pool = graph->pool;
    graph->pool = block;
}

void tern_pool_give(tern_graph *graph, tern_block *block)
{
    block->is_idle = true;
    block->next = graph->idle[block->size_class];
    graph->idle[block->size_class] = block;
}
