/* segments.h -- memory of large blocks: segments that the driver gave, split into extents and
 * joined again.
 *
 * A block of TERN_LARGE bytes or more has an extent of a segment, where the backend has `part`. A
 * request takes the free extent that needs the fewest bytes of the driver's, and of those the
 * smallest (best fit); the rest of it stays free. A free extent is joined with its free neighbours.
 * So what one size gave up serves every other size, and what a device has reserved stays near what
 * its tensors hold at the peak.
 *
 * A backend with `growth` (CUDA) has one segment: addresses for all of the device's memory, of
 * which only what is used is backed by memory. It grows where a request needs it, by pieces, and
 * gives back those in which no block lies. Others (OpenCL) get a segment for each request that no
 * free extent serves. Extents that a recording gave up stay the recording's, whose replays write to
 * them. */
#ifndef TERN_DEVICE_SEGMENTS_H
#define TERN_DEVICE_SEGMENTS_H
#include "device/place.h"

enum { TERN_LARGE = 1 << 20, TERN_EXTENT_STEP = 4096 };

/* All with the place's memory_lock held. */

/* Whether blocks of that size have extents. */
bool tern_segments_serve(const tern_place *place, size_t bytes);
/* Give block, which is new, an extent of at least bytes and fill its buffer. A recording's (NULL:
 * none records) are preferred for the recording. TERN_ERR_MEMORY without a recorded error: there is
 * not enough memory. */
tern_status tern_segment_take(tern_place *place, struct tern_graph *graph, size_t bytes,
                              tern_block *block);
/* The block ends; its extent is free, for the recording that it belongs to, or for all. */
void tern_segment_give(tern_block *block);
/* The same, but the block remains, as an address for those recorded commands that have it. */
void tern_segment_give_extent(tern_block *block);
/* The block is the recording's no more; nor are all free extents that were. */
void tern_segment_disown(tern_block *block);
void tern_segments_disown(tern_place *place, struct tern_graph *graph);
/* The bytes that the recording has, free ones too. */
size_t tern_segments_recorded(const tern_place *place, const struct tern_graph *graph);
/* Whether so many bytes more than are reserved exceed the limit of the program's; note that they
 * are reserved. */
bool tern_memory_exceeds(const tern_place *place, size_t bytes);
void tern_memory_reserve(tern_place *place, size_t bytes);
/* Give the memory of free extents back to the driver. */
void tern_segments_trim(tern_place *place);

#endif
