/* estimate.h -- estimates the memory that a thread's commands on a device need, without running
 * them (listing.c). */
#ifndef TERN_SRC_ESTIMATE_H
#define TERN_SRC_ESTIMATE_H
#include "base/error.h"

/* Begins an estimate: until its end the thread's commands for the device do not run, and its large
 * blocks have no memory. Returns TERN_ERR_STATE if the thread is recording. */
tern_status tern_estimate_begin(const char *device);
/* Ends the estimate: sets *peak to the most bytes that were allocated at a time, with those from
 * before, and *left to the number of blocks without memory that were not freed. Returns the error
 * of a command that can't be recorded. */
tern_status tern_estimate_end(uint64_t *peak, int64_t *left);

#endif
