/* pinned.c -- host memory that a device's driver has pinned, and asynchronous copies from it. The
 * memory that a copy reads is kept until the copy is done. */
#include "device/capture.h"
#include "base/lock.h"
#include "device/registry.h"

tern_status tern_pinning_place(tern_place **place)
{
    TERN_TRY(tern_registry_pinning(place));
    return *place ? tern_registry_open(*place) : TERN_OK;
}

/* A copy that has been started. */
typedef struct copy {
    struct copy *next;
    tern_place *to;
    tern_block *from;
    void *event; /* an event behind the copy, in launch order of `to` */
} copy;

static struct {
    tern_mutex lock;
    copy *first;
} copies = {.lock = TERN_MUTEX_INIT};

void tern_pinned_collect(void)
{
    tern_mutex_lock(&copies.lock);
    for (copy **at = &copies.first; *at;) {
        copy *c = *at;
        if (!c->to->backend->vendor->has_passed(c->to, c->event)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        c->to->backend->event_free(c->to, c->event);
        tern_block_drop_hold(c->from);
        tern_free(c);
    }
    tern_mutex_unlock(&copies.lock);
}

tern_block *tern_block_alloc_pinned(tern_place *cpu, tern_place *by, size_t bytes,
                                    const char *function)
{
    tern_pinned_collect();
    return tern_cache_take_pinned(cpu, by, bytes, function);
}

static void hold(tern_block *from)
{
    tern_mutex_lock(&from->place->memory_lock);
    from->holds++;
    tern_mutex_unlock(&from->place->memory_lock);
}

static tern_status write_later(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                               size_t bytes)
{
    tern_place *place = to->place;
    copy *c = tern_alloc(sizeof *c);
    if (!c)
        return TERN_ERR_MEMORY;
    *c = (copy){.to = place, .from = from};
    tern_status status = place->backend->vendor->write_later(
        place, &to->buffer, to_at, (const char *)from->buffer.host + from_at, bytes);
    if (status == TERN_OK)
        status = place->backend->event(place, &c->event);
    if (status != TERN_OK) { /* the copy may be running */
        place->backend->sync(place);
        tern_free(c);
        return status;
    }
    hold(from);
    atomic_fetch_add_explicit(&place->to_device, bytes, memory_order_relaxed);
    tern_mutex_lock(&copies.lock);
    c->next = copies.first;
    copies.first = c;
    tern_mutex_unlock(&copies.lock);
    return TERN_OK;
}

tern_status tern_block_copy_later(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                                  size_t bytes)
{
    tern_place *place = to->place;
    if (!from->pinned || from->pinned->backend != place->backend || tern_capture_of(place))
        return tern_block_copy(from, from_at, to, to_at, bytes);
    TERN_TRY(tern_registry_open(place));
    tern_pinned_collect();
    return write_later(from, from_at, to, to_at, bytes);
}
