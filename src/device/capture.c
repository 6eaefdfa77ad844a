/* capture.c -- adds commands to a recording, and blocks to its pool. */
#include "device/recording.h"
#include "base/lock.h"
#include "device/segments.h"
#include "types_host.h"
#include <string.h>

#include "shapes.h"

bool tern_graph_is_on(const tern_graph *graph, const tern_place *place)
{
    return graph->place == place && (!graph->lists || graph->estimates || place->backend->prebuild);
}

bool tern_graph_lists(const tern_graph *graph)
{
    return graph->lists;
}

tern_status tern_capture_refuse(const tern_place *place, const char *what)
{
    const char *op = tern_thread.mode.op;
    tern_thread.graph->failed = true;
    return tern_fail(TERN_ERR_STATE, "TERN_CAPTURE: %s can't be recorded on %s (%s%s)", what,
                     place->text, op ? "in tern_" : "outside of an operation", op ? op : "");
}

/* ---- blocks of other owners ---------------------------------------------------------------- */

/* Keeps a block that is not of the graph's pool alive until the graph is emptied. */
static tern_status hold(tern_graph *graph, const tern_buffer *buffer)
{
    tern_block *block = buffer ? tern_block_of(buffer) : NULL;
    if (!block || block->pool == graph || block->holder == graph)
        return TERN_OK;
    if (graph->n_held == graph->held_capacity) {
        int64_t capacity = graph->held_capacity ? 2 * graph->held_capacity : 64;
        tern_block **grown = tern_grow(graph->held, sizeof *grown * (size_t)capacity);
        if (!grown)
            return TERN_ERR_MEMORY;
        graph->held = grown;
        graph->held_capacity = capacity;
    }
    tern_mutex_lock(&graph->place->memory_lock);
    block->holder = graph;
    block->holds++;
    tern_mutex_unlock(&graph->place->memory_lock);
    graph->held[graph->n_held++] = block;
    return TERN_OK;
}

tern_status tern_capture_addressed(tern_block *block)
{
    tern_graph *graph = tern_capture_of(block->place);
    if (!graph || graph->lists)
        return TERN_OK;
    block->is_addressed = true;
    return hold(graph, &block->buffer);
}

typedef struct holding {
    tern_graph *graph;
    tern_status status;
} holding;

static void hold_use(void *user, const tern_buffer *buffer, tern_role role)
{
    holding *h = user;
    (void)role;
    if (h->status == TERN_OK)
        h->status = hold(h->graph, buffer);
}

/* ---- nodes ------------------------------------------------------------------------------- */

tern_status tern_record_node(tern_graph *graph, tern_graph_node *node)
{
    if (graph->n_nodes == graph->capacity) {
        int64_t capacity = graph->capacity ? 2 * graph->capacity : 64;
        tern_graph_node **grown = tern_grow(graph->nodes, sizeof *grown * (size_t)capacity);
        if (!grown)
            return TERN_ERR_MEMORY;
        graph->nodes = grown;
        graph->capacity = capacity;
    }
    node->is_fused = false;
    graph->nodes[graph->n_nodes++] = node;
    return TERN_OK;
}

/* Adds a node for the command, with data_bytes of memory for copies of the structs that the command
 * points to. Returns NULL after an error. */
static tern_graph_node *add(tern_graph *graph, const tern_command *command, size_t data_bytes)
{
    tern_graph_node *node = tern_alloc(sizeof *node + data_bytes);
    if (!node)
        return NULL;
    node->command = *command;
    if (tern_record_node(graph, node) == TERN_OK)
        return node;
    tern_free(node);
    return NULL;
}

static size_t padded(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static bool refers_to_data(const tern_arg *arg)
{
    return arg->by_reference && arg->value.data;
}

static size_t bytes_of(const tern_arg *args, int n)
{
    size_t bytes = padded(sizeof *args * (size_t)n);
    for (int i = 0; i < n; i++)
        if (refers_to_data(&args[i]))
            bytes += padded(args[i].bytes);
    return bytes;
}

/* Copies the arguments, and behind them the structs that they point to; returns the copies. */
static const tern_arg *copy_args(void *to, const tern_arg *args, int n)
{
    tern_arg *copies = to;
    char *data = (char *)to + padded(sizeof *args * (size_t)n);
    for (int i = 0; i < n; i++) {
        copies[i] = args[i];
        if (refers_to_data(&args[i])) {
            memcpy(data, args[i].value.data, args[i].bytes);
            copies[i].value.data = data;
            data += padded(args[i].bytes);
        }
    }
    return copies;
}

static tern_graph_node *add_launch(tern_graph *graph, const tern_command *command)
{
    const tern_arg *args = command->what.launch.args;
    int n = command->what.launch.n;
    bool user = command->kind == TERN_COMMAND_USER;
    size_t grid_bytes = user ? sizeof(tern_kernel_grid) : sizeof(tern_grid);
    tern_graph_node *node = add(graph, command, padded(grid_bytes) + bytes_of(args, n));
    if (!node)
        return NULL;
    if (user)
        node->command.what.launch.user_grid =
            memcpy(node->data, command->what.launch.user_grid, grid_bytes);
    else
        node->command.what.launch.grid = memcpy(node->data, command->what.launch.grid, grid_bytes);
    node->command.what.launch.args = copy_args((char *)node->data + padded(grid_bytes), args, n);
    return node;
}

static tern_graph_node *add_gemm(tern_graph *graph, const tern_command *command)
{
    const tern_gemm *g = command->what.gemm;
    tern_graph_node *node = add(graph, command, sizeof *g);
    if (!node)
        return NULL;
    node->command.what.gemm = memcpy(node->data, g, sizeof *g);
    return node;
}

static tern_graph_node *add_convolution(tern_graph *graph, const tern_command *command)
{
    const tern_convolution *c = command->what.convolution;
    tern_graph_node *node = add(graph, command, padded(sizeof *c) + sizeof *c->shape);
    if (!node)
        return NULL;
    tern_convolution *copy = (void *)node->data;
    tern_conv_shape *shape = (void *)((char *)node->data + padded(sizeof *c));
    *copy = *c;
    *shape = *c->shape;
    copy->shape = shape;
    node->command.what.convolution = copy;
    return node;
}

static tern_graph_node *add_attention(tern_graph *graph, const tern_command *command)
{
    const tern_attention *a = command->what.attention;
    tern_graph_node *node = add(graph, command, padded(sizeof *a) + sizeof *a->block);
    if (!node)
        return NULL;
    tern_attention *copy = (void *)node->data;
    tern_attention_block *block = (void *)((char *)node->data + padded(sizeof *a));
    *copy = *a;
    *block = *a->block;
    copy->block = block;
    node->command.what.attention = copy;
    return node;
}

static tern_graph_node *add_alone(tern_graph *graph, const tern_command *command)
{
    return add(graph, command, 0);
}

tern_status tern_record_command(tern_graph *graph, const tern_command *command)
{
    static tern_graph_node *(*const adders[])(tern_graph * graph, const tern_command *command) = {
        [TERN_COMMAND_KERNEL] = add_launch,       [TERN_COMMAND_USER] = add_launch,
        [TERN_COMMAND_GEMM] = add_gemm,           [TERN_COMMAND_CONVOLUTION] = add_convolution,
        [TERN_COMMAND_ATTENTION] = add_attention, [TERN_COMMAND_COPY] = add_alone,
        [TERN_COMMAND_ZERO] = add_alone,          [TERN_COMMAND_CALL] = add_alone};
    if (graph->lists)
        return tern_list_command(graph, command);
    holding h = {graph, TERN_OK};
    tern_command_uses(command, hold_use, &h);
    if (h.status != TERN_OK || !adders[command->kind](graph, command)) {
        graph->failed = true;
        return tern_last_status();
    }
    return TERN_OK;
}

tern_status tern_capture_call(tern_status (*run)(void *user), void (*drop)(void *user), void *user)
{
    const tern_command command = {.kind = TERN_COMMAND_CALL, .what.call = {run, drop, user}};
    tern_graph *graph = tern_thread.graph;
    tern_status status = graph->lists ? tern_capture_refuse(graph->place, "a call of the host's")
                                      : tern_record_command(graph, &command);
    if (status != TERN_OK)
        drop(user);
    return status;
}

void tern_note_elsewhere(tern_graph *graph)
{
    graph->elsewhere = true;
}

bool tern_graph_ran_elsewhere(const tern_graph *graph)
{
    return graph->elsewhere;
}

int64_t tern_record_random(tern_graph *graph, int64_t n)
{
    graph->drawn += n;
    if (graph->drawn > graph->taken)
        graph->taken = graph->drawn;
    return graph->drawn - n;
}

int64_t *tern_recorded_random(tern_graph *graph)
{
    return &graph->drawn;
}

void tern_record_faults(tern_graph *graph)
{
    graph->faults = true;
}

/* ---- commands that are not recorded -------------------------------------------------------- */

tern_unrecorded_block tern_unrecorded_block_enter(void)
{
    return (tern_unrecorded_block){.active = 1, .graph = tern_capture_suspend()};
}

void tern_unrecorded_block_leave(tern_unrecorded_block *block)
{
    if (block->graph)
        tern_capture_resume(block->graph);
}

/* ---- the pool ---------------------------------------------------------------------------- */

/* Each request gets a tern_block of its own, because nodes refer to values by their blocks: the
 * plan may give different memory to two values that had the same memory in the capture. */
tern_status tern_pool_take(tern_graph *graph, int size_class, size_t bytes, tern_block **taken)
{
    tern_block *before = graph->idle[size_class];
    *taken = NULL;
    if (!before || before->buffer.bytes < bytes)
        return TERN_OK;
    tern_block *block = *taken = tern_alloc(sizeof *block);
    if (!block)
        return tern_last_status();
    graph->idle[size_class] = before->next;
    before->is_reused = true;
    *block = (tern_block){.buffer = before->buffer,
                          .place = before->place,
                          .size_class = size_class,
                          .pool = graph,
                          .of_pool = graph->pool,
                          .first = -1,
                          .last = -1};
    graph->pool = block;
    return TERN_OK;
}

void tern_pool_adopt(tern_graph *graph, tern_block *block)
{
    block->pool = graph;
    block->is_idle = block->is_addressed = false;
    block->slot = NULL;
    block->first = block->last = -1;
    block->of_pool = graph->pool;
    graph->pool = block;
    if (!block->is_part)
        graph->place->stats.recorded += block->buffer.bytes;
}

/* Makes the memory available to later blocks of the recording, unless the capture is over or
 * block->holds is not 0. A block that kernels find by its address keeps its memory; if that is part
 * of a segment, later blocks do get it, and the plan moves no block (stays). */
void tern_pool_give(tern_graph *graph, tern_block *block)
{
    block->is_idle = true;
    if (graph != tern_thread.graph || block->holds || (block->is_addressed && !block->is_part))
        return;
    if (block->is_part) {
        graph->stays |= block->is_addressed;
        tern_segment_give_extent(block);
        return;
    }
    block->next = graph->idle[block->size_class];
    graph->idle[block->size_class] = block;
}
