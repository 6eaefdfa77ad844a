/* regression_loss.c -- regression losses (L1, smooth L1, Huber), the likelihoods of Poisson and
 * Gaussian distributions, and the Kullback-Leibler divergence. */
#include "base/warning.h"
#include "ops/loss/loss.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>

static tern_scalar real(double value)
{
    return tern_scalar_real(value);
}

/* Returns |x - y|; its gradient is the sign of x - y, 0 at x = y. */
tern_tensor *tern_l1_loss(tern_tensor *input, tern_tensor *target, const tern_loss_options *options)
{
    TERN_COMPOSED("l1_loss", FLOAT32, &input, &target);
    tern_reduction reduction = options ? options->reduction : TERN_REDUCTION_MEAN;
    if (tern_loss_check(input, target, reduction, "tern_l1_loss") != TERN_OK)
        return NULL;
    tern_loss_warn_shapes(input, target, "tern_l1_loss");
    tern_tensor *loss = tern_abs(tern_sub(tern_loss_wide(input), tern_loss_wide(target)));
    return tern_loss_reduce(loss, reduction, input, target);
}

/* With d = |x - y|, returns scale d^2 / 2 for d < bend, and scale bend (d - bend / 2) for larger d.
 * Value and slope are continuous at d = bend. */
static tern_tensor *quadratic_then_linear(tern_tensor *input, tern_tensor *target, double bend,
                                          double scale)
{
    tern_tensor *d = tern_abs(tern_sub(tern_loss_wide(input), tern_loss_wide(target)));
    tern_tensor *near =
        tern_clamp(d, -INFINITY, bend); /* prevents squares that are not used from overflowing */
    tern_tensor *round = tern_mul_scalar(tern_square(near), real(scale / 2));
    tern_tensor *straight = tern_sub_scalar(d, real(bend / 2));
    straight = tern_mul_scalar(straight, real(scale * bend));
    return tern_where(tern_lt_scalar(d, real(bend)), round, straight);
}

/* Returns d^2 / (2 beta) for d = |x - y| < beta, else d - beta / 2. beta = 0 is the L1 loss. */
tern_tensor *tern_smooth_l1_loss(tern_tensor *input, tern_tensor *target,
                                 const tern_smooth_l1_loss_options *options)
{
    TERN_COMPOSED("smooth_l1_loss", FLOAT32, &input, &target);
    const tern_smooth_l1_loss_options read = tern_read_smooth_l1_loss(options), *o = &read;
    double beta = o->beta;
    if (tern_loss_check(input, target, o->reduction, "tern_smooth_l1_loss") != TERN_OK)
        return NULL;
    if (!(beta >= 0))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_smooth_l1_loss: smooth_l1_loss does not support negative values for beta. (%g)",
            beta);
    if (beta == 0)
        return tern_l1_loss(input, target, &(tern_loss_options){.reduction = o->reduction});
    tern_loss_warn_shapes(input, target, "tern_smooth_l1_loss");
    return tern_loss_reduce(quadratic_then_linear(input, target, beta, 1 / beta), o->reduction,
                            input, target);
}

/* Returns d^2 / 2 for d = |x - y| < delta, else delta (d - delta / 2). */
tern_tensor *tern_huber_loss(tern_tensor *input, tern_tensor *target,
                             const tern_huber_loss_options *options)
{
    TERN_COMPOSED("huber_loss", FLOAT32, &input, &target);
    const tern_huber_loss_options read = tern_read_huber_loss(options), *o = &read;
    double delta = o->delta;
    if (tern_loss_check(input, target, o->reduction, "tern_huber_loss") != TERN_OK)
        return NULL;
    if (!(delta > 0))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_huber_loss: huber_loss does not support non-positive values for delta. (%g)",
            delta);
    tern_loss_warn_shapes(input, target, "tern_huber_loss");
    return tern_loss_reduce(quadratic_then_linear(input, target, delta, 1), o->reduction, input,
                            target);
}

/* Returns log(t!) by Stirling's formula, t log t - t + log(2 pi t) / 2, for targets t > 1, and 0
 * for other targets. */
static tern_tensor *stirling(tern_tensor *target)
{
    tern_tensor *y = tern_sub(tern_mul(target, tern_log(target)), target);
    y = tern_add(y, tern_mul_scalar(tern_log(tern_mul_scalar(target, real(2 * M_PI))), real(0.5)));
    return tern_masked_fill(y, tern_le_scalar(target, real(1)), real(0));
}

/* Returns the negative log likelihood of a Poisson distribution: e^x - t x if x is the log of the
 * rate, x - t log(x + eps) if x is the rate. `full` adds log(t!). */
tern_tensor *tern_poisson_nll_loss(tern_tensor *input, tern_tensor *target,
                                   const tern_poisson_nll_loss_options *options)
{
    TERN_COMPOSED("poisson_nll_loss", FLOAT32, &input, &target);
    const tern_poisson_nll_loss_options read = tern_read_poisson_nll_loss(options), *o = &read;
    tern_tensor *loss, *x = tern_loss_wide(input), *y = tern_loss_wide(target);
    if (tern_loss_check(input, target, o->reduction, "tern_poisson_nll_loss") != TERN_OK)
        return NULL;
    if (o->no_log_input) {
        tern_tensor *rate = tern_add_scalar(x, real(o->eps));
        loss = tern_sub(x, tern_mul(y, tern_log(rate)));
    } else {
        loss = tern_sub(tern_exp(x), tern_mul(y, x));
    }
    if (o->full)
        loss = tern_add(loss, stirling(y));
    return tern_loss_reduce(loss, o->reduction, input, target);
}

/* Returns a view of var that broadcasts to input. var has the shape of input, or that without the
 * last dim, or with a last dim of 1. */
static tern_tensor *broadcastable_var(tern_tensor *var, const tern_tensor *input)
{
    if (!var)
        return NULL;
    tern_shape rows = tern_shape_of(input), own = tern_shape_of(var);
    if (tern_shape_equal(&rows, &own))
        return var;
    rows.ndim = rows.ndim > 0 ? rows.ndim - 1 : 0;
    if (tern_shape_equal(&rows, &own))
        return tern_unsqueeze(var, -1);
    own.ndim = own.ndim > 0 ? own.ndim - 1 : 0;
    if (var->ndim > 0 && var->shape[own.ndim] == 1 && tern_shape_equal(&rows, &own))
        return var;
    return tern_fail_null(TERN_ERR_SHAPE,
                          "tern_gaussian_nll_loss: var is of incorrect size (%s, input %s)",
                          TERN_TENSOR_TEXT(var), TERN_TENSOR_TEXT(input));
}

/* Returns max(var, eps). The difference max(var, eps) - var is added as a constant, so that the
 * gradient reaches var where var < eps too. A negative variance is an error. */
static tern_tensor *bounded_var(tern_tensor *var, double eps)
{
    tern_tensor *least = NULL;
    TERN_NO_GRAD {
        bool negative = false;
        tern_tensor *any = tern_any(tern_lt_scalar(var, real(0)));
        bool read = tern_hidden_read(any, &negative, 1, "tern_gaussian_nll_loss") == TERN_OK;
        if (read && negative)
            tern_fail(TERN_ERR_ARGUMENT, "tern_gaussian_nll_loss: var has negative entry/entries");
        else if (read)
            least = tern_sub(tern_clamp(var, eps, INFINITY), var);
    }
    return tern_add(var, least);
}

/* Returns (log var + (x - y)^2 / var) / 2; `full` adds log(2 pi) / 2. */
tern_tensor *tern_gaussian_nll_loss(tern_tensor *input, tern_tensor *target, tern_tensor *var,
                                    const tern_gaussian_nll_loss_options *options)
{
    TERN_COMPOSED("gaussian_nll_loss", FLOAT32, &input, &target, &var);
    const tern_gaussian_nll_loss_options read = tern_read_gaussian_nll_loss(options), *o = &read;
    if (tern_loss_check(input, target, o->reduction, "tern_gaussian_nll_loss") != TERN_OK)
        return NULL;
    if (!var) {
        tern_fail_argument_null("tern_gaussian_nll_loss", "var");
        return NULL;
    }
    if (!(var = broadcastable_var(tern_loss_wide(var), input)) || !(var = bounded_var(var, o->eps)))
        return NULL;
    tern_tensor *squares = tern_square(tern_sub(tern_loss_wide(input), tern_loss_wide(target)));
    tern_tensor *loss = tern_add(tern_log(var), tern_div(squares, var));
    loss = tern_mul_scalar(loss, real(0.5));
    if (o->full)
        loss = tern_add_scalar(loss, real(0.5 * log(2 * M_PI)));
    return tern_loss_reduce(loss, o->reduction, input, target);
}

/* Returns t (log t - x) for log probabilities x, with 0 log 0 = 0 (log 1 is computed there, so that
 * the gradient is finite too), or e^t (t - x) with log_target. batchmean divides the sum by the
 * batch size. */
tern_tensor *tern_kl_div(tern_tensor *input, tern_tensor *target,
                         const tern_kl_div_options *options)
{
    TERN_COMPOSED("kl_div", FLOAT32, &input, &target);
    static const tern_kl_div_options none;
    const tern_kl_div_options *o = options ? options : &none;
    bool by_batch = o->reduction == TERN_REDUCTION_BATCHMEAN;
    tern_reduction reduction = by_batch ? TERN_REDUCTION_SUM : o->reduction;
    tern_tensor *loss, *x = tern_loss_wide(input), *y = tern_loss_wide(target);
    if (tern_loss_check(input, target, reduction, "tern_kl_div") != TERN_OK)
        return NULL;
    if (reduction == TERN_REDUCTION_MEAN)
        tern_warn(
            "reduction", "tern_kl_div",
            "the mean divides by the batch size and by the number of classes: batchmean is the "
            "divergence");
    if (o->log_target) {
        loss = tern_mul(tern_exp(y), tern_sub(y, x));
    } else {
        tern_tensor *logarithm = tern_log(tern_masked_fill(y, tern_eq_scalar(y, real(0)), real(1)));
        loss = tern_sub(tern_mul(y, logarithm), tern_mul(y, x));
    }
    if (by_batch)
        loss = tern_div_scalar(tern_sum(loss), real(input->ndim ? (double)input->shape[0] : 1));
    return tern_loss_reduce(loss, by_batch ? TERN_REDUCTION_NONE : reduction, input, target);
}
