/* gamma.c -- gamma functions composed of other operations; the rest are rows of special.def. */
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/ops.h>

/* ---- polygamma: orders above 1 ----------------------------------------------------------- */

static tern_status polygamma_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] =
        (tern_result){.dtype = call->in[0]->dtype, .shape = tern_shape_of(call->in[0])};
    return TERN_OK;
}

/* (-1)^(n + 1) n! zeta(n + 1, x), with a large n! multiplied into the powers of zeta's terms. */
static tern_status polygamma_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"polygamma", "polygamma"};
    const int64_t n = *(const int64_t *)call->attributes;
    const tern_tensor *x = call->in[0];
    const double s = (double)n + 1, log_factorial = lgamma(s);
    const bool large = log_factorial > 70;
    double root = large ? exp(log_factorial / s) : 1, scale = large ? 1 : exp(log_factorial);
    if (x->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items_of(x->numel, 100),
                       tern_arg_out(call->out[0]), tern_arg_in(x), tern_arg_i64(x->numel),
                       tern_arg_scalar(x->dtype, tern_scalar_real(s)),
                       tern_arg_scalar(x->dtype, tern_scalar_real(root)),
                       tern_arg_scalar(x->dtype, tern_scalar_real(n % 2 ? scale : -scale)));
}

static tern_status polygamma_backward(tern_gradient *g)
{
    const int64_t n = *(const int64_t *)g->attributes;
    if (n == INT64_MAX)
        return tern_fail(TERN_ERR_ARGUMENT, "polygamma: the derivative for n = %lld has no order",
                         (long long)n);
    g->din[0] = tern_mul(g->dout[0], tern_polygamma(n + 1, g->in[0]));
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op polygamma_op = {.name = "polygamma",
                                     .promotion = TERN_PROMOTE_FLOAT,
                                     .saves = TERN_SAVE_IN(0),
                                     .infer = polygamma_infer,
                                     .forward = polygamma_forward,
                                     .backward = polygamma_backward};

/* The n-th derivative of digamma; n = 0 and n = 1 are rows of special.def. */
tern_tensor *tern_polygamma(int64_t n, tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (n < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_polygamma: polygamma(n, x) does not support negative n (%lld).",
                              (long long)n);
    if (n < 2)
        return n == 0 ? tern_digamma(x) : tern_trigamma(x);
    if (!(x = tern_contiguous(x)))
        return NULL;
    return tern_apply(&polygamma_op, &x, 1, &n, sizeof n);
}

/* The logarithm of the multivariate gamma function: p (p - 1) / 4 log(pi) + the sum over j = 1..p
 * of lgamma(x + (1 - j) / 2). The p terms are a new last dim, which the reduction removes. */
tern_tensor *tern_mvlgamma(tern_tensor *x, int64_t p)
{
    TERN_NAMED_IN_ERRORS;
    if (p < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_mvlgamma: p has to be greater than or equal to 1, not %lld",
                              (long long)p);
    if (!x)
        return tern_lgamma(x);
    tern_dtype own = tern_dtype_of(x), dtype = own == TERN_F64 ? TERN_F64 : TERN_F32;
    tern_tensor *steps = tern_arange(0, (double)p / -2, -0.5, dtype, tern_device(x));
    x = tern_to_dtype(x, dtype); /* half precision is rounded once, at the end */
    tern_tensor *parts = steps ? tern_lgamma(tern_add(tern_unsqueeze(x, -1), steps)) : NULL;
    tern_tensor *sum = parts ? tern_sum_dim(parts, TERN_DIMS(-1), false) : NULL;
    sum = sum ? tern_to_dtype(sum, tern_dtype_of(parts)) : NULL; /* autocast makes sums float32 */
    double shift = (double)p * (double)(p - 1) / 4 * log(3.14159265358979323846);
    tern_tensor *y = tern_add_scalar(sum, tern_scalar_real(shift));
    return y && tern_dtype_is_floating_point(own) && own != dtype ? tern_to_dtype(y, own) : y;
}
