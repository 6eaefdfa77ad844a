/* transfers.c -- copies that run at the same time as launches: their memory and their events. */
#include "device/transfers.h"
#include "base/lock.h"
#include "base/error.h"
#include "device/capture.h"
#include "device/registry.h"

enum { SMALLEST = 64 << 10, MOST_AHEAD = 16 };

static const tern_transfers *slots(const tern_place *place)
{
    return place->backend->transfers;
}

/* ---- the end of a copy --------------------------------------------------------------------- */

/* What tern_event_then gives back once the event has completed. */
typedef struct waiting {
    struct waiting *next;
    tern_place *place;
    void *event;
    tern_staging *staging;
    tern_block *held;
} waiting;

static struct {
    tern_mutex lock;
    waiting *first;
} copies = {.lock = TERN_MUTEX_INIT};

static void let_go(tern_place *place, void *event, tern_staging *staging, tern_block *held)
{
    tern_event_free(place, event);
    if (staging)
        tern_staging_give(staging);
    if (held)
        tern_block_drop_hold(held);
}

static void collect(void)
{
    waiting *done = NULL;
    tern_mutex_lock(&copies.lock);
    for (waiting **at = &copies.first; *at;) {
        waiting *w = *at;
        if (!tern_event_has_passed(w->place, w->event)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = done;
        done = w;
    }
    tern_mutex_unlock(&copies.lock);
    while (done) {
        waiting *next = done->next;
        let_go(done->place, done->event, done->staging, done->held);
        tern_free(done);
        done = next;
    }
}

void tern_event_then(tern_place *place, void *event, tern_staging *staging, tern_block *held)
{
    const bool passed = tern_event_has_passed(place, event);
    tern_error_hold hold;
    const bool quiet = !passed && tern_error_hold_begin(&hold) == TERN_OK;
    waiting *w = passed ? NULL : tern_alloc(sizeof *w);
    if (!w && !passed)
        tern_event_await(place, event); /* if this fails, all copies are done too */
    if (quiet)
        tern_error_hold_end(&hold, NULL, 0);
    if (!w) {
        let_go(place, event, staging, held);
        return;
    }
    *w = (waiting){.place = place, .event = event, .staging = staging, .held = held};
    tern_mutex_lock(&copies.lock);
    w->next = copies.first;
    copies.first = w;
    tern_mutex_unlock(&copies.lock);
}

void tern_block_hold(tern_block *block)
{
    tern_mutex_lock(&block->place->memory_lock);
    block->holds++;
    tern_mutex_unlock(&block->place->memory_lock);
}

/* ---- pinned memory ----------------------------------------------------------------------- */

/* Rounds up to one of eight sizes between powers of two, so that requests of similar sizes can use
 * the same memory. */
static size_t rounded_up(size_t bytes)
{
    if (bytes <= SMALLEST)
        return SMALLEST;
    size_t step = (size_t)1 << (60 - __builtin_clzll(bytes - 1));
    return (bytes + step - 1) / step * step;
}

tern_staging *tern_staging_take(tern_place *place, size_t bytes, const char *function)
{
    if (bytes > (size_t)1 << 56)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: %zu bytes of pinned memory are too many",
                              function, bytes);
    size_t wanted = rounded_up(bytes);
    if (tern_registry_open(place) != TERN_OK)
        return NULL;
    collect();
    tern_mutex_lock(&place->memory_lock);
    tern_staging **at = &place->staging;
    while (*at && (*at)->buffer.bytes != wanted)
        at = &(*at)->next;
    tern_staging *staging = *at;
    if (staging)
        *at = staging->next;
    tern_mutex_unlock(&place->memory_lock);
    if (staging || !(staging = tern_alloc(sizeof *staging)))
        return staging;
    *staging = (tern_staging){.place = place, .buffer.bytes = wanted};
    tern_status status = TERN_OK;
    if (slots(place))
        status = slots(place)->host_alloc(place, &staging->buffer);
    else if (!(staging->buffer.host = tern_alloc_aligned(wanted)))
        status = tern_fail(TERN_ERR_MEMORY, "%s: out of memory: %zu bytes of staging memory",
                           function, wanted);
    if (status == TERN_OK)
        return staging;
    tern_free(staging);
    return NULL;
}

void tern_staging_give(tern_staging *staging)
{
    tern_place *place = staging->place;
    tern_mutex_lock(&place->memory_lock);
    staging->next = place->staging;
    place->staging = staging;
    tern_mutex_unlock(&place->memory_lock);
}

void tern_staging_empty(tern_place *place)
{
    collect();
    tern_mutex_lock(&place->memory_lock);
    tern_staging *staging = place->staging;
    place->staging = NULL;
    tern_mutex_unlock(&place->memory_lock);
    while (staging) {
        tern_staging *next = staging->next;
        if (slots(place))
            slots(place)->host_free(place, &staging->buffer);
        else
            tern_free(staging->buffer.host);
        tern_free(staging);
        staging = next;
    }
}

/* ---- blocks that transfers write --------------------------------------------------------- */

tern_block *tern_block_alloc_ahead(tern_place *place, size_t bytes, const char *function)
{
    size_t most = bytes + bytes / 8 + 64; /* as the allocator rounds */
    int waiting_blocks = 0;
    tern_mutex_lock(&place->memory_lock);
    tern_block **at = &place->ahead, *block;
    for (; (block = *at); at = &block->next, waiting_blocks++)
        if (block->buffer.bytes >= bytes && block->buffer.bytes <= most)
            break;
    if (block) {
        *at = block->next;
        tern_block_count(block, bytes);
    }
    tern_mutex_unlock(&place->memory_lock);
    if (block)
        return block;
    block = tern_block_alloc(place, bytes, function);
    if (block && slots(place) && !block->pool && waiting_blocks < MOST_AHEAD)
        block->is_ahead = true;
    return block;
}

/* ---- copies ------------------------------------------------------------------------------ */

static tern_status open_for(tern_place *place)
{
    TERN_TRY(tern_registry_open(place));
    return tern_capture_of(place)
               ? tern_capture_refuse(place, "a copy beside the launches of the device")
               : TERN_OK;
}

/* Makes later copies of the queue wait for the launches that used the block. */
static tern_status behind_last_use(tern_block *block)
{
    tern_place *place = block->place;
    void *event = block->last_use;
    tern_status status = TERN_OK;
    if (block->is_ahead && block->was_used)
        block->last_use = NULL;
    else
        status = slots(place)->mark(place, false, &event);
    block->was_used = false;
    if (status == TERN_OK && !tern_event_has_passed(place, event))
        status = slots(place)->after(place, true, event);
    if (status == TERN_OK || event)
        tern_event_free(place, event);
    return status;
}

/* Sets *event to an event behind all copies so far. After an error all copies are done. */
static tern_status behind_copies(tern_place *place, void **event)
{
    tern_status status = slots(place)->mark(place, true, event);
    if (status != TERN_OK) {
        slots(place)->drain(place);
        tern_event_free(place, *event);
        *event = NULL;
    }
    return status;
}

tern_status tern_block_write_ahead(tern_block *to, size_t at, const void *from, size_t bytes,
                                   void **event)
{
    tern_place *place = to->place;
    *event = NULL;
    TERN_TRY(open_for(place));
    if (!slots(place))
        return tern_block_write(to, at, from, bytes);
    TERN_TRY(behind_last_use(to));
    TERN_TRY(slots(place)->write_later(place, &to->buffer, at, from, bytes));
    atomic_fetch_add_explicit(&place->to_device, bytes, memory_order_relaxed);
    return behind_copies(place, event);
}

tern_status tern_block_read_later(tern_block *from, size_t at, void *to, size_t bytes, void **event)
{
    tern_place *place = from->place;
    *event = NULL;
    TERN_TRY(open_for(place));
    if (!slots(place))
        return tern_block_read(from, at, to, bytes);
    TERN_TRY(behind_last_use(from));
    TERN_TRY(slots(place)->read_later(place, &from->buffer, at, to, bytes));
    atomic_fetch_add_explicit(&place->to_host, bytes, memory_order_relaxed);
    return behind_copies(place, event);
}
