/* nn/convolution.h -- convolutions as modules; see ops/convolution.h for what they compute. */
#ifndef TERN_NN_CONVOLUTION_H
#define TERN_NN_CONVOLUTION_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_conv_options {
    tern_shape stride, padding, dilation; /* defaults 1, 0, 1; one number is for all dims */
    tern_named_padding named_padding;     /* instead of padding */
    int64_t groups;                       /* default 1 */
    bool no_bias;
    tern_pad_mode padding_mode; /* what the padding is; default: zeros */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_conv_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_conv_options tern_conv_defaults(void);

/* (N, C, *) or (C, *) -> (N, O, *); weight (O, C / groups, *kernel_size) and bias (O), uniform in
 * +-1/sqrt(C / groups * kernel). kernel_size: one number, or one for each dim.
 * TERN_ERR_ARGUMENT in PyTorch's words for options that do not go together. */
TERN_API tern_module *tern_nn_conv1d(int64_t in_channels, int64_t out_channels,
                                     tern_shape kernel_size, const tern_conv_options *options);
/* Of H, W. */
TERN_API tern_module *tern_nn_conv2d(int64_t in_channels, int64_t out_channels,
                                     tern_shape kernel_size, const tern_conv_options *options);
/* Of D, H, W. */
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

/* The same backwards: weight (C, O / groups, *kernel_size). */
TERN_API tern_module *tern_nn_conv_transpose1d(int64_t in_channels, int64_t out_channels,
                                               tern_shape kernel_size,
                                               const tern_conv_transpose_options *options);
/* Of H, W. */
TERN_API tern_module *tern_nn_conv_transpose2d(int64_t in_channels, int64_t out_channels,
                                               tern_shape kernel_size,
                                               const tern_conv_transpose_options *options);
/* Of D, H, W. */
TERN_API tern_module *tern_nn_conv_transpose3d(int64_t in_channels, int64_t out_channels,
                                               tern_shape kernel_size,
                                               const tern_conv_transpose_options *options);
/* m's forward of x with output_size given, of the spatial dims or of all: a stride s leaves s sizes
 * of which a convolution makes that of x, and this says which. TERN_ERR_ARGUMENT for others. The
 * same as tern_nn_call with {x, output_size}, an int64 list on the cpu: hooks get both. */
TERN_API tern_tensor *tern_nn_conv_transpose_forward(tern_module *m, tern_tensor *x,
                                                     tern_shape output_size);

TERN_END_DECLS
#endif
