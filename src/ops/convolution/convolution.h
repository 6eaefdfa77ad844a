/* convolution.h -- the geometry of a convolution, and the three linear maps that it is made of. */
#ifndef TERN_SRC_OPS_CONVOLUTION_H
#define TERN_SRC_OPS_CONVOLUTION_H
#include "device/device.h"
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

/* What the functions are given, in three dims; the leading ones stand for what is not there. */
typedef struct tern_conv_window {
    const char *function; /* "tern_conv2d" */
    int ndim;             /* spatial dims: 1, 2 or 3 */
    int64_t stride[3], padding[3], dilation[3], output_padding[3];
    int64_t groups;
    bool same;
} tern_conv_window;

/* Numbers of a list for the last ndim of three dims: none given is `otherwise`, one is for all. */
tern_status tern_conv_numbers(const tern_shape *list, int ndim, int64_t otherwise, const char *name,
                              const char *function, int64_t out[3]);

/* The geometry of x (N, C, *) by weight (O, C / groups, *), or of y (N, O, *) by weight (O,
 * C / groups, *) into x for a transposed one; errors in PyTorch's words. bias may be NULL. */
tern_status tern_conv_shape_of(const tern_conv_window *w, const tern_shape *x,
                               const tern_shape *weight, const tern_tensor *bias,
                               tern_conv_shape *out);
tern_status tern_conv_transpose_shape_of(const tern_conv_window *w, const tern_shape *y,
                                         const tern_shape *weight, const tern_tensor *bias,
                                         tern_conv_shape *out);

/* Compute y from x and weight (and bias, or NULL), x from y and weight, or weight from x and y. All
 * are dense, or all but bias channels_last, of one type that is not bool; of integers there is no
 * weight to compute. */
tern_status tern_conv_run(tern_conv_pass pass, const tern_conv_shape *s, tern_tensor *x,
                          tern_tensor *weight, tern_tensor *y, tern_tensor *bias,
                          bool channels_last);
/* x += what would be computed, where a vendor does that or it is one product; else *taken is
 * false. */
tern_status tern_conv_add_x(const tern_conv_shape *s, tern_tensor *x, tern_tensor *weight,
                            tern_tensor *y, bool *taken);

#endif
