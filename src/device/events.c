/* events.c -- events in the order of a device's launches and copies, and the event behind the last
 * use of a free block. */
#include "base/error.h"
#include "device/registry.h"
#include "device/transfers.h"

static const tern_transfers *slots(const tern_place *place)
{
    return place->backend->transfers;
}

bool tern_event_has_passed(tern_place *place, void *event)
{
    return !event || slots(place)->has_passed(place, event);
}

/* Returns the status; after an error waits for all copies, as the owner then reuses the memory. */
static tern_status or_drained(tern_place *place, tern_status status)
{
    if (status != TERN_OK)
        slots(place)->drain(place);
    return status;
}

tern_status tern_event_await(tern_place *place, void *event)
{
    return event ? or_drained(place, slots(place)->await(place, event)) : TERN_OK;
}

void tern_event_free(tern_place *place, void *event)
{
    if (event)
        slots(place)->unmark(place, event);
}

tern_status tern_event_behind_launches(tern_place *place, void **event)
{
    return slots(place)->mark(place, false, event);
}

tern_status tern_launch_after_event(tern_place *place, void *event)
{
    if (tern_event_has_passed(place, event))
        return TERN_OK;
    return or_drained(place, slots(place)->after(place, false, event));
}

void tern_ahead_forget(tern_block *block)
{
    tern_event_free(block->place, block->last_use);
    block->last_use = NULL;
    block->is_ahead = false;
}

/* If no event can be created, the block becomes an ordinary one, which is used in launch order. */
void tern_ahead_mark(tern_block *block)
{
    tern_place *place = block->place;
    tern_error_hold hold;
    tern_ahead_forget(block);
    const bool quiet = tern_error_hold_begin(&hold) == TERN_OK;
    block->is_ahead = slots(place)->mark(place, false, &block->last_use) == TERN_OK;
    if (quiet)
        tern_error_hold_end(&hold, NULL, 0);
    block->was_used = true;
}
