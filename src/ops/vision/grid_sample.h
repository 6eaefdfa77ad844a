/* grid_sample.h -- the attributes of grid_sample's operation, and its composition. */
#ifndef TERN_SRC_OPS_GRID_SAMPLE_H
#define TERN_SRC_OPS_GRID_SAMPLE_H
#include "tensor/op.h"
#include "types_host.h"
#include "shapes.h"

/* The kernels' codes of modes, shared with interpolate. */
enum { TERN_SAMPLE_NEAREST = 0, TERN_SAMPLE_LINEAR = 2, TERN_SAMPLE_CUBIC = 3 };

typedef struct tern_grid_attributes {
    tern_sample_shape shape;
    int32_t mode, padding, align;
} tern_grid_attributes;

/* Computes y (N, C, out...) into `out` from x (N, C, in...) and grid (N, out..., ndim) in `in` by
 * differentiable operations, for derivatives of any order. */
tern_status tern_grid_sample_compose(const tern_gradient *g, tern_tensor *const *in,
                                     tern_tensor **out);

#endif
