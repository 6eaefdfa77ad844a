/* ops/pad.h -- elements around a tensor, and sliding windows over it. */
#ifndef TERN_OPS_PAD_H
#define TERN_OPS_PAD_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef enum tern_pad_mode {
    TERN_PAD_CONSTANT = 0, /* a number */
    TERN_PAD_REFLECT,      /* mirrored at the first and last element, which are not repeated */
    TERN_PAD_REPLICATE,    /* the first and last element again and again */
    TERN_PAD_CIRCULAR      /* the other end */
} tern_pad_mode;

typedef struct tern_pad_options {
    tern_pad_mode mode;
    double value; /* of TERN_PAD_CONSTANT */
    uint64_t reserved[4];
} tern_pad_options;

/* torch.nn.functional.pad: pad is (before, after) of the last dim, then of the one in front of it,
 * and so on, six dims at most. Negative numbers cut. TERN_PAD_CONSTANT pads any tensor; the other
 * modes pad the last 1, 2 or 3 dims of a tensor with one or two dims more. */
TERN_API tern_tensor *tern_pad(tern_tensor *x, tern_shape pad, const tern_pad_options *options);

typedef struct tern_unfold_options {
    tern_shape dilation, padding, stride; /* one number for both dims, or two; none: 1, 0, 1 */
    uint64_t reserved[4];
} tern_unfold_options;

/* torch.nn.functional.unfold (im2col): the windows of x (N, C, H, W) or (C, H, W) as columns,
 * (N, C * kernel, windows); kernel_size: one number or two. Floating point types only. The method
 * Tensor.unfold is tern_unfold_dim. */
TERN_API tern_tensor *tern_unfold(tern_tensor *x, tern_shape kernel_size,
                                  const tern_unfold_options *options);
/* The way back, adding up where windows overlap: x (N, C * kernel, windows) -> (N, C,
 * output_size). Deterministic on every device. */
TERN_API tern_tensor *tern_fold(tern_tensor *x, tern_shape output_size, tern_shape kernel_size,
                                const tern_unfold_options *options);

TERN_END_DECLS
#endif
