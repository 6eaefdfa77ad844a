/* segments.h -- memory of large blocks: segments are allocated by the driver, split into extents,
 * and the extents are merged again.
 *
 * A block of TERN_LARGE bytes or more is an extent of a segment, if the backend has `part`. A
 * request takes the free extent that needs the fewest bytes of new memory, and of several the
 * smallest (best fit); the rest of the extent stays free. A free extent is merged with its free
 * neighbours. So memory that a block of one size freed serves requests of every size, and the
 * reserved memory of a device stays near the peak of the memory of its tensors.
 *
 * A backend with `growth` (CUDA) has one segment: a range of addresses for all of the device's
 * memory, to which memory is mapped in pieces when a request needs it; pieces without blocks can be
 * unmapped. Other backends (OpenCL) allocate a segment for each request for which no free extent is
 * large enough. Extents that a recording freed stay reserved for the recording, as its replays
 * write to them. */
#ifndef TERN_DEVICE_SEGMENTS_H
#define TERN_DEVICE_SEGMENTS_H
#include "device/place.h"

enum { TERN_LARGE = 1 << 20, TERN_EXTENT_STEP = 4096 };

/* The caller of these functions holds the place's memory_lock. */

/* Returns whether blocks of this size are extents of segments. */
bool tern_segments_serve(const tern_place *place, size_t bytes);
/* Gives a new block an extent of at least `bytes` bytes and fills its buffer. If graph is not NULL,
 * the extent then belongs to this recording, and free extents that do are preferred. If memory is
 * out, returns TERN_ERR_MEMORY without recording an error. */
tern_status tern_segment_take(tern_place *place, struct tern_graph *graph, size_t bytes,
                              tern_block *block);
/* Frees the block and its extent, which stays with its recording, if it belongs to one. */
void tern_segment_give(tern_block *block);
/* Frees the extent only: recorded commands still use the block's address. */
void tern_segment_give_extent(tern_block *block);
/* End the ownership by the recording: of the extent of a block, or of all its free extents. */
void tern_segment_disown(tern_block *block);
void tern_segments_disown(tern_place *place, struct tern_graph *graph);
/* Returns the bytes of all extents, free ones too, that belong to the recording. */
size_t tern_segments_recorded(const tern_place *place, const struct tern_graph *graph);
/* tern_memory_exceeds returns whether `bytes` more reserved bytes would exceed memory_limit;
 * tern_memory_reserve adds them to the statistics. */
bool tern_memory_exceeds(const tern_place *place, size_t bytes);
void tern_memory_reserve(tern_place *place, size_t bytes);
/* Returns the memory of free extents to the driver. */
void tern_segments_trim(tern_place *place);

#endif
