/* resize.h -- the interface of resize.c for interpolate: uint8, and images with antialias. */
#ifndef TERN_SRC_OPS_RESIZE_H
#define TERN_SRC_OPS_RESIZE_H
#include "tensor/op.h"

typedef enum tern_resize_filter {
    TERN_RESIZE_NEAREST,
    TERN_RESIZE_NEAREST_EXACT,
    TERN_RESIZE_LINEAR,
    TERN_RESIZE_CUBIC,
    TERN_RESIZE_LANCZOS
} tern_resize_filter;

/* One dim of an image, from `in` elements to `out`; scale is the distance in x between neighbouring
 * outputs; transposed computes the gradient, from out to in. */
typedef struct tern_resize {
    int64_t in, out;
    double scale;
    int32_t filter, dim;
    bool align, antialias, transposed, last; /* last: x is channels_last */
} tern_resize;

/* Returns x resampled along the dims of steps[n], the last one first, by tables of weights; dims
 * that keep their size are unchanged. x is of a floating point dtype or uint8. */
tern_tensor *tern_resize_dims(tern_tensor *x, const tern_resize *steps, int n);

#endif
