/* nn/pad.h -- what is put around tensors, and windows as columns, as modules; see ops/pad.h. */
#ifndef TERN_NN_PAD_H
#define TERN_NN_PAD_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* padding: one number for all sides, or (before, after) of the last dim, then of the one in front
 * of it. Negative numbers cut. */
TERN_API tern_module *tern_nn_constant_pad1d(tern_shape padding, double value);
/* The last two dims. */
TERN_API tern_module *tern_nn_constant_pad2d(tern_shape padding, double value);
/* The last three. */
TERN_API tern_module *tern_nn_constant_pad3d(tern_shape padding, double value);
/* With zeros: the last dim. */
TERN_API tern_module *tern_nn_zero_pad1d(tern_shape padding);
/* The last two dims. */
TERN_API tern_module *tern_nn_zero_pad2d(tern_shape padding);
/* The last three. */
TERN_API tern_module *tern_nn_zero_pad3d(tern_shape padding);
/* Mirrored (TERN_PAD_REFLECT): the last dim. */
TERN_API tern_module *tern_nn_reflection_pad1d(tern_shape padding);
/* The last two dims. */
TERN_API tern_module *tern_nn_reflection_pad2d(tern_shape padding);
/* The last three. */
TERN_API tern_module *tern_nn_reflection_pad3d(tern_shape padding);
/* With the elements at the edge: the last dim. */
TERN_API tern_module *tern_nn_replication_pad1d(tern_shape padding);
/* The last two dims. */
TERN_API tern_module *tern_nn_replication_pad2d(tern_shape padding);
/* The last three. */
TERN_API tern_module *tern_nn_replication_pad3d(tern_shape padding);
/* With the other end: the last dim. */
TERN_API tern_module *tern_nn_circular_pad1d(tern_shape padding);
/* The last two dims. */
TERN_API tern_module *tern_nn_circular_pad2d(tern_shape padding);
/* The last three. */
TERN_API tern_module *tern_nn_circular_pad3d(tern_shape padding);

/* tern_unfold. */
TERN_API tern_module *tern_nn_unfold(tern_shape kernel_size, const tern_unfold_options *options);
/* tern_fold. */
TERN_API tern_module *tern_nn_fold(tern_shape output_size, tern_shape kernel_size,
                                   const tern_unfold_options *options);

TERN_END_DECLS
#endif
