/* ops/copy.h -- copies: to another device, to another dtype, to another memory format, into a
 * tensor.
 *
 * Unless stated otherwise results are new tensors that belong to the innermost scope, and NULL
 * after an error. All functions are differentiable but those of pinned memory. */
#ifndef TERN_OPS_COPY_H
#define TERN_OPS_COPY_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Returns x on device (Tensor.to): x itself, borrowed, if it is there already, else a copy. Errors:
 * TERN_ERR_DEVICE, TERN_ERR_MEMORY. */
TERN_API tern_tensor *tern_to(tern_tensor *x, const char *device);
/* Returns x converted to dtype (Tensor.to): x itself if it has that dtype. A conversion from
 * floating point to integer truncates. NaN, infinities and numbers out of range become the smallest
 * value of int32 and int64; uint8 wraps around. */
TERN_API tern_tensor *tern_to_dtype(tern_tensor *x, tern_dtype dtype);
/* Returns x itself if its elements are dense in row-major order, else a copy that is. */
TERN_API tern_tensor *tern_contiguous(tern_tensor *x);
/* The order of elements in memory (torch.memory_format): row-major; or channels last, where images
 * (N, C, H, W) are stored as (N, H, W, C) and volumes (N, C, D, H, W) as (N, D, H, W, C). */
typedef enum tern_memory_format {
    TERN_CONTIGUOUS_FORMAT = 0,
    TERN_CHANNELS_LAST,
    TERN_CHANNELS_LAST_3D
} tern_memory_format;
/* Returns x itself if its elements are in that order, else a copy of the same shape that is
 * (Tensor.to, Tensor.contiguous). Results of operations keep the format as PyTorch's do:
 * convolutions, elementwise operations, batch and group norm, pooling, interpolation, padding, cat
 * and dropout return channels last for an input that is; tern_clone and all others return row-major
 * tensors. Errors: TERN_ERR_SHAPE unless x has 4 dims (5 for TERN_CHANNELS_LAST_3D),
 * TERN_ERR_ARGUMENT. */
TERN_API tern_tensor *tern_to_memory_format(tern_tensor *x, tern_memory_format format);
/* Returns whether the elements of x are in that order. A tensor that does not have 4 dims (5 for
 * TERN_CHANNELS_LAST_3D) is never channels last. */
TERN_API bool tern_is_contiguous_format(const tern_tensor *x, tern_memory_format format);
/* Returns a copy of x, dense in row-major order. */
TERN_API tern_tensor *tern_clone(tern_tensor *x);

/* ---- in place: these return x ---------------------------------------------------------------- */

/* Copies the elements of src, broadcast and converted, into x. src may be on any device. Errors:
 * TERN_ERR_SHAPE. */
TERN_API tern_tensor *tern_copy_(tern_tensor *x, const tern_tensor *src);
/* Sets every element of x to value. */
TERN_API tern_tensor *tern_fill_(tern_tensor *x, tern_scalar value);
/* Sets every element of x to zero. */
TERN_API tern_tensor *tern_zero_(tern_tensor *x);

/* ---- pinned memory --------------------------------------------------------------------------- */

/* Returns a dense copy of x, a tensor of the cpu, in pinned memory of the host, from which "cuda"
 * devices copy without the processor's help; the copy is outside of autograd. Returns x itself if
 * it is pinned already or if there is no "cuda" device. Errors: TERN_ERR_DEVICE for a tensor of
 * another device. */
TERN_API tern_tensor *tern_pin_memory(tern_tensor *x);
/* Returns whether x is in pinned memory. */
TERN_API bool tern_is_pinned(const tern_tensor *x);
/* Does what tern_to does, but may return before the copy is done (non_blocking=True): a copy from
 * pinned memory to a "cuda" device is only launched. Commands that are launched later see the copy.
 * The pinned elements must not change until the device has read them, that is until
 * tern_synchronize or until a value is read from that device; the tensor itself may be released at
 * once. In all other cases it is tern_to. */
TERN_API tern_tensor *tern_to_non_blocking(tern_tensor *x, const char *device);
/* Does what tern_copy_ does, without waiting for the copy, under the same rules. */
TERN_API tern_tensor *tern_copy_non_blocking_(tern_tensor *x, const tern_tensor *src);

TERN_END_DECLS
#endif
