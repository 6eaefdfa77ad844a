/* convolution.h -- the geometry of a convolution, and the three linear maps of which it
 * consists. */
#ifndef TERN_SRC_OPS_CONVOLUTION_H
#define TERN_SRC_OPS_CONVOLUTION_H
#include "device/device.h"
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

/* The arguments of a convolution in three dims. Leading dims that the convolution lacks have
 * defaults. */
typedef struct tern_conv_window {
    const char *function; /* "tern_conv2d" */
    int ndim;             /* spatial dims: 1, 2 or 3 */
    int64_t stride[3], padding[3], dilation[3], output_padding[3];
    int64_t groups;
    bool same;
} tern_conv_window;

/* Reads a list of numbers for the last ndim of three dims. An empty list gives `otherwise`; one
 * number is used for all dims. */
tern_status tern_conv_numbers(const tern_shape *list, int ndim, int64_t otherwise, const char *name,
                              const char *function, int64_t out[3]);

/* Set *out to the geometry of the convolution of x (N, C, *) with weight (O, C / groups, *), or of
 * the transposed convolution of y (N, O, *) with weight (O, C / groups, *). Errors have PyTorch's
 * messages. bias may be NULL. */
tern_status tern_conv_shape_of(const tern_conv_window *w, const tern_shape *x,
                               const tern_shape *weight, const tern_tensor *bias,
                               tern_conv_shape *out);
tern_status tern_conv_transpose_shape_of(const tern_conv_window *w, const tern_shape *y,
                                         const tern_shape *weight, const tern_tensor *bias,
                                         tern_conv_shape *out);

/* Computes y from x and weight (and bias, or NULL), x from y and weight, or weight from x and y.
 * All tensors are dense, or all but bias are channels_last, and have one dtype other than bool. For
 * integers, weight can't be computed. */
tern_status tern_conv_run(tern_conv_pass pass, const tern_conv_shape *s, tern_tensor *x,
                          tern_tensor *weight, tern_tensor *y, tern_tensor *bias,
                          bool channels_last);
/* Adds the gradient of x to x, if a vendor's routine supports that or if it is one matrix product;
 * otherwise *taken is false. */
tern_status tern_conv_add_x(const tern_conv_shape *s, tern_tensor *x, tern_tensor *weight,
                            tern_tensor *y, bool *taken);

#endif
