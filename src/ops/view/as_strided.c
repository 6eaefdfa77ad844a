/* as_strided.c -- a view with any shape, strides and offset in a tensor's storage, and its
 * gradient.
 *
 * Several elements of the view may share one place in memory, and so may elements of x. The
 * gradient is therefore computed on a row of zeros that stands for the memory: each element of dy
 * is added at the place of its element of the view; then the elements of dx are read at the places
 * of the elements of x, divided by the number of elements of x that share a place. */
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"
#include "ops/view/as_strided.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/ops.h>

static tern_status as_strided_infer(tern_call *call)
{
    const tern_strided *at = call->attributes;
    tern_result *r = &call->result[0];
    call->n_out = 1;
    r->dtype = call->in[0]->dtype;
    r->shape = at->shape;
    memcpy(r->stride, at->stride, sizeof r->stride);
    r->offset = call->in[0]->offset + at->offset;
    return TERN_OK;
}

/* ---- scatter: adds the gradient of a view into a row of n elements, at the view's places --- */

typedef struct scatter_attributes {
    tern_strided view; /* offset and strides in the row */
    int64_t n;
} scatter_attributes;

static tern_status scatter_infer(tern_call *call)
{
    const scatter_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = (tern_shape){1, {at->n}};
    return TERN_OK;
}

/* Adds x into out, with one addition for each position of the dims from d on that are not kept. */
static tern_status add_parts(tern_tensor *out, const tern_tensor *x, const tern_strided *view,
                             uint32_t kept, int d, int64_t out_at, int64_t x_at)
{
    while (d < x->ndim && (kept >> d & 1))
        d++;
    if (d < x->ndim) {
        for (int64_t i = 0; i < x->shape[d]; i++)
            TERN_TRY(add_parts(out, x, view, kept, d + 1, out_at + i * view->stride[d],
                               x_at + i * x->stride[d]));
        return TERN_OK;
    }
    tern_shape shape = {.ndim = 0};
    int64_t to[TERN_MAX_DIMS], from[TERN_MAX_DIMS];
    for (int k = 0; k < x->ndim; k++)
        if (kept >> k & 1) {
            to[shape.ndim] = view->stride[k];
            from[shape.ndim] = x->stride[k];
            shape.dims[shape.ndim++] = x->shape[k];
        }
    tern_tensor *sum = tern_tensor_alias(out, &shape, to, out_at);
    tern_tensor *part = sum ? tern_tensor_alias(x, &shape, from, x_at) : NULL;
    tern_status status = part ? TERN_OK : tern_last_status();
    bool all = kept == (1u << x->ndim) - 1;
    if (status == TERN_OK && all)
        status = tern_copy_elements(sum, part);
    else if (status == TERN_OK && !tern_add_(sum, part))
        status = tern_last_status();
    tern_release(part);
    tern_release(sum);
    return status;
}

/* Dims whose elements share no memory are added by one launch, others position by position. */
static tern_status scatter_forward(tern_call *call)
{
    const scatter_attributes *at = call->attributes;
    tern_tensor *out = call->out[0], *x = call->in[0];
    if (out->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_zero_elements(out));
    if (x->numel == 0)
        return TERN_OK;
    return add_parts(out, x, &at->view, tern_distinct_dims(&at->view.shape, at->view.stride), 0,
                     at->view.offset, x->offset);
}

/* Returns the elements of the view, read from the row. */
static tern_tensor *gather(tern_tensor *row, const tern_strided *view)
{
    tern_shape stride = {.ndim = view->shape.ndim};
    memcpy(stride.dims, view->stride, sizeof stride.dims);
    return tern_as_strided(row, view->shape, stride, view->offset);
}

static tern_status scatter_backward(tern_gradient *g)
{
    const scatter_attributes *at = g->attributes;
    g->din[0] = gather(tern_contiguous(g->dout[0]), &at->view);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op scatter_op = {.name = "as_strided_backward",
                                   .infer = scatter_infer,
                                   .forward = scatter_forward,
                                   .backward = scatter_backward};

static tern_tensor *scatter(tern_tensor *x, const tern_strided *view, int64_t n)
{
    scatter_attributes at = {*view, n};
    return tern_apply(&scatter_op, &x, 1, &at, sizeof at);
}

/* ---- the gradient: adds at the places of the view, reads at the places of x ------------- */

/* Returns the distance from the first element of a shape with strides to the last one, or -1 if it
 * is empty. */
static int64_t reach_of(const tern_shape *shape, const int64_t *stride)
{
    int64_t last = 0;
    for (int d = 0; d < shape->ndim; d++) {
        if (shape->dims[d] == 0)
            return -1;
        last += (shape->dims[d] - 1) * stride[d];
    }
    return last;
}

static tern_status as_strided_backward(tern_gradient *g)
{
    tern_strided view = *(const tern_strided *)g->attributes;
    tern_strided own = {.shape = g->in_shape[0]};
    memcpy(own.stride, view.in_stride, sizeof own.stride);
    for (int d = 0; d < view.shape.ndim; d++) /* expanded elements are summed first */
        if (view.stride[d] == 0 && view.shape.dims[d] > 1)
            view.shape.dims[d] = 1;
    tern_tensor *dview = tern_sum_to(g->dout[0], &view.shape);

    int64_t own_last = reach_of(&own.shape, own.stride);
    int64_t view_last = view.offset + reach_of(&view.shape, view.stride);
    int64_t first = view.offset < 0 ? view.offset : 0;
    int64_t n = (own_last > view_last ? own_last : view_last) - first + 1;
    view.offset -= first;
    own.offset = -first;
    tern_tensor *row = dview ? scatter(dview, &view, n) : NULL;
    g->din[0] = gather(row, &own);
    if (own_last >= 0 && tern_distinct_dims(&own.shape, own.stride) != (1u << own.shape.ndim) - 1) {
        /* Elements of x that share a place in memory share its gradient evenly. */
        tern_tensor *counts = scatter(tern_new_ones(row, own.shape), &own, n);
        g->din[0] = tern_div(g->din[0], gather(counts, &own));
    }
    return g->din[0] ? TERN_OK : tern_last_status();
}

const tern_op tern_as_strided_op = {.name = "as_strided",
                                    .view = TERN_VIEW_ONE,
                                    .infer = as_strided_infer,
                                    .backward = as_strided_backward};

/* ---- the public function ----------------------------------------------------------------- */

/* Returns the number of elements of the storage that the view needs, or INT64_MAX on overflow. */
static int64_t needed(const tern_strided *view, int64_t offset)
{
    int64_t last = offset;
    for (int d = 0; d < view->shape.ndim; d++) {
        int64_t step;
        if (view->shape.dims[d] == 0)
            return 0;
        if (__builtin_mul_overflow(view->shape.dims[d] - 1, view->stride[d], &step) ||
            __builtin_add_overflow(last, step, &last))
            return INT64_MAX;
    }
    return last == INT64_MAX ? last : last + 1;
}

tern_tensor *tern_as_strided(tern_tensor *x, tern_shape shape, tern_shape stride, int64_t offset)
{
    if (!tern_given(x, "tern_as_strided", "x") || tern_shape_numel(&shape, "tern_as_strided") < 0)
        return NULL;
    if (shape.ndim != stride.ndim)
        return tern_fail_null(
            TERN_ERR_SHAPE, "tern_as_strided: mismatch in length of strides and shape (%d and %d)",
            stride.ndim, shape.ndim);
    for (int d = 0; d < stride.ndim; d++)
        if (stride.dims[d] < 0)
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_as_strided: Negative strides are not supported at the "
                                  "moment, got strides: %s",
                                  TERN_SHAPE_TEXT(&stride));
    tern_strided view = {.shape = shape, .offset = offset};
    memcpy(view.stride, stride.dims, sizeof view.stride);
    memcpy(view.in_stride, x->stride, sizeof view.in_stride);
    int64_t start;
    if (__builtin_add_overflow(x->offset, offset, &start) || start < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_as_strided: invalid storage offset %lld",
                              (long long)offset);
    if (x->storage->zero_padded)
        x->storage->zero_padded = false; /* the view may write the padding */
    int64_t elements = (int64_t)(tern_storage_bytes(x->storage) / tern_dtype_size(x->dtype));
    if (needed(&view, start) > elements)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_as_strided: sizes %s, strides %s, storage offset %lld are out "
                              "of bounds for storage of %lld elements",
                              TERN_SHAPE_TEXT(&shape), TERN_SHAPE_TEXT(&stride), (long long)start,
                              (long long)elements);
    return tern_apply(&tern_as_strided_op, &x, 1, &view, sizeof view);
}
