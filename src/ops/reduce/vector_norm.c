/* vector_norm.c -- (sum |x|^p)^(1/p) over dims, and its limits for p = 0 and infinity. */
#include "ops/reduce/reduction.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

typedef struct norm_attributes {
    double p;
    tern_shape shape; /* shape of the result */
    uint32_t mask;
    bool keepdim,
        of_points; /* a distance of two points, whose gradient at ties and NaN is cdist's */
} norm_attributes;

static tern_shape dims_of(uint32_t mask)
{
    tern_shape dims = {0};
    for (int d = 0; mask >> d; d++)
        if (mask >> d & 1)
            dims.dims[dims.ndim++] = d;
    return dims;
}

static tern_scalar real(double value)
{
    return tern_scalar_real(value);
}

/* ---- forward ----------------------------------------------------------------------------- */

/* Refuses an empty reduction for those p that have no value for it, with PyTorch's messages. */
static tern_status refuse_empty(const tern_call *call, const norm_attributes *at)
{
    const tern_tensor *x = call->in[0];
    if (x->numel > 0 || (at->p >= 0 && at->p < INFINITY))
        return TERN_OK;
    for (int d = 0; d < x->ndim; d++)
        if ((at->mask >> d & 1) && x->shape[d] == 0)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_%s: cannot compute the %g norm on the dimension %d because this "
                             "dimension is empty and the operation does not have an identity",
                             call->op->name, at->p, d);
    return TERN_OK;
}

static tern_status norm_infer(tern_call *call)
{
    const norm_attributes *at = call->attributes;
    tern_dtype dtype = call->in[0]->dtype;
    if (!tern_dtype_is_floating_point(dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_%s: Expected a floating point tensor as input. Got %s",
                         call->op->name, tern_dtype_name(dtype));
    TERN_TRY(refuse_empty(call, at));
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = dtype, .shape = at->shape};
    return TERN_OK;
}

/* Returns whether sums of powers |x|^p are scaled. Powers of greater orders overflow or underflow
 * in every dtype, except for numbers near 1. */
static bool is_scaled(double p)
{
    return p != 0 && p != 1 && fabs(p) <= 64;
}

/* Returns the sums of |x|^p over r. Squares are computed as squared deviations from 0, which take
 * no memory. */
static tern_tensor *sums_of_powers(tern_tensor *x, tern_reduction_view *r,
                                   const norm_attributes *at)
{
    if (at->p != 2)
        return tern_sum_masked(tern_pow_scalar(tern_abs(x), real(at->p)), at->mask, &at->shape);
    const char *device = tern_device(x);
    tern_tensor *zeros = tern_zeros(at->shape, x->dtype, device),
                *sums = tern_empty(at->shape, x->dtype, device);
    if (!zeros || !sums)
        return NULL;
    return tern_reduction_deviations(r, sums, zeros, 1) == TERN_OK ? sums : NULL;
}

/* Returns the p-th roots of the sums of powers. Where the powers overflow or underflow, they are
 * recomputed from scaled numbers. */
static tern_tensor *roots_of(tern_tensor *x, tern_reduction_view *r, const norm_attributes *at)
{
    static const tern_kernel_ref root = {"reduce", "norm_root"};
    tern_tensor *sums = sums_of_powers(x, r, at);
    tern_tensor *y = at->p == 2 ? tern_empty_like(sums) : tern_pow_scalar(sums, real(1 / at->p));
    if (!y ||
        TERN_LAUNCH(x->storage->place, &root, x->dtype, tern_teams(r->outer * r->inner, r->n, 4),
                    tern_arg_out(y), tern_arg_in(sums), tern_arg_in(r->x), tern_arg_i64(r->outer),
                    tern_arg_i64(r->n), tern_arg_i64(r->inner),
                    tern_arg_real(x->dtype, at->p)) != TERN_OK)
        return NULL;
    return y;
}

static tern_tensor *norm_of_powers(tern_tensor *x, const norm_attributes *at)
{
    tern_reduction_view r;
    if (x->numel == 0)
        return tern_full(at->shape, real(pow(0, 1 / at->p)), x->dtype, tern_device(x));
    if (tern_reduction_begin(&r, x, at->mask, false) != TERN_OK)
        return NULL;
    tern_tensor *y = roots_of(x, &r, at);
    tern_reduction_end(&r);
    return y;
}

/* Returns the norm. The limits are separate cases: p = 0 counts the elements other than 0, p =
 * infinity is the maximum of |x|, p = 1 and 2 need no powers. */
static tern_tensor *norm_of(tern_tensor *x, const norm_attributes *at)
{
    double p = at->p;
    if (p == 0)
        return tern_sum_masked(tern_ne_scalar(x, real(0)), at->mask, &at->shape);
    if (isinf(p))
        return (p > 0 ? tern_amax : tern_amin)(tern_abs(x), dims_of(at->mask), at->keepdim);
    if (is_scaled(p))
        return norm_of_powers(x, at);
    x = tern_sum_masked(p == 1 ? tern_abs(x) : tern_pow_scalar(tern_abs(x), real(p)), at->mask,
                        &at->shape);
    return p == 1 ? x : tern_pow_scalar(x, real(1 / p));
}

static tern_status norm_forward(tern_call *call)
{
    tern_status status = TERN_OK;
    if (call->out[0]->numel == 0)
        return TERN_OK;
    TERN_NO_GRAD {
        TERN_SCOPE {
            tern_tensor *x = call->in[0]; /* squares of half precision could overflow */
            x = x->dtype == TERN_F64 ? x : tern_to_dtype(x, TERN_F32);
            tern_tensor *y = x ? norm_of(x, call->attributes) : NULL;
            status = y ? tern_copy_elements(call->out[0], y) : tern_last_status();
        }
    }
    return status;
}

/* ---- backward ---------------------------------------------------------------------------- */

/* Passes dy to the elements whose absolute value equals the norm: distributed evenly, or in full to
 * each for a distance of points. */
static tern_tensor *to_the_largest(tern_gradient *g, const norm_attributes *at)
{
    tern_tensor *size = tern_abs(g->in[0]),
                *y = tern_expand_masked(g->out[0], &g->in_shape[0], at->mask);
    tern_tensor *tie =
        tern_logical_or(tern_eq(size, y), tern_logical_and(tern_isnan(size), tern_isnan(y)));
    if (at->of_points)
        return tern_mul(tern_mul(tern_sign(g->in[0]), tie),
                        tern_expand_masked(g->dout[0], &g->in_shape[0], at->mask));
    tern_tensor *count = tie ? tern_sum_masked(tie, at->mask, &at->shape) : NULL;
    tern_tensor *share = tern_div(g->dout[0], tern_to_dtype(count, g->dout[0]->dtype));
    share = share ? tern_expand_masked(share, &g->in_shape[0], at->mask) : NULL;
    return tern_mul(tern_mul(tern_sign(g->in[0]), tie), share);
}

/* dx = dy sign(x) (|x| / y)^(p - 1), and 0 for 0 / 0. For orders whose powers of large numbers
 * would be infinite, the quotients |x| / y are computed first. */
static tern_status norm_backward(tern_gradient *g)
{
    const norm_attributes *at = g->attributes;
    tern_tensor *x = g->in[0], *y = g->out[0], *scale = g->dout[0], *part;
    double p = at->p;
    if (p == 0)
        return TERN_OK;
    if (isinf(p)) {
        g->din[0] = to_the_largest(g, at);
        if (at->of_points)
            g->din[0] = tern_masked_fill(
                g->din[0], tern_isnan(tern_expand_masked(y, &g->in_shape[0], at->mask)), real(NAN));
        return g->din[0] ? TERN_OK : tern_last_status();
    }
    const bool quotients = is_scaled(p) && p > 1 && p != 2;
    tern_tensor *zero = p != 1 ? tern_eq_scalar(y, real(0)) : NULL;
    if (quotients || p == 2) /* no 0 / 0 in derivatives where y = 0 */
        y = tern_masked_fill(y, zero, real(INFINITY));
    if (quotients)
        x = tern_div(x, y ? tern_expand_masked(y, &g->in_shape[0], at->mask) : NULL);
    if (p == 2)
        part = x;
    else if (p == 1)
        part = tern_sign(x);
    else if (p > 2)
        part = tern_mul(x, tern_pow_scalar(tern_abs(x), real(p - 2)));
    else
        part = tern_mul(tern_sign(x), tern_pow_scalar(tern_abs(x), real(p - 1)));
    if (p < 1)
        part = tern_masked_fill(part, tern_eq_scalar(x, real(0)), real(0));
    if (p != 1) {
        if (!quotients)
            scale = tern_div(scale, p == 2 ? y : tern_pow_scalar(y, real(p - 1)));
        scale = tern_masked_fill(scale, zero, real(0));
    } else if (at->of_points) {
        part = tern_masked_fill(part, tern_isnan(x), real(NAN));
    }
    g->din[0] = tern_mul(part, scale ? tern_expand_masked(scale, &g->in_shape[0], at->mask) : NULL);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* ---- public functions -------------------------------------------------------------------- */

#define NORM_OP(NAME)                                                                              \
    static const tern_op NAME##_op = {                                                             \
        .name = #NAME,                                                                             \
        .names = TERN_NAMES(TERN_FIELD(norm_attributes, "p", p),                                   \
                            TERN_DIMS_FIELD(norm_attributes, "dims", mask)),                       \
        .cast = TERN_CAST_FLOAT32,                                                                 \
        .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),                                               \
        .infer = norm_infer,                                                                       \
        .forward = norm_forward,                                                                   \
        .backward = norm_backward}
NORM_OP(norm);
NORM_OP(linalg_vector_norm);

static tern_tensor *norm(const tern_op *op, tern_tensor *x, double p, const tern_shape *dims,
                         bool keepdim, const char *function)
{
    norm_attributes at = {.p = p, .keepdim = keepdim};
    if (tern_reduction_of(x, dims, keepdim, &at.mask, &at.shape, function) != TERN_OK)
        return NULL;
    return tern_apply(op, &x, 1, &at, sizeof at);
}

tern_tensor *tern_norm_of_points(tern_tensor *difference, double p)
{
    norm_attributes at = {.p = p, .of_points = true};
    tern_shape last = TERN_DIMS(-1);
    if (tern_reduction_of(difference, &last, false, &at.mask, &at.shape, "tern_cdist") != TERN_OK)
        return NULL;
    return tern_apply(&norm_op, &difference, 1, &at, sizeof at);
}

tern_tensor *tern_norm(tern_tensor *x, double p)
{
    static const tern_shape all = {0};
    return norm(&norm_op, x, p, &all, false, "tern_norm");
}

tern_tensor *tern_norm_dim(tern_tensor *x, double p, tern_shape dims, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return norm(&norm_op, x, p, &dims, keepdim, __func__);
}

tern_tensor *tern_linalg_vector_norm(tern_tensor *x, double ord, tern_shape dims, bool keepdim)
{
    return norm(&linalg_vector_norm_op, x, ord, &dims, keepdim, "tern_linalg_vector_norm");
}
