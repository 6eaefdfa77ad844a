/* rows.c -- events summed by name. */
#include "profile/profile.h"
#include <string.h>

/* The sums of an event: device time and launches, its own and with those of inner events. */
typedef struct sums {
    int64_t device_ns, self_device_ns, inner_host_ns, launches, allocated, copied;
    double flops;
} sums;

/* Inner events come after the enclosing ones, so that one backward loop computes all sums. */
static void add_up(const tern_profiler *p, sums *s)
{
    for (int64_t i = p->n - 1; i >= 0; i--) {
        const tern_event *e = &p->events[i];
        sums *outer = e->outer ? &s[e->outer - 1] : NULL;
        if (e->kind == TERN_RANGE_COMMAND && e->done) {
            s[i].device_ns = s[i].self_device_ns = e->device_ns;
            s[i].launches = 1;
        }
        s[i].copied += e->bytes;
        s[i].flops += e->flops;
        if (!outer)
            continue;
        outer->device_ns += s[i].device_ns;
        outer->launches += s[i].launches;
        outer->copied += s[i].copied;
        if (e->kind == TERN_RANGE_COMMAND)
            outer->self_device_ns += s[i].device_ns;
        else if (e->kind != TERN_EVENT_MEMORY)
            outer->inner_host_ns += e->end - e->begin;
        if (p->events[e->outer - 1].flops == 0) /* otherwise flops includes inner events */
            outer->flops += s[i].flops;
    }
}

/* Adds the changes of each device's memory to the events in which they happen. */
static void add_memory(const tern_profiler *p, sums *s)
{
    struct {
        const char *device;
        int64_t bytes;
    } last[TERN_MOST_CLOCKS];
    int n = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const tern_event *e = &p->events[i];
        int k = 0;
        if (e->kind != TERN_EVENT_MEMORY)
            continue;
        while (k < n && last[k].device != e->name)
            k++;
        if (k == TERN_MOST_CLOCKS)
            continue;
        if (k < n && e->outer)
            s[e->outer - 1].allocated += e->allocated - last[k].bytes;
        n = k < n ? n : n + 1;
        last[k].device = e->name;
        last[k].bytes = e->allocated;
    }
}

/* Returns the row of the event from a hash table, after adding it if there is none. */
static tern_profiler_row *row_of(tern_profiler_row *rows, int64_t *n, int64_t *table,
                                 size_t capacity, const tern_event *e, bool by_module)
{
    const char *path = by_module ? e->path : NULL;
    uint64_t hash = ((uint64_t)(uintptr_t)e->name * 31 + (uint64_t)(uintptr_t)path) *
                    UINT64_C(0x9E3779B97F4A7C15);
    for (size_t k = (size_t)(hash >> 20) % capacity;; k = (k + 1) % capacity) {
        if (table[k] == 0) {
            rows[*n] = (tern_profiler_row){.name = e->name, .module = path};
            table[k] = ++*n;
        }
        tern_profiler_row *row = &rows[table[k] - 1];
        if (row->name == e->name && row->module == path)
            return row;
    }
}

int64_t tern_profile_rows(tern_profiler *p, bool by_module, tern_profiler_row **rows)
{
    size_t most = (size_t)p->n + 1, capacity = 2 * most;
    sums *s = tern_alloc(sizeof *s * most);
    int64_t *table = tern_alloc(sizeof *table * capacity), n = 0;
    *rows = tern_alloc(sizeof **rows * most);
    if (!s || !table || !*rows) {
        tern_free(s), tern_free(table), tern_free(*rows);
        return -1;
    }
    add_up(p, s);
    add_memory(p, s);
    for (int64_t i = 0; i < p->n; i++) {
        const tern_event *e = &p->events[i];
        bool own = e->kind == TERN_RANGE_COMMAND && !e->outer && e->done;
        if (e->kind == TERN_EVENT_MEMORY || (e->kind == TERN_RANGE_COMMAND && !own))
            continue;
        tern_profiler_row *row = row_of(*rows, &n, table, capacity, e, by_module);
        row->calls++;
        row->host_ns += e->end - e->begin;
        row->self_host_ns += e->end - e->begin - s[i].inner_host_ns;
        row->device_ns += s[i].device_ns;
        row->self_device_ns += s[i].self_device_ns;
        row->launches += s[i].launches;
        row->flops += s[i].flops;
        row->copied += s[i].copied;
        row->allocated += s[i].allocated;
    }
    tern_free(s);
    tern_free(table);
    return n;
}

bool tern_profiler_find(tern_profiler *p, const char *name, const char *module,
                        tern_profiler_row *row)
{
    tern_profiler_row *rows = NULL, zero = {0};
    int64_t n = p && name ? tern_profile_rows(p, module != NULL, &rows) : 0;
    bool found = false;
    if (row)
        *row = zero;
    for (int64_t i = 0; i < n && !found; i++) {
        found = strcmp(rows[i].name, name) == 0 && (!module || strcmp(rows[i].module, module) == 0);
        if (found && row)
            *row = rows[i];
    }
    tern_free(rows);
    return found;
}
