/* transfers.h -- copies beside the launches of a device, on a queue of its own: pinned memory that
 * is used again, copies that do not wait, and what they wait for. An event is that of the backend
 * (tern_transfers), NULL one that has passed. Devices without such a queue copy at once. */
#ifndef TERN_DEVICE_TRANSFERS_H
#define TERN_DEVICE_TRANSFERS_H
#include "device/device.h"

/* Memory of the host that the device copies from and to by itself. */
typedef struct tern_staging {
    tern_buffer buffer;
    tern_place *place;
    struct tern_staging *next;
} tern_staging;
/* At least that many bytes, of a device that is open; NULL after an error. */
tern_staging *tern_staging_take(tern_place *place, size_t bytes, const char *function);
/* No copy from or to it is under way. */
void tern_staging_give(tern_staging *staging);

/* A block of the device for transfers to write. It is used again by transfers alone, which then
 * wait for nothing but its last use; so a copy need not come behind launches that never saw the
 * block. */
tern_block *tern_block_alloc_ahead(tern_place *place, size_t bytes, const char *function);

/* Copies between a block and pinned memory, behind what was launched before. *event is behind them,
 * for one of the functions below, and NULL after an error. */
tern_status tern_block_write_ahead(tern_block *to, size_t at, const void *from, size_t bytes,
                                   void **event);
tern_status tern_block_read_later(tern_block *from, size_t at, void *to, size_t bytes,
                                  void **event);
/* An event behind what was launched. */
tern_status tern_event_behind_launches(tern_place *place, void **event);
/* What is launched from now on comes behind the event. After an error of this or the next but one
 * the device's copies are done. */
tern_status tern_launch_after_event(tern_place *place, void *event);
bool tern_event_has_passed(tern_place *place, void *event);
tern_status tern_event_await(tern_place *place, void *event);
/* Free it. */
void tern_event_free(tern_place *place, void *event);
/* When it has passed, free it, give back the staging and drop the hold on the block (place.h); each
 * may be NULL. */
void tern_event_then(tern_place *place, void *event, tern_staging *staging, tern_block *held);
/* Keep a block's memory as it is while a copy reads it; dropped by tern_event_then. */
void tern_block_hold(tern_block *block);

/* ---- with memory.c ---- */
/* With memory_lock held: a block is taken for that many bytes. */
void tern_block_count(tern_block *block, size_t bytes);
/* A block of tern_block_alloc_ahead is free: note what used it last. */
void tern_ahead_mark(tern_block *block);
/* It goes back to the driver. */
void tern_ahead_forget(tern_block *block);
/* Give pinned memory that waits back to the driver. */
void tern_staging_empty(tern_place *place);

#endif
