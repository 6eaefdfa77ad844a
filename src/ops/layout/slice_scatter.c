/* slice_scatter.c -- copies of a tensor with a view of them overwritten. */
#include "ops/copy/copy.h"
#include "tensor/op.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* The view: tern_select(x, dim, start), tern_slice(x, dim, start, end, step) or tern_diagonal(x,
 * start, dim, dim2). */
typedef enum view_kind { SELECT, SLICE, DIAGONAL } view_kind;
typedef struct scatter_attributes {
    int64_t start, end, step;
    int32_t kind, dim, dim2, unused;
} scatter_attributes;

static tern_tensor *view_of(const scatter_attributes *at, tern_tensor *x)
{
    switch ((view_kind)at->kind) {
    case SELECT:
        return tern_select(x, at->dim, at->start);
    case SLICE:
        return tern_slice(x, at->dim, at->start, at->end, at->step);
    default:
        return tern_diagonal(x, at->start, at->dim, at->dim2);
    }
}

/* ---- the operation: inputs x and src, of one dtype ------------------------------------------ */

static tern_status infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] =
        (tern_result){.dtype = call->in[0]->dtype, .shape = tern_shape_of(call->in[0])};
    return TERN_OK;
}

static tern_status forward(tern_call *call)
{
    tern_status status = tern_copy_elements(call->out[0], call->in[0]);
    if (status == TERN_OK && call->in[1]->numel)
        TERN_NO_GRAD
            TERN_SCOPE {
                tern_tensor *view = view_of(call->attributes, call->out[0]);
                status = view ? tern_copy_elements(view, call->in[1]) : tern_last_status();
            }
    return status;
}

static tern_status backward(tern_gradient *g);
static const tern_op op = {
    .name = "view_scatter", .infer = infer, .forward = forward, .backward = backward};

static tern_tensor *put(const scatter_attributes *at, tern_tensor *x, tern_tensor *src)
{
    return tern_apply(&op, (tern_tensor *[]){x, src}, 2, at, sizeof *at);
}

/* The gradient of the view's elements goes to src, the rest to x. */
static tern_status backward(tern_gradient *g)
{
    const scatter_attributes *at = g->attributes;
    tern_tensor *dy = g->dout[0];
    if (g->needs[0])
        g->din[0] = put(at, dy, tern_new_zeros(dy, g->in_shape[1]));
    if (g->needs[1])
        g->din[1] = tern_clone(view_of(at, dy));
    return TERN_OK;
}

/* ---- public functions -------------------------------------------------------------------- */

/* Checks that the view and src have one shape, and converts src to the dtype of x. */
static tern_tensor *scatter(const scatter_attributes *at, tern_tensor *x, tern_tensor *src,
                            const char *function)
{
    if (!x || !src) {
        tern_fail_argument_null(function, x ? "src" : "x");
        return NULL;
    }
    tern_tensor *view = NULL;
    TERN_NO_GRAD
        view = view_of(at, x);
    if (!view)
        return NULL;
    if (!tern_same_shape(view, src))
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "%s: expected src to have a size equal to the slice of self. src size "
            "= %s, slice size = %s",
            function, TERN_TENSOR_TEXT(src), TERN_TENSOR_TEXT(view));
    return put(at, x, tern_to_dtype(src, x->dtype));
}

tern_tensor *tern_select_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t index)
{
    TERN_NAMED_IN_ERRORS;
    const scatter_attributes at = {.kind = SELECT, .dim = dim, .start = index};
    return scatter(&at, x, src, __func__);
}

tern_tensor *tern_slice_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t start,
                                int64_t end, int64_t step)
{
    TERN_NAMED_IN_ERRORS;
    const scatter_attributes at = {
        .kind = SLICE, .dim = dim, .start = start, .end = end, .step = step};
    return scatter(&at, x, src, __func__);
}

tern_tensor *tern_diagonal_scatter(tern_tensor *x, tern_tensor *src, int64_t offset, int dim1,
                                   int dim2)
{
    TERN_NAMED_IN_ERRORS;
    const scatter_attributes at = {.kind = DIAGONAL, .dim = dim1, .dim2 = dim2, .start = offset};
    return scatter(&at, x, src, __func__);
}
