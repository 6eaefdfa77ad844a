/* nn/pad.h -- padding, unfold and fold as modules; ops/pad.h has the modes of padding. */
#ifndef TERN_NN_PAD_H
#define TERN_NN_PAD_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* A module that pads the last dim with value. padding is one number for all sides, or (before,
 * after) of the last dim, then of the dim before it, and so on. Negative numbers remove
 * elements. */
TERN_API tern_module *tern_nn_constant_pad1d(tern_shape padding, double value);
/* A module that pads the last two dims with value. */
TERN_API tern_module *tern_nn_constant_pad2d(tern_shape padding, double value);
/* A module that pads the last three dims with value. */
TERN_API tern_module *tern_nn_constant_pad3d(tern_shape padding, double value);
/* A module that pads the last dim with zeros. */
TERN_API tern_module *tern_nn_zero_pad1d(tern_shape padding);
/* A module that pads the last two dims with zeros. */
TERN_API tern_module *tern_nn_zero_pad2d(tern_shape padding);
/* A module that pads the last three dims with zeros. */
TERN_API tern_module *tern_nn_zero_pad3d(tern_shape padding);
/* A module that pads the last dim by reflection (TERN_PAD_REFLECT). */
TERN_API tern_module *tern_nn_reflection_pad1d(tern_shape padding);
/* A module that pads the last two dims by reflection. */
TERN_API tern_module *tern_nn_reflection_pad2d(tern_shape padding);
/* A module that pads the last three dims by reflection. */
TERN_API tern_module *tern_nn_reflection_pad3d(tern_shape padding);
/* A module that pads the last dim with copies of the elements at its edges (TERN_PAD_REPLICATE). */
TERN_API tern_module *tern_nn_replication_pad1d(tern_shape padding);
/* A module that pads the last two dims with copies of the elements at their edges. */
TERN_API tern_module *tern_nn_replication_pad2d(tern_shape padding);
/* A module that pads the last three dims with copies of the elements at their edges. */
TERN_API tern_module *tern_nn_replication_pad3d(tern_shape padding);
/* A module that pads the last dim with the elements of the opposite end (TERN_PAD_CIRCULAR). */
TERN_API tern_module *tern_nn_circular_pad1d(tern_shape padding);
/* A module that pads the last two dims with the elements of the opposite ends. */
TERN_API tern_module *tern_nn_circular_pad2d(tern_shape padding);
/* A module that pads the last three dims with the elements of the opposite ends. */
TERN_API tern_module *tern_nn_circular_pad3d(tern_shape padding);

/* A module that calls tern_unfold. */
TERN_API tern_module *tern_nn_unfold(tern_shape kernel_size, const tern_unfold_options *options);
/* A module that calls tern_fold. */
TERN_API tern_module *tern_nn_fold(tern_shape output_size, tern_shape kernel_size,
                                   const tern_unfold_options *options);

TERN_END_DECLS
#endif
