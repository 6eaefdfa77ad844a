/* index32.h -- kernels with indices of 32 bits, which GPUs compute with two to four times as fast
 * as with 64: where all that a launch is given is small enough. */
#ifndef TERN_DEVICE_INDEX32_H
#define TERN_DEVICE_INDEX32_H
#include "device/args.h"

/* Tensors of so many elements, and sizes, do not fit indices of 32 bits. 2^30: kernels form twice
 * an index, and the next index behind the last. Tests lower it. */
extern int64_t tern_index32_limit;
/* Whether n arguments of a kernel of the library's, for `count` items or groups, are. */
bool tern_fits_index32(const tern_arg *args, int n, int64_t count);

struct tern_nd_index;
/* The fields of an index over n tensors that follow from the others: fours, factor and shift
 * (shapes.h). */
void tern_nd_index_derive(struct tern_nd_index *w, int n);

#endif
