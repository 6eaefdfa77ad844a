/* estimate.h -- counting what a thread's work on a device takes of memory, without doing it
 * (listing.c). */
#ifndef TERN_SRC_ESTIMATE_H
#define TERN_SRC_ESTIMATE_H
#include "base/error.h"

/* From here on nothing of the thread's work happens on the device, and its large blocks have no
 * memory. TERN_ERR_STATE while the thread records. */
tern_status tern_estimate_begin(const char *device);
/* The most that was allocated in between, with what there was before; how many of those blocks are
 * left. The status of what can't be recorded. */
tern_status tern_estimate_end(uint64_t *peak, int64_t *left);

#endif
