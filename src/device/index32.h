/* index32.h -- kernels with indices of 32 bits, with which GPUs compute two to four times as fast
 * as with 64 bits. A launch uses such a kernel if all its arguments are small enough. */
#ifndef TERN_DEVICE_INDEX32_H
#define TERN_DEVICE_INDEX32_H
#include "device/args.h"

/* Tensors with this many elements, and sizes this large, need indices of 64 bits. The limit is
 * 2^30, because kernels compute twice an index and the index behind the last. Tests lower it. */
extern int64_t tern_index32_limit;
/* Returns whether the arguments of a launch of `count` items or groups fit indices of 32 bits. */
bool tern_fits_index32(const tern_arg *args, int n, int64_t count);

struct tern_nd_index;
/* Sets the fields of an index over n tensors that follow from the others: fours, factor and shift
 * (shapes.h). */
void tern_nd_index_derive(struct tern_nd_index *w, int n);

#endif
