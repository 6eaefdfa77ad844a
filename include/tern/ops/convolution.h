/* ops/convolution.h -- convolutions over one, two or three spatial dims, transposed ones, and the
 * windows that they slide over.
 *
 * tern_x is torch.nn.functional.x. Lists (stride, padding, ...) hold one number for each spatial
 * dim, or one for all of them: TERN_DIMS(2), TERN_DIMS(1, 2). An empty list is the default. A
 * missing batch dim N is allowed in inputs and then missing in the result. Floating point types and
 * integers, which wrap around; input, weight and bias of one type, but that a bias beside a named
 * padding, or of a transposed convolution of one or two dims, becomes of the input's. Results
 * belong to the innermost scope; NULL after an error: TERN_ERR_SHAPE, TERN_ERR_ARGUMENT and
 * TERN_ERR_DTYPE in PyTorch's words. The modules are in nn/convolution.h. */
#ifndef TERN_OPS_CONVOLUTION_H
#define TERN_OPS_CONVOLUTION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- convolutions ----------------------------------------------------------------------------
 * Cross-correlation of input (N, C, *) with weight (O, C / groups, *), plus bias (O) or NULL ->
 * (N, O, *), each dim being (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded
 * down. */

/* A padding that has a name in PyTorch. */
typedef enum tern_named_padding {
    TERN_PADDING_NUMBERS = 0, /* none of these: the field padding holds */
    TERN_PADDING_VALID,       /* none */
    TERN_PADDING_SAME         /* as much as keeps the size; stride 1 only */
} tern_named_padding;
typedef struct tern_conv_function_options {
    tern_shape stride, padding, dilation; /* defaults 1, 0, 1 */
    tern_named_padding named_padding;     /* instead of padding */
    int64_t groups;                       /* default 1 */
    uint64_t reserved[4];
} tern_conv_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_conv_function_options tern_conv_function_defaults(void);
/* * is L. */
TERN_API tern_tensor *tern_conv1d(tern_tensor *input, tern_tensor *weight, tern_tensor *bias,
                                  const tern_conv_function_options *options);
/* * is H, W. */
TERN_API tern_tensor *tern_conv2d(tern_tensor *input, tern_tensor *weight, tern_tensor *bias,
                                  const tern_conv_function_options *options);
/* * is D, H, W. */
TERN_API tern_tensor *tern_conv3d(tern_tensor *input, tern_tensor *weight, tern_tensor *bias,
                                  const tern_conv_function_options *options);

/* ---- transposed ------------------------------------------------------------------------------
 * The gradient of a convolution with respect to its input, as a function of its own: input
 * (N, C, *), weight (C, O / groups, *), bias (O) or NULL -> (N, O, *), each dim being (in - 1)
 * stride - 2 padding + dilation (kernel - 1) + output_padding + 1. */

typedef struct tern_conv_transpose_function_options {
    tern_shape stride, padding, dilation; /* defaults 1, 0, 1 */
    tern_shape output_padding; /* default 0: added to the result's size on one side, to choose among
                                  the sizes that a stride takes to one */
    int64_t groups;            /* default 1 */
    uint64_t reserved[4];
} tern_conv_transpose_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_conv_transpose_function_options tern_conv_transpose_function_defaults(void);
/* * is L. */
TERN_API tern_tensor *tern_conv_transpose1d(tern_tensor *input, tern_tensor *weight,
                                            tern_tensor *bias,
                                            const tern_conv_transpose_function_options *options);
/* * is H, W. */
TERN_API tern_tensor *tern_conv_transpose2d(tern_tensor *input, tern_tensor *weight,
                                            tern_tensor *bias,
                                            const tern_conv_transpose_function_options *options);
/* * is D, H, W. */
TERN_API tern_tensor *tern_conv_transpose3d(tern_tensor *input, tern_tensor *weight,
                                            tern_tensor *bias,
                                            const tern_conv_transpose_function_options *options);

/* ---- windows as columns ---------------------------------------------------------------------- */

typedef struct tern_unfold_options {
    tern_shape dilation, padding, stride; /* one number for both dims, or two; none: 1, 0, 1 */
    uint64_t reserved[4];
} tern_unfold_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_unfold_options tern_unfold_defaults(void);
/* The windows of x (N, C, H, W) or (C, H, W) as columns, (N, C * kernel, windows) (im2col), of a
 * floating point type or bool; kernel_size: one number or two. The method Tensor.unfold is
 * tern_unfold_dim. */
TERN_API tern_tensor *tern_unfold(tern_tensor *x, tern_shape kernel_size,
                                  const tern_unfold_options *options);
/* The way back, adding up where windows overlap: x (N, C * kernel, windows) -> (N, C,
 * output_size). Deterministic on every device. */
TERN_API tern_tensor *tern_fold(tern_tensor *x, tern_shape output_size, tern_shape kernel_size,
                                const tern_unfold_options *options);

TERN_END_DECLS
#endif
