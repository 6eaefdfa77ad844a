/* flip.c -- elements in another order along dims: flip, roll, rot90.
 *
 * flip copies from a view with negative strides; roll exchanges two parts of each dim; a rotation
 * by 90 degrees is a flip and a transposition. The gradients are the inverse operations. */
#include "ops/copy/copy.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

static tern_status same_infer(tern_call *call)
{
    call->n_out = 1;
    call->channels_last = tern_runs_channels_last(call->in[0]);
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    return TERN_OK;
}

/* ---- flip: a copy that reads backwards --------------------------------------------------- */

/* y[i] = x[n - 1 - i]: copies from a view of x with negative strides, from the last element. */
static tern_status flip_forward(tern_call *call)
{
    const uint32_t *mask = call->attributes;
    const tern_tensor *x = call->in[0];
    int64_t stride[TERN_MAX_DIMS], offset = x->offset;
    if (x->numel == 0)
        return TERN_OK;
    for (int d = 0; d < x->ndim; d++) {
        bool flips = (*mask >> d & 1) && x->shape[d] > 1;
        stride[d] = flips ? -x->stride[d] : x->stride[d];
        offset += flips ? (x->shape[d] - 1) * x->stride[d] : 0;
    }
    tern_tensor *backwards = tern_tensor_alias(x, &call->result[0].shape, stride, offset);
    tern_status status =
        backwards ? tern_copy_elements(call->out[0], backwards) : tern_last_status();
    tern_release(backwards);
    return status;
}

static tern_status flip_backward(tern_gradient *g);

static const tern_op flip_op = {.name = "flip",
                                .names = TERN_NAMES({"dims", TERN_ATTRIBUTE_DIMS, 1, 0}),
                                .stored = TERN_STORED_MOVED,
                                .infer = same_infer,
                                .forward = flip_forward,
                                .backward = flip_backward};

static tern_status flip_backward(tern_gradient *g)
{
    g->din[0] = tern_apply(&flip_op, g->dout, 1, g->attributes, sizeof(uint32_t));
    return g->din[0] ? TERN_OK : tern_last_status();
}

tern_tensor *tern_flip(tern_tensor *x, tern_shape dims)
{
    uint32_t mask = 0;
    if (!x)
        tern_fail_argument_null("tern_flip", "x");
    for (int i = 0; x && i < dims.ndim; i++) {
        int d;
        if (tern_wrap_dim(dims.dims[i], x->ndim, &d, "tern_flip") != TERN_OK)
            return NULL;
        if (mask >> d & 1)
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_flip: dim %d appears multiple times in the list of dims",
                                  d);
        mask |= 1u << d;
    }
    return x ? tern_apply(&flip_op, &x, 1, &mask, sizeof mask) : NULL;
}

tern_tensor *tern_fliplr(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (x && x->ndim < 2)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_fliplr: Input must be >= 2-d.");
    return tern_flip(x, TERN_DIMS(1));
}

tern_tensor *tern_flipud(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (x && x->ndim < 1)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_flipud: Input must be >= 1-d.");
    return tern_flip(x, TERN_DIMS(0));
}

/* ---- roll: y[(i + shift) % n] = x[i] ----------------------------------------------------- */

typedef struct roll {
    int64_t shift[TERN_MAX_DIMS]; /* 0 <= shift < size */
} roll;

/* Copies the part of x at x_at to y_at, in two parts for each rolled dim from d on. */
static tern_status copy_rolled(tern_tensor *y, const tern_tensor *x, const roll *by, int d,
                               tern_shape part, int64_t x_at, int64_t y_at)
{
    while (d < x->ndim && by->shift[d] == 0)
        d++;
    if (d < x->ndim) {
        int64_t shift = by->shift[d], rest = x->shape[d] - shift;
        part.dims[d] = rest;
        TERN_TRY(copy_rolled(y, x, by, d + 1, part, x_at, y_at + shift * y->stride[d]));
        part.dims[d] = shift;
        return copy_rolled(y, x, by, d + 1, part, x_at + rest * x->stride[d], y_at);
    }
    tern_tensor *from = tern_tensor_alias(x, &part, x->stride, x_at);
    tern_tensor *to = from ? tern_tensor_alias(y, &part, y->stride, y_at) : NULL;
    tern_status status = to ? tern_copy_elements(to, from) : tern_last_status();
    tern_release(to);
    tern_release(from);
    return status;
}

static tern_status roll_forward(tern_call *call)
{
    tern_tensor *x = call->in[0], *y = call->out[0];
    if (x->numel == 0)
        return TERN_OK;
    return copy_rolled(y, x, call->attributes, 0, call->result[0].shape, x->offset, 0);
}

/* The inverse of a roll by shift is a roll by n - shift. */
static tern_status roll_backward(tern_gradient *g);

static const tern_op roll_op = {.name = "roll",
                                .names = TERN_NAMES(TERN_FIELDS(roll, "shifts", shift)),
                                .stored = TERN_STORED_MOVED,
                                .infer = same_infer,
                                .forward = roll_forward,
                                .backward = roll_backward};

static tern_status roll_backward(tern_gradient *g)
{
    roll back = *(const roll *)g->attributes;
    for (int d = 0; d < g->in_shape[0].ndim; d++)
        back.shift[d] = back.shift[d] ? g->in_shape[0].dims[d] - back.shift[d] : 0;
    g->din[0] = tern_apply(&roll_op, g->dout, 1, &back, sizeof back);
    return g->din[0] ? TERN_OK : tern_last_status();
}

tern_tensor *tern_roll(tern_tensor *x, tern_shape shifts, tern_shape dims)
{
    roll by = {{0}};
    if (!x) {
        tern_fail_argument_null("tern_roll", "x");
        return NULL;
    }
    if (shifts.ndim == 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_roll: `shifts` required");
    if (dims.ndim == 0 && shifts.ndim == 1) {
        tern_tensor *flat = tern_roll(tern_flatten(x, 0, -1), shifts, TERN_DIMS(0));
        return flat ? tern_view(flat, tern_shape_of(x)) : NULL;
    }
    if (dims.ndim != shifts.ndim)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_roll: shifts and dimensions must align. shifts: %d, dims:%d",
                              shifts.ndim, dims.ndim);
    if (x->ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_roll: Dimension specified as %lld but tensor has no dimensions",
                              (long long)dims.dims[0]);
    for (int i = 0; i < dims.ndim; i++) {
        int d;
        if (tern_wrap_dim(dims.dims[i], x->ndim, &d, "tern_roll") != TERN_OK)
            return NULL;
        int64_t n = x->shape[d];
        if (n > 0)
            by.shift[d] = ((by.shift[d] + shifts.dims[i] % n) % n + n) % n;
    }
    return tern_apply(&roll_op, &x, 1, &by, sizeof by);
}

tern_tensor *tern_rot90(tern_tensor *x, int64_t k, tern_shape dims)
{
    int from, to;
    if (!x)
        tern_fail_argument_null("tern_rot90", "x");
    if (x && dims.ndim != 2)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_rot90: expected total rotation dims == 2, but got dims = %d",
                              dims.ndim);
    if (x && x->ndim < 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_rot90: expected total dims >= 2, but got total dims = %d",
                              x->ndim);
    if (!x || tern_wrap_dim(dims.dims[0], x->ndim, &from, "tern_rot90") != TERN_OK ||
        tern_wrap_dim(dims.dims[1], x->ndim, &to, "tern_rot90") != TERN_OK)
        return NULL;
    if (from == to)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_rot90: expected rotation dims to be different, but got dim0 = "
                              "%lld and dim1 = %lld",
                              (long long)dims.dims[0], (long long)dims.dims[1]);
    switch ((k % 4 + 4) % 4) {
    case 1:
        return tern_contiguous(tern_transpose(tern_flip(x, TERN_DIMS(to)), from, to));
    case 2:
        return tern_flip(x, TERN_DIMS(from, to));
    case 3:
        return tern_contiguous(tern_transpose(tern_flip(x, TERN_DIMS(from)), from, to));
    default:
        return tern_clone(x);
    }
}
