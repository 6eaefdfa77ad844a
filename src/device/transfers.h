/* transfers.h -- copies that run at the same time as the launches of a device, on a second queue:
 * pinned memory that is reused, asynchronous copies, and events. An event is one of the backend
 * (tern_transfers); NULL is an event that has completed. Devices without such a queue copy at
 * once. */
#ifndef TERN_DEVICE_TRANSFERS_H
#define TERN_DEVICE_TRANSFERS_H
#include "device/device.h"

/* Pinned host memory, from and to which the device copies asynchronously. */
typedef struct tern_staging {
    tern_buffer buffer;
    tern_place *place;
    struct tern_staging *next;
} tern_staging;
/* Opens the device and returns at least `bytes` bytes of pinned memory, which the caller gives back
 * with tern_staging_give; NULL after an error. */
tern_staging *tern_staging_take(tern_place *place, size_t bytes, const char *function);
/* Keeps the memory for the next tern_staging_take; no copy may be using it. */
void tern_staging_give(tern_staging *staging);

/* Returns a block of the device for transfers to write; NULL after an error. Once freed, the block
 * is reused only for transfers, which wait for its last use alone and not for later launches that
 * did not use the block. */
tern_block *tern_block_alloc_ahead(tern_place *place, size_t bytes, const char *function);

/* Start a copy between a block and pinned memory, behind the launches so far that use the block.
 * *event becomes an event behind the copy, which the caller frees; NULL after an error. */
tern_status tern_block_write_ahead(tern_block *to, size_t at, const void *from, size_t bytes,
                                   void **event);
tern_status tern_block_read_later(tern_block *from, size_t at, void *to, size_t bytes,
                                  void **event);
/* Sets *event to an event behind all launches so far. */
tern_status tern_event_behind_launches(tern_place *place, void **event);
/* tern_launch_after_event makes later launches wait for the event, tern_event_await makes the host
 * wait. If one of them returns an error, all copies of the device are done. */
tern_status tern_launch_after_event(tern_place *place, void *event);
bool tern_event_has_passed(tern_place *place, void *event);
tern_status tern_event_await(tern_place *place, void *event);
void tern_event_free(tern_place *place, void *event);
/* Once the event has completed: frees it, gives back the staging memory and drops the hold on the
 * block (place.h). Each may be NULL. */
void tern_event_then(tern_place *place, void *event, tern_staging *staging, tern_block *held);
/* Keeps a block's memory unchanged while a copy reads it, until tern_event_then drops the hold. */
void tern_block_hold(tern_block *block);

/* ---- with memory.c ---- */
/* Counts an allocation of `bytes` in the statistics. The caller holds memory_lock. */
void tern_block_count(tern_block *block, size_t bytes);
/* Called when a block of tern_block_alloc_ahead is freed: sets last_use to an event behind all
 * launches. */
void tern_ahead_mark(tern_block *block);
/* Frees last_use and makes the block an ordinary one. */
void tern_ahead_forget(tern_block *block);
/* Returns all free pinned memory to the driver. */
void tern_staging_empty(tern_place *place);

#endif
