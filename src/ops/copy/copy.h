/* copy.h -- copies of elements, and numbers of types that are only stored. */
#ifndef TERN_SRC_OPS_COPY_H
#define TERN_SRC_OPS_COPY_H
#include <tern/tensor.h>

/* y = x, which broadcasts, for any strides and dtypes of one device. */
tern_status tern_copy_elements(tern_tensor *y, const tern_tensor *x);
/* A number as the type that holds the values of a stored one: *by, and what kernels of it get. */
tern_scalar tern_stored_number(tern_dtype stored, tern_scalar value, tern_dtype *by);
/* tern_contiguous, whose errors name the function that it is for. */
tern_tensor *tern_contiguous_for(tern_tensor *x, const char *function);
/* int64 in the order of x's uint64: what comparisons read. */
tern_tensor *tern_ordered(tern_tensor *x);

#endif
