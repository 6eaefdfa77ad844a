/* copy.c -- copies to another dtype, to another device or to dense memory; fills; in-place
 * copies. */
#include "ops/copy/copy.h"
#include "ops/elementwise/nd_index.h"
#include "tensor/fuse/fuse.h"
#include "tensor/history.h"
#include "tensor/memory_format.h"
#include "tensor/tensor.h"
#include <math.h>
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* ---- copies to another dtype, dense copies, copies to another device --------------------- */

/* y = x in another dtype; dx = dy in the dtype of x. */
static tern_status cast_infer(tern_call *call)
{
    const tern_dtype *dtype = call->attributes;
    call->n_out = 1;
    call->result[0].dtype = *dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    call->channels_last = tern_is_channels_last(call->in[0]);
    return TERN_OK; /* float64 on a device without it is refused earlier */
}

static tern_status copy_forward(tern_call *call)
{
    return tern_copy_elements(call->out[0], call->in[0]);
}

/* The backward needs only the dtype of the input, which is stored here: x itself is not saved. */
typedef struct cast_attributes {
    tern_dtype to, from;
} cast_attributes;

static tern_status cast_backward(tern_gradient *g)
{
    const cast_attributes *at = g->attributes;
    g->din[0] = tern_to_dtype(g->dout[0], at->from);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op cast_op = {.name = "to_dtype",
                                .stored = TERN_STORED_MOVED,
                                .fusion = &(const tern_fusion){.is_cast = true},
                                .infer = cast_infer,
                                .forward = copy_forward,
                                .backward = cast_backward};

tern_tensor *tern_to_dtype(tern_tensor *x, tern_dtype dtype)
{
    if (!tern_given(x, "tern_to_dtype", "x"))
        return NULL;
    if (tern_dtype_size(dtype) == 0)
        return tern_fail_null(TERN_ERR_DTYPE, "tern_to_dtype: %d is not a dtype", (int)dtype);
    if (x->dtype == dtype)
        return x;
    cast_attributes at = {dtype, x->dtype};
    return tern_apply(&cast_op, &x, 1, &at, sizeof at);
}

/* A dense copy; dx = dy. */
static tern_status clone_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    return TERN_OK;
}

/* dy is passed on without a copy. */
static tern_status pass_backward(tern_gradient *g)
{
    g->din[0] = g->dout[0];
    return TERN_OK;
}

static const tern_op clone_op = {.name = "clone",
                                 .stored = TERN_STORED_MOVED,
                                 .infer = clone_infer,
                                 .forward = copy_forward,
                                 .backward = pass_backward};

tern_tensor *tern_clone(tern_tensor *x)
{
    return tern_apply(&clone_op, &x, 1, NULL, 0);
}

static tern_status rows_backward(tern_gradient *g)
{
    g->din[0] = tern_to_memory_format(g->dout[0], (tern_memory_format)(g->in_shape[0].ndim - 3));
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op rows_op = {.name = "clone",
                                .stored = TERN_STORED_MOVED,
                                .infer = clone_infer,
                                .forward = copy_forward,
                                .backward = rows_backward};

tern_tensor *tern_rows_of(tern_tensor *x)
{
    return tern_is_channels_last(x) ? tern_apply(&rows_op, &x, 1, NULL, 0) : tern_contiguous(x);
}

static tern_tensor *copied(tern_tensor *x, const char *function)
{
    TERN_NAMED_AS(function);
    return tern_clone(x);
}

tern_tensor *tern_contiguous_for(tern_tensor *x, const char *function)
{
    return x && x->contiguous && !tern_handle_is_gone(&x->handle) ? x : copied(x, function);
}

/* Returns x itself if it is dense in row-major order, else a copy. */
tern_tensor *tern_contiguous(tern_tensor *x)
{
    return tern_contiguous_for(x, "tern_contiguous");
}

static tern_status last_infer(tern_call *call)
{
    call->channels_last = true;
    return clone_infer(call);
}

static const tern_op last_op = {.name = "to_memory_format",
                                .stored = TERN_STORED_MOVED,
                                .infer = last_infer,
                                .forward = copy_forward,
                                .backward = pass_backward};

tern_tensor *tern_to_memory_format(tern_tensor *x, tern_memory_format format)
{
    if (!tern_given(x, "tern_to_memory_format", "x") ||
        tern_check_enum("tern_to_memory_format", "format", (int)format, TERN_CHANNELS_LAST_3D,
                        "tern_memory_format") != TERN_OK)
        return NULL;
    if (format == TERN_CONTIGUOUS_FORMAT || tern_is_contiguous_format(x, format))
        return format == TERN_CONTIGUOUS_FORMAT ? tern_contiguous(x) : x;
    if (x->ndim != 3 + (int)format)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_to_memory_format: required rank %d tensor to use channels_last "
                              "format, but got shape %s",
                              3 + (int)format, TERN_TENSOR_TEXT(x));
    return tern_apply(&last_op, &x, 1, NULL, 0);
}

/* A copy between devices: the call runs on the source's device, the result is on the target's. */
typedef struct move_attributes {
    tern_place *to, *from;
    bool non_blocking; /* return before the copy is complete, if possible */
} move_attributes;

/* dx = dy on the device of x. */
static tern_status move_backward(tern_gradient *g)
{
    const move_attributes *at = g->attributes;
    g->din[0] = tern_to(g->dout[0], tern_place_text(at->from));
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* Copies the bytes of x, which is dense. With non_blocking it returns before the copy is complete
 * if x is in pinned memory. */
static tern_status move_forward(tern_call *call)
{
    tern_tensor *x = call->in[0], *y = call->out[0];
    size_t size = tern_dtype_size(x->dtype);
    if (y->numel == 0)
        return TERN_OK;
    const move_attributes *at = call->attributes;
    return (at->non_blocking ? tern_block_copy_later : tern_block_copy)(
        x->storage->block, (size_t)x->offset * size, y->storage->block, 0, (size_t)x->numel * size);
}

static tern_status move_infer(tern_call *call)
{
    const move_attributes *at = call->attributes;
    TERN_TRY(clone_infer(call));
    call->place = at->to; /* device on which the result is allocated */
    return TERN_OK;
}

static const tern_op move_op = {.name = "to",
                                .stored = TERN_STORED_MOVED,
                                .infer = move_infer,
                                .forward = move_forward,
                                .backward = move_backward};

/* Returns a dense copy of x on another device, or x itself if x is on that device. */
static tern_tensor *move(tern_tensor *x, const char *device, bool non_blocking,
                         const char *function)
{
    if (!tern_given(x, function, "x"))
        return NULL;
    tern_place *to = tern_place_find(device, function);
    if (!to)
        return NULL;
    if (to == x->storage->place)
        return x;
    x = tern_contiguous(x);
    if (x && x->requires_grad && tern_is_grad_enabled())
        tern_passes_cross();
    move_attributes at = {to, x ? x->storage->place : NULL, non_blocking};
    return x ? tern_apply(&move_op, &x, 1, &at, sizeof at) : NULL;
}

tern_tensor *tern_to(tern_tensor *x, const char *device)
{
    return move(x, device, false, "tern_to");
}

tern_tensor *tern_to_non_blocking(tern_tensor *x, const char *device)
{
    return move(x, device, true, "tern_to_non_blocking");
}

bool tern_is_pinned(const tern_tensor *x)
{
    return x && x->storage->block && x->storage->block->pinned;
}

/* Returns a copy of x in page-locked host memory, from which a device copies asynchronously, or x
 * itself if no device pins memory. */
tern_tensor *tern_pin_memory(tern_tensor *x)
{
    if (!tern_given(x, "tern_pin_memory", "x"))
        return NULL;
    if (strcmp(tern_place_kind(x->storage->place), "cpu") != 0)
        return tern_fail_null(TERN_ERR_DEVICE,
                              "tern_pin_memory: cannot pin a tensor on %s, only dense CPU tensors "
                              "can be pinned",
                              tern_device(x));
    tern_place *by = NULL;
    if (x->numel && !tern_is_pinned(x) && tern_pinning_place(&by) != TERN_OK)
        return NULL;
    if (!by)
        return x;
    tern_shape shape = tern_shape_of(x);
    tern_block *block = tern_block_alloc_pinned(
        x->storage->place, by, (size_t)x->numel * tern_dtype_size(x->dtype), "tern_pin_memory");
    tern_tensor *y = block ? tern_tensor_of_block(&shape, x->dtype, block) : NULL;
    if (!y) {
        tern_block_free(block);
        return NULL;
    }
    if (tern_copy_elements(y, x) != TERN_OK) {
        tern_release(y);
        return NULL;
    }
    return tern_scoped(y);
}

/* ---- in place ---------------------------------------------------------------------------- */

/* x = src, broadcast and converted, in place. dsrc = dy in the dtype of src; the previous value of
 * x gets no gradient. */
static tern_status copy_in_infer(tern_call *call)
{
    tern_shape to = tern_shape_of(call->in[0]), from = tern_shape_of(call->in[1]), both;
    TERN_TRY(tern_shape_broadcast(&to, &from, &both, "tern_copy_"));
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = both;
    return TERN_OK;
}

static tern_status copy_in_forward(tern_call *call)
{
    return call->in[1] == call->out[0] ? TERN_OK : tern_copy_elements(call->out[0], call->in[1]);
}

tern_status tern_no_gradient(tern_gradient *g)
{
    if (!g->needs[0])
        return TERN_OK;
    tern_tensor *zeros = tern_new_empty(g->dout[0], g->in_shape[0]);
    g->din[0] = zeros ? tern_fill_(zeros, tern_scalar_int(0)) : NULL;
    return g->din[0] ? TERN_OK : tern_last_status();
}

static tern_status copy_in_backward(tern_gradient *g)
{
    const tern_dtype *from = g->attributes;
    TERN_TRY(tern_no_gradient(g));
    if (g->needs[1])
        g->din[1] = tern_to_dtype(g->dout[0], *from);
    return !g->needs[1] || g->din[1] ? TERN_OK : tern_last_status();
}

static const tern_op copy_in_op = {.name = "copy",
                                   .stored = TERN_STORED_MOVED,
                                   .infer = copy_in_infer,
                                   .forward = copy_in_forward,
                                   .backward = copy_in_backward};

/* Copies src to x in place. A source on another device is first moved, in its own dtype. */
static tern_tensor *copy_in(tern_tensor *x, const tern_tensor *src, bool non_blocking,
                            const char *function)
{
    if (!tern_given(x, function, "x") || !tern_given(src, function, "src"))
        return NULL;
    tern_tensor *from;
    memcpy(&from, &src, sizeof src); /* only the reference count of src's graph changes */
    from = move(from, tern_device(x), non_blocking, function);
    if (!from)
        return NULL;
    return tern_apply_in_place(&copy_in_op, (tern_tensor *[]){x, from}, 2, &from->dtype,
                               sizeof from->dtype);
}

tern_tensor *tern_copy_(tern_tensor *x, const tern_tensor *src)
{
    return copy_in(x, src, false, "tern_copy_");
}

tern_tensor *tern_copy_non_blocking_(tern_tensor *x, const tern_tensor *src)
{
    TERN_NAMED_IN_ERRORS;
    return copy_in(x, src, true, __func__);
}

static const tern_kernel_ref fill_kernel = {"copy", "fill"};

static tern_status fill(tern_tensor *y, tern_scalar value);

/* Fills a tensor of a storage-only dtype by converting one element of a dtype with arithmetic. */
static tern_status fill_stored(tern_tensor *y, tern_scalar value)
{
    tern_dtype by;
    tern_shape one = {0};
    value = tern_stored_number(y->dtype, value, &by);
    tern_tensor *number = tern_tensor_new(&one, by, y->storage->place, "tern_fill_");
    tern_status status = number ? fill(number, value) : tern_last_status();
    if (status == TERN_OK)
        status = tern_copy_elements(y, number);
    tern_release(number);
    return status;
}

/* Fills y with value. A dense fill with 0 is a fill of bytes; with -0 it is not, since the sign bit
 * of -0 is set. Few elements are copied from the host on devices that compile a kernel at its first
 * launch. */
static tern_status fill(tern_tensor *y, tern_scalar value)
{
    if (y->contiguous && tern_scalar_to_real(value) == 0 && !signbit(tern_scalar_to_real(value)))
        return tern_zero_elements(y);
    if (tern_dtype_is_stored(y->dtype))
        return fill_stored(y, value);
    if (y->contiguous && y->dtype == TERN_F32 && tern_writes_by_copy(y->storage->place, y->numel)) {
        float same[TERN_SMALL];
        for (int64_t i = 0; i < y->numel; i++)
            same[i] = (float)tern_scalar_to_real(value);
        return tern_block_write(y->storage->block, (size_t)y->offset * sizeof *same, same,
                                (size_t)y->numel * sizeof *same);
    }
    tern_nd_index w;
    tern_shape shape = tern_shape_of(y);
    tern_nd_index_make(&w, &shape, &y, 1);
    return TERN_LAUNCH(y->storage->place, &fill_kernel, y->dtype, tern_nd_index_grid(&w),
                       tern_arg_out(y), TERN_ARG_STRUCT(tern_nd_index, &w),
                       tern_arg_scalar(y->dtype, value));
}

static tern_status fill_forward(tern_call *call)
{
    const tern_scalar *value = call->attributes;
    return call->out[0]->numel == 0 ? TERN_OK : fill(call->out[0], *value);
}

/* Returns whether a dtype can hold a value by PyTorch's rules: unsigned integers also accept a
 * negative integer that wraps around once. */
static bool holds(tern_dtype dtype, tern_scalar value)
{
    double v = tern_scalar_to_real(value), greatest = tern_dtype_rows[dtype].greatest;
    bool real = value.kind == TERN_SCALAR_REAL;
    if (tern_dtype_in(dtype, TERN_SET_BOOLS) || (!real && greatest > 0x1p62) ||
        dtype == TERN_F8_E4M3FN || dtype == TERN_F8_E5M2) /* float8 accepts values out of its
                                                           * range */
        return true;
    if (!isfinite(v))
        return tern_dtype_in(dtype, TERN_SET_FLOATS);
    if (tern_dtype_in(dtype, TERN_SET_UNSIGNED))
        return v <= greatest && v >= (real ? 0 : -greatest);
    return v <= greatest &&
           v >= (tern_dtype_in(dtype, TERN_SET_SIGNED) ? -greatest - 1 : -greatest);
}

static const tern_op fill_op = {.name = "fill",
                                .names = TERN_NAMES(TERN_WHOLE(tern_scalar, "value")),
                                .stored = TERN_STORED_MOVED,
                                .infer = clone_infer,
                                .forward = fill_forward,
                                .backward = tern_no_gradient};

tern_tensor *tern_fill_(tern_tensor *x, tern_scalar value)
{
    if (x && !holds(x->dtype, value))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_fill_: value cannot be converted to type %s without overflow (%g)",
            tern_dtype_name(x->dtype), tern_scalar_to_real(value));
    return tern_apply_in_place(&fill_op, &x, 1, &value, sizeof value);
}

tern_tensor *tern_zero_(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_fill_(x, tern_scalar_int(0));
}
