/* slice.c -- parts of a tensor along one dim, as views: narrow, slice, select.
 *
 * start is added to the offset, step multiplies the stride. The gradient is a tensor of zeros with
 * dy at the part; the gradient of that is the part of its gradient. */
#include "ops/copy/copy.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* A part of x: `length` elements of dim, `step` apart, from `start`. */
typedef struct part {
    int dim;
    int64_t start, length, step;
} part;

/* Sets the shape, strides and offset of the part in x. */
static void view_part(tern_result *r, const tern_tensor *x, const part *p)
{
    r->dtype = x->dtype;
    r->shape = tern_shape_of(x);
    for (int d = 0; d < x->ndim; d++)
        r->stride[d] = x->stride[d];
    r->shape.dims[p->dim] = p->length;
    r->stride[p->dim] = x->stride[p->dim] * p->step;
    r->offset = x->offset + (p->length ? p->start * x->stride[p->dim] : 0);
}

/* ---- the gradient of a part: zeros around it --------------------------------------------- */

typedef struct embed_attributes {
    tern_shape whole;
    part part;
} embed_attributes;

static tern_status embed_infer(tern_call *call)
{
    const embed_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = at->whole;
    return TERN_OK;
}

/* Fills the output with zeros, then copies x to the view of the part. */
static tern_status embed_forward(tern_call *call)
{
    const embed_attributes *at = call->attributes;
    tern_tensor *out = call->out[0];
    tern_result r;
    if (out->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_zero_elements(out));
    view_part(&r, out, &at->part);
    tern_tensor *hole = tern_tensor_alias(out, &r.shape, r.stride, r.offset);
    if (!hole)
        return tern_last_status();
    tern_status status = tern_copy_elements(hole, call->in[0]);
    tern_release(hole);
    return status;
}

static tern_status embed_backward(tern_gradient *g);

static const tern_op embed_op = {.name = "slice_backward",
                                 .infer = embed_infer,
                                 .forward = embed_forward,
                                 .backward = embed_backward};

static tern_tensor *embed(tern_tensor *x, const tern_shape *whole, const part *p)
{
    embed_attributes at = {*whole, *p};
    return tern_apply(&embed_op, &x, 1, &at, sizeof at);
}

/* ---- narrow, slice ----------------------------------------------------------------------- */

static tern_status part_infer(tern_call *call)
{
    call->n_out = 1;
    view_part(&call->result[0], call->in[0], call->attributes);
    return TERN_OK;
}

static tern_status part_backward(tern_gradient *g)
{
    g->din[0] = embed(g->dout[0], &g->in_shape[0], g->attributes);
    return g->din[0] ? TERN_OK : tern_last_status();
}

#define PART_NAMES                                                                                 \
    TERN_NAMES(TERN_FIELD(part, "dim", dim), TERN_FIELD(part, "start", start),                     \
               TERN_FIELD(part, "length", length), TERN_FIELD(part, "step", step))

static const tern_op narrow_op = {.name = "narrow",
                                  .names = PART_NAMES,
                                  .view = TERN_VIEW_ONE,
                                  .infer = part_infer,
                                  .backward = part_backward};
static const tern_op slice_op = {.name = "slice",
                                 .names = PART_NAMES,
                                 .view = TERN_VIEW_ONE,
                                 .infer = part_infer,
                                 .backward = part_backward};

static tern_tensor *apply_part(const tern_op *op, tern_tensor *x, const part *p)
{
    return tern_apply(op, &x, 1, p, sizeof *p);
}

static tern_status embed_backward(tern_gradient *g)
{
    const embed_attributes *at = g->attributes;
    g->din[0] = apply_part(&slice_op, g->dout[0], &at->part);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* Returns whether x is not NULL and has dim, and sets *wrapped to dim from the front. */
static bool has_dim(const tern_tensor *x, int dim, int *wrapped, const char *function)
{
    if (!x) {
        tern_fail_argument_null(function, "x");
        return false;
    }
    if (x->ndim == 0) {
        tern_fail(TERN_ERR_SHAPE, "%s: cannot be applied to a 0-dim tensor", function);
        return false;
    }
    return tern_wrap_dim(dim, x->ndim, wrapped, function) == TERN_OK;
}

tern_tensor *tern_narrow(tern_tensor *x, int dim, int64_t start, int64_t length)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_narrow"))
        return NULL;
    int64_t n = x->shape[d];
    if (start < -n || start > n)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_narrow: Dimension out of range (expected start to be in range "
                              "of [%lld, %lld], but got %lld)",
                              (long long)-n, (long long)n, (long long)start);
    if (start < 0)
        start += n;
    if (length < 0 || length > n - start)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_narrow: start (%lld) + length (%lld) exceeds dimension size "
                              "(%lld).",
                              (long long)start, (long long)length, (long long)n);
    return apply_part(&narrow_op, x, &(part){d, start, length, 1});
}

/* Returns a bound of a Python slice: counted from the end if negative, then clamped. */
static int64_t clamp_bound(int64_t bound, int64_t n)
{
    if (bound < 0)
        bound += n;
    return bound < 0 ? 0 : bound > n ? n : bound;
}

tern_tensor *tern_slice(tern_tensor *x, int dim, int64_t start, int64_t end, int64_t step)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_slice"))
        return NULL;
    if (step <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_slice: slice step must be positive (%lld)",
                              (long long)step);
    start = clamp_bound(start, x->shape[d]);
    end = clamp_bound(end, x->shape[d]);
    int64_t length = end > start ? (end - start - 1) / step + 1 : 0;
    return apply_part(&slice_op, x, &(part){d, start, length, length > 1 ? step : 1});
}

/* ---- select ---------------------------------------------------------------------------------- */

/* The result is a part of length 1 without the dim. */
static tern_status select_infer(tern_call *call)
{
    const part *p = call->attributes;
    tern_result *r = &call->result[0];
    call->n_out = 1;
    view_part(r, call->in[0], p);
    r->shape.ndim--;
    for (int d = p->dim; d < r->shape.ndim; d++) {
        r->shape.dims[d] = r->shape.dims[d + 1];
        r->stride[d] = r->stride[d + 1];
    }
    return TERN_OK;
}

static tern_status select_backward(tern_gradient *g)
{
    const part *p = g->attributes;
    g->din[0] = embed(tern_unsqueeze(g->dout[0], p->dim), &g->in_shape[0], p);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op select_op = {.name = "select",
                                  .names = PART_NAMES,
                                  .view = TERN_VIEW_ONE,
                                  .infer = select_infer,
                                  .backward = select_backward};

tern_tensor *tern_select(tern_tensor *x, int dim, int64_t index)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_select"))
        return NULL;
    int64_t n = x->shape[d];
    if (index < -n || index >= n)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_select: index %lld out of range for tensor of size %s at "
                              "dimension %d",
                              (long long)index, TERN_TENSOR_TEXT(x), d);
    return apply_part(&select_op, x, &(part){d, index < 0 ? index + n : index, 1, 1});
}
