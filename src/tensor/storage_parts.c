/* storage_parts.c -- the memory of tensors: size, releasing, allocating again, views. */
#include "tensor/storage.h"
#include "device/capture.h"
#include "tensor/from_ops.h"
#include "tensor/tensor.h"

size_t tern_storage_bytes(const tern_storage *storage)
{
    const tern_block *block = storage->block;
    return !block ? storage->emptied : block->external ? block->buffer.bytes : block->used;
}

bool tern_storage_counts_writes(const tern_tensor *x)
{
    const tern_storage *storage = x->storage;
    return !atomic_load_explicit(&storage->handed_out, memory_order_relaxed) &&
           !(storage->block && storage->block->external);
}

uint64_t tern_storage_replays(void)
{
    return atomic_load_explicit(&tern_replays, memory_order_relaxed);
}

tern_status tern_storage_missing(const tern_tensor *x, const char *function)
{
    return tern_fail(TERN_ERR_STATE,
                     "%s: the memory of the tensor of shape %s was given back, and has not been "
                     "filled again",
                     function, TERN_TENSOR_TEXT(x));
}

tern_status tern_storage_empty(tern_tensor *x)
{
    if (!tern_given(x, "tern_storage_empty", "x"))
        return tern_last_status();
    tern_storage *storage = x->storage;
    if (!storage->block)
        return TERN_OK;
    if (storage->block->external)
        return tern_fail(TERN_ERR_STATE, "tern_storage_empty: the memory of x is borrowed");
    storage->emptied = storage->block->used;
    tern_block_free(storage->block);
    storage->block = NULL;
    return TERN_OK;
}

tern_status tern_storage_refill(tern_tensor *x)
{
    if (!tern_given(x, "tern_storage_refill", "x"))
        return tern_last_status();
    tern_storage *storage = x->storage;
    if (!storage->emptied)
        return TERN_OK;
    tern_block *block = tern_block_alloc(storage->place, storage->emptied, "tern_storage_refill");
    if (!block)
        return tern_last_status();
    storage->block = block;
    storage->emptied = 0;
    return TERN_OK;
}

bool tern_storage_is_empty(const tern_tensor *x)
{
    return x && x->storage->emptied != 0;
}

tern_status tern_storage_fill(tern_tensor *x, const tern_tensor *y)
{
    return x->numel ? tern_from_ops->copy(x, y) : TERN_OK;
}

bool tern_storage_is_shared(const tern_tensor *x, const tern_tensor *y)
{
    return x && y && x->storage == y->storage && x->offset == y->offset;
}

bool tern_storage_is_one(const tern_tensor *x, const tern_tensor *y)
{
    return x->storage == y->storage;
}

bool tern_extent_of(const tern_shape *shape, const int64_t *strides, int64_t *span)
{
    *span = 1;
    for (int d = 0; d < shape->ndim; d++) {
        int64_t reach;
        if (shape->dims[d] == 0) {
            *span = 0;
            return true;
        }
        if (__builtin_mul_overflow(shape->dims[d] - 1, strides[d], &reach) ||
            __builtin_add_overflow(*span, reach, span))
            return false;
    }
    return true;
}

tern_tensor *tern_storage_view(tern_tensor *x, tern_shape shape, const int64_t *strides,
                               int64_t offset)
{
    static const char function[] = "tern_storage_view";
    int64_t dense[TERN_MAX_DIMS], span = 0, end = 0;
    if (!tern_given(x, function, "x") || tern_shape_numel(&shape, function) < 0)
        return NULL;
    tern_dense_strides(&shape, dense);
    if (!strides)
        strides = dense;
    bool fits = tern_extent_of(&shape, strides, &span) && offset >= -x->offset;
    for (int d = 0; d < shape.ndim; d++)
        fits = fits && strides[d] >= 0;
    size_t size = tern_dtype_size(x->dtype);
    size_t bytes = tern_storage_bytes(x->storage);
    fits = fits && !__builtin_add_overflow(x->offset + offset, span, &end) &&
           (span == 0 || (size_t)end <= bytes / size);
    if (!fits)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: shape %s from element %lld on is not in the "
                              "storage",
                              function, TERN_SHAPE_TEXT(&shape), (long long)offset);
    tern_tensor *y = tern_tensor_alias(x, &shape, strides, x->offset + offset);
    return tern_scoped_from(y, function);
}

tern_tensor *tern_storage_as(tern_tensor *x, tern_dtype dtype)
{
    static const char function[] = "tern_storage_as";
    if (!tern_given(x, function, "x"))
        return NULL;
    if (tern_dtype_size(dtype) != tern_dtype_size(x->dtype))
        return tern_fail_null(TERN_ERR_DTYPE, "%s: %s and %s are not of one size", function,
                              tern_dtype_name(x->dtype), tern_dtype_name(dtype));
    tern_tensor *y = tern_tensor_detached(x);
    if (y)
        y->dtype = dtype;
    return tern_scoped_from(y, function);
}
