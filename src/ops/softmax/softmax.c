/* softmax.c -- softmax, log_softmax and softmin. */
#include "ops/copy/copy.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

enum { PLAIN, LOGARITHM }; /* values equal to those in softmax.cl */

/* Launches a team of threads for each row of length n. The gradient has a second input. */
static tern_status launch(const tern_kernel_ref *kernel, tern_call *call)
{
    const tern_tensor *x = call->in[0];
    int64_t n = x->ndim ? x->shape[x->ndim - 1] : 1;
    if (x->numel == 0)
        return TERN_OK;
    tern_grid grid = tern_rows(x->numel / n, n, 4 * n);
    if (call->n_in == 1)
        return TERN_LAUNCH(call->place, kernel, x->dtype, grid, tern_arg_out(call->out[0]),
                           tern_arg_in(x), tern_arg_i64(x->numel / n), tern_arg_i64(n),
                           tern_arg_i32(call->op->variant));
    return TERN_LAUNCH(call->place, kernel, x->dtype, grid, tern_arg_out(call->out[0]),
                       tern_arg_in(x), tern_arg_in(call->in[1]), tern_arg_i64(x->numel / n),
                       tern_arg_i64(n), tern_arg_i32(call->op->variant));
}

static tern_status infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    return TERN_OK;
}

/* ---- the gradient, an operation of its own: inputs y, dy --------------------------------- */

/* dx = y (dy - sum y dy) for softmax, dx = dy - e^y sum dy for log_softmax, with sums over the row.
 * Both need y only, so the logits are not saved. */
static tern_status gradient_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"softmax", "softmax_gradient"};
    return launch(&kernel, call);
}

/* Returns the sum of each row, with a dim of size 1. */
static tern_tensor *row_sum(tern_tensor *x)
{
    return tern_sum_dim(x, TERN_DIMS(-1), true);
}

/* The gradient of the gradient. For dx = y (dy - sum dy y) and the gradient v of dx:
 * ddy = y (v - sum v y), d/dy = v (dy - sum dy y) - dy sum v y. */
static tern_status softmax_double_backward(tern_gradient *g);
/* For dx = dy - e^y sum dy: ddy = v - sum v e^y, d/dy = -v e^y sum dy. */
static tern_status log_softmax_double_backward(tern_gradient *g);

static const tern_op softmax_gradient_op = {.name = "softmax_gradient",
                                            .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1),
                                            .variant = PLAIN,
                                            .infer = infer,
                                            .forward = gradient_forward,
                                            .backward = softmax_double_backward};
static const tern_op log_softmax_gradient_op = {.name = "log_softmax_gradient",
                                                .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1),
                                                .variant = LOGARITHM,
                                                .infer = infer,
                                                .forward = gradient_forward,
                                                .backward = log_softmax_double_backward};

static tern_tensor *gradient(const tern_op *op, tern_tensor *y, tern_tensor *dy)
{
    dy = tern_contiguous(dy);
    return tern_apply(op, (tern_tensor *[]){y, dy}, 2, NULL, 0);
}

static tern_status softmax_double_backward(tern_gradient *g)
{
    tern_tensor *y = g->in[0], *dy = g->in[1], *v = g->dout[0];
    if (g->needs[1] && !(g->din[1] = gradient(&softmax_gradient_op, y, v)))
        return tern_last_status();
    if (g->needs[0]) {
        tern_tensor *centred = tern_sub(dy, row_sum(tern_mul(dy, y)));
        g->din[0] = tern_sub(tern_mul(v, centred), tern_mul(dy, row_sum(tern_mul(v, y))));
    }
    return !g->needs[0] || g->din[0] ? TERN_OK : tern_last_status();
}

static tern_status log_softmax_double_backward(tern_gradient *g)
{
    tern_tensor *dy = g->in[1], *v = g->dout[0], *ve = tern_mul(v, tern_exp(g->in[0]));
    if (g->needs[1] && !(g->din[1] = tern_sub(v, row_sum(ve))))
        return tern_last_status();
    if (g->needs[0])
        g->din[0] = tern_neg(tern_mul(ve, row_sum(dy)));
    return !g->needs[0] || g->din[0] ? TERN_OK : tern_last_status();
}

/* ---- forward ----------------------------------------------------------------------------- */

/* y = e^(x - m) / sum e^(x - m), or for log_softmax y = x - m - log sum e^(x - m), where m is the
 * maximum of the row, so that no exponential overflows. */
static tern_status forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"softmax", "softmax"};
    return launch(&kernel, call);
}

static tern_status backward(tern_gradient *g)
{
    bool logarithm = g->op->variant == LOGARITHM;
    const tern_op *op = logarithm ? &log_softmax_gradient_op : &softmax_gradient_op;
    g->din[0] = gradient(op, g->out[0], g->dout[0]);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op softmax_op = {.name = "softmax",
                                   .cast = TERN_CAST_FLOAT32,
                                   .takes = TERN_TAKES_FLOATS,
                                   .saves = TERN_SAVE_OUT(0),
                                   .variant = PLAIN,
                                   .infer = infer,
                                   .forward = forward,
                                   .backward = backward};
static const tern_op log_softmax_op = {.name = "log_softmax",
                                       .cast = TERN_CAST_FLOAT32,
                                       .takes = TERN_TAKES_FLOATS,
                                       .saves = TERN_SAVE_OUT(0),
                                       .variant = LOGARITHM,
                                       .infer = infer,
                                       .forward = forward,
                                       .backward = backward};

/* The kernels need contiguous rows: another dim is exchanged with the last, and back after. */
static tern_tensor *over_dim(const tern_op *op, tern_tensor *x, int dim, const char *function)
{
    int d;
    if (!tern_given(x, function, "x") || tern_wrap_dim(dim, x->ndim, &d, function) != TERN_OK)
        return NULL;
    if (d >= x->ndim - 1) {
        x = tern_contiguous_for(x, function);
        return tern_apply(op, &x, 1, NULL, 0);
    }
    TERN_NAMED_AS(function);
    x = tern_contiguous(tern_transpose(x, d, -1));
    return tern_contiguous(tern_transpose(tern_apply(op, &x, 1, NULL, 0), d, -1));
}

tern_tensor *tern_softmax(tern_tensor *x, int dim)
{
    return over_dim(&softmax_op, x, dim, "tern_softmax");
}

tern_tensor *tern_log_softmax(tern_tensor *x, int dim)
{
    return over_dim(&log_softmax_op, x, dim, "tern_log_softmax");
}

/* softmin(x) = softmax(-x). */
tern_tensor *tern_softmin(tern_tensor *x, int dim)
{
    TERN_COMPOSED("softmin", FLOAT32, &x);
    if (!x)
        tern_fail_argument_null("tern_softmin", "x");
    return x ? tern_softmax(tern_neg(x), dim) : NULL;
}
