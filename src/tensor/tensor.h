/* tensor.h -- tensors: made, of memory or of others, and as arguments of kernels. */
#ifndef TERN_SRC_TENSOR_H
#define TERN_SRC_TENSOR_H
#include "device/device.h"
#include "tensor/fields.h"
#include "tensor/scope.h"
#include "tensor/shape.h"

/* ---- making (storage.c) ------------------------------------------------------------------ */
/* A dense tensor of new memory, not in any scope, with one reference; NULL after an error. */
tern_tensor *tern_tensor_new(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                             const char *function);
/* The same with rows, of the last dim, that begin at multiples of TERN_ROW_MULTIPLE elements, and
 * memory for a multiple of rows; x is a view of its memory then. */
tern_tensor *tern_tensor_padded(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                                const char *function);
/* Whether x is all of such memory. */
bool tern_lies_padded(const tern_tensor *x);
/* n rounded up to a multiple of TERN_ROW_MULTIPLE. */
static inline int64_t tern_up(int64_t n)
{
    return (n + TERN_ROW_MULTIPLE - 1) / TERN_ROW_MULTIPLE * TERN_ROW_MULTIPLE;
}
/* The same of memory that is there, and is the tensor's from then on unless this fails. */
tern_tensor *tern_tensor_of_block(const tern_shape *shape, tern_dtype dtype, tern_block *block);
/* The same with strides and the first element. */
tern_tensor *tern_tensor_on_block(const tern_shape *shape, tern_dtype dtype, tern_block *block,
                                  const int64_t *strides, int64_t offset);
/* Elements from the first to the last that shape and strides, none negative, reach, in *span; false
 * where that overflows. */
bool tern_extent_of(const tern_shape *shape, const int64_t *strides, int64_t *span);
/* tern_copy_to_host that the function does unasked: it waits, so TERN_ERR_STATE within
 * TERN_STRICT. */
tern_status tern_hidden_read(const tern_tensor *x, void *data, size_t bytes, const char *function);
/* TERN_ERR_STATE for a tensor whose storage was emptied (storage.h). */
tern_status tern_storage_missing(const tern_tensor *x, const char *function);
static inline tern_status tern_storage_there(const tern_tensor *x, const char *function)
{
    return x->storage->emptied ? tern_storage_missing(x, function) : TERN_OK;
}
/* Zeros into all of x, which is dense; nothing without elements. */
tern_status tern_zero_elements(tern_tensor *x);
/* Another view of x's storage; the same. Knows nothing of autograd. */
tern_tensor *tern_tensor_alias(const tern_tensor *x, const tern_shape *shape, const int64_t *stride,
                               int64_t offset);
/* Give back a reference to a storage; NULL is allowed. */
void tern_storage_release(tern_storage *storage);
/* The same elements, same geometry, no history. */
tern_tensor *tern_tensor_detached(const tern_tensor *x);
/* tern_scoped of a tensor that a function made without an operation: errors say so once it is gone.
 * The name, "tern_full", lives as long as the process. */
static inline tern_tensor *tern_scoped_from(tern_tensor *x, const char *function)
{
    if (x)
        x->handle.about = function + sizeof "tern_" - 1;
    return tern_scoped(x);
}
tern_place *tern_tensor_place(const tern_tensor *x);
/* x as a kernel's argument, its elements taken for those of a dtype of the same width. Without a
 * block, as empty tensors are, it may be made but not passed. */
static inline tern_arg tern_arg_as(tern_role role, tern_dtype dtype, const tern_tensor *x)
{
    const tern_block *block = x->storage->block;
    return tern_arg_buffer(role, dtype, block ? &block->buffer : NULL, x->offset);
}
/* x where the kernel writes; where it reads; for a parameter that it leaves alone this time. */
static inline tern_arg tern_arg_out(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_OUT, x->dtype, x);
}
static inline tern_arg tern_arg_in(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_IN, x->dtype, x);
}
/* Bytes of the memory, of that of the program (external) all that there are (storage_parts.c). */
size_t tern_storage_bytes(const tern_storage *storage);
static inline tern_arg tern_arg_unused(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_UNUSED, x->dtype, x);
}
/* Read where it is there; `any` tensor stands in for NULL, of which another argument informs the
 * kernel. */
static inline tern_arg tern_arg_optional(const tern_tensor *x, const tern_tensor *any)
{
    return x ? tern_arg_in(x) : tern_arg_unused(any);
}
/* x for what has no parameters of its own: vendors' routines and kernels of the user's. */
static inline tern_arg tern_arg_tensor(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_UNKNOWN, x->dtype, x);
}
void tern_bump_version(tern_tensor *x);
int64_t tern_tensor_version(const tern_tensor *x);
/* The program gets the address of x's memory. */
void tern_hand_out(const tern_tensor *x);

#endif
