/* columns.h -- the windows of images as the columns of a matrix, and back. */
#ifndef TERN_OPS_COLUMNS_H
#define TERN_OPS_COLUMNS_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

/* A window that goes over up to three dims; those in front that an image has not are 1 wide. */
typedef struct tern_window {
    int ndim;
    int64_t kernel[3], stride[3], padding[3], dilation[3];
} tern_window;

/* Windows along dim d of size elements; below 1 where none fits. */
int64_t tern_window_count(const tern_window *window, int d, int64_t size);
/* The struct for kernels, both sides dense: images of (batch, channels, size...). */
tern_columns tern_columns_make(const tern_window *window, int64_t batch, int64_t channels,
                               const int64_t *size);
/* x (N, C, size...) -> (N, C * kernel..., windows), differentiable. */
tern_tensor *tern_columns_of(tern_tensor *x, const tern_window *window);
/* (N, C * kernel..., windows) -> (N, C, size...), differentiable: the gradient of the other. */
tern_tensor *tern_columns_sum(tern_tensor *x, const tern_window *window, const int64_t *size);

#endif
