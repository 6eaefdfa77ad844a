/* segments.c -- memory of large blocks: extents are split and merged, segments grow. */
#include "device/segments.h"
#include "base/env.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

/* Memory that is mapped to a part of a segment that grows. */
typedef struct backing {
    struct backing *next; /* in the order of offsets */
    size_t at, bytes;
    void *memory; /* the backend's handle */
} backing;

enum { STEPS_OF_A_PIECE = 32 };

struct tern_segment {
    struct tern_segment *next;
    tern_buffer whole;
    tern_extent *first; /* in the order of offsets */
    bool grows;
    backing *backings; /* all mapped memory, if the segment grows */
};

struct tern_extent {
    tern_segment *segment;
    size_t at, bytes;
    size_t missing;              /* of a free extent: bytes without memory */
    tern_extent *before, *after; /* neighbours; NULL at an end of the segment */
    tern_extent **link, *next;   /* in the place's list of free extents */
    struct tern_graph *graph;    /* the recording to which the extent belongs; NULL: none */
    bool is_free;
};

bool tern_segments_serve(const tern_place *place, size_t bytes)
{
    return place->backend->part && bytes >= TERN_LARGE &&
           tern_env_flag(TERN_ENV_MEMORY_SEGMENTS, true);
}

bool tern_memory_exceeds(const tern_place *place, size_t bytes)
{
    return place->memory_limit && place->stats.reserved + bytes > place->memory_limit;
}

void tern_memory_reserve(tern_place *place, size_t bytes)
{
    tern_memory_stats *s = &place->stats;
    s->reserved += bytes;
    if (s->reserved > s->reserved_peak)
        s->reserved_peak = s->reserved;
}

/* ---- free extents ------------------------------------------------------------------------ */

static void list(tern_place *place, tern_extent *e)
{
    e->is_free = true;
    e->next = place->extents;
    e->link = &place->extents;
    if (e->next)
        e->next->link = &e->next;
    place->extents = e;
}

static void unlist(tern_extent *e)
{
    e->is_free = false;
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
}

/* Merges the free extent b into a, its neighbour before. */
static void absorb(tern_extent *a, tern_extent *b)
{
    a->bytes += b->bytes;
    a->missing += b->missing;
    a->after = b->after;
    if (b->after)
        b->after->before = a;
    unlist(b);
    tern_free(b);
}

static bool joins(const tern_extent *a, const tern_extent *b)
{
    return a && b && a->is_free && b->is_free && a->graph == b->graph;
}

/* Merges the free extent e with its free neighbours; returns the merged extent. */
static tern_extent *join(tern_extent *e)
{
    if (joins(e, e->after))
        absorb(e, e->after);
    if (joins(e->before, e)) {
        e = e->before;
        absorb(e, e->after);
    }
    return e;
}

/* Returns how many bytes of [at, at + bytes) have no memory. */
static size_t missing_in(const tern_segment *segment, size_t at, size_t bytes)
{
    size_t missing = bytes;
    if (!segment->grows)
        return 0;
    for (const backing *b = segment->backings; b && b->at < at + bytes; b = b->next) {
        const size_t from = b->at > at ? b->at : at;
        const size_t to = b->at + b->bytes < at + bytes ? b->at + b->bytes : at + bytes;
        missing -= to > from ? to - from : 0;
    }
    return missing;
}

/* Counts e->missing again, if e is a free extent: memory may have been mapped to it. */
static void note_missing(tern_extent *e)
{
    if (e && e->is_free && e->missing)
        e->missing = missing_in(e->segment, e->at, e->bytes);
}

static tern_extent *new_extent(tern_segment *segment, size_t at, size_t bytes)
{
    tern_extent *e = tern_alloc(sizeof *e);
    if (e)
        *e = (tern_extent){.segment = segment, .at = at, .bytes = bytes};
    return e;
}

/* ---- segments ------------------------------------------------------------------------------ */

/* Creates a segment, which is one free extent, and returns the extent; NULL after an error, which
 * *status is then. */
static tern_extent *new_segment(tern_place *place, size_t bytes, bool grows, tern_status *status)
{
    tern_segment *segment = tern_alloc(sizeof *segment);
    tern_extent *e = segment ? new_extent(segment, 0, bytes) : NULL;
    *status = TERN_ERR_MEMORY;
    if (!e) {
        tern_free(segment);
        return NULL;
    }
    *segment = (tern_segment){.whole.bytes = bytes, .first = e, .grows = grows};
    if (grows) {
        *status = place->backend->growth->reserve(place, &segment->whole);
    } else if (!tern_memory_exceeds(place, bytes)) {
        place->stats.driver_calls++;
        *status = place->backend->alloc(place, &segment->whole);
    }
    if (*status != TERN_OK) {
        tern_free(e);
        tern_free(segment);
        return NULL;
    }
    segment->next = place->segments;
    place->segments = segment;
    e->missing = grows ? bytes : 0;
    if (!grows)
        tern_memory_reserve(place, bytes);
    list(place, e);
    return e;
}

/* Creates the segment of a place whose backend has growth, at the first large block. If that fails,
 * blocks get segments of their own. */
static void open_growth(tern_place *place)
{
    tern_status status;
    const tern_memory_growth *growth = place->backend->growth;
    if (place->has_growth || !growth)
        return;
    place->has_growth = true;
    const size_t bytes = growth->most(place);
    if (bytes)
        new_segment(place, bytes, true, &status);
}

/* Maps memory to [at, at + bytes) and adds it to the list of backings at *link. */
static tern_status back_gap(tern_place *place, tern_segment *segment, size_t at, size_t bytes,
                            backing **link)
{
    backing *made = tern_alloc(sizeof *made);
    if (!made)
        return TERN_ERR_MEMORY;
    *made = (backing){.next = *link, .at = at, .bytes = bytes};
    place->stats.driver_calls++;
    tern_status status =
        place->backend->growth->map(place, &segment->whole, at, bytes, &made->memory);
    if (status != TERN_OK) {
        tern_free(made);
        return status;
    }
    *link = made;
    tern_memory_reserve(place, bytes);
    return TERN_OK;
}

/* Maps memory to the parts of [at, at + bytes) that have none, in multiples of growth->step, and in
 * pieces, each of which can be unmapped alone. */
static tern_status back(tern_place *place, tern_segment *segment, size_t at, size_t bytes)
{
    const size_t step = place->backend->growth->step, piece = step * STEPS_OF_A_PIECE;
    const size_t end = (at + bytes + step - 1) / step * step;
    size_t from = at / step * step;
    backing **link = &segment->backings;
    if (tern_memory_exceeds(place, missing_in(segment, from, end - from)))
        return TERN_ERR_MEMORY;
    while (from < end) {
        backing *b = *link;
        if (b && b->at <= from) {
            from = b->at + b->bytes > from ? b->at + b->bytes : from;
            link = &b->next;
            continue;
        }
        size_t to = b && b->at < end ? b->at : end;
        to = to - from > piece ? from + piece : to;
        TERN_TRY(back_gap(place, segment, from, to - from, link));
        link = &(*link)->next;
        from = to;
    }
    return TERN_OK;
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* Returns the free extent of this recording (NULL: of none) that needs the fewest bytes of new
 * memory, and of several the smallest; NULL if none is large enough. */
static tern_extent *best_of(tern_place *place, const struct tern_graph *graph, size_t bytes)
{
    tern_extent *best = NULL;
    size_t best_missing = 0;
    for (tern_extent *e = place->extents; e; e = e->next) {
        if (e->bytes < bytes || e->graph != graph)
            continue;
        const size_t missing = e->missing ? missing_in(e->segment, e->at, bytes) : 0;
        if (best &&
            (missing > best_missing || (missing == best_missing && e->bytes >= best->bytes)))
            continue;
        best = e;
        best_missing = missing;
    }
    return best;
}

/* Splits the free extent e after `bytes` and removes it from the list; the rest is free. */
static tern_status split(tern_place *place, tern_extent *e, size_t bytes)
{
    if (e->bytes > bytes) {
        tern_extent *rest = new_extent(e->segment, e->at + bytes, e->bytes - bytes);
        if (!rest)
            return TERN_ERR_MEMORY;
        rest->graph = e->graph;
        rest->before = e;
        rest->after = e->after;
        if (rest->after)
            rest->after->before = rest;
        e->after = rest;
        e->bytes = bytes;
        rest->missing = e->missing ? missing_in(e->segment, rest->at, rest->bytes) : 0;
        list(place, rest);
    }
    unlist(e);
    return TERN_OK;
}

/* Makes e free and merges it with its free neighbours. */
static void release(tern_place *place, tern_extent *e)
{
    list(place, e);
    join(e);
}

tern_status tern_segment_take(tern_place *place, struct tern_graph *graph, size_t bytes,
                              tern_block *block)
{
    tern_status status = TERN_OK;
    const size_t step =
        place->part_step > TERN_EXTENT_STEP ? place->part_step : (size_t)TERN_EXTENT_STEP;
    bytes = (bytes + step - 1) / step * step;
    open_growth(place);
    tern_extent *e = graph ? best_of(place, graph, bytes) : NULL;
    if (!e)
        e = best_of(place, NULL, bytes);
    if (!e)
        e = new_segment(place, bytes, false, &status);
    if (!e)
        return status;
    TERN_TRY(split(place, e, bytes));
    if (e->segment->grows && e->missing) {
        status = back(place, e->segment, e->at, bytes);
        note_missing(e->before);
        note_missing(e->after);
    }
    block->buffer = (tern_buffer){.bytes = bytes};
    if (status == TERN_OK)
        status = place->backend->part(place, &e->segment->whole, e->at, &block->buffer);
    e->missing = status == TERN_OK ? 0 : missing_in(e->segment, e->at, e->bytes);
    if (status != TERN_OK) {
        release(place, e);
        return status;
    }
    if (graph && !e->graph)
        place->stats.recorded += e->bytes;
    e->graph = graph;
    block->extent = e;
    block->is_part = true;
    return TERN_OK;
}

void tern_segment_give_extent(tern_block *block)
{
    tern_extent *e = block->extent;
    block->extent = NULL;
    release(block->place, e);
}

void tern_segment_give(tern_block *block)
{
    if (block->extent)
        tern_segment_give_extent(block);
    if (block->place->backend->unpart)
        block->place->backend->unpart(block->place, &block->buffer);
    tern_free(block);
}

void tern_segment_disown(tern_block *block)
{
    if (block->extent && block->extent->graph) {
        block->place->stats.recorded -= block->extent->bytes;
        block->extent->graph = NULL;
    }
}

void tern_segments_disown(tern_place *place, struct tern_graph *graph)
{
    for (tern_segment *segment = place->segments; segment; segment = segment->next)
        for (tern_extent *e = segment->first; e; e = e->after)
            if (e->is_free && e->graph == graph) {
                place->stats.recorded -= e->bytes;
                e->graph = NULL;
                e = join(e);
            }
}

size_t tern_segments_recorded(const tern_place *place, const struct tern_graph *graph)
{
    size_t bytes = 0;
    for (const tern_segment *segment = place->segments; segment; segment = segment->next)
        for (const tern_extent *e = segment->first; e; e = e->after)
            bytes += e->graph == graph ? e->bytes : 0;
    return bytes;
}

/* ---- freeing memory ---------------------------------------------------------------------- */

/* Returns whether one free extent, of no recording, has all of [at, at + bytes); sets *in to the
 * extent that has the first byte. */
static bool is_free(const tern_segment *segment, size_t at, size_t bytes, tern_extent **in)
{
    tern_extent *e = segment->first;
    while (e->at + e->bytes <= at)
        e = e->after;
    *in = e;
    return e->is_free && !e->graph && e->at + e->bytes >= at + bytes;
}

static void trim_growth(tern_place *place, tern_segment *segment)
{
    tern_extent *in;
    for (backing **link = &segment->backings; *link;) {
        backing *b = *link;
        if (!is_free(segment, b->at, b->bytes, &in)) {
            link = &b->next;
            continue;
        }
        *link = b->next;
        in->missing += b->bytes;
        place->stats.reserved -= b->bytes;
        place->backend->growth->unmap(place, &segment->whole, b->at, b->bytes, b->memory);
        tern_free(b);
    }
}

void tern_segments_trim(tern_place *place)
{
    for (tern_segment **link = &place->segments; *link;) {
        tern_segment *segment = *link;
        tern_extent *e = segment->first;
        if (segment->grows)
            trim_growth(place, segment);
        if (segment->grows || !e->is_free || e->graph || e->after) {
            link = &segment->next;
            continue;
        }
        *link = segment->next;
        unlist(e);
        place->stats.reserved -= segment->whole.bytes;
        tern_free(e);
        place->backend->free(place, &segment->whole);
        tern_free(segment);
    }
}
