/* graph.c -- creates and frees graphs, begins and ends captures, and replays graphs. */
#include "base/debug.h"
#include "base/lock.h"
#include "base/env.h"
#include "base/option.h"
#include "base/profile.h"
#include "device/builds.h"
#include "device/chain_kernels.h"
#include "device/plan.h"
#include "device/registry.h"
#include "device/segments.h"
#include "device/command.h"
#include <string.h>

static struct {
    tern_mutex lock;
    tern_graph *first;
} graphs = {.lock = TERN_MUTEX_INIT};

static tern_graph *new_graph(const char *device, const tern_graph_options *options,
                             const char *function)
{
    tern_place *place = tern_place_find(device, function);
    tern_graph *graph = place ? tern_alloc(sizeof *graph) : NULL;
    if (!graph)
        return NULL;
    graph->place = place;
    graph->options = tern_read_graph(options);
    graph->options.check |= tern_debugging || tern_env_flag(TERN_ENV_GRAPH_CHECK, false);
    tern_mutex_lock(&graphs.lock);
    graph->next = graphs.first;
    graphs.first = graph;
    tern_mutex_unlock(&graphs.lock);
    return graph;
}

tern_graph *tern_graph_new(const char *device)
{
    return new_graph(device, NULL, "tern_graph_new");
}

tern_graph *tern_graph_new_with(const char *device, const tern_graph_options *options)
{
    return new_graph(device, options, "tern_graph_new_with");
}

static tern_status add_refresh(tern_graph *graph, tern_refresh refresh)
{
    for (int i = 0; i < graph->n_refreshes; i++)
        if (graph->refreshes[i].user == refresh.user)
            return TERN_OK;
    tern_refresh *grown =
        tern_grow(graph->refreshes, sizeof *grown * (size_t)(graph->n_refreshes + 1));
    if (!grown)
        return TERN_ERR_MEMORY;
    graph->refreshes = grown;
    graph->refreshes[graph->n_refreshes++] = refresh;
    return TERN_OK;
}

tern_status tern_graph_on_replay(tern_status (*refresh)(void *user), void *user)
{
    if (!tern_thread.graph)
        return TERN_OK;
    tern_mutex_lock(&graphs.lock);
    tern_status status = add_refresh(tern_thread.graph, (tern_refresh){refresh, user});
    tern_mutex_unlock(&graphs.lock);
    return status;
}

void tern_graph_forget(const void *user)
{
    tern_mutex_lock(&graphs.lock);
    for (tern_graph *graph = graphs.first; graph; graph = graph->next)
        for (int i = 0; i < graph->n_refreshes; i++)
            if (graph->refreshes[i].user == user)
                graph->refreshes[i--] = graph->refreshes[--graph->n_refreshes];
    tern_mutex_unlock(&graphs.lock);
}

/* ---- freeing ----------------------------------------------------------------------------- */

/* Removes all blocks from the pool. A block that a tensor or another graph uses lives on as an
 * ordinary block; the others go to the cache. */
static void release_blocks(tern_graph *graph)
{
    tern_place *place = graph->place;
    tern_mutex_lock(&place->memory_lock);
    while (graph->pool) {
        tern_block *block = graph->pool;
        graph->pool = block->of_pool;
        if (block->is_planned || block->is_reused) { /* only commands used the block */
            tern_free(block);
            continue;
        }
        block->pool = NULL;
        block->of_pool = NULL;
        block->is_orphan = block->is_idle && block->holds;
        if (block->is_part)
            tern_segment_disown(block);
        else
            place->stats.recorded -= block->buffer.bytes;
        if (block->is_idle && !block->holds)
            tern_cache_put(place, block);
    }
    tern_segments_disown(place, graph);
    for (int c = 0; c < SIZE_CLASSES; c++)
        graph->idle[c] = NULL;
    for (int64_t i = 0; i < graph->n_held; i++)
        graph->held[i]->holder = NULL;
    tern_mutex_unlock(&place->memory_lock);
    for (int64_t i = 0; i < graph->n_held; i++)
        tern_block_drop_hold(graph->held[i]);
    for (int i = 0; i < graph->n_constants; i++)
        tern_block_free(graph->constants[i]);
}

static void free_node(tern_graph_node *node)
{
    if (node->command.kind == TERN_COMMAND_CALL)
        node->command.what.call.drop(node->command.what.call.user);
    tern_free(node);
}

static void drop_pieces(tern_graph *graph)
{
    for (int i = 0; i < graph->n_pieces; i++)
        if (graph->pieces[i].executable)
            graph->place->backend->vendor->graph_free(graph->place, graph->pieces[i].executable);
    tern_free(graph->pieces);
    graph->pieces = NULL;
    graph->n_pieces = 0;
}

static void empty(tern_graph *graph)
{
    drop_pieces(graph);
    tern_plan_end(graph);
    release_blocks(graph);
    for (int64_t i = 0; i < graph->n_before; i++) /* commands in no chain are also in nodes */
        if (graph->before[i]->is_fused)
            free_node(graph->before[i]);
    for (int64_t i = 0; i < graph->n_nodes; i++)
        free_node(graph->nodes[i]);
    tern_chains_end(graph);
    tern_free(graph->before);
    graph->before = NULL;
    graph->n_before = 0;
    tern_free(graph->nodes);
    tern_free(graph->held);
    tern_free(graph->constants);
    tern_mutex_lock(&graphs.lock);
    tern_free(graph->refreshes);
    graph->refreshes = NULL;
    graph->n_refreshes = 0;
    tern_mutex_unlock(&graphs.lock);
    graph->nodes = NULL;
    graph->held = graph->constants = NULL;
    graph->n_nodes = graph->capacity = graph->n_held = graph->held_capacity = 0;
    graph->n_constants = graph->n_waits = graph->n_texts = 0;
    graph->recorded = graph->failed = graph->faults = graph->elsewhere = graph->stays = false;
    graph->moves_all = false;
    graph->apart_as = NULL;
    graph->reserved = 0;
    graph->taken = graph->drawn = graph->n_unread = 0;
}

tern_status tern_graph_reset(tern_graph *graph)
{
    if (!graph)
        return tern_fail_argument_null("tern_graph_reset", "graph");
    if (graph == tern_thread.graph)
        return tern_fail(TERN_ERR_STATE, "tern_graph_reset: the graph is being recorded");
    empty(graph);
    return TERN_OK;
}

void tern_graph_free(tern_graph *graph)
{
    if (!graph)
        return;
    if (graph == tern_thread.graph)
        tern_thread.graph = NULL;
    empty(graph);
    tern_mutex_lock(&graphs.lock);
    tern_graph **at = &graphs.first;
    while (*at != graph)
        at = &(*at)->next;
    *at = graph->next;
    tern_mutex_unlock(&graphs.lock);
    tern_free(graph);
}

int64_t tern_graph_size(const tern_graph *graph)
{
    return graph && graph->recorded && tern_graph_finish(graph) == TERN_OK ? graph->n_nodes : 0;
}

/* ---- recording --------------------------------------------------------------------------- */

bool tern_is_capturing(void)
{
    return tern_thread.graph != NULL;
}

tern_status tern_graph_capture_begin(tern_graph *graph)
{
    if (!graph)
        return tern_fail_argument_null("tern_graph_capture_begin", "graph");
    if (tern_thread.graph)
        return tern_fail(TERN_ERR_STATE,
                         "tern_graph_capture_begin: this thread already records a graph on %s",
                         tern_thread.graph->place->text);
    if (graph->recorded)
        return tern_fail(TERN_ERR_STATE,
                         "tern_graph_capture_begin: the graph holds a recording of %lld launches; "
                         "call tern_graph_reset first",
                         (long long)graph->n_nodes);
    TERN_TRY(tern_last_status());
    TERN_TRY(tern_registry_open(graph->place));
    tern_thread.graph = graph;
    return TERN_OK;
}

/* Records a launch that adds the random numbers that a replay uses to the device's count. */
static tern_status advance_random(tern_graph *graph)
{
    static const tern_kernel_ref kernel = {"random", "advance_random"};
    if (graph->taken == 0)
        return TERN_OK;
    return TERN_LAUNCH(graph->place, &kernel, TERN_F32, tern_items(1),
                       tern_arg_elements(TERN_ROLE_OUT, TERN_TYPE_u64,
                                         &graph->place->rng.block->buffer, 0, sizeof(uint64_t)),
                       tern_arg_i64(graph->taken));
}

static tern_status run_node(tern_place *place, const tern_graph_node *node)
{
    bool taken = true;
    TERN_TRY(tern_command_run(place, &node->command, &taken));
    return taken ? TERN_OK
                 : tern_fail(TERN_ERR_DEVICE,
                             "%s: the vendor's library refuses a recorded convolution; run the "
                             "step once before it is recorded",
                             place->text);
}

typedef struct range {
    const tern_graph *graph;
    int64_t from, end;
} range;

static tern_status run_nodes(void *user)
{
    const range *r = user;
    for (int64_t i = r->from; i < r->end; i++)
        TERN_TRY(run_node(r->graph->place, r->graph->nodes[i]));
    return TERN_OK;
}

/* Makes the vendor's graphs of all nodes. Each ends before a call on the host. */
static tern_status make_pieces(tern_graph *graph, const tern_vendor *vendor)
{
    int n = 1;
    for (int64_t i = 0; i < graph->n_nodes; i++)
        n += graph->nodes[i]->command.kind == TERN_COMMAND_CALL;
    graph->pieces = tern_alloc(sizeof *graph->pieces * (size_t)n);
    if (!graph->pieces)
        return TERN_ERR_MEMORY;
    for (range r = {graph, 0, 0}; graph->n_pieces < n; r.from = ++r.end) {
        tern_graph_piece *p = &graph->pieces[graph->n_pieces++];
        while (r.end < graph->n_nodes && graph->nodes[r.end]->command.kind != TERN_COMMAND_CALL)
            r.end++;
        *p = (tern_graph_piece){r.end, NULL};
        if (r.end > r.from)
            TERN_TRY(vendor->graph_make(graph->place, run_nodes, &r, &p->executable));
    }
    return TERN_OK;
}

/* Makes the commands that replays run: chains, if no kernel of theirs is still being compiled, the
 * plan of memory, and the vendor's graphs. Called again once these kernels are compiled. */
static tern_status optimize(tern_graph *graph)
{
    const tern_vendor *vendor = graph->place->backend->vendor;
    drop_pieces(graph);
    tern_plan_end(graph);
    if (!graph->n_waits)
        TERN_TRY(tern_chains_make(graph));
    if (!graph->options.no_plan)
        TERN_TRY(tern_plan_make(graph));
    return vendor && vendor->graph_make && graph->n_nodes ? make_pieces(graph, vendor) : TERN_OK;
}

/* Optimizes the recording. If that fails with chains, for example because they need more memory
 * than their rows, the rows stay separate commands. */
static tern_status finish(tern_graph *graph)
{
    tern_error_hold hold;
    TERN_TRY(tern_error_hold_begin(&hold));
    if (tern_chains_want(graph) == TERN_OK)
        optimize(graph);
    tern_status status = tern_error_hold_end(&hold, NULL, 0);
    if (status == TERN_OK)
        return TERN_OK;
    graph->apart_as =
        status == TERN_ERR_MEMORY ? "there is no memory for it" : "the device failed with it";
    graph->n_waits = 0;
    if (graph->before)
        tern_chains_undo(graph);
    return optimize(graph);
}

/* Returns whether the recording waits for kernels of chains, and other threads have compiled all of
 * them. A forked child has no such threads. */
static bool is_waited_for(const tern_graph *graph)
{
    if (tern_builds_are_of_parent())
        return false;
    for (int i = 0; i < graph->n_waits; i++)
        if (!tern_chain_kernel_is_done(graph->waits[i]))
            return false;
    return graph->n_waits > 0;
}

tern_status tern_graph_finish(const tern_graph *graph)
{
    tern_graph *own = (void *)(uintptr_t)graph;
    if (!graph->n_waits || tern_thread.graph || tern_builds_are_of_parent() ||
        tern_build_is_reporting())
        return TERN_OK;
    while (graph->n_waits) { /* finish asks for other kernels if the driver refuses some */
        for (int i = 0; i < graph->n_waits; i++)
            tern_chain_kernel_make(graph->waits[i]);
        own->n_waits = 0;
        const tern_status status = finish(own);
        if (status != TERN_OK) {
            empty(own);
            return status;
        }
    }
    return TERN_OK;
}

tern_status tern_graph_capture_end(tern_graph *graph)
{
    if (!graph)
        return tern_fail_argument_null("tern_graph_capture_end", "graph");
    if (graph != tern_thread.graph)
        return tern_fail(TERN_ERR_STATE, "tern_graph_capture_end: the graph is not being recorded");
    tern_status status = tern_last_status();
    if (status == TERN_OK && graph->failed)
        status = tern_fail(TERN_ERR_STATE, "tern_graph_capture_end: an error inside of the capture "
                                           "made it useless");
    if (status == TERN_OK)
        status = advance_random(graph);
    tern_thread.graph = NULL;
    if (status == TERN_OK && !graph->lists) {
        tern_values_find(graph);
        status = finish(graph);
    }
    if (status != TERN_OK)
        empty(graph);
    else
        graph->recorded = true;
    return status;
}

tern_capture_block tern_capture_block_enter(tern_graph *graph)
{
    bool begun = tern_graph_capture_begin(graph) == TERN_OK;
    return (tern_capture_block){.active = begun, .graph = begun ? graph : NULL};
}

void tern_capture_block_leave(tern_capture_block *block)
{
    if (block->graph && block->graph == tern_thread.graph)
        tern_graph_capture_end(block->graph);
}

/* ---- replays ----------------------------------------------------------------------------- */

static tern_status run(tern_graph *graph)
{
    tern_place *place = graph->place;
    if (!graph->pieces)
        return run_nodes(&(range){graph, 0, graph->n_nodes});
    for (int i = 0; i < graph->n_pieces; i++) {
        const tern_graph_piece *p = &graph->pieces[i];
        if (p->executable)
            TERN_TRY(place->backend->vendor->graph_run(place, p->executable));
        if (p->end < graph->n_nodes)
            TERN_TRY(run_node(place, graph->nodes[p->end]));
    }
    return TERN_OK;
}

static tern_status run_and_time(tern_graph *graph)
{
    tern_command_range command;
    int64_t replay = tern_range_begin(TERN_RANGE_LABEL, "graph_replay", 0);
    tern_from_profiler->command_begin(&command, graph->place, "a recorded graph");
    tern_status status = run(graph);
    tern_from_profiler->command_end(&command, status == TERN_OK);
    tern_range_end(replay);
    return status;
}

atomic_ullong tern_replays;

tern_status tern_graph_replay(tern_graph *graph)
{
    if (!graph)
        return tern_fail_argument_null("tern_graph_replay", "graph");
    if (!graph->recorded)
        return tern_fail(TERN_ERR_STATE, "tern_graph_replay: nothing was recorded");
    if (tern_thread.graph)
        return tern_fail(TERN_ERR_STATE, "tern_graph_replay: a replay can't be recorded");
    TERN_TRY(tern_last_status());
    tern_place *place = graph->place;
    if (is_waited_for(graph))
        TERN_TRY(tern_graph_finish(graph));
    atomic_fetch_add_explicit(&tern_replays, 1, memory_order_relaxed);
    for (int i = 0; i < graph->n_refreshes; i++)
        TERN_TRY(graph->refreshes[i].run(graph->refreshes[i].user));
    if (graph->taken)
        TERN_TRY(tern_rng_settle(place));
    tern_status (*const once)(tern_graph *) = tern_profiling ? run_and_time : run;
    TERN_TRY(graph->options.check && graph->plan ? tern_graph_check(graph, once) : once(graph));
    atomic_fetch_add_explicit(&place->launches, (unsigned long long)graph->n_nodes,
                              memory_order_relaxed);
    if (graph->taken)
        tern_rng_advance(place, graph->taken);
    if (graph->faults)
        atomic_store_explicit(&place->fault.used, true, memory_order_relaxed);
    if (tern_debugging)
        return tern_place_sync(place);
    return graph->faults ? tern_fault_check(place) : TERN_OK;
}
