/* scatter_reduce.c -- elements with the same index are reduced to their sum, product, mean, maximum
 * or minimum. */
#include "ops/index/scatter.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* A reduction: the mode of the kernel, and the initial value that does not change the result. */
typedef struct reduction {
    int mode;
    double neutral;
} reduction;
static const reduction reductions[] = {
    [TERN_REDUCE_SUM] = {TERN_SCATTER_ADD, 0},
    [TERN_REDUCE_PROD] = {TERN_SCATTER_MULTIPLY, 1},
    [TERN_REDUCE_MEAN] = {TERN_SCATTER_ADD, 0},
    [TERN_REDUCE_AMAX] = {TERN_SCATTER_MAX, -INFINITY},
    [TERN_REDUCE_AMIN] = {TERN_SCATTER_MIN, INFINITY},
};

typedef struct reduce_attributes {
    int dim;
    tern_reduce_mode reduce;
    bool include_self;
} reduce_attributes;

static tern_tensor *into(tern_tensor *x, const reduce_attributes *at, int mode, tern_tensor *index,
                         tern_tensor *src)
{
    tern_scatter_way way = {at->dim, mode, TERN_FAULT_ALONG(at->dim), false, false};
    return tern_scatter_into(x, index, src, &way);
}

/* Returns the initial value of an element that is not included itself; for integers, infinities are
 * the extreme integers. */
static tern_scalar neutral_of(const reduction *r, tern_dtype dtype)
{
    if (tern_dtype_is_floating_point(dtype) || isfinite(r->neutral))
        return tern_scalar_real(r->neutral);
    if (dtype == TERN_BOOL)
        return tern_scalar_bool(r->neutral > 0);
    bool most = r->neutral > 0;
    int64_t greatest = (int64_t)((UINT64_C(1) << tern_dtype_rows[dtype].digits) - 1);
    int64_t least = tern_dtype_in(dtype, TERN_SET_SIGNED) ? -greatest - 1 : 0;
    return tern_scalar_int(most ? greatest : least);
}

/* Returns the number of values reduced to each element, with or without itself; at least 1. */
static tern_tensor *counts(tern_tensor *like, const reduce_attributes *at, tern_tensor *index,
                           tern_tensor *src)
{
    tern_tensor *n = at->include_self ? tern_ones_like(like) : tern_zeros_like(like);
    n = into(n, at, TERN_SCATTER_ADD, index, tern_ones_like(src));
    return n ? tern_masked_fill(n, tern_eq_scalar(n, tern_scalar_int(0)), tern_scalar_int(1))
             : NULL;
}

/* Returns sum / n; for integers rounded towards minus infinity. */
static tern_tensor *divided(tern_tensor *sum, tern_tensor *n)
{
    tern_tensor *q = tern_div(sum, n);
    if (!q || tern_dtype_is_floating_point(sum->dtype))
        return q;
    q = tern_to_dtype(q, sum->dtype);
    tern_tensor *left = tern_sub(sum, tern_mul(q, n));
    return tern_sub(q, tern_to_dtype(tern_lt_scalar(left, tern_scalar_int(0)), sum->dtype));
}

static tern_status reduce_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    return TERN_OK;
}

static tern_status reduce_forward(tern_call *call)
{
    const reduce_attributes *at = call->attributes;
    const reduction *r = &reductions[at->reduce];
    tern_tensor *index = call->in[1], *src = call->in[2];
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *x = tern_scoped(tern_tensor_detached(call->in[0]));
        src = tern_scoped(tern_tensor_detached(src));
        if (x && !at->include_self) {
            tern_scalar neutral = neutral_of(r, x->dtype);
            tern_tensor *one = tern_scatter_scalar(x, at->dim, index, neutral, TERN_REDUCE_NONE);
            x = one;
        }
        tern_tensor *y = into(x, at, r->mode, index, src);
        if (y && at->reduce == TERN_REDUCE_MEAN)
            y = divided(y, counts(y, at, index, src));
        status = y ? tern_copy_elements(call->out[0], y) : tern_last_status();
    }
    return status;
}

/* ---- backward, in public operations ------------------------------------------------------ */

static tern_tensor *as(tern_tensor *mask, const tern_tensor *like)
{
    return mask ? tern_to_dtype(mask, like->dtype) : NULL;
}

/* The gradient of each value reduced to an element is dy / count of the element. */
static tern_status mean_backward(tern_gradient *g, const reduce_attributes *at)
{
    tern_tensor *share = tern_div(g->dout[0], counts(g->dout[0], at, g->in[1], g->in[2]));
    g->din[0] = share;
    g->din[2] = share ? tern_gather(share, at->dim, g->in[1]) : NULL;
    return TERN_OK;
}

/* Returns its input, without a derivative: with several zeros in one element, a derivative would
 * need the product of the other values for each pair of zeros. */
static tern_status zeros_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0] =
        (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x), .offset = x->offset};
    memcpy(call->result[0].stride, x->stride, sizeof x->stride);
    return TERN_OK;
}

static tern_status zeros_backward(tern_gradient *g)
{
    (void)g;
    return tern_fail(
        TERN_ERR_UNSUPPORTED,
        "tern_scatter_reduce: Double backward is unsupported for src when >1 zeros in src "
        "are scattered to the same position in self");
}

static const tern_op several_zeros_op = {.name = "scatter_reduce",
                                         .view = TERN_VIEW_ONE,
                                         .infer = zeros_infer,
                                         .backward = zeros_backward};

static tern_status has_several_zeros(tern_tensor *zeros, bool *several)
{
    double most = zeros && zeros->numel ? tern_item(tern_max(zeros)) : 0;
    *several = most > 1;
    return zeros && !isnan(most) ? TERN_OK : tern_last_status();
}

/* The gradient of a value is dy times the product of the other values: y divided by the value, or,
 * if the value is the only zero of src, a product computed without it. */
static tern_status prod_backward(tern_gradient *g, const reduce_attributes *at)
{
    tern_tensor *x = g->in[0], *index = g->in[1], *src = g->in[2], *y = g->out[0], *dy = g->dout[0];
    tern_scalar zero = tern_scalar_int(0), one = tern_scalar_int(1);
    tern_tensor *x_zero = tern_eq_scalar(x, zero), *src_zero = tern_eq_scalar(src, zero);
    tern_tensor *x_masked = tern_masked_fill(x, x_zero, one);
    tern_tensor *rest =
        tern_scatter_reduce(x_masked, at->dim, index, src, TERN_REDUCE_PROD, at->include_self);
    g->din[0] = tern_div(tern_mul(dy, rest), x_masked);

    tern_tensor *zeros = into(tern_zeros_like(dy), at, TERN_SCATTER_ADD, index, as(src_zero, dy));
    tern_tensor *here = zeros ? tern_gather(zeros, at->dim, index) : NULL;
    tern_tensor *only = tern_logical_and(src_zero, tern_eq_scalar(here, one));
    tern_tensor *without = tern_scatter_reduce(x, at->dim, index, tern_masked_fill(src, only, one),
                                               TERN_REDUCE_PROD, at->include_self);
    tern_tensor *others = tern_gather(tern_mul(dy, without), at->dim, index);
    tern_tensor *all = tern_gather(tern_mul(dy, y), at->dim, index);
    g->din[2] = tern_where(only, others, tern_div(all, tern_masked_fill(src, src_zero, one)));
    bool several = false;
    if (g->recorded)
        TERN_TRY(has_several_zeros(zeros, &several));
    if (several)
        g->din[2] = tern_apply(&several_zeros_op, &g->din[2], 1, NULL, 0);
    return TERN_OK;
}

/* dy is divided evenly among all values that equal the result. */
static tern_status extremum_backward(tern_gradient *g, const reduce_attributes *at)
{
    tern_tensor *x = g->in[0], *index = g->in[1], *src = g->in[2], *y = g->out[0], *dy = g->dout[0];
    tern_tensor *x_is = as(tern_eq(x, y), dy);
    tern_tensor *src_is = as(tern_eq(src, tern_gather(y, at->dim, index)), dy);
    tern_tensor *n = at->include_self ? x_is
                                      : tern_scatter_scalar(x_is, at->dim, index,
                                                            tern_scalar_int(0), TERN_REDUCE_NONE);
    n = into(n, at, TERN_SCATTER_ADD, index, src_is);
    tern_tensor *share = tern_div(dy, n);
    g->din[0] = tern_mul(x_is, share);
    g->din[2] = tern_mul(src_is, tern_gather(share, at->dim, index));
    return TERN_OK;
}

static tern_status reduce_backward(tern_gradient *g)
{
    const reduce_attributes *at = g->attributes;
    TERN_TRY((at->reduce == TERN_REDUCE_MEAN   ? mean_backward
              : at->reduce == TERN_REDUCE_PROD ? prod_backward
                                               : extremum_backward)(g, at));
    if (!at->include_self && g->din[0])
        g->din[0] =
            tern_scatter_scalar(g->din[0], at->dim, g->in[1], tern_scalar_int(0), TERN_REDUCE_NONE);
    if (!g->din[0] || !g->din[2])
        return tern_last_status();
    for (int i = 0; i < 3; i += 2)
        if (!g->needs[i])
            g->din[i] = NULL;
    return TERN_OK;
}

static const tern_op reduce_op = {.name = "scatter_reduce",
                                  .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1) | TERN_SAVE_IN(2) |
                                           TERN_SAVE_OUT(0),
                                  .infer = reduce_infer,
                                  .forward = reduce_forward,
                                  .backward = reduce_backward};

/* index and src are narrowed to one size, and all tensors have at least one dim. */
tern_tensor *tern_scatter_reduce(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                                 tern_reduce_mode reduce, bool include_self)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    reduce_attributes at = {.reduce = reduce, .include_self = include_self};
    if (reduce < TERN_REDUCE_SUM || reduce > TERN_REDUCE_AMIN)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: reduce argument must be either sum, prod, mean, amax or amin. "
                              "(%d)",
                              function, (int)reduce);
    if (reduce == TERN_REDUCE_SUM && include_self)
        return tern_scatter_add(x, dim, index, src);
    if (!tern_scatter_check(x, dim, &index, &src, &at.dim, function))
        return NULL;
    if (index->numel == 0)
        return tern_scatter_nothing(x, src, false);
    tern_tensor *y = tern_atleast_1d(x);
    if (reduce == TERN_REDUCE_SUM)
        y = into(tern_scatter_scalar(y, at.dim, index, tern_scalar_int(0), TERN_REDUCE_NONE), &at,
                 TERN_SCATTER_ADD, index, src);
    else
        y = tern_apply(&reduce_op, (tern_tensor *[]){y, index, src}, 3, &at, sizeof at);
    return x->ndim || !y ? y : tern_view(y, tern_shape_of(x));
}

tern_tensor *tern_scatter_reduce_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                                  tern_reduce_mode reduce, bool include_self)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *before = x;
    if (x && tern_is_grad_enabled() && (tern_requires_grad(x) || tern_requires_grad(src)))
        before = tern_clone(x); /* a copy of x for backward: saving x would be circular */
    tern_tensor *y = tern_scatter_reduce(before, dim, index, src, reduce, include_self);
    return y ? tern_copy_(x, y) : NULL;
}

tern_tensor *tern_index_reduce(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *source,
                               tern_reduce_mode reduce, bool include_self)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    int at;
    if (!x || !index || !source) {
        tern_fail_argument_null(function, !x ? "x" : !index ? "index" : "source");
        return NULL;
    }
    if (reduce < TERN_REDUCE_PROD || reduce > TERN_REDUCE_AMIN)
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "%s: index_reduce(): Expected reduce to be one of prod, mean, amax or "
            "amin but got %d.",
            function, (int)reduce);
    if (tern_wrap_dim(dim, x->ndim, &at, function) != TERN_OK)
        return NULL;
    if (index->ndim > 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: index_reduce_(): Index is supposed to be a vector, but got dim: "
                              "%d",
                              function, index->ndim);
    tern_shape each = tern_shape_of(source), line = {.ndim = source->ndim};
    for (int d = 0; d < line.ndim; d++)
        line.dims[d] = d == at ? index->numel : 1;
    if (source->ndim != x->ndim || (line.ndim > 0 && each.dims[at] != index->numel))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: index_reduce_(): Number of indices (%lld) should be equal to "
                              "source.size(dim) of %s",
                              function, (long long)index->numel, TERN_SHAPE_TEXT(&each));
    for (int d = 0; d < line.ndim; d++)
        if (d != at && each.dims[d] != x->shape[d])
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "%s: index_reduce_(): source tensor shape must match self tensor "
                                  "shape, excluding the specified dimension. Got self.shape = %s "
                                  "source.shape = %s",
                                  function, TERN_TENSOR_TEXT(x), TERN_SHAPE_TEXT(&each));
    index = tern_expand(tern_reshape(index, line), each);
    return tern_scatter_reduce(x, dim, index, source, reduce, include_self);
}

/* ---- scatter ----------------------------------------------------------------------------- */

/* Returns a number as src: one element, expanded. */
static tern_tensor *spread(tern_tensor *x, tern_tensor *index, tern_scalar value)
{
    if (!x || !index)
        return NULL;
    tern_shape ones = tern_shape_of(index);
    for (int d = 0; d < ones.ndim; d++)
        ones.dims[d] = 1;
    tern_tensor *one = tern_new_full(x, ones, value);
    return one ? tern_expand(one, tern_shape_of(index)) : NULL;
}

/* Scatters with one of the two reductions that scatter itself has. */
static tern_tensor *scatter(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                            tern_reduce_mode reduce, bool in_place, const char *function)
{
    if (reduce == TERN_REDUCE_NONE)
        return tern_scatter_as(x, dim, index, src, TERN_SCATTER_SET, in_place, function);
    if (reduce == TERN_REDUCE_SUM)
        return tern_scatter_as(x, dim, index, src, TERN_SCATTER_ADD, in_place, function);
    if (reduce != TERN_REDUCE_PROD)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: reduce argument must be either add or multiply. (%d)", function,
                              (int)reduce);
    return in_place ? tern_scatter_reduce_(x, dim, index, src, reduce, true)
                    : tern_scatter_reduce(x, dim, index, src, reduce, true);
}

tern_tensor *tern_scatter(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                          tern_reduce_mode reduce)
{
    TERN_NAMED_IN_ERRORS;
    return scatter(x, dim, index, src, reduce, false, __func__);
}

tern_tensor *tern_scatter_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                           tern_reduce_mode reduce)
{
    TERN_NAMED_IN_ERRORS;
    return scatter(x, dim, index, src, reduce, true, __func__);
}

tern_tensor *tern_scatter_scalar(tern_tensor *x, int dim, tern_tensor *index, tern_scalar value,
                                 tern_reduce_mode reduce)
{
    TERN_NAMED_IN_ERRORS;
    return scatter(x, dim, index, spread(x, index, value), reduce, false, __func__);
}

tern_tensor *tern_scatter_scalar_(tern_tensor *x, int dim, tern_tensor *index, tern_scalar value,
                                  tern_reduce_mode reduce)
{
    TERN_NAMED_IN_ERRORS;
    return scatter(x, dim, index, spread(x, index, value), reduce, true, __func__);
}
