/* nn/convolution.h -- convolutions as modules; ops/convolution.h has the functions that they
 * call. */
#ifndef TERN_NN_CONVOLUTION_H
#define TERN_NN_CONVOLUTION_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_conv_options {
    tern_shape stride, padding, dilation; /* defaults 1, 0, 1; one number is for all dims */
    tern_named_padding named_padding;     /* if set, used instead of padding */
    int64_t groups;                       /* default 1 */
    bool no_bias;
    tern_pad_mode padding_mode; /* what the input is padded with; default: zeros */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_conv_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_conv_options tern_conv_defaults(void);

/* A module that convolves (N, C, L) or (C, L) -> (N, O, L'). The parameters are weight (O, C /
 * groups, *kernel_size) and bias (O), uniform in +-1/sqrt(C / groups * kernel) at first.
 * kernel_size is one number, or one for each dim. Errors: TERN_ERR_ARGUMENT with PyTorch's messages
 * for options that do not match. */
TERN_API tern_module *tern_nn_conv1d(int64_t in_channels, int64_t out_channels,
                                     tern_shape kernel_size, const tern_conv_options *options);
/* Does the same for (N, C, H, W) or (C, H, W). */
TERN_API tern_module *tern_nn_conv2d(int64_t in_channels, int64_t out_channels,
                                     tern_shape kernel_size, const tern_conv_options *options);
/* Does the same for (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_module *tern_nn_conv3d(int64_t in_channels, int64_t out_channels,
                                     tern_shape kernel_size, const tern_conv_options *options);

typedef struct tern_conv_transpose_options {
    tern_shape stride, padding, dilation, output_padding; /* defaults 1, 0, 1, 0 */
    int64_t groups;                                       /* default 1 */
    bool no_bias;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_conv_transpose_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_conv_transpose_options tern_conv_transpose_defaults(void);

/* A module that applies a transposed convolution to (N, C, L) or (C, L). The parameters are weight
 * (C, O / groups, *kernel_size) and bias (O). */
TERN_API tern_module *tern_nn_conv_transpose1d(int64_t in_channels, int64_t out_channels,
                                               tern_shape kernel_size,
                                               const tern_conv_transpose_options *options);
/* Does the same for (N, C, H, W) or (C, H, W). */
TERN_API tern_module *tern_nn_conv_transpose2d(int64_t in_channels, int64_t out_channels,
                                               tern_shape kernel_size,
                                               const tern_conv_transpose_options *options);
/* Does the same for (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_module *tern_nn_conv_transpose3d(int64_t in_channels, int64_t out_channels,
                                               tern_shape kernel_size,
                                               const tern_conv_transpose_options *options);
/* Runs a transposed convolution with output_size, the size of the spatial dims or the whole shape
 * of the result. With stride s a convolution takes inputs of s sizes to the same size, and
 * output_size chooses among them. Errors: TERN_ERR_ARGUMENT for any other size. It is tern_nn_call
 * with {x, output_size}, an int64 vector on the cpu, and hooks get both. */
TERN_API tern_tensor *tern_nn_conv_transpose_forward(tern_module *m, tern_tensor *x,
                                                     tern_shape output_size);

TERN_END_DECLS
#endif
