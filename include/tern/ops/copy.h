/* ops/copy.h -- elements moved and converted: to another device, to another type, into a tensor.
 *
 * Results are new and belong to the innermost scope where nothing else is said; NULL after an
 * error. All but those with pinned memory are differentiable. */
#ifndef TERN_OPS_COPY_H
#define TERN_OPS_COPY_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* x on device: x itself, borrowed, when it is there already, else a copy (Tensor.to). Errors:
 * TERN_ERR_DEVICE, TERN_ERR_MEMORY. */
TERN_API tern_tensor *tern_to(tern_tensor *x, const char *device);
/* x as dtype: x itself when it is of that type. float -> integer truncates; NaN, infinities and
 * what does not fit become the smallest value of int32/int64, uint8 wraps. */
TERN_API tern_tensor *tern_to_dtype(tern_tensor *x, tern_dtype dtype);
/* x itself when it is dense in row-major order, else such a copy. */
TERN_API tern_tensor *tern_contiguous(tern_tensor *x);
/* In which order elements lie (torch.memory_format): in rows; images (N, C, H, W) by rows of (N, H,
 * W, C); (N, C, D, H, W) by those of (N, D, H, W, C). */
typedef enum tern_memory_format {
    TERN_CONTIGUOUS_FORMAT = 0,
    TERN_CHANNELS_LAST,
    TERN_CHANNELS_LAST_3D
} tern_memory_format;
/* x itself when its elements lie so, else such a copy, of the same shape (Tensor.to,
 * Tensor.contiguous). What is made of such images lies as PyTorch's results do: by channels that of
 * convolutions, elementwise operations, batch and group norm, pools, resampling, padding, cat and
 * dropout; clones and the rest in rows. Errors: TERN_ERR_SHAPE for other than 4 (3D: 5) dims,
 * TERN_ERR_ARGUMENT. */
TERN_API tern_tensor *tern_to_memory_format(tern_tensor *x, tern_memory_format format);
/* Whether its elements lie so; of other than 4 (3D: 5) dims none lie by channels. */
TERN_API bool tern_is_contiguous_format(const tern_tensor *x, tern_memory_format format);
/* A copy of x, dense in row-major order. */
TERN_API tern_tensor *tern_clone(tern_tensor *x);

/* ---- into x, which is returned --------------------------------------------------------------- */

/* The elements of src: broadcast, converted, from any device. Errors: TERN_ERR_SHAPE. */
TERN_API tern_tensor *tern_copy_(tern_tensor *x, const tern_tensor *src);
/* value everywhere. */
TERN_API tern_tensor *tern_fill_(tern_tensor *x, tern_scalar value);
/* Zeros. */
TERN_API tern_tensor *tern_zero_(tern_tensor *x);

/* ---- pinned memory --------------------------------------------------------------------------- */

/* x, on the cpu, in pinned memory of the host, from which "cuda" devices copy by themselves: a
 * dense copy outside of autograd; x itself where it is pinned already or no such device is there.
 * Errors: TERN_ERR_DEVICE for other devices' tensors. */
TERN_API tern_tensor *tern_pin_memory(tern_tensor *x);
/* Whether it is. */
TERN_API bool tern_is_pinned(const tern_tensor *x);
/* tern_to with PyTorch's non_blocking=True: returns before a pinned tensor is copied to a "cuda"
 * device; in all other cases it is tern_to. Work that is launched later sees the copy. Until the
 * device has done it (tern_synchronize, or a value read from there) the pinned elements must not
 * change; the tensor may be released. */
TERN_API tern_tensor *tern_to_non_blocking(tern_tensor *x, const char *device);
/* tern_copy_, likewise. */
TERN_API tern_tensor *tern_copy_non_blocking_(tern_tensor *x, const tern_tensor *src);

TERN_END_DECLS
#endif
