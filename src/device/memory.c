/* memory.c -- the caching allocator: free small blocks are kept in lists by size class; large
 * blocks are parts of segments. */
#include "base/profile.h"
#include "base/lock.h"
#include "base/strict.h"
#include "device/capture.h"
#include "device/item.h"
#include "device/registry.h"
#include "device/segments.h"
#include "device/transfers.h"
#include <inttypes.h>
#include <math.h>

/* Returns the size class, and sets *rounded to its size. There are eight classes between 2^k and
 * 2^(k + 1) from 64 bytes on, so at most 1/8 of a block is unused. */
static int size_class(size_t bytes, size_t *rounded)
{
    if (bytes <= 64) {
        *rounded = 64;
        return 0;
    }
    int log2 = 63 - __builtin_clzll(bytes - 1); /* 2^log2 < bytes <= 2^(log2 + 1) */
    size_t step = (size_t)1 << (log2 - 3);
    size_t parts = (bytes + step - 1) / step; /* 9..16 */
    *rounded = parts * step;
    return (log2 - 6) * 8 + (int)parts - 8;
}

static void drop(tern_place *place, tern_block *block)
{
    if (block->is_part) {
        tern_segment_give(block);
        return;
    }
    place->stats.reserved -= block->buffer.bytes;
    if (block->pinned)
        block->pinned->backend->vendor->host_free(block->pinned, block->buffer.host);
    else
        place->backend->free(place, &block->buffer);
    tern_free(block);
}

/* The caller holds memory_lock. */
static void empty_ahead(tern_place *place)
{
    while (place->ahead) {
        tern_block *block = place->ahead;
        place->ahead = block->next;
        tern_ahead_forget(block);
        drop(place, block);
    }
}

void tern_cache_empty(tern_place *place)
{
    for (int c = 0; c < SIZE_CLASSES; c++)
        while (place->cache[c]) {
            tern_block *block = place->cache[c];
            place->cache[c] = block->next;
            drop(place, block);
        }
    empty_ahead(place);
    while (place->pinned) {
        tern_block *block = place->pinned;
        place->pinned = block->next;
        drop(place, block);
    }
    for (int key = 0; key < TERN_CONTENT_KEYS; key++) {
        tern_block *block = place->content[key];
        place->content[key] = NULL;
        if (block && block->holds)
            block->is_orphan = true;
        else if (block)
            drop(place, block);
    }
    tern_segments_trim(place);
}

static tern_block *fail(tern_place *place, size_t bytes, const char *function)
{
    uint64_t free_bytes = 0, total = 0;
    uint64_t largest = place->info.largest_allocation;
    if (largest && bytes > largest)
        return tern_fail_null(TERN_ERR_MEMORY,
                              "%s: %s out of memory: tried to allocate %zu bytes, but its largest "
                              "allocation is %" PRIu64 " bytes",
                              function, place->text, bytes, largest);
    if (tern_memory_exceeds(place, bytes))
        return tern_fail_null(
            TERN_ERR_MEMORY,
            "%s: %s out of memory: tried to allocate %zu bytes; tern's tensors hold %" PRIu64
            " of the %" PRIu64 " bytes that tern_set_memory_limit allows",
            function, place->text, bytes, place->stats.allocated, place->memory_limit);
    place->backend->memory(place, &free_bytes, &total);
    return tern_fail_null(TERN_ERR_MEMORY,
                          "%s: %s out of memory: tried to allocate %zu bytes; %" PRIu64
                          " of %" PRIu64 " bytes are free, tern's tensors hold %" PRIu64,
                          function, place->text, bytes, free_bytes, total, place->stats.allocated);
}

static void count(tern_place *place, tern_block *block, size_t bytes)
{
    block->used = bytes;
    tern_memory_stats *s = &place->stats;
    s->allocations++;
    s->allocated += bytes;
    if (s->allocated > s->allocated_peak)
        s->allocated_peak = s->allocated;
    if (tern_profiling)
        tern_from_profiler->memory(place->text, s->allocated, (int64_t)bytes, &block->maker);
}

static void uncount(tern_place *place, tern_block *block)
{
    place->stats.allocated -= block->used;
    if (tern_profiling)
        tern_from_profiler->memory(place->text, place->stats.allocated, -(int64_t)block->used,
                                   &block->maker);
}

/* Calls `call`, and if the device is out of memory, empties the cache and calls it again. If the
 * call recorded an error, the host is out of memory or the error is another one, and there is no
 * second call. The caller holds memory_lock. */
#define TRY_TWICE(place, status, call)                                                             \
    do {                                                                                           \
        const uint64_t failures_ = tern_failures();                                                \
        (status) = (call);                                                                         \
        if ((status) == TERN_ERR_MEMORY && tern_failed_since(failures_) == TERN_OK) {              \
            tern_cache_empty(place);                                                               \
            (status) = (call);                                                                     \
        }                                                                                          \
    } while (0)

static tern_status alloc_alone(tern_place *place, tern_block *block)
{
    if (tern_memory_exceeds(place, block->buffer.bytes))
        return TERN_ERR_MEMORY;
    place->stats.driver_calls++;
    TERN_TRY(place->backend->alloc(place, &block->buffer));
    tern_memory_reserve(place, block->buffer.bytes);
    return TERN_OK;
}

tern_status tern_place_alloc(tern_place *place, tern_buffer *buffer)
{
    tern_status status;
    tern_mutex_lock(&place->memory_lock);
    TRY_TWICE(place, status, place->backend->alloc(place, buffer));
    tern_mutex_unlock(&place->memory_lock);
    return status;
}

/* Returns a new block of `rounded` bytes, or a part of a segment of `bytes` or a little more; NULL
 * if memory is out. The caller holds memory_lock. */
static tern_block *from_driver(tern_place *place, tern_graph *graph, size_t bytes, size_t rounded,
                               int class)
{
    tern_status status;
    tern_block *block = tern_alloc(sizeof *block);
    if (!block)
        return NULL;
    *block = (tern_block){.place = place, .size_class = class, .buffer.bytes = rounded};
    if (tern_segments_serve(place, bytes))
        TRY_TWICE(place, status, tern_segment_take(place, graph, bytes, block));
    else
        TRY_TWICE(place, status, alloc_alone(place, block));
    if (status != TERN_OK) {
        tern_free(block);
        return NULL;
    }
    return block;
}

void tern_block_count(tern_block *block, size_t bytes)
{
    count(block->place, block, bytes);
}

tern_block *tern_block_alloc(tern_place *place, size_t bytes, const char *function)
{
    uint64_t largest = place->info.largest_allocation;
    if (bytes > (size_t)1 << 56 || (largest && bytes > largest))
        return fail(place, bytes, function);
    size_t rounded;
    int class = size_class(bytes, &rounded);
    if (largest && rounded > largest)
        rounded = bytes;
    tern_graph *graph = tern_capture_of(place);
    tern_block *virtual = NULL;
    if (graph && tern_graph_estimates(graph)) {
        if (tern_estimate_block(place, bytes, &virtual) != TERN_OK)
            return NULL;
        graph = NULL;
    }
    tern_block *block = graph || virtual ? virtual : tern_kept_take(place, class, bytes);
    if (block && !virtual)
        return block;
    tern_place_enter(place);
    tern_mutex_lock(&place->memory_lock);
    tern_status status = graph ? tern_pool_take(graph, class, bytes, &block) : TERN_OK;
    if (status == TERN_OK && !block) {
        block = place->cache[class];
        if (block && block->buffer.bytes >= bytes)
            place->cache[class] = block->next;
        else
            block = from_driver(place, graph, bytes, rounded, class);
        if (block && graph)
            tern_pool_adopt(graph, block);
    }
    if (block)
        count(place, block, bytes);
    else
        fail(place, bytes, function);
    tern_mutex_unlock(&place->memory_lock);
    tern_place_leave(place);
    return block;
}

/* The caller holds memory_lock. */
static tern_block *pinned_from_driver(tern_place *cpu, tern_place *by, size_t bytes, int class)
{
    tern_block *block = tern_alloc(sizeof *block);
    void *memory = NULL;
    if (!block)
        return NULL;
    cpu->stats.driver_calls++;
    if (by->backend->vendor->host_alloc(by, bytes, &memory) != TERN_OK) {
        tern_free(block);
        return NULL;
    }
    *block = (tern_block){.place = cpu, .size_class = class, .pinned = by};
    block->buffer = (tern_buffer){memory, (uint64_t)(uintptr_t)memory, memory, bytes};
    tern_memory_reserve(cpu, bytes);
    return block;
}

tern_block *tern_cache_take_pinned(tern_place *cpu, tern_place *by, size_t bytes,
                                   const char *function)
{
    size_t rounded;
    if (bytes > (size_t)1 << 56)
        return fail(cpu, bytes, function);
    int class = size_class(bytes, &rounded);
    tern_mutex_lock(&cpu->memory_lock);
    tern_block **at = &cpu->pinned;
    while (*at && ((*at)->size_class != class || (*at)->pinned != by))
        at = &(*at)->next;
    tern_block *block = *at;
    if (block)
        *at = block->next;
    else
        block = pinned_from_driver(cpu, by, rounded, class);
    if (block)
        count(cpu, block, bytes);
    tern_mutex_unlock(&cpu->memory_lock);
    return block;
}

void tern_cache_put(tern_place *place, tern_block *block)
{
    if (block->is_part && !block->is_ahead) {
        tern_segment_give(block);
        return;
    }
    tern_block **list = block->pinned     ? &place->pinned
                        : block->is_ahead ? &place->ahead
                                          : &place->cache[block->size_class];
    block->next = *list;
    *list = block;
}

void tern_block_drop_hold(tern_block *block)
{
    tern_place *place = block->place;
    tern_mutex_lock(&place->memory_lock);
    bool unused = --block->holds == 0 && block->is_orphan;
    const bool ends = unused && block->external;
    if (unused)
        block->is_orphan = false;
    if (unused && !ends)
        tern_cache_put(place, block);
    tern_mutex_unlock(&place->memory_lock);
    if (ends)
        tern_block_end(block);
}

void tern_block_free(tern_block *block)
{
    if (!block)
        return;
    if (tern_kept_put(block))
        return;
    tern_place *place = block->place;
    if (block->is_ahead && !block->holds && !block->pool)
        tern_ahead_mark(block);
    tern_mutex_lock(&place->memory_lock);
    uncount(place, block);
    bool ends = block->external && !block->holds;
    if (block->pool)
        tern_pool_give(block->pool, block);
    else if (block->holds)
        block->is_orphan = true;
    else if (!ends)
        tern_cache_put(place, block);
    tern_mutex_unlock(&place->memory_lock);
    if (ends)
        tern_block_end(block);
}

/* The caller holds memory_lock. */
static void give_kept(tern_place *place, tern_block *block)
{
    while (block) {
        tern_block *next = block->next;
        place->stats.allocated -= block->used;
        tern_cache_put(place, block);
        block = next;
    }
}

void tern_kept_blocks_end(tern_kept_blocks *kept)
{
    tern_place *place = NULL;
    for (int class = 0; class < TERN_KEPT_CLASSES; class ++) {
        tern_block *first = kept->of[class];
        if (!first)
            continue;
        if (!place) {
            place = first->place;
            tern_mutex_lock(&place->memory_lock);
            place->stats.allocations += kept->taken;
        }
        give_kept(place, first);
    }
    if (place)
        tern_mutex_unlock(&place->memory_lock);
    *kept = (tern_kept_blocks){.taken = 0};
}

void tern_block_keep_content(tern_block *block, int key)
{
    tern_place *place = block->place;
    tern_mutex_lock(&place->memory_lock);
    tern_block *spare = block;
    if (!place->content[key] && !block->pool && !block->external && !block->is_ahead) {
        uncount(place, block);
        place->content[key] = block;
        spare = NULL;
    }
    tern_mutex_unlock(&place->memory_lock);
    tern_block_free(spare);
}

tern_block *tern_block_take_content(tern_place *place, int key)
{
    tern_mutex_lock(&place->memory_lock);
    tern_block *block = place->content[key];
    place->content[key] = NULL;
    if (block)
        count(place, block, block->used);
    tern_mutex_unlock(&place->memory_lock);
    return block;
}

tern_status tern_block_set_words(tern_place *place, tern_block **block, const uint64_t *words)
{
    tern_graph *graph = tern_capture_suspend();
    tern_block *to = *block ? *block : tern_block_alloc(place, 3 * sizeof *words, "tern");
    tern_capture_resume(graph);
    if (!to)
        return tern_last_status();
    tern_status status = place->backend->write(place, &to->buffer, 0, words, 3 * sizeof *words);
    if (status == TERN_OK)
        *block = to;
    else if (!*block)
        tern_block_free(to); /* the new block, which has no content */
    return status;
}

tern_status tern_memory_get_stats(const char *device, tern_memory_stats *stats)
{
    if (!stats)
        return tern_fail_argument_null("tern_memory_get_stats", "stats");
    tern_place *place = tern_place_name(device, "tern_memory_get_stats");
    if (!place)
        return tern_last_status();
    tern_mutex_lock(&place->memory_lock);
    *stats = place->stats;
    tern_mutex_unlock(&place->memory_lock);
    stats->launches = atomic_load(&place->launches);
    stats->to_host_bytes = atomic_load(&place->to_host);
    stats->to_device_bytes = atomic_load(&place->to_device);
    stats->programs_built = atomic_load(&place->built);
    stats->programs_loaded = atomic_load(&place->loaded);
    return TERN_OK;
}

tern_status tern_set_memory_limit(const char *device, uint64_t bytes)
{
    tern_place *place = tern_place_name(device, "tern_set_memory_limit");
    if (!place)
        return tern_last_status();
    tern_mutex_lock(&place->memory_lock);
    place->memory_limit = bytes;
    tern_mutex_unlock(&place->memory_lock);
    return TERN_OK;
}

tern_status tern_set_per_process_memory_fraction(double fraction, const char *device)
{
    if (!(fraction >= 0 && fraction <= 1))
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_set_per_process_memory_fraction: invalid fraction value: %g, must be "
            "between 0 and 1",
            fraction);
    tern_place *place = tern_place_name(device, "tern_set_per_process_memory_fraction");
    if (!place)
        return tern_last_status();
    /* The smallest limit is 1 byte, as 0 means that there is no limit. */
    const double bytes = fraction * (double)place->info.memory_total;
    return tern_set_memory_limit(place->text, fraction == 1 ? 0 : bytes < 1 ? 1 : (uint64_t)bytes);
}

double tern_get_per_process_memory_fraction(const char *device)
{
    tern_place *place = tern_place_name(device, "tern_get_per_process_memory_fraction");
    if (!place)
        return NAN;
    tern_mutex_lock(&place->memory_lock);
    const uint64_t limit = place->memory_limit, total = place->info.memory_total;
    tern_mutex_unlock(&place->memory_lock);
    return limit && limit < total ? (double)limit / (double)total : 1;
}

tern_status tern_reset_peak_memory_stats(const char *device)
{
    tern_place *place = tern_place_name(device, "tern_reset_peak_memory_stats");
    if (!place)
        return tern_last_status();
    tern_mutex_lock(&place->memory_lock);
    place->stats.allocated_peak = place->stats.allocated;
    place->stats.reserved_peak = place->stats.reserved;
    tern_mutex_unlock(&place->memory_lock);
    return TERN_OK;
}

tern_status tern_get_counters(const char *device, tern_counters *counters)
{
    tern_memory_stats stats;
    if (!counters)
        return tern_fail_argument_null("tern_get_counters", "counters");
    tern_place *place = tern_place_name(device, "tern_get_counters");
    if (!place)
        return tern_last_status();
    TERN_TRY(tern_memory_get_stats(place->text, &stats));
    *counters = (tern_counters){.operations = atomic_load(&place->operations),
                                .launches = stats.launches,
                                .waits = atomic_load(&place->waits),
                                .to_host = stats.to_host_bytes,
                                .to_device = stats.to_device_bytes,
                                .fallbacks = tern_fallbacks(),
                                .programs_built = stats.programs_built,
                                .programs_loaded = stats.programs_loaded,
                                .allocations = stats.allocations,
                                .driver_allocations = stats.driver_calls};
    return TERN_OK;
}

void tern_place_count_operation(tern_place *place)
{
    uint64_t n = atomic_load_explicit(&place->operations, memory_order_relaxed);
    atomic_store_explicit(&place->operations, n + 1, memory_order_relaxed);
}
