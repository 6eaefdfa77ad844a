/* ops/convolution.h -- convolutions and transposed convolutions over one, two or three spatial
 * dims, unfold and fold.
 *
 * tern_x is torch.nn.functional.x. Lists (stride, padding, ...) hold one number for each spatial
 * dim, or one for all of them: TERN_DIMS(2), TERN_DIMS(1, 2). An empty list is the default. The
 * batch dim N may be absent from the input, and is then absent from the result. All floating point
 * types and integers are supported; integers wrap around. Input, weight and bias have one dtype; a
 * bias is converted to the input's dtype where padding has a name, and in transposed convolutions
 * of one or two dims. Results belong to the innermost scope; NULL after an error: TERN_ERR_SHAPE,
 * TERN_ERR_ARGUMENT and TERN_ERR_DTYPE with PyTorch's messages. nn/convolution.h has the
 * modules. */
#ifndef TERN_OPS_CONVOLUTION_H
#define TERN_OPS_CONVOLUTION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- convolutions -------------------------------------------------------------------------------
 * These compute the cross-correlation of input (N, C, *) with weight (O, C / groups, *), plus bias
 * (O) if it is not NULL -> (N, O, *). The size of each spatial dim of the result is (in + 2 padding
 * - dilation (kernel - 1) - 1) / stride + 1, rounded down. */

/* The paddings that have a name in PyTorch. */
typedef enum tern_named_padding {
    TERN_PADDING_NUMBERS = 0, /* no name: the numbers of the field padding are used */
    TERN_PADDING_VALID,       /* "valid": no padding */
    TERN_PADDING_SAME         /* "same": the result has the size of the input; stride 1 only */
} tern_named_padding;
typedef struct tern_conv_function_options {
    tern_shape stride, padding, dilation; /* defaults 1, 0, 1 */
    tern_named_padding named_padding;     /* if set, used instead of padding */
    int64_t groups;                       /* default 1 */
    uint64_t reserved[4];
} tern_conv_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_conv_function_options tern_conv_function_defaults(void);
/* Convolves input (N, C, L) with weight (O, C / groups, k). */
TERN_API tern_tensor *tern_conv1d(tern_tensor *input, tern_tensor *weight, tern_tensor *bias,
                                  const tern_conv_function_options *options);
/* Convolves input (N, C, H, W) with weight (O, C / groups, kH, kW). */
TERN_API tern_tensor *tern_conv2d(tern_tensor *input, tern_tensor *weight, tern_tensor *bias,
                                  const tern_conv_function_options *options);
/* Convolves input (N, C, D, H, W) with weight (O, C / groups, kD, kH, kW). */
TERN_API tern_tensor *tern_conv3d(tern_tensor *input, tern_tensor *weight, tern_tensor *bias,
                                  const tern_conv_function_options *options);

/* ---- transposed convolutions --------------------------------------------------------------------
 * These compute the gradient of a convolution with respect to its input, as an operation of its
 * own: input (N, C, *), weight (C, O / groups, *), bias (O) or NULL -> (N, O, *). The size of each
 * spatial dim of the result is (in - 1) stride - 2 padding + dilation (kernel - 1) + output_padding
 * + 1. */

typedef struct tern_conv_transpose_function_options {
    tern_shape stride, padding, dilation; /* defaults 1, 0, 1 */
    tern_shape output_padding; /* default 0; added to one side of the result. With a stride above
                                * 1 a convolution takes inputs of several sizes to the same size;
                                * this chooses among them. */
    int64_t groups;            /* default 1 */
    uint64_t reserved[4];
} tern_conv_transpose_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_conv_transpose_function_options tern_conv_transpose_function_defaults(void);
/* Applies a transposed convolution to input (N, C, L). */
TERN_API tern_tensor *tern_conv_transpose1d(tern_tensor *input, tern_tensor *weight,
                                            tern_tensor *bias,
                                            const tern_conv_transpose_function_options *options);
/* Applies a transposed convolution to input (N, C, H, W). */
TERN_API tern_tensor *tern_conv_transpose2d(tern_tensor *input, tern_tensor *weight,
                                            tern_tensor *bias,
                                            const tern_conv_transpose_function_options *options);
/* Applies a transposed convolution to input (N, C, D, H, W). */
TERN_API tern_tensor *tern_conv_transpose3d(tern_tensor *input, tern_tensor *weight,
                                            tern_tensor *bias,
                                            const tern_conv_transpose_function_options *options);

/* ---- unfold and fold ------------------------------------------------------------------------- */

typedef struct tern_unfold_options {
    tern_shape dilation, padding, stride; /* one number for both dims, or two; defaults 1, 0, 1 */
    uint64_t reserved[4];
} tern_unfold_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_unfold_options tern_unfold_defaults(void);
/* Returns the windows of x as columns (im2col): x (N, C, H, W) or (C, H, W), floating point or bool
 * -> (N, C * kernel, windows). kernel_size holds one number or two. Tensor.unfold, the method, is
 * tern_unfold_dim. */
TERN_API tern_tensor *tern_unfold(tern_tensor *x, tern_shape kernel_size,
                                  const tern_unfold_options *options);
/* Adds the columns x (N, C * kernel, windows) up to images (N, C, output_size) (col2im); where
 * windows overlap their elements are summed. The result is deterministic on every device. */
TERN_API tern_tensor *tern_fold(tern_tensor *x, tern_shape output_size, tern_shape kernel_size,
                                const tern_unfold_options *options);

TERN_END_DECLS
#endif
