/* narrow.h -- kernels with indices of 32 bits, which GPUs compute with two to four times as fast as with 64: where
 * all that a launch is given is small enough. */
#ifndef TERN_DEVICE_NARROW_H
#define TERN_DEVICE_NARROW_H
#include "device/args.h"

/* Tensors of so many elements, and sizes, are not narrow. 2^30: kernels form twice an index, and the next index
 * behind the last. Tests lower it. */
extern int64_t tern_narrow_limit;
/* Whether n arguments of a kernel of the library's, for `count` items or groups, are. */
bool tern_is_narrow(const tern_arg *args, int n, int64_t count);

#endif
