/* plan.c -- the memory plan of a recording. Inner values, which only the recording's commands use,
 * share a few large blocks, the arenas.
 *
 * Two values may have the same memory if the commands of one all come before those of the other.
 * The largest value is placed first, and each into the smallest gap between the values that are
 * alive at the same time (best fit). The result of an elementwise row, or of a chain of rows, takes
 * over the memory of an operand that no later command reads. Commands point to blocks, and the plan
 * gives each block a buffer in an arena, so commands stay as they were recorded. */
#include "device/plan.h"
#include "base/lock.h"
#include "device/registry.h"
#include "device/segments.h"
#include "types_host.h"
#include <inttypes.h>
#include <stdlib.h>

#include "shapes.h"

/* ---- slots --------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const tern_slot *x = *(tern_slot *const *)a, *y = *(tern_slot *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_first(const void *a, const void *b)
{
    const tern_slot *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static size_t rounded(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

/* Creates a slot for each inner value that a command uses. */
static tern_status find_slots(tern_graph *graph, tern_plan *plan)
{
    const size_t step = graph->place->part_step;
    for (tern_block *block = graph->pool; block; block = block->of_pool)
        plan->n += block->last >= 0 && tern_block_is_inner(graph, block);
    plan->slots = tern_alloc(sizeof *plan->slots * (size_t)(plan->n + 1));
    if (!plan->slots)
        return TERN_ERR_MEMORY;
    tern_slot *slot = plan->slots;
    for (tern_block *block = graph->pool; block; block = block->of_pool)
        if (block->last >= 0 && tern_block_is_inner(graph, block))
            *slot++ = (tern_slot){.block = block,
                                  .bytes = rounded(block->used, step),
                                  .first = block->first,
                                  .last = block->last};
    qsort(plan->slots, (size_t)plan->n, sizeof *plan->slots, by_first);
    for (int64_t i = 0; i < plan->n; i++)
        plan->slots[i].block->slot = &plan->slots[i];
    return TERN_OK;
}

/* ---- results over operands ----------------------------------------------------------------- */

/* Returns whether an argument begins where its block does, and the block has a slot. */
static bool is_whole(const tern_graph *graph, const tern_arg *arg)
{
    return arg->buffer && arg->at == 0 && tern_block_is_inner(graph, tern_block_of(arg->buffer)) &&
           tern_block_of(arg->buffer)->slot;
}

static const tern_nd_index *index_of(const tern_command *command)
{
    for (int i = 0; i < command->what.launch.n; i++)
        if (command->what.launch.args[i].type == TERN_TYPE_tern_nd_index)
            return command->what.launch.args[i].value.data;
    return NULL;
}

/* Returns the chain that the node runs, or NULL. */
static const tern_chain *chain_of(const tern_graph_node *node)
{
    union {
        const tern_kernel_ref *ref;
        const tern_fused_chain *chain;
    } of = {node->is_chain ? node->command.what.launch.kernel->ref : NULL};
    return of.ref ? &of.chain->chain : NULL;
}

/* Returns whether each element of argument k of an elementwise row has the place in memory that the
 * element of the result has. */
static bool is_alike(const tern_nd_index *w, int k)
{
    for (int d = 0; d < w->ndim; d++)
        if (w->stride[k][d] != w->stride[0][d])
            return false;
    return w->form == TERN_ND_UNIT || w->step[k] == w->step[0];
}

/* Returns whether number t is a tensor of the chain, not of the kernel that the chain is part of,
 * and its elements lie side by side. */
static bool is_dense(const tern_chain *chain, int t)
{
    return t < chain->tensors && chain->step[t] == 1;
}

/* Returns whether each element of argument k, and of all other arguments with the same buffer, has
 * the place of the result's element that is computed from it: in x[1:] - x[:-1] it has not. */
static bool is_in_place(const tern_graph_node *node, int first, int k, int out)
{
    const tern_command *command = &node->command;
    const tern_chain *chain = chain_of(node);
    const tern_arg *args = command->what.launch.args;
    for (int i = first; i < command->what.launch.n; i++)
        if (args[i].buffer == args[k].buffer && args[i].role != TERN_ROLE_UNUSED &&
            (args[i].at != 0 || args[i].bytes != args[out].bytes ||
             !(chain ? is_dense(chain, i - first) : is_alike(index_of(command), i))))
            return false;
    return true;
}

/* Returns whether a chain has read tensor `in` for the last time when it writes `out`. Devices load
 * all tensors of an element before they store any; the host runs one row after the other. */
static bool is_over(const tern_graph *graph, const tern_chain *chain, int in, int out)
{
    int last = -1, written = -1;
    for (int i = 0; i < chain->rows; i++) {
        for (int k = 0; k < chain->row[i].n; k++)
            last = chain->row[i].in[k] == in ? i : last;
        written = chain->row[i].out == out ? i : written;
    }
    return !graph->place->synchronous || last <= written;
}

/* Lets result `out` of command i take over the memory of an operand that no later command reads. */
static void write_over(const tern_graph *graph, int64_t i, int first, int out)
{
    const tern_graph_node *node = graph->nodes[i];
    const tern_chain *chain = chain_of(node);
    const tern_arg *args = node->command.what.launch.args;
    tern_slot *o = tern_block_of(args[out].buffer)->slot;
    for (int k = first; k < node->command.what.launch.n && o->first == i; k++) {
        if (args[k].role != TERN_ROLE_IN || !is_whole(graph, &args[k]) ||
            !is_in_place(node, first, k, out) ||
            (chain && !is_over(graph, chain, k - first, out - first)))
            continue;
        tern_slot *in = tern_block_of(args[k].buffer)->slot;
        if (in->end != i && in->last == i && in->first < i && in->bytes == o->bytes) {
            o->over = in;
            o->first = in->first;
            in->end = i;
        }
    }
}

/* Calls write_over for each result of command i, if the command is an elementwise row or a chain:
 * each element of such a result is computed from the operands' elements with the same index. */
static void write_results_over(const tern_graph *graph, int64_t i)
{
    const tern_command *command = &graph->nodes[i]->command;
    const tern_chain *chain = chain_of(graph->nodes[i]);
    const tern_arg *args = command->what.launch.args;
    const int first = chain && graph->place->synchronous; /* the chain itself is argument 0 */
    if (chain ? chain->slot && !chain->slot->stores
              : !tern_is_row_command(command) || !index_of(command)) /* a slot may load twice */
        return;
    for (int out = first; out < first + (chain ? chain->tensors : 1); out++)
        if (args[out].role == TERN_ROLE_OUT && is_whole(graph, &args[out]))
            write_over(graph, i, first, out);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Places the slot in arena a by best fit; placed[0] to placed[n - 1] are the slots placed so far,
 * sorted by `at`. Returns false if the slot would end beyond `most` bytes. */
static bool fit(const tern_slot *const *placed, int64_t n, int a, tern_slot *slot, size_t most)
{
    size_t end = 0, best = SIZE_MAX, at = 0;
    for (int64_t i = 0; i < n; i++) {
        const tern_slot *p = placed[i];
        if (p->arena != a || p->last < slot->first || p->first > slot->last)
            continue;
        const size_t gap = p->at > end ? p->at - end : 0;
        if (gap >= slot->bytes && gap < best) {
            best = gap;
            at = end;
        }
        end = p->at + p->bytes > end ? p->at + p->bytes : end;
    }
    at = best == SIZE_MAX ? end : at;
    if (at > 0 && at + slot->bytes > most)
        return false;
    slot->at = at;
    slot->arena = a;
    return true;
}

static void place(tern_plan *plan, tern_slot **placed, int64_t n, tern_slot *slot, size_t most)
{
    int a = 0;
    while (!fit((const tern_slot *const *)placed, n, a, slot, most))
        a++;
    plan->n_arenas = a >= plan->n_arenas ? a + 1 : plan->n_arenas;
    while (n > 0 && placed[n - 1]->at > slot->at) {
        placed[n] = placed[n - 1];
        n--;
    }
    placed[n] = slot;
}

/* Places all slots. A slot that another takes over has the same arena and offset as the other. */
static tern_status place_all(tern_graph *graph, tern_plan *plan)
{
    const uint64_t largest = graph->place->info.largest_allocation;
    tern_slot **order = tern_alloc(sizeof *order * (size_t)(plan->n + 1));
    tern_slot **placed = tern_alloc(sizeof *placed * (size_t)(plan->n + 1));
    int64_t n = 0;
    for (int64_t i = 0; order && i < plan->n; i++)
        if (!plan->slots[i].end)
            order[n++] = &plan->slots[i];
    if (order && placed) {
        qsort(order, (size_t)n, sizeof *order, by_size);
        for (int64_t i = 0; i < n; i++)
            place(plan, placed, i, order[i], largest ? (size_t)largest : SIZE_MAX);
    }
    tern_free(order);
    tern_free(placed);
    if (!order || !placed)
        return TERN_ERR_MEMORY;
    for (int64_t i = plan->n - 1; i >= 0; i--) /* slots are sorted by first commands */
        for (tern_slot *s = &plan->slots[i]; s->over; s = s->over) {
            s->over->at = s->at;
            s->over->arena = s->arena;
        }
    return TERN_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static tern_status arena_failed(tern_place *place, size_t bytes)
{
    uint64_t free_bytes = 0, total = 0;
    if (place->memory_limit)
        return tern_fail(TERN_ERR_MEMORY,
                         "tern_graph_capture_end: %s out of memory: what is recorded has a peak of "
                         "%zu bytes; %" PRIu64 " are reserved beside it of the %" PRIu64
                         " that tern_set_memory_limit allows",
                         place->text, bytes, place->stats.reserved, place->memory_limit);
    place->backend->memory(place, &free_bytes, &total);
    return tern_fail(TERN_ERR_MEMORY,
                     "tern_graph_capture_end: %s out of memory: what is recorded has a peak of %zu "
                     "bytes; %" PRIu64 " of %" PRIu64 " bytes are free",
                     place->text, bytes, free_bytes, total);
}

/* Allocates an arena of arena->buffer.bytes bytes. If the backend has unpart (OpenCL sub-buffers),
 * the arena must not be a part of a segment. The caller holds memory_lock. */
static tern_status arena_take(tern_graph *graph, tern_block *arena)
{
    tern_place *place = graph->place;
    const size_t bytes = arena->buffer.bytes;
    *arena = (tern_block){.place = place, .buffer.bytes = bytes, .is_idle = true};
    if (!place->backend->unpart && tern_segments_serve(place, bytes))
        return tern_segment_take(place, graph, bytes, arena);
    if (tern_memory_exceeds(place, bytes))
        return TERN_ERR_MEMORY;
    place->stats.driver_calls++;
    TERN_TRY(place->backend->alloc(place, &arena->buffer));
    tern_memory_reserve(place, bytes);
    place->stats.recorded += bytes;
    return TERN_OK;
}

static void arena_give(tern_graph *graph, tern_block *arena)
{
    tern_place *place = graph->place;
    if (arena->is_part) {
        tern_segment_give_extent(arena);
        return;
    }
    place->backend->free(place, &arena->buffer);
    place->stats.reserved -= arena->buffer.bytes;
    place->stats.recorded -= arena->buffer.bytes;
}

static tern_status part_of(tern_place *place, const tern_block *arena, const tern_slot *slot,
                           tern_buffer *part)
{
    const tern_buffer *whole = &arena->buffer;
    *part = (tern_buffer){.bytes = slot->bytes};
    if (place->backend->part)
        return place->backend->part(place, whole, slot->at, part);
    part->handle = (char *)whole->handle + slot->at;
    part->host = whole->host ? (char *)whole->host + slot->at : NULL;
    part->address = whole->address + slot->at;
    return TERN_OK;
}

static void unpart(tern_place *place, tern_buffer *part)
{
    if (place->backend->unpart)
        place->backend->unpart(place, part);
}

/* Frees the buffer that a block had when it was recorded. */
static void give_up(tern_place *place, tern_block *block, tern_buffer *buffer)
{
    if (block->is_part) {
        if (block->extent)
            tern_segment_give_extent(block);
        unpart(place, buffer);
    } else if (!block->is_reused) {
        place->backend->free(place, buffer);
        place->stats.reserved -= buffer->bytes;
        place->stats.recorded -= buffer->bytes;
    }
}

/* Computes the bytes of each arena and plan->bytes. */
static tern_status measure(tern_plan *plan)
{
    plan->arenas = tern_alloc(sizeof *plan->arenas * (size_t)(plan->n_arenas + 1));
    if (!plan->arenas)
        return TERN_ERR_MEMORY;
    for (int64_t i = 0; i < plan->n; i++) {
        const tern_slot *s = &plan->slots[i];
        size_t *most = &plan->arenas[s->arena].buffer.bytes;
        *most = s->at + s->bytes > *most ? s->at + s->bytes : *most;
    }
    for (int a = 0; a < plan->n_arenas; a++)
        plan->bytes += plan->arenas[a].buffer.bytes;
    return TERN_OK;
}

/* Allocates the arenas, and sets `other` of each slot to its part of an arena. */
static tern_status take_arenas(tern_graph *graph, tern_plan *plan)
{
    tern_place *place = graph->place;
    const uint64_t failures = tern_failures();
    if (plan->bytes >= TERN_LARGE)
        tern_cache_empty(place);
    for (int a = 0; a < plan->n_arenas; a++) {
        const tern_status status = arena_take(graph, &plan->arenas[a]);
        if (status != TERN_OK)
            return tern_failed_since(failures) == TERN_OK ? arena_failed(place, plan->bytes)
                                                          : status;
        plan->n_taken++;
    }
    for (int64_t i = 0; i < plan->n; i++) {
        tern_slot *s = &plan->slots[i];
        const tern_status status = part_of(place, &plan->arenas[s->arena], s, &s->other);
        if (status != TERN_OK)
            return tern_failed_since(failures) == TERN_OK ? arena_failed(place, plan->bytes)
                                                          : status;
        plan->n_parts++;
    }
    return TERN_OK;
}

static void swap(tern_plan *plan)
{
    for (int64_t i = 0; i < plan->n; i++) {
        tern_slot *s = &plan->slots[i];
        const tern_buffer buffer = s->block->buffer;
        s->block->buffer = s->other;
        s->other = buffer;
    }
    plan->is_planned = !plan->is_planned;
}

/* Sets graph->reserved to the bytes that the recording has reserved, unless an earlier plan did,
 * and plan->after to the bytes that the recording will have reserved with this plan. */
static void compare(tern_graph *graph, tern_plan *plan)
{
    size_t before = tern_segments_recorded(graph->place, graph);
    plan->after = plan->bytes;
    for (const tern_block *block = graph->pool; block; block = block->of_pool) {
        const size_t bytes =
            block->is_reused || (block->is_part && !block->extent) ? 0 : block->buffer.bytes;
        before += block->is_part ? 0 : bytes;
        plan->after += tern_block_is_inner(graph, block) ? 0 : bytes;
    }
    graph->reserved = graph->reserved ? graph->reserved : before;
}

/* Frees the buffers that blocks had when they were recorded, also of blocks that no command uses
 * any more, unless plan->keeps; then allocates the arenas and moves the blocks there. */
static tern_status move(tern_graph *graph, tern_plan *plan)
{
    tern_place *place = graph->place;
    for (tern_block *block = graph->pool; block && !plan->keeps; block = block->of_pool)
        if (!block->is_planned && tern_block_is_inner(graph, block)) {
            give_up(place, block, &block->buffer);
            block->is_planned = true;
            graph->moves_all = true;
        }
    if (!plan->keeps)
        tern_segments_disown(place, graph);
    TERN_TRY(take_arenas(graph, plan));
    swap(plan);
    return TERN_OK;
}

/* A plan that saves less than 1 / WORTH of the reserved bytes is not used: on devices with segments
 * there are few gaps between large blocks without a plan. */
enum { WORTH = 16 };

tern_status tern_plan_make(tern_graph *graph)
{
    tern_place *place = graph->place;
    tern_plan *plan = graph->plan = tern_alloc(sizeof *plan);
    if (!plan)
        return TERN_ERR_MEMORY;
    plan->keeps = graph->options.check;
    tern_mutex_lock(&place->memory_lock); /* other threads may free blocks */
    tern_status status = find_slots(graph, plan);
    tern_mutex_unlock(&place->memory_lock);
    TERN_TRY(status);
    for (int64_t i = 0; i < graph->n_nodes; i++)
        write_results_over(graph, i);
    TERN_TRY(place_all(graph, plan));
    TERN_TRY(measure(plan));
    tern_place_enter(place);
    tern_mutex_lock(&place->memory_lock);
    compare(graph, plan);
    const bool is_less = !graph->stays && plan->after < graph->reserved - graph->reserved / WORTH;
    status = is_less || plan->keeps || graph->moves_all ? move(graph, plan) : TERN_OK;
    tern_mutex_unlock(&place->memory_lock);
    tern_place_leave(place);
    return status;
}

void tern_plan_swap(tern_graph *graph)
{
    swap(graph->plan);
}

void tern_plan_end(tern_graph *graph)
{
    tern_plan *plan = graph->plan;
    tern_place *place = graph->place;
    if (!plan)
        return;
    tern_place_enter(place);
    tern_mutex_lock(&place->memory_lock);
    if (plan->is_planned)
        swap(plan);
    for (int64_t i = 0; i < plan->n_parts; i++)
        unpart(place, &plan->slots[i].other);
    for (int a = 0; a < plan->n_taken; a++)
        arena_give(graph, &plan->arenas[a]);
    tern_mutex_unlock(&place->memory_lock);
    tern_place_leave(place);
    tern_free(plan->slots);
    tern_free(plan->arenas);
    tern_free(plan);
    graph->plan = NULL;
}
