/* sync.c -- waits for a device, and frees all that the devices have when the library is
 * unloaded. */
#include "base/parallel.h"
#include "base/lock.h"
#include "base/profile.h"
#include "device/capture.h"
#include "device/chain_kernels.h"
#include "device/registry.h"
#include "device/transfers.h"

static atomic_bool held;

void tern_commands_are_held(void)
{
    atomic_store_explicit(&held, true, memory_order_relaxed);
}

void tern_flush(void)
{
    if (!atomic_load_explicit(&held, memory_order_relaxed) || tern_is_forked_child())
        return;
    atomic_store_explicit(&held, false, memory_order_relaxed);
    tern_place *place;
    for (int i = 0; (place = tern_place_at(i)); i++)
        if (place->backend->flush)
            place->backend->flush(place);
}

tern_status tern_place_sync(tern_place *place)
{
    TERN_TRY(tern_registry_open(place));
    if (tern_capture_of(place))
        return tern_capture_refuse(place, "waiting for the device");
    atomic_fetch_add_explicit(&place->waits, 1, memory_order_relaxed);
    int64_t range = tern_range_begin(TERN_RANGE_WAIT, "synchronize", 0);
    tern_status status = place->backend->sync(place);
    tern_range_end(range);
    TERN_TRY(status);
    tern_pinned_collect();
    return tern_fault_report(place);
}

tern_status tern_synchronize(const char *device)
{
    tern_place *place = tern_place_find(device, "tern_synchronize");
    return place ? tern_place_sync(place) : tern_last_status();
}

tern_status tern_empty_cache(const char *device)
{
    tern_place *place = tern_place_find(device, "tern_empty_cache");
    if (!place)
        return tern_last_status();
    TERN_TRY(tern_place_sync(place));
    tern_place_enter(place);
    tern_mutex_lock(&place->memory_lock);
    tern_cache_empty(place);
    tern_mutex_unlock(&place->memory_lock);
    tern_place_leave(place);
    tern_staging_empty(place);
    return TERN_OK;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Frees the memory of a place, before `release` of any place: a block may be pinned by another
 * device. */
static void release_memory(tern_place *place)
{
    if (atomic_load(&place->is_open))
        place->backend->close(place);
    if (place->rng.block)
        tern_block_free(place->rng.block);
    if (atomic_load(&place->fault.block))
        tern_block_free(atomic_load(&place->fault.block));
    tern_pinned_collect();
    tern_staging_empty(place);
    tern_mutex_lock(&place->memory_lock);
    tern_cache_empty(place);
    tern_mutex_unlock(&place->memory_lock);
}

static void release(tern_place *place)
{
    if (place->backend->release)
        place->backend->release(place);
    for (int i = 0; i < KERNEL_SLOTS; i++)
        tern_free(atomic_load(&place->kernels[i]));
    tern_chain_kernels_end(place);
    tern_free(place);
}

/* Frees everything if a plugin that contains the library is unloaded. Destructors that run before
 * this one end the threads. */
__attribute__((destructor(1000))) static void release_all(void)
{
    tern_place *place;
    if (!tern_is_unloading())
        return;
    for (int i = 0; (place = tern_place_at(i)); i++)
        release_memory(place);
    for (int i = 0; (place = tern_place_at(i)); i++)
        release(place);
    tern_registry_forget();
}
