/* table.h -- tensors of numbers that the host computes in double, equal on every device. */
#ifndef TERN_SRC_OPS_CREATE_TABLE_H
#define TERN_SRC_OPS_CREATE_TABLE_H
#include "tensor/op.h"

/* Returns an array for the elements of shape, to be freed by tern_table_done, or NULL. */
double *tern_table_alloc(const char *function, const tern_shape *shape);
/* Returns the array as a tensor of dtype (0: the default) on device (NULL: the default), or NULL;
 * frees data, which may be NULL after an error. */
tern_tensor *tern_table_done(double *data, const tern_shape *shape, tern_dtype dtype,
                             const char *device);

#endif
