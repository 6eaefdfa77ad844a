/* pool.h -- windows over planes: their geometry, and the operations on them. */
#ifndef TERN_SRC_OPS_POOL_H
#define TERN_SRC_OPS_POOL_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

/* What the functions are given: lists of one number, or one for each of ndim dims. */
typedef struct tern_pool_window {
    const char *function;
    int ndim;
    tern_shape size, stride, padding, dilation; /* stride (): the size */
    bool ceil_mode, excludes_padding;
    int64_t divisor;
} tern_pool_window;

/* Attributes of the operations: the shapes are those of x and y as they are. */
typedef struct tern_pool_attributes {
    tern_pool_shape shape;
    tern_shape x, y;
    int ndim;  /* of a plane */
    bool last; /* of two dims: x and y are channels_last */
    const char *function;
} tern_pool_attributes;

/* For x of ndim + 1 (no batch) or ndim + 2 dims, not of bools; errors with PyTorch's messages. */
tern_status tern_pool_windows(const tern_pool_window *w, const tern_tensor *x,
                              tern_pool_attributes *out);
/* Windows of any size that make size (-1: as x's) of x, of a floating point type, for maxima or
 * means. */
tern_status tern_pool_adaptive(const tern_shape *size, int ndim, const tern_tensor *x, bool mean,
                               const char *function, tern_pool_attributes *out);

/* y[q] = max or mean of x over the window of q; max with the index of each in its plane if
 * `indices`, else out->indices is NULL. */
tern_status tern_pool_max(tern_pool_attributes *at, tern_tensor *x, bool indices,
                          tern_values_indices *out);
tern_tensor *tern_pool_mean(tern_pool_attributes *at, tern_tensor *x);
/* Unpooling: zeros of shape (its last ndim dims a plane), with each element of y written at its
 * index in the plane, or added there with `add`, as the gradient of max pooling needs it. */
tern_tensor *tern_pool_undo(tern_tensor *y, tern_tensor *indices, const tern_shape *shape, int ndim,
                            bool add);

#endif
