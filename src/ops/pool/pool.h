/* pool.h -- pooling windows over planes: their geometry, and the operations. */
#ifndef TERN_SRC_OPS_POOL_H
#define TERN_SRC_OPS_POOL_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

/* The arguments of the pooling functions: lists of one number, or of one for each of ndim dims. */
typedef struct tern_pool_window {
    const char *function;
    int ndim;
    tern_shape size, stride, padding, dilation; /* an empty stride stands for size */
    bool ceil_mode, excludes_padding;
    int64_t divisor;
} tern_pool_window;

/* Attributes of the operations. x and y are the shapes of the tensors, without added dims. */
typedef struct tern_pool_attributes {
    tern_pool_shape shape;
    tern_shape x, y;
    int ndim;  /* dims of a plane */
    bool last; /* x and y (two spatial dims) are channels_last */
    const char *function;
} tern_pool_attributes;

/* Sets *out for x of ndim + 1 (no batch) or ndim + 2 dims, not of bools; errors are PyTorch's. */
tern_status tern_pool_windows(const tern_pool_window *w, const tern_tensor *x,
                              tern_pool_attributes *out);
/* Sets *out for adaptive windows that give an output of `size` (-1: the size of x), for maxima or
 * means; x is of a floating point dtype. */
tern_status tern_pool_adaptive(const tern_shape *size, int ndim, const tern_tensor *x, bool mean,
                               const char *function, tern_pool_attributes *out);

/* Return y[q] = max or mean of x over the window of q. Without `indices` out->indices is NULL, else
 * it holds the index of each maximum in its plane. */
tern_status tern_pool_max(tern_pool_attributes *at, tern_tensor *x, bool indices,
                          tern_values_indices *out);
tern_tensor *tern_pool_mean(tern_pool_attributes *at, tern_tensor *x);
/* Unpooling: returns zeros of `shape` (the last ndim dims are a plane), with each element of y
 * written at its index in the plane, or with `add` added there, for the gradient of max pooling. */
tern_tensor *tern_pool_undo(tern_tensor *y, tern_tensor *indices, const tern_shape *shape, int ndim,
                            bool add);

#endif
