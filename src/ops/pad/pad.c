/* pad.c -- padding: with a constant, by reflection, by replication of the edge, and circular. */
#include "base/checked.h"
#include "ops/copy/copy.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/ops.h>

/* ---- constant ---------------------------------------------------------------------------- */

typedef struct constant_attributes {
    int64_t before[TERN_MAX_DIMS], after[TERN_MAX_DIMS]; /* negative values crop */
    tern_scalar value;
} constant_attributes;

/* The size of each dim is before + size + after; negative padding crops. */
static tern_status constant_infer(tern_call *call)
{
    const constant_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_result *r = &call->result[0];
    call->n_out = 1;
    call->channels_last = tern_runs_channels_last(x);
    r->dtype = x->dtype;
    r->shape = tern_shape_of(x);
    for (int d = 0; d < x->ndim; d++) {
        r->shape.dims[d] = tern_size_add(tern_size_add(x->shape[d], at->before[d]), at->after[d]);
        if (r->shape.dims[d] < 0)
            return tern_fail(
                TERN_ERR_SHAPE,
                "tern_pad: The input size %lld, plus negative padding %lld and %lld "
                "resulted in a negative output size, which is invalid. Check dimension "
                "%d of your input.",
                (long long)x->shape[d], (long long)at->before[d], (long long)at->after[d], d);
    }
    return tern_shape_numel(&r->shape, "tern_pad") < 0 ? tern_last_status() : TERN_OK;
}

/* Fills y with value, then copies x to its region of y. Where x covers all of y (cropping only) y
 * is not filled. */
static tern_status constant_forward(tern_call *call)
{
    const constant_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_tensor *y = call->out[0];
    tern_shape kept = tern_shape_of(x);
    int64_t from = x->offset, to = 0;
    if (y->numel == 0)
        return TERN_OK;
    for (int d = 0; d < x->ndim; d++) {
        int64_t before = at->before[d], after = at->after[d];
        from += before < 0 ? -before * x->stride[d] : 0;
        to += before > 0 ? before * y->stride[d] : 0;
        kept.dims[d] += (before < 0 ? before : 0) + (after < 0 ? after : 0);
        kept.dims[d] = kept.dims[d] < 0 ? 0 : kept.dims[d];
    }
    tern_tensor *own = tern_tensor_alias(x, &kept, x->stride, from);
    tern_tensor *hole = own ? tern_tensor_alias(y, &kept, y->stride, to) : NULL;
    tern_status status = hole && (hole->numel == y->numel || tern_fill_(y, at->value))
                             ? TERN_OK
                             : tern_last_status();
    if (status == TERN_OK)
        status = tern_copy_elements(hole, own);
    tern_release(hole);
    tern_release(own);
    return status;
}

static tern_status constant_backward(tern_gradient *g);

static const tern_op constant_op = {
    .name = "constant_pad_nd",
    .names = TERN_NAMES(TERN_FIELDS(constant_attributes, "before", before),
                        TERN_FIELDS(constant_attributes, "after", after),
                        TERN_FIELD(constant_attributes, "value", value)),
    .stored = TERN_STORED_MOVED,
    .infer = constant_infer,
    .forward = constant_forward,
    .backward = constant_backward};

/* The gradient is the same operation with all paddings negated, which crops the elements that
 * padding added; cropped elements get 0. */
static tern_status constant_backward(tern_gradient *g)
{
    constant_attributes back = *(const constant_attributes *)g->attributes;
    for (int d = 0; d < TERN_MAX_DIMS; d++) {
        back.before[d] = -back.before[d];
        back.after[d] = -back.after[d];
    }
    back.value = tern_scalar_int(0);
    g->din[0] = tern_apply(&constant_op, g->dout, 1, &back, sizeof back);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* ---- reflect, replicate and circular, along one dim -------------------------------------- */

typedef struct edge_attributes {
    tern_pad_mode mode;
    int dim;
    int64_t size, before, after; /* size: of x along dim */
} edge_attributes;

/* A segment of the padded tensor, and the elements of x that it is read from. */
typedef struct segment {
    int64_t to, from, length, step;
} segment;

/* y along the dim consists of x and a segment on either side, each read from x with a step: 0
 * repeats the edge, -1 reflects (without repeating the edge), 1 wraps around. */
static void segments_of(const edge_attributes *at, segment s[3])
{
    int64_t n = at->size, before = at->before, after = at->after;
    s[0] = (segment){before, 0, n, 1};
    s[1] = (segment){0, 0, before, 0};
    s[2] = (segment){before + n, n - 1, after, 0};
    if (at->mode == TERN_PAD_REFLECT) {
        s[1] = (segment){0, before, before, -1};
        s[2] = (segment){before + n, n - 2, after, -1};
    } else if (at->mode == TERN_PAD_CIRCULAR) {
        s[1] = (segment){0, n - before, before, 1};
        s[2] = (segment){before + n, 0, after, 1};
    }
}

/* Returns a view of `length` elements of dim from start, `step` apart, where step may be 0 or
 * -1. */
static tern_tensor *strided_part(const tern_tensor *x, int dim, int64_t start, int64_t length,
                                 int64_t step)
{
    tern_shape shape = tern_shape_of(x);
    int64_t stride[TERN_MAX_DIMS];
    memcpy(stride, x->stride, sizeof stride);
    shape.dims[dim] = length;
    stride[dim] *= step;
    return tern_tensor_alias(x, &shape, stride, x->offset + start * x->stride[dim]);
}

static tern_status edge_infer(tern_call *call)
{
    const edge_attributes *at = call->attributes;
    call->n_out = 1;
    call->channels_last = at->mode != TERN_PAD_CIRCULAR && tern_runs_channels_last(call->in[0]);
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    call->result[0].shape.dims[at->dim] =
        tern_size_add(tern_size_add(at->size, at->before), at->after);
    return TERN_OK;
}

/* Computes y[i] = x[source(i)] by three copies of strided views along one dim. Several dims are
 * padded one after the other, which makes the corners correct. */
static tern_status edge_forward(tern_call *call)
{
    const edge_attributes *at = call->attributes;
    segment s[3];
    segments_of(at, s);
    for (int i = 0; i < 3; i++) {
        if (s[i].length == 0 || call->out[0]->numel == 0)
            continue;
        tern_tensor *from = strided_part(call->in[0], at->dim, s[i].from, s[i].length, s[i].step);
        tern_tensor *to =
            from ? strided_part(call->out[0], at->dim, s[i].to, s[i].length, 1) : NULL;
        tern_status status = to ? tern_copy_elements(to, from) : tern_last_status();
        tern_release(to);
        tern_release(from);
        TERN_TRY(status);
    }
    return TERN_OK;
}

/* dx has the size before padding. */
static tern_status edge_sum_infer(tern_call *call)
{
    const edge_attributes *at = call->attributes;
    call->n_out = 1;
    call->channels_last = at->mode != TERN_PAD_CIRCULAR && tern_runs_channels_last(call->in[0]);
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    call->result[0].shape.dims[at->dim] = at->size;
    return TERN_OK;
}

/* dx[from + i step] += dy[to + i]. With step 0 the segment is first reduced to its sum, since all
 * its elements were read from one. With step -1 dy is read backwards, since views are written
 * forwards. */
static tern_status add_segment(tern_tensor *dx, const tern_tensor *dy, int dim, const segment *s)
{
    int64_t from = s->from, to_at = s->to, length = s->length, step = 1;
    if (s->step < 0) { /* dx is written forwards, dy is read backwards */
        from -= length - 1;
        to_at += length - 1;
        step = -1;
    }
    tern_tensor *part = tern_scoped(strided_part(dy, dim, to_at, length, step));
    if (part && s->step == 0)
        part = tern_sum_dim(part, TERN_DIMS(dim), true);
    tern_tensor *to =
        part ? tern_scoped(strided_part(dx, dim, from, s->step ? length : 1, 1)) : NULL;
    return to && tern_add_(to, part) ? TERN_OK : tern_last_status();
}

/* The transpose of padding: dx = the part of dy that is the copy of x, plus both segments, each
 * added to the elements that it was read from. */
static tern_status edge_sum_forward(tern_call *call)
{
    const edge_attributes *at = call->attributes;
    tern_tensor *dy = call->in[0], *dx = call->out[0];
    segment s[3];
    if (dx->numel == 0)
        return TERN_OK;
    segments_of(at, s);
    tern_tensor *own = strided_part(dy, at->dim, s[0].to, s[0].length, 1);
    tern_status status = own ? tern_copy_elements(dx, own) : tern_last_status();
    tern_release(own);
    TERN_SCOPE {
        for (int i = 1; i < 3 && status == TERN_OK; i++)
            if (s[i].length > 0)
                status = add_segment(dx, dy, at->dim, &s[i]);
    }
    return status;
}

static tern_status edge_backward(tern_gradient *g);
static tern_status edge_sum_backward(tern_gradient *g);

static const tern_op edge_op = {.name = "pad",
                                .names = TERN_NAMES(TERN_FIELD(edge_attributes, "mode", mode),
                                                    TERN_FIELD(edge_attributes, "dim", dim),
                                                    TERN_FIELD(edge_attributes, "before", before),
                                                    TERN_FIELD(edge_attributes, "after", after)),
                                .stored = TERN_STORED_MOVED,
                                .infer = edge_infer,
                                .forward = edge_forward,
                                .backward = edge_backward};
static const tern_op edge_sum_op = {.name = "pad_backward",
                                    .infer = edge_sum_infer,
                                    .forward = edge_sum_forward,
                                    .backward = edge_sum_backward};

/* Padding is linear and edge_sum its transpose: each is the gradient of the other, to any order. */
static tern_status edge_backward(tern_gradient *g)
{
    g->din[0] = tern_apply(&edge_sum_op, g->dout, 1, g->attributes, sizeof(edge_attributes));
    return g->din[0] ? TERN_OK : tern_last_status();
}

static tern_status edge_sum_backward(tern_gradient *g)
{
    g->din[0] = tern_apply(&edge_op, g->dout, 1, g->attributes, sizeof(edge_attributes));
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* ---- the public function ----------------------------------------------------------------- */

/* Checks sizes: reflection needs padding below the size, since the edge is not repeated; circular
 * padding wraps around at most once. An empty dim cannot be padded. */
static tern_status check_edges(const tern_tensor *x, const tern_shape *pad, tern_pad_mode mode)
{
    const int dims = pad->ndim / 2;
    for (int d = x->ndim - dims - 1; d < x->ndim && mode != TERN_PAD_CIRCULAR; d++)
        if (x->shape[d] == 0)
            return tern_fail(
                TERN_ERR_SHAPE,
                "tern_pad: Expected %dD or %dD (batch mode) tensor with possibly 0 batch "
                "size and other non-zero dimensions for input, but got: %s",
                dims + 1, dims + 2, TERN_TENSOR_TEXT(x));
    for (int i = 0; i < pad->ndim / 2; i++) {
        int d = x->ndim - 1 - i;
        int64_t n = x->shape[d], before = pad->dims[2 * i], after = pad->dims[2 * i + 1];
        if (mode == TERN_PAD_REFLECT && (before >= n || after >= n))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_pad: Argument #4: Padding size should be less than the "
                             "corresponding input dimension, but got: padding (%lld, %lld) at "
                             "dimension %d of input %s",
                             (long long)before, (long long)after, d, TERN_TENSOR_TEXT(x));
        if (mode == TERN_PAD_CIRCULAR && (before > n || after > n))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_pad: Padding value causes wrapping around more than once.");
        int64_t all = tern_size_add(tern_size_add(n, before), after);
        if (all < (mode == TERN_PAD_CIRCULAR ? 0 : 1) || n == 0)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_pad: input (%s) is too small. Calculated output size of "
                             "dimension %d: %lld",
                             TERN_TENSOR_TEXT(x), d, (long long)all);
    }
    return TERN_OK;
}

/* Removes elements for negative padding. As in PyTorch, circular padding crops before it wraps
 * around, the other modes crop after they pad. */
static tern_tensor *crop(tern_tensor *x, int dim, int64_t before, int64_t after)
{
    if (!x || (before >= 0 && after >= 0))
        return x;
    int64_t start = before < 0 ? -before : 0, end = x->shape[dim] + (after < 0 ? after : 0);
    return tern_slice(x, dim, start, end, 1);
}

/* Pads by reflect, replicate or circular, with one operation for each padded dim, from the last.
 * The result is never x itself or a view of it. */
static tern_tensor *pad_edges(tern_tensor *x, const tern_shape *pad, tern_pad_mode mode)
{
    int dims = pad->ndim / 2;
    if (dims > 3 || (x->ndim != dims + 1 && x->ndim != dims + 2))
        return tern_fail_null(
            TERN_ERR_UNSUPPORTED,
            "tern_pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for "
            "now (padding %s of a tensor of shape %s)",
            TERN_SHAPE_TEXT(pad), TERN_TENSOR_TEXT(x));
    if (check_edges(x, pad, mode) != TERN_OK)
        return NULL;
    tern_tensor *y = x;
    for (int i = 0; i < dims && y; i++) {
        int d = x->ndim - 1 - i;
        int64_t before = pad->dims[2 * i], after = pad->dims[2 * i + 1];
        if (mode == TERN_PAD_CIRCULAR)
            y = crop(y, d, before, after);
        edge_attributes at = {.mode = mode,
                              .dim = d,
                              .size = y ? y->shape[d] : 0,
                              .before = before > 0 ? before : 0,
                              .after = after > 0 ? after : 0};
        if (y && mode == TERN_PAD_CIRCULAR && (at.before > at.size || at.after > at.size))
            return tern_fail_null(TERN_ERR_ARGUMENT, "tern_pad: Padding value causes wrapping "
                                                     "around more than once.");
        if (at.before || at.after)
            y = tern_apply(&edge_op, &y, 1, &at, sizeof at);
        if (mode != TERN_PAD_CIRCULAR)
            y = crop(y, d, before, after);
    }
    return y == x || (y && y->storage == x->storage) ? tern_clone(y) : y;
}

/* `pad` holds pairs (before, after), beginning with the last dim. */
tern_tensor *tern_pad(tern_tensor *x, tern_shape pad, const tern_pad_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_pad_mode mode = options ? options->mode : TERN_PAD_CONSTANT;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (pad.ndim < 0 || pad.ndim > TERN_MAX_DIMS || pad.ndim % 2 != 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_pad: Padding length must be divisible by 2 (%d)", pad.ndim);
    if (pad.ndim / 2 > x->ndim)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_pad: Length of pad should be no more than twice the number of "
                              "dimensions of the input. Pad length is %d while the input has %d "
                              "dimensions.",
                              pad.ndim, x->ndim);
    if (tern_check_enum(__func__, "mode", (int)mode, TERN_PAD_CIRCULAR, "tern_pad_mode") != TERN_OK)
        return NULL;
    if (mode != TERN_PAD_CONSTANT)
        return pad_edges(x, &pad, mode);
    constant_attributes at = {.value = tern_scalar_real(options ? options->value : 0)};
    for (int i = 0; i < pad.ndim / 2; i++) {
        at.before[x->ndim - 1 - i] = pad.dims[2 * i];
        at.after[x->ndim - 1 - i] = pad.dims[2 * i + 1];
    }
    return tern_apply(&constant_op, &x, 1, &at, sizeof at);
}
