/* table.h -- tensors of numbers that the host computes in double, so that they are the same on
 * every device. */
#ifndef TERN_SRC_OPS_CREATE_TABLE_H
#define TERN_SRC_OPS_CREATE_TABLE_H
#include "tensor/op.h"

/* Room for the elements of shape; NULL after an error. */
double *tern_table_alloc(const char *function, const tern_shape *shape);
/* They as a tensor of dtype (0: the default) on device (NULL: the default); data, which may be NULL
 * after an error, is freed. */
tern_tensor *tern_table_done(double *data, const tern_shape *shape, tern_dtype dtype,
                             const char *device);

#endif
