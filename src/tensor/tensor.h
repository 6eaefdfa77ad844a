/* tensor.h -- making tensors, of memory or of other tensors, and passing them to kernels. */
#ifndef TERN_SRC_TENSOR_H
#define TERN_SRC_TENSOR_H
#include "device/device.h"
#include "tensor/fields.h"
#include "tensor/scope.h"
#include "tensor/shape.h"

/* ---- creating tensors (storage.c) --------------------------------------------------------- */
/* Returns a dense tensor in new memory, in no scope, with one reference; NULL after an error. */
tern_tensor *tern_tensor_new(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                             const char *function);
/* Does the same, but the rows (of the last dim) begin at multiples of TERN_ROW_MULTIPLE elements,
 * and the number of rows in memory is such a multiple too: the tensor is a view of that memory. */
tern_tensor *tern_tensor_padded(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                                const char *function);
/* Returns whether x is the tensor that tern_tensor_padded created in its memory, or a view of all
 * of it with the same rows. */
bool tern_lies_padded(const tern_tensor *x);
/* Returns n rounded up to a multiple of TERN_ROW_MULTIPLE. */
static inline int64_t tern_up(int64_t n)
{
    return (n + TERN_ROW_MULTIPLE - 1) / TERN_ROW_MULTIPLE * TERN_ROW_MULTIPLE;
}
/* Returns a dense tensor in the memory of block. The tensor owns block, unless the function
 * fails. */
tern_tensor *tern_tensor_of_block(const tern_shape *shape, tern_dtype dtype, tern_block *block);
/* Does the same with the given strides and the offset of the first element. */
tern_tensor *tern_tensor_on_block(const tern_shape *shape, tern_dtype dtype, tern_block *block,
                                  const int64_t *strides, int64_t offset);
/* Sets *span to the number of elements from the first to the last that shape and strides reach; no
 * stride is negative. Returns false if that number overflows. */
bool tern_extent_of(const tern_shape *shape, const int64_t *strides, int64_t *span);
/* Copies x to the host, for a function whose caller did not ask for a copy. It waits for the
 * device, so within TERN_STRICT it is TERN_ERR_STATE. */
tern_status tern_hidden_read(const tern_tensor *x, void *data, size_t bytes, const char *function);
/* Records TERN_ERR_STATE for a tensor whose memory was released (storage.h). */
tern_status tern_storage_missing(const tern_tensor *x, const char *function);
static inline tern_status tern_storage_there(const tern_tensor *x, const char *function)
{
    return x->storage->emptied ? tern_storage_missing(x, function) : TERN_OK;
}
/* Fills dense x with zeros. */
tern_status tern_zero_elements(tern_tensor *x);
/* Returns another view of x's storage, in no scope, without history; NULL after an error. */
tern_tensor *tern_tensor_alias(const tern_tensor *x, const tern_shape *shape, const int64_t *stride,
                               int64_t offset);
/* Releases a reference to a storage; NULL is fine. */
void tern_storage_release(tern_storage *storage);
/* Returns a tensor of the same elements, shape and strides, without history. */
tern_tensor *tern_tensor_detached(const tern_tensor *x);
/* Gives x, which a function created without an operation, to the innermost scope (tern_scoped).
 * Errors about x after it is freed name the function. The string, such as "tern_full", must live as
 * long as the process. */
static inline tern_tensor *tern_scoped_from(tern_tensor *x, const char *function)
{
    if (x)
        x->handle.about = function + sizeof "tern_" - 1;
    return tern_scoped(x);
}
tern_place *tern_tensor_place(const tern_tensor *x);
/* Returns x as a kernel's argument, with elements of a dtype of the same width. An empty tensor has
 * no block: its argument may be created, but not passed to a kernel. */
static inline tern_arg tern_arg_as(tern_role role, tern_dtype dtype, const tern_tensor *x)
{
    const tern_block *block = x->storage->block;
    return tern_arg_buffer(role, dtype, block ? &block->buffer : NULL, x->offset);
}
/* Return x as an argument that the kernel writes, reads, or (tern_arg_unused) does not access in
 * this launch. */
static inline tern_arg tern_arg_out(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_OUT, x->dtype, x);
}
static inline tern_arg tern_arg_in(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_IN, x->dtype, x);
}
/* Returns the number of bytes of the memory; of external memory (owned by the program), all bytes
 * (storage_parts.c). */
size_t tern_storage_bytes(const tern_storage *storage);
static inline tern_arg tern_arg_unused(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_UNUSED, x->dtype, x);
}
/* Returns x as an argument that the kernel reads. If x is NULL, returns `any` tensor as an unused
 * argument; another argument of the kernel distinguishes the two. */
static inline tern_arg tern_arg_optional(const tern_tensor *x, const tern_tensor *any)
{
    return x ? tern_arg_in(x) : tern_arg_unused(any);
}
/* Returns x as an argument of a vendor's routine or of a user's kernel, whose parameters are
 * unknown to the library. */
static inline tern_arg tern_arg_tensor(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_UNKNOWN, x->dtype, x);
}
void tern_bump_version(tern_tensor *x);
int64_t tern_tensor_version(const tern_tensor *x);
/* Records that the program gets the address of x's memory. */
void tern_hand_out(const tern_tensor *x);

#endif
