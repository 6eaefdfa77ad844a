/* mse_loss.c -- the mean or sum of squared differences. */
#include "ops/loss/loss.h"
#include "tensor/fuse/fuse.h"
#include "tensor/tensor.h"
#include <math.h>

/* PART: differences that one work-group sums. MOST_PARTS: the largest number of work-groups; larger
 * tensors have more differences for each. */
enum { PART = 16384, MOST_PARTS = 512 };

typedef struct mse_attributes {
    tern_reduction reduction;
} mse_attributes;

/* Returns the factor of dx = factor dout (x - y): 2 for the sum, 2 / n for the mean. */
static double factor_of(const mse_attributes *at, int64_t n)
{
    return at->reduction == TERN_REDUCTION_MEAN ? 2 / (double)n : 2;
}

/* Returns the number of work-groups that sum n squared differences. A single work-group also writes
 * the gradient for dout = 1 if a backward will follow: for so few elements a launch costs more than
 * the write. */
static int64_t parts_of(int64_t n)
{
    int64_t parts = n / PART;
    return parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
}

/* The fused form takes two dense tensors of one shape. Its results are the loss and, for small
 * tensors that require a gradient, dx for dout = 1. */
static tern_status mse_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    bool with_dx =
        x->numel > 0 && parts_of(x->numel) == 1 && tern_must_record(call->op, call->in, call->n_in);
    call->n_out = with_dx ? 2 : 1;
    call->result[0] = (tern_result){.dtype = x->dtype};
    call->result[1] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    return TERN_OK;
}

/* Computes loss and gradient of a small tensor in one launch: out = sum (x - y)^2 / divisor, dx =
 * factor (x - y). */
static tern_status launch_whole(const tern_call *call)
{
    static const tern_kernel_ref kernel = {"loss", "squared_error"};
    const mse_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    bool with_dx = call->n_out > 1;
    double divisor = at->reduction == TERN_REDUCTION_MEAN ? (double)x->numel : 1;
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_groups(1, 2 * x->numel),
                       tern_arg_out(call->out[0]), tern_arg_out(call->out[with_dx]), tern_arg_in(x),
                       tern_arg_in(call->in[1]), tern_arg_i64(x->numel),
                       tern_arg_real(x->dtype, divisor),
                       tern_arg_real(x->dtype, factor_of(at, x->numel)), tern_arg_i32(with_dx));
}

/* The first of two launches of a reduction: each work-group sums (x - y)^2 over len elements. */
static tern_status launch_parts(const tern_call *call, const tern_tensor *losses,
                                const tern_tensor *weights, int64_t len)
{
    static const tern_kernel_ref kernel = {"loss", "squared_difference"};
    const tern_tensor *x = call->in[0];
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_groups(losses->numel, len),
                       tern_arg_out(losses), tern_arg_out(weights), tern_arg_in(x),
                       tern_arg_in(call->in[1]), tern_arg_i64(x->numel),
                       tern_arg_i64(losses->numel), tern_arg_i64(len));
}

/* The second launch: the sum of the work-groups' sums, divided by the number of elements for the
 * mean. */
static tern_status launch_total(const tern_call *call, const tern_tensor *losses,
                                const tern_tensor *weights, const tern_tensor *total)
{
    static const tern_kernel_ref kernel = {"loss", "loss_total"};
    const mse_attributes *at = call->attributes;
    return TERN_LAUNCH(call->place, &kernel, call->out[0]->dtype, tern_groups(1, losses->numel + 1),
                       tern_arg_out(call->out[0]), tern_arg_out(total), tern_arg_in(losses),
                       tern_arg_in(weights), tern_arg_i64(losses->numel),
                       tern_arg_i32(at->reduction == TERN_REDUCTION_MEAN));
}

/* Computes the loss. The mean of no elements is 0 / 0, their sum 0. Partial sums of half precision
 * are float32. */
static tern_status mse_forward(tern_call *call)
{
    const mse_attributes *at = call->attributes;
    int64_t n = call->in[0]->numel, parts = parts_of(n), len = (n + parts - 1) / parts;
    if (n == 0) {
        tern_scalar none = tern_scalar_real(at->reduction == TERN_REDUCTION_MEAN ? NAN : 0);
        return tern_fill_(call->out[0], none) ? TERN_OK : tern_last_status();
    }
    if (parts == 1)
        return launch_whole(call);
    tern_dtype kept = call->in[0]->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    tern_shape each = {1, {(n + len - 1) / len}}, one = {0};
    tern_tensor *losses = tern_tensor_new(&each, kept, call->place, "tern_mse_loss");
    tern_tensor *weights = tern_tensor_new(&each, kept, call->place, "tern_mse_loss");
    tern_tensor *total = tern_tensor_new(&one, kept, call->place, "tern_mse_loss");
    tern_status status = losses && weights && total ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        status = launch_parts(call, losses, weights, len);
    if (status == TERN_OK)
        status = launch_total(call, losses, weights, total);
    tern_release(losses);
    tern_release(weights);
    tern_release(total);
    return status;
}

/* ---- backward: dx = 2 dout (x - y) (/ n), dy = -dx; inputs dout, x, y -------------------- */

static tern_status dx_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"loss", "difference_scaled"};
    const double *factor = call->attributes;
    const tern_tensor *x = call->in[1];
    if (x->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items(x->numel),
                       tern_arg_out(call->out[0]), tern_arg_in(call->in[0]), tern_arg_in(x),
                       tern_arg_in(call->in[2]), tern_arg_i64(x->numel),
                       tern_arg_real(x->dtype, *factor));
}

static const tern_op dx_op = {.name = "mse_loss_gradient",
                              .not_differentiable = true,
                              .infer = tern_loss_infer_dx,
                              .forward = dx_forward};

/* dx = 2 dout (x - y) (/ n) and dy = -dx, by differentiable operations for gradients of
 * gradients. */
static tern_status mse_backward(tern_gradient *g)
{
    const mse_attributes *at = g->attributes;
    tern_tensor *in[] = {g->dout[0], g->in[0], g->in[1]};
    double factor = factor_of(at, g->in[0]->numel);
    tern_tensor *dx;
    if (g->recorded)
        dx = tern_mul(tern_sub(in[1], in[2]), tern_mul_scalar(in[0], tern_scalar_real(factor)));
    else
        dx = tern_apply(&dx_op, in, 3, &factor, sizeof factor);
    if (g->needs[0])
        g->din[0] = dx;
    if (g->needs[1])
        g->din[1] = tern_neg(dx);
    return dx && (!g->needs[1] || g->din[1]) ? TERN_OK : tern_last_status();
}

static const tern_op mse_op = {.name = "mse_loss",
                               .cast = TERN_CAST_FLOAT32,
                               .promotion = TERN_PROMOTE_SAME,
                               .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1) | TERN_SAVE_OUT(1),
                               .no_grad_out = 1u << 1,
                               .fusion = &(const tern_fusion){.seed_gradient = 1},
                               .infer = mse_infer,
                               .forward = mse_forward,
                               .backward = mse_backward};

/* Returns sum (x - y)^2 or the mean. It is fused for tensors of one shape, and composed of other
 * operations if they broadcast or if there is no reduction. */
tern_tensor *tern_mse_loss(tern_tensor *input, tern_tensor *target,
                           const tern_loss_options *options)
{
    TERN_NAMED_IN_ERRORS;
    TERN_CAST_FOR(&mse_op, &input, &target);
    mse_attributes at = {options ? options->reduction : TERN_REDUCTION_MEAN};
    if (!input || !target) {
        tern_fail_argument_null(__func__, input ? "target" : "input");
        return NULL;
    }
    if (at.reduction < TERN_REDUCTION_MEAN || at.reduction > TERN_REDUCTION_NONE)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_mse_loss: %d is not a reduction",
                              (int)at.reduction);
    tern_dtype common = tern_promote_types(input->dtype, target->dtype);
    if (tern_check_floating(__func__, common) != TERN_OK)
        return NULL;
    if (at.reduction != TERN_REDUCTION_NONE && tern_same_shape(input, target)) {
        tern_tensor *in[] = {tern_contiguous(input), tern_contiguous(target)};
        return tern_apply(&mse_op, in, 2, &at, sizeof at);
    }
    tern_shape a = tern_shape_of(input), b = tern_shape_of(target), both;
    if (tern_shape_broadcast(&a, &b, &both, __func__) != TERN_OK)
        return NULL;
    tern_loss_warn_shapes(input, target, __func__);
    tern_tensor *squares = tern_square(tern_sub(input, target));
    return at.reduction == TERN_REDUCTION_NONE  ? squares
           : at.reduction == TERN_REDUCTION_SUM ? tern_sum(squares)
                                                : tern_mean(squares);
}
