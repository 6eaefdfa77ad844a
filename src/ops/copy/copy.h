/* copy.h -- copies of elements, and numbers of storage-only dtypes. */
#ifndef TERN_SRC_OPS_COPY_H
#define TERN_SRC_OPS_COPY_H
#include <tern/tensor.h>

/* Copies x, which broadcasts, to y, for any strides and dtypes on one device. */
tern_status tern_copy_elements(tern_tensor *y, const tern_tensor *x);
/* Returns `value` as an argument for kernels of the dtype *by, and sets *by to the dtype that holds
 * the values of the storage-only dtype `stored`. */
tern_scalar tern_stored_number(tern_dtype stored, tern_scalar value, tern_dtype *by);
/* Returns tern_contiguous of x. Errors name `function`. */
tern_tensor *tern_contiguous_for(tern_tensor *x, const char *function);
/* Returns int64 numbers in the same order as x's uint64 numbers, for comparisons. */
tern_tensor *tern_ordered(tern_tensor *x);

#endif
