/* stored.h -- copies where a type is one of those that are only stored. */
#ifndef TERN_SRC_OPS_STORED_H
#define TERN_SRC_OPS_STORED_H
#include "ops/elementwise/walk.h"

/* y = x, which broadcasts, for any strides, where the type of one or of both is only stored. */
tern_status tern_copy_stored(tern_tensor *y, const tern_tensor *x);
/* A number as the type that holds the values of a stored one: *by, and what kernels of it get. */
tern_scalar tern_stored_number(tern_dtype stored, tern_scalar value, tern_dtype *by);

#endif
