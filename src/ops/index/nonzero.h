/* nonzero.h -- flat indices of nonzero elements, and running sums of counts. */
#ifndef TERN_SRC_OPS_NONZERO_H
#define TERN_SRC_OPS_NONZERO_H
#include "tensor/op.h"

/* Returns the flat indices (int64) of the elements of x that are not zero, or NULL. Reads their
 * number from the device. */
tern_tensor *tern_nonzero_places(tern_tensor *x);
/* Replaces counts (n + 1, int64) by their exclusive running sums and returns the last one, read
 * from the device, or -1 after an error. A negative count is an error with code `fault`. */
int64_t tern_running_starts(tern_tensor *counts, int64_t n, int fault, const char *function);

#endif
