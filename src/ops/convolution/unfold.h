/* unfold.h -- the windows of images as the columns of a matrix, and the transpose. */
#ifndef TERN_SRC_OPS_UNFOLD_H
#define TERN_SRC_OPS_UNFOLD_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

/* A sliding window over ndim spatial dims, at most three. Only the first ndim elements are used. */
typedef struct tern_window {
    int ndim;
    int64_t kernel[3], stride[3], padding[3], dilation[3];
} tern_window;

/* Returns x (N, C * kernel..., windows) summed into images (N, C, size...). Differentiable; this is
 * the gradient of unfold. */
tern_tensor *tern_columns_sum(tern_tensor *x, const tern_window *window, const int64_t *size);

#endif
