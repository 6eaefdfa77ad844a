/* interop.c -- tensors in memory of the program, and access to the memory of tensors. */
#include "base/option.h"
#include "tensor/blob.h"
#include "tensor/tensor.h"

/* Sets *bytes to the size from the beginning of the memory to the end of the last element. */
static tern_status extent(const tern_blob *b, const int64_t *strides, size_t *bytes)
{
    int64_t span = 0;
    for (int d = 0; d < b->shape.ndim; d++)
        if (strides[d] < 0)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: negative strides are not supported (%lld along dim %d)",
                             b->function, (long long)strides[d], d);
    if (b->offset < 0)
        return tern_fail(TERN_ERR_SHAPE, "%s: the offset %lld is negative", b->function,
                         (long long)b->offset);
    if (!tern_extent_of(&b->shape, strides, &span) ||
        __builtin_add_overflow(span, b->offset, &span) ||
        __builtin_mul_overflow((size_t)span, tern_dtype_size(b->dtype), bytes))
        return tern_fail(TERN_ERR_SHAPE, "%s: Storage size calculation overflowed with shape %s",
                         b->function, TERN_SHAPE_TEXT(&b->shape));
    return TERN_OK;
}

static tern_tensor *on_memory(const tern_blob *b, tern_place *place)
{
    size_t bytes = 0;
    int64_t dense[TERN_MAX_DIMS];
    tern_dense_strides(&b->shape, dense);
    const int64_t *strides = b->strides ? b->strides : dense;
    if (extent(b, strides, &bytes) != TERN_OK)
        return NULL;
    if (!b->data) {
        tern_fail_argument_null(b->function, "data");
        return NULL;
    }
    const tern_borrowing borrowing = {.function = b->function,
                                      .memory = b->data,
                                      .bytes = bytes,
                                      .alignment = tern_dtype_size(b->dtype),
                                      .deleter = b->deleter,
                                      .user = b->user};
    tern_block *block = tern_block_borrow(place, &borrowing);
    tern_tensor *x =
        block ? tern_tensor_on_block(&b->shape, b->dtype, block, strides, b->offset) : NULL;
    if (block && !x) {
        tern_block_disown(block);
        tern_block_free(block);
    }
    return x;
}

tern_tensor *tern_blob_tensor(const tern_blob *b)
{
    if (tern_dtype_size(b->dtype) == 0)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: %d is not a dtype", b->function, (int)b->dtype);
    tern_place *place = tern_place_find(b->device, b->function);
    int64_t numel = place ? tern_shape_numel(&b->shape, b->function) : -1;
    if (numel < 0)
        return NULL;
    if (b->dtype == TERN_F64 && !tern_place_has_f64(place))
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "%s: %s has no float64", b->function,
                              tern_place_text(place));
    if (numel)
        return on_memory(b, place);
    tern_tensor *x = tern_tensor_new(&b->shape, b->dtype, place, b->function);
    if (x && b->deleter) { /* no tensor uses the memory */
        tern_callback before = tern_callback_begin();
        b->deleter(b->user);
        tern_callback_end(&before, TERN_OK);
    }
    return x;
}

tern_tensor *tern_from_blob(void *data, tern_shape shape, tern_dtype dtype,
                            const tern_from_blob_options *options)
{
    static const char function[] = "tern_from_blob";
    const tern_from_blob_options o = tern_read_from_blob(options);
    const tern_blob blob = {.function = function,
                            .device = o.device ? o.device : "cpu",
                            .data = data,
                            .dtype = dtype == TERN_DTYPE_DEFAULT ? TERN_F32 : dtype,
                            .shape = shape,
                            .strides = o.strides,
                            .offset = o.offset,
                            .deleter = o.deleter,
                            .user = o.user};
    return tern_scoped_from(tern_blob_tensor(&blob), function);
}

tern_status tern_get_memory_handle(tern_tensor *x, tern_memory_handle *handle)
{
    static const char function[] = "tern_get_memory_handle";
    if (!tern_given(x, function, "x"))
        return tern_last_status();
    if (!handle)
        return tern_fail_argument_null(function, "handle");
    *handle = (tern_memory_handle){.memory = NULL};
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_storage_there(x, function));
    tern_hand_out(x);
    const tern_buffer *buffer = &x->storage->block->buffer;
    handle->memory = buffer->handle ? buffer->handle : buffer->host;
    handle->offset = (size_t)x->offset * tern_dtype_size(x->dtype);
    handle->bytes = buffer->bytes;
    return TERN_OK;
}
