/* binary_cross_entropy.c -- binary cross entropy of probabilities and of logits, and soft margin
 * losses. */
#include "ops/loss/loss.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>

static tern_scalar real(double value)
{
    return tern_scalar_real(value);
}

/* Returns loss times weight, which broadcasts; NULL is a weight of 1. */
static tern_tensor *weighted(tern_tensor *loss, tern_tensor *weight)
{
    return weight ? tern_mul(loss, tern_loss_wide(weight)) : loss;
}

/* ---- probabilities ----------------------------------------------------------------------- */

/* l = -(t log x + (1 - t) log(1 - x)) for each element. It is not composed of other operations,
 * because the gradient at x = 0 and x = 1 must stay finite. */
static tern_status entropy_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    return TERN_OK;
}

/* Checks that probabilities and targets are in [0, 1] with a kernel, which reports others as a
 * fault of the device. */
static tern_status check_probabilities(const tern_call *call)
{
    static const tern_kernel_ref kernel = {"loss", "unit_interval"};
    static const int codes[] = {TERN_FAULT_PROBABILITY, TERN_FAULT_TARGET_PROBABILITY};
    for (int i = 0; i < 2; i++) {
        const tern_tensor *x = call->in[i];
        tern_arg fault;
        TERN_TRY(tern_fault_arg(call->place, &fault));
        TERN_TRY(TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items(x->numel), tern_arg_in(x),
                             fault, tern_arg_i64(x->numel), tern_arg_fault(codes[i])));
    }
    return tern_fault_check(call->place);
}

/* Returns max(log x, -100), which is finite for x = 0, as in PyTorch. */
static tern_tensor *bounded_log(tern_tensor *x)
{
    return tern_clamp(tern_log(x), -100, INFINITY);
}

/* Computes l = (t - 1) max(log(1 - x), -100) - t max(log x, -100). The reduction is a separate
 * operation. */
static tern_status entropy_forward(tern_call *call)
{
    tern_tensor *x = call->in[0], *target = call->in[1];
    tern_status status = TERN_OK;
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(check_probabilities(call));
    TERN_NO_GRAD {
        TERN_SCOPE {
            tern_tensor *no = tern_rsub_scalar(x, real(1));
            tern_tensor *loss = tern_mul(tern_sub_scalar(target, real(1)), bounded_log(no));
            loss = tern_sub(loss, tern_mul(target, bounded_log(x)));
            status = loss ? tern_copy_elements(call->out[0], loss) : tern_last_status();
        }
    }
    return status;
}

/* dx = dy (x - t) / max(x (1 - x), 1e-12), where the bound avoids a division by 0 at x = 0 and x =
 * 1. dt = dy (log(1 - x) - log x) with the logarithms bounded as in the forward. */
static tern_status entropy_backward(tern_gradient *g)
{
    tern_tensor *x = g->in[0], *no = tern_rsub_scalar(x, real(1)), *dy = g->dout[0];
    if (g->needs[0]) {
        tern_tensor *slope = tern_clamp(tern_mul(x, no), 1e-12, INFINITY);
        g->din[0] = tern_div(tern_mul(dy, tern_sub(x, g->in[1])), slope);
    }
    if (g->needs[1])
        g->din[1] = tern_mul(dy, tern_sub(bounded_log(no), bounded_log(x)));
    return (!g->needs[0] || g->din[0]) && (!g->needs[1] || g->din[1]) ? TERN_OK
                                                                      : tern_last_status();
}

static const tern_op entropy_op = {.name = "binary_cross_entropy",
                                   .cast = TERN_CAST_REFUSED,
                                   .promotion = TERN_PROMOTE_FLOAT,
                                   .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1),
                                   .infer = entropy_infer,
                                   .forward = entropy_forward,
                                   .backward = entropy_backward};

/* Half precision is computed in float32 and rounded after the reduction. */
tern_tensor *tern_binary_cross_entropy(tern_tensor *input, tern_tensor *target,
                                       const tern_weighted_loss_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_weighted_loss_options none;
    const tern_weighted_loss_options *o = options ? options : &none;
    if (tern_loss_check(input, target, o->reduction, __func__) != TERN_OK)
        return NULL;
    if (!tern_same_shape(input, target))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_binary_cross_entropy: Using a target size (%s) that is "
                              "different to the input size (%s) is deprecated. Please ensure they "
                              "have the same size.",
                              TERN_TENSOR_TEXT(target), TERN_TENSOR_TEXT(input));
    /* checked before the kernel reads the input: devices report its faults later than the cpu */
    if (o->weight) {
        tern_shape a = tern_shape_of(input), b = tern_shape_of(o->weight), both;
        if (tern_shape_broadcast(&a, &b, &both, __func__) != TERN_OK)
            return NULL;
    }
    tern_tensor *in[] = {tern_contiguous(tern_loss_wide(input)),
                         tern_contiguous(tern_loss_wide(target))};
    tern_tensor *loss = weighted(tern_apply(&entropy_op, in, 2, NULL, 0), o->weight);
    return tern_loss_reduce(loss, o->reduction, input, target);
}

/* ---- logits ------------------------------------------------------------------------------ */

/* Returns (1 - t) x + (1 + (p - 1) t) log(1 + e^-x), where p is pos_weight. With p = 1 it equals
 * -(t log s(x) + (1 - t) log(1 - s(x))), where s is the sigmoid, but computes neither s(x) nor 1 -
 * s(x), which would be rounded to 0 for large |x|. */
tern_tensor *tern_binary_cross_entropy_with_logits(
    tern_tensor *input, tern_tensor *target,
    const tern_binary_cross_entropy_with_logits_options *options)
{
    TERN_COMPOSED("binary_cross_entropy_with_logits", FLOAT32, &input, &target);
    static const tern_binary_cross_entropy_with_logits_options none;
    const tern_binary_cross_entropy_with_logits_options *o = options ? options : &none;
    if (tern_loss_check(input, target, o->reduction, "tern_binary_cross_entropy_with_logits") !=
        TERN_OK)
        return NULL;
    if (!tern_same_shape(input, target))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_binary_cross_entropy_with_logits: Target size (%s) must be the "
                              "same as input size (%s)",
                              TERN_TENSOR_TEXT(target), TERN_TENSOR_TEXT(input));
    tern_tensor *x = tern_loss_wide(input), *y = tern_loss_wide(target);
    tern_tensor *no = tern_loss_softplus(tern_neg(x));
    if (o->pos_weight) {
        tern_tensor *more = tern_sub_scalar(tern_loss_wide(o->pos_weight), real(1));
        no = tern_mul(no, tern_add_scalar(tern_mul(y, more), real(1)));
    }
    tern_tensor *loss = tern_add(tern_mul(tern_rsub_scalar(y, real(1)), x), no);
    return tern_loss_reduce(weighted(loss, o->weight), o->reduction, input, target);
}

/* Returns log(1 + e^(-t x)) for targets 1 and -1. */
tern_tensor *tern_soft_margin_loss(tern_tensor *input, tern_tensor *target,
                                   const tern_loss_options *options)
{
    TERN_COMPOSED("soft_margin_loss", FLOAT32, &input, &target);
    tern_reduction reduction = options ? options->reduction : TERN_REDUCTION_MEAN;
    if (tern_loss_check(input, target, reduction, "tern_soft_margin_loss") != TERN_OK)
        return NULL;
    tern_tensor *product = tern_mul(tern_loss_wide(target), tern_loss_wide(input));
    return tern_loss_reduce(tern_loss_softplus(tern_neg(product)), reduction, input, target);
}

/* Returns the mean over the classes of t log(1 + e^-x) + (1 - t) log(1 + e^x), a binary cross
 * entropy of logits for each class. */
tern_tensor *tern_multilabel_soft_margin_loss(tern_tensor *input, tern_tensor *target,
                                              const tern_weighted_loss_options *options)
{
    TERN_COMPOSED("multilabel_soft_margin_loss", FLOAT32, &input, &target);
    static const tern_weighted_loss_options none;
    const tern_weighted_loss_options *o = options ? options : &none;
    if (tern_loss_check(input, target, o->reduction, "tern_multilabel_soft_margin_loss") != TERN_OK)
        return NULL;
    if (input->ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_multilabel_soft_margin_loss: Expected 1 or more dimensions "
                              "(got 0)");
    tern_tensor *x = tern_loss_wide(input), *y = tern_loss_wide(target);
    tern_tensor *yes = tern_mul(y, tern_loss_softplus(tern_neg(x)));
    tern_tensor *no = tern_mul(tern_rsub_scalar(y, real(1)), tern_loss_softplus(x));
    tern_tensor *loss = weighted(tern_add(yes, no), o->weight);
    loss = tern_mean_dim(loss, TERN_DIMS(-1), false);
    return tern_loss_reduce(loss, o->reduction, input, target);
}
