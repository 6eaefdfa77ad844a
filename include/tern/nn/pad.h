/* nn/pad.h -- what is put around tensors, and windows as columns, as modules; see ops/pad.h. */
#ifndef TERN_NN_PAD_H
#define TERN_NN_PAD_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* padding: one number for all sides, or (before, after) of the last dim, then of the one in front
 * of it. Negative numbers cut. */
TERN_API tern_module *tern_nn_constant_pad1d(tern_shape padding, double value);
TERN_API tern_module *tern_nn_constant_pad2d(tern_shape padding, double value);
TERN_API tern_module *tern_nn_constant_pad3d(tern_shape padding, double value);
TERN_API tern_module *tern_nn_zero_pad1d(tern_shape padding);
TERN_API tern_module *tern_nn_zero_pad2d(tern_shape padding);
TERN_API tern_module *tern_nn_zero_pad3d(tern_shape padding);
TERN_API tern_module *tern_nn_reflection_pad1d(tern_shape padding);
TERN_API tern_module *tern_nn_reflection_pad2d(tern_shape padding);
TERN_API tern_module *tern_nn_reflection_pad3d(tern_shape padding);
TERN_API tern_module *tern_nn_replication_pad1d(tern_shape padding);
TERN_API tern_module *tern_nn_replication_pad2d(tern_shape padding);
TERN_API tern_module *tern_nn_replication_pad3d(tern_shape padding);
TERN_API tern_module *tern_nn_circular_pad1d(tern_shape padding);
TERN_API tern_module *tern_nn_circular_pad2d(tern_shape padding);
TERN_API tern_module *tern_nn_circular_pad3d(tern_shape padding);

TERN_API tern_module *tern_nn_unfold(tern_shape kernel_size, const tern_unfold_options *options);
TERN_API tern_module *tern_nn_fold(tern_shape output_size, tern_shape kernel_size,
                                   const tern_unfold_options *options);

TERN_END_DECLS
#endif
