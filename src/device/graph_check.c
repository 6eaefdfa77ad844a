/* graph_check.c -- replays a recording twice: each value in the memory from the recording, and with
 * the plan of memory. The blocks that outlive the replay must have the same bits after both. */
#include "device/plan.h"
#include <string.h>

/* A block that is used outside of the recording's commands too, and its bytes on the host. */
typedef struct seen {
    tern_block *block;
    char *before, *after; /* after: behind the replay without the plan; before: before the replays,
                           * and in the end behind the replay with the plan */
} seen;

typedef struct sight {
    seen *all;
    int64_t n;
} sight;

static bool is_outer(const tern_graph *graph, const tern_block *block)
{
    return !block->is_reused && !tern_block_is_inner(graph, block);
}

/* Returns the bytes that are compared; the bytes behind `used` have no meaning. */
static size_t bytes_of(const seen *one)
{
    const tern_block *block = one->block;
    return block->used && block->used < block->buffer.bytes ? block->used : block->buffer.bytes;
}

static tern_status find_seen(const tern_graph *graph, sight *s)
{
    int64_t n = graph->n_held;
    for (const tern_block *block = graph->pool; block; block = block->of_pool)
        n += is_outer(graph, block);
    s->all = tern_alloc(sizeof *s->all * (size_t)(n + 1));
    if (!s->all)
        return TERN_ERR_MEMORY;
    for (tern_block *block = graph->pool; block; block = block->of_pool)
        if (is_outer(graph, block))
            s->all[s->n++].block = block;
    for (int64_t i = 0; i < graph->n_held; i++)
        s->all[s->n++].block = graph->held[i];
    for (int64_t i = 0; i < s->n; i++) {
        s->all[i].before = tern_alloc(bytes_of(&s->all[i]));
        s->all[i].after = tern_alloc(bytes_of(&s->all[i]));
        if (!s->all[i].before || !s->all[i].after)
            return TERN_ERR_MEMORY;
    }
    return TERN_OK;
}

static void forget(sight *s)
{
    for (int64_t i = 0; s->all && i < s->n; i++) {
        tern_free(s->all[i].before);
        tern_free(s->all[i].after);
    }
    tern_free(s->all);
}

static tern_status read_all(tern_place *place, sight *s, bool after)
{
    for (int64_t i = 0; i < s->n; i++) {
        const tern_buffer *b = &s->all[i].block->buffer;
        TERN_TRY(place->backend->read(place, b, 0, after ? s->all[i].after : s->all[i].before,
                                      bytes_of(&s->all[i])));
    }
    return TERN_OK;
}

static tern_status put_back(tern_place *place, const sight *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        const tern_buffer *b = &s->all[i].block->buffer;
        TERN_TRY(place->backend->write(place, b, 0, s->all[i].before, bytes_of(&s->all[i])));
    }
    return TERN_OK;
}

static tern_status compare(const tern_graph *graph, const sight *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        const seen *one = &s->all[i];
        const size_t bytes = bytes_of(one);
        size_t at = 0;
        while (at < bytes && one->before[at] == one->after[at])
            at++;
        if (at < bytes)
            return tern_fail(TERN_ERR_STATE,
                             "tern_graph_replay: on %s byte %zu of %zu differs from what was "
                             "recorded: %d, expected %d (made by commands up to %lld of %lld)",
                             graph->place->text, at, bytes, one->before[at], one->after[at],
                             (long long)one->block->last, (long long)graph->n_nodes);
    }
    return TERN_OK;
}

/* Replays first without the plan, then with it from the same bytes, and compares. */
static tern_status replay_both(tern_graph *graph, sight *s, tern_status (*run)(tern_graph *graph))
{
    tern_place *place = graph->place;
    bool taken = true;
    TERN_TRY(place->backend->sync(place));
    TERN_TRY(read_all(place, s, false));
    tern_plan_swap(graph);
    tern_status status = TERN_OK;
    tern_graph_node *const *nodes = graph->before ? graph->before : graph->nodes;
    const int64_t n = graph->before ? graph->n_before : graph->n_nodes;
    for (int64_t i = 0; i < n && status == TERN_OK; i++)
        status = tern_command_run(place, &nodes[i]->command, &taken);
    if (status == TERN_OK)
        status = place->backend->sync(place);
    tern_plan_swap(graph);
    TERN_TRY(status);
    TERN_TRY(read_all(place, s, true));
    TERN_TRY(put_back(place, s));
    TERN_TRY(run(graph));
    TERN_TRY(place->backend->sync(place));
    TERN_TRY(read_all(place, s, false));
    return compare(graph, s);
}

tern_status tern_graph_check(tern_graph *graph, tern_status (*run)(tern_graph *graph))
{
    sight s = {0};
    for (int64_t i = 0; i < graph->n_nodes; i++) /* other processes make such a call only once */
        if (graph->nodes[i]->command.kind == TERN_COMMAND_CALL)
            return run(graph);
    tern_status status = find_seen(graph, &s);
    if (status == TERN_OK)
        status = replay_both(graph, &s, run);
    forget(&s);
    return status;
}
