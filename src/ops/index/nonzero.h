/* nonzero.h -- places of elements, and running sums of counts, for what reads by them. */
#ifndef TERN_SRC_OPS_NONZERO_H
#define TERN_SRC_OPS_NONZERO_H
#include "tensor/op.h"

/* x's places (flat, int64) that are not zero. Reads their number from the device. */
tern_tensor *tern_nonzero_places(tern_tensor *x);
/* counts (n + 1, int64) become the sums of those before; the last one is read from the device. -1
 * after an error, of which a negative count is one: the fault. */
int64_t tern_running_starts(tern_tensor *counts, int64_t n, int fault, const char *function);

#endif
