/* unfold.h -- the windows of images as the columns of a matrix, and back. */
#ifndef TERN_SRC_OPS_UNFOLD_H
#define TERN_SRC_OPS_UNFOLD_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

/* A window that goes over up to three dims; those in front that an image has not are 1 wide. */
typedef struct tern_window {
    int ndim;
    int64_t kernel[3], stride[3], padding[3], dilation[3];
} tern_window;

/* (N, C * kernel..., windows) -> (N, C, size...), differentiable: the gradient of the other. */
tern_tensor *tern_columns_sum(tern_tensor *x, const tern_window *window, const int64_t *size);

#endif
