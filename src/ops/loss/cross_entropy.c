/* cross_entropy.c -- cross entropy of logits against class indices or class probabilities. */
#include "base/option.h"
#include "ops/copy/copy.h"
#include "ops/loss/cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/matmul/padded.h"
#include "tensor/fuse/fuse.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* Returns the dtype of the row values stored for the backward pass: float32 for half precision. */
static tern_dtype kept_in(tern_dtype dtype)
{
    return dtype == TERN_F64 ? TERN_F64 : TERN_F32;
}

/* ---- forward ---------------------------------------------------------------------------------
 * With w the class weights (or 1), t a row's target, s the smoothing and lse = log sum_c e^x[c]:
 *   loss = (1 - s) w[t] (lse - x[t]) + s / C sum_c w[c] (lse - x[c])
 * The mean divides the sum of the losses by the sum of w[t]. Ignored rows are in neither sum. */

/* Returns whether to pad the rows of dx: the product that computed x will multiply dx. dx of a leaf
 * is its gradient, which has the layout of the leaf. */
static bool is_padded(const tern_tensor *x)
{
    enum { SOME = 128 }; /* an assumed size of the other matrix, which is not known here */
    const tern_gemm g = {.dtype = x->dtype, .m = x->shape[0], .n = SOME, .k = x->shape[1]};
    return !tern_is_leaf(x) && tern_place_wants_multiples(x->storage->place, &g);
}

/* Inputs x (rows, C), target (rows), weight (C) or NULL. The kernel computes dx together with the
 * loss, so that the logits are read once, unless the logits are large, or float16, whose loss will
 * be scaled. */
static tern_status entropy_infer(tern_call *call)
{
    const tern_entropy_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_dtype kept = kept_in(x->dtype), dtype = at->wide ? kept : x->dtype;
    tern_shape rows = {1, {x->shape[0]}}, scalar = {0};
    bool with_dx = tern_entropy_is_unit(x) && x->numel > 0 && dtype == kept &&
                   at->reduction != TERN_REDUCTION_NONE && x->dtype != TERN_F16 &&
                   !tern_entropy_is_large(x) && tern_must_record(call->op, call->in, call->n_in);
    call->n_out = with_dx ? 4 : 3;
    call->result[ENTROPY_LOSS] = (tern_result){.dtype = dtype, .shape = scalar};
    if (at->reduction == TERN_REDUCTION_NONE)
        call->result[ENTROPY_LOSS].shape = rows;
    call->result[ENTROPY_KEPT] = (tern_result){.dtype = kept, .shape = {2, {2, rows.dims[0]}}};
    call->result[ENTROPY_TOTAL] = (tern_result){.dtype = kept, .shape = scalar};
    call->result[ENTROPY_DX] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    call->padded = with_dx && is_padded(x) ? 1u << ENTROPY_DX : 0;
    return TERN_OK;
}

/* Computes the loss and the weight of each row. The softmax is never stored: a group of work-items
 * reads its row three times, for the maximum, for lse and for the smoothing. A target that is not a
 * class is a fault. */
static tern_status launch_rows(const tern_call *call, const tern_tensor *losses,
                               const tern_tensor *weights)
{
    static const tern_kernel_ref kernel = {"loss", "cross_entropy"};
    const tern_entropy_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0], *weight = call->in[2];
    int64_t rows = x->shape[0], n = x->shape[1];
    tern_arg fault, kept = tern_arg_out(call->out[ENTROPY_KEPT]);
    if (rows == 0)
        return TERN_OK;
    TERN_TRY(tern_fault_arg(call->place, &fault));
    TERN_TRY(TERN_LAUNCH(call->place, &kernel, x->dtype, tern_groups(rows, 4 * n),
                         tern_arg_out(losses), kept, tern_entropy_pulls(kept, rows),
                         tern_arg_out(weights), tern_arg_in(x), tern_arg_in(call->in[1]),
                         tern_arg_optional(weight, x), fault, tern_arg_i64(rows), tern_arg_i64(n),
                         tern_arg_i64(x->stride[0]), tern_arg_i64(at->ignored),
                         tern_arg_real(x->dtype, at->smoothing), tern_arg_i32(weight != NULL),
                         tern_arg_fault(TERN_FAULT_TARGET)));
    return tern_fault_check(call->place);
}

/* Reduces over the rows in one work-group: out = sum losses (/ sum weights), total = sum
 * weights. */
static tern_status launch_total(tern_tensor *out, const tern_tensor *total,
                                const tern_tensor *losses, const tern_tensor *weights,
                                tern_reduction reduction)
{
    static const tern_kernel_ref kernel = {"loss", "loss_total"};
    return TERN_LAUNCH(out->storage->place, &kernel, out->dtype, tern_groups(1, losses->numel + 1),
                       tern_arg_out(out), tern_arg_out(total), tern_arg_in(losses),
                       tern_arg_in(weights), tern_arg_i64(losses->numel),
                       tern_arg_i32(reduction == TERN_REDUCTION_MEAN));
}

/* Sets out and total for no rows: the mean is 0 / 0, the sum 0. */
static tern_status total_of_none(tern_tensor *out, tern_tensor *total, tern_reduction reduction)
{
    double value = reduction == TERN_REDUCTION_MEAN ? NAN : 0;
    bool filled = tern_fill_(total, tern_scalar_int(0)) && tern_fill_(out, tern_scalar_real(value));
    return filled ? TERN_OK : tern_last_status();
}

/* ---- the whole forward pass ---- */

/* Computes the loss. The losses of the rows are at least float32 until they are summed: half
 * precision is rounded once. */
static tern_status entropy_forward(tern_call *call)
{
    const tern_entropy_attributes *at = call->attributes;
    tern_tensor *out = call->out[ENTROPY_LOSS];
    tern_shape rows = {1, {call->in[0]->shape[0]}};
    tern_dtype kept = call->result[ENTROPY_KEPT].dtype;
    bool each = at->reduction == TERN_REDUCTION_NONE, with_dx = call->n_out > ENTROPY_DX;
    int64_t team = TERN_TEAM(call->in[0]->shape[1], ENTROPY_GROUP);
    if (with_dx && rows.dims[0] * team <= ENTROPY_MOST_ROUNDS * ENTROPY_GROUP &&
        call->in[0]->numel <= ENTROPY_MOST_ALONE)
        return tern_entropy_launch_unit(call, NULL, NULL);
    tern_tensor *weights = tern_tensor_new(&rows, kept, call->place, "tern_cross_entropy");
    tern_tensor *losses = each && kept == out->dtype
                              ? tern_keep(out)
                              : tern_tensor_new(&rows, kept, call->place, "tern_cross_entropy");
    const bool unit = tern_entropy_is_unit(call->in[0]);
    tern_status status = !weights || !losses ? tern_last_status()
                         : unit              ? tern_entropy_launch_unit(call, losses, weights)
                                             : launch_rows(call, losses, weights);
    if (status == TERN_OK && each && losses != out)
        status = tern_copy_elements(out, losses);
    if (status == TERN_OK && !each && losses->numel == 0)
        status = total_of_none(out, call->out[ENTROPY_TOTAL], at->reduction);
    else if (status == TERN_OK && !each)
        status = launch_total(out, call->out[ENTROPY_TOTAL], losses, weights, at->reduction);
    tern_release(weights);
    tern_release(losses);
    return status;
}

/* ---- backward --------------------------------------------------------------------------------
 * dx[c] = dout (f softmax(x)[c] - (1 - s) w[t] [c = t] - s / C w[c]) (/ total), where
 * f = (1 - s) w[t] + s / C sum_c w[c] and softmax(x)[c] = e^(x[c] - lse). */

/* Inputs: dout, with the dtype of `kept`; x, target, weight, kept, total. */

static tern_status dx_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"loss", "cross_entropy_gradient"};
    const tern_entropy_attributes *at = call->attributes;
    const tern_tensor *x = call->in[1], *weight = call->in[3];
    tern_tensor *dx = call->out[0];
    int64_t rows = x->shape[0], n = x->shape[1];
    if (x->numel == 0)
        return TERN_OK;
    if (dx->storage == x->storage) /* x is overwritten even if a later call fails */
        tern_bump_version(dx);
    const tern_entropy_unit u = {.x = x,
                                 .target = call->in[2],
                                 .weight = weight,
                                 .kept = call->in[4],
                                 .total = call->in[5],
                                 .dx = dx,
                                 .dout = call->in[0],
                                 .what = ENTROPY_COUNTED | ENTROPY_LATE |
                                         (call->padded ? ENTROPY_PADDED : 0)};
    if (tern_entropy_is_unit(x))
        return tern_entropy_run_unit(&u, at);
    if (call->padded)
        TERN_TRY(tern_entropy_clear_rows(dx));
    tern_arg kept = tern_arg_in(call->in[4]);
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_groups(rows, 2 * n), tern_arg_out(dx),
                       tern_arg_in(call->in[0]), tern_arg_in(x), tern_arg_in(call->in[2]),
                       tern_arg_optional(weight, x), kept, tern_entropy_pulls(kept, rows),
                       tern_arg_in(call->in[5]), tern_arg_i64(rows), tern_arg_i64(n),
                       tern_arg_i64(x->stride[0]), tern_arg_i64(dx->stride[0]),
                       tern_arg_i64(at->ignored), tern_arg_real(x->dtype, at->smoothing),
                       tern_arg_i32(weight != NULL),
                       tern_arg_i32(at->reduction == TERN_REDUCTION_NONE),
                       tern_arg_i32(at->reduction == TERN_REDUCTION_MEAN));
}

static tern_status dx_infer(tern_call *call)
{
    call->padded = call->in[1]->numel > 0 && is_padded(call->in[1]);
    return tern_loss_infer_dx(call);
}

static const tern_op dx_op = {.name = "cross_entropy_gradient",
                              .optional = 1u << 3,
                              .not_differentiable = true,
                              .infer = dx_infer,
                              .forward = dx_forward};

/* Returns dx, computed by one kernel, for a gradient that is not differentiated again. dx
 * overwrites the logits if they are no longer needed. */
static tern_tensor *fused_dx(tern_gradient *g, tern_tensor *dout, const tern_entropy_attributes *at)
{
    tern_tensor *x = g->in[0], *dx = NULL;
    dout = tern_to_dtype(tern_contiguous(dout), kept_in(x->dtype));
    tern_tensor *in[] = {dout, x, g->in[1], g->in[2], g->out[ENTROPY_KEPT], g->out[ENTROPY_TOTAL]};
    tern_tensor *over = tern_may_overwrite(g) ? tern_scoped(tern_tensor_detached(x)) : NULL;
    return tern_apply_into(&dx_op, in, 6, at, sizeof *at, &dx, 1, &over) == TERN_OK ? dx : NULL;
}

/* Returns dx for gradients of gradients: dx = s (G + f (softmax(x) - p)), where s is dout (/
 * total). G is the fused gradient for s = 1 and p is the value of softmax(x), both without history,
 * so that only softmax and s are differentiated. */
static tern_tensor *differentiable_dx(tern_gradient *g, const tern_entropy_attributes *at)
{
    tern_entropy_attributes alone = *at;
    alone.reduction = TERN_REDUCTION_SUM;
    tern_tensor *x = g->in[0], *s = g->dout[0], *constant = NULL, *now = NULL, *pull = NULL;
    if (at->wide)
        x = tern_to_dtype(x, kept_in(x->dtype));
    TERN_NO_GRAD {
        tern_shape scalar = {0};
        constant = fused_dx(g, tern_new_ones(x, scalar), &alone);
        now = tern_softmax(x, 1);
        pull = tern_unsqueeze(tern_to_dtype(tern_select(g->out[ENTROPY_KEPT], 0, 1), x->dtype), -1);
    }
    if (at->reduction == TERN_REDUCTION_MEAN)
        s = tern_div(s, tern_to_dtype(g->out[ENTROPY_TOTAL], x->dtype));
    else if (at->reduction == TERN_REDUCTION_NONE)
        s = tern_unsqueeze(s, -1);
    tern_tensor *moved = tern_mul(pull, tern_sub(tern_softmax(x, 1), now));
    return tern_mul(s, tern_add(constant, moved));
}

static tern_status entropy_backward(tern_gradient *g)
{
    const tern_entropy_attributes *at = g->attributes;
    if (g->needs[0]) {
        g->din[0] = g->recorded ? differentiable_dx(g, at) : fused_dx(g, g->dout[0], at);
        if (!g->din[0])
            return tern_last_status();
    }
    return TERN_OK;
}

static const tern_op cross_entropy_op = {
    .name = "cross_entropy",
    .cast = TERN_CAST_FLOAT32,
    .optional = 1u << 2,
    .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1) | TERN_SAVE_IN(2) | TERN_SAVE_OUT(ENTROPY_KEPT) |
             TERN_SAVE_OUT(ENTROPY_TOTAL) | TERN_SAVE_OUT(ENTROPY_DX),
    .no_grad_out = 1u << ENTROPY_KEPT | 1u << ENTROPY_TOTAL | 1u << ENTROPY_DX,
    .fusion = &(const tern_fusion){.seed_gradient = ENTROPY_DX, .overwrites = true},
    .infer = entropy_infer,
    .forward = entropy_forward,
    .backward = entropy_backward};

/* ---- the public function: checks, and views as rows of classes --------------------------- */

/* Returns the number of classes, the size of dim 1, or of the only dim. */
static int64_t classes_of(const tern_tensor *x)
{
    return x->shape[x->ndim > 1 ? 1 : 0];
}

/* Returns a view whose last dim is the classes, as the kernels need: (N, C, d1, ...) -> (N, d1,
 * ..., C). */
static tern_tensor *classes_last(tern_tensor *x)
{
    tern_shape order = {.ndim = x ? x->ndim : 0};
    if (order.ndim < 3)
        return x;
    for (int d = 1; d < order.ndim; d++)
        order.dims[d] = d < order.ndim - 1 ? d + 1 : 1;
    return tern_permute(x, order);
}

static tern_status check_weight(const tern_tensor *x, const tern_tensor *weight)
{
    int64_t classes = classes_of(x);
    if (!weight)
        return TERN_OK;
    if (weight->ndim != 1 || weight->numel != classes)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_cross_entropy: weight tensor should be defined either for all %lld "
                         "classes or no classes but got weight tensor of shape: %s",
                         (long long)classes, TERN_TENSOR_TEXT(weight));
    if (weight->dtype != x->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_cross_entropy: expected scalar type %s but found %s (weight)",
                         tern_dtype_name(x->dtype), tern_dtype_name(weight->dtype));
    return TERN_OK;
}

/* Checks the target's shape: () for x (C), (N) for (N, C), (N, d1, ...) for (N, C, d1, ...). */
static tern_status check_classes(const tern_tensor *x, const tern_tensor *target)
{
    if (x->ndim > 1 && (target->ndim == 0 || target->shape[0] != x->shape[0]))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_cross_entropy: Expected input batch_size (%lld) to match target "
                         "batch_size (%lld).",
                         (long long)x->shape[0], (long long)(target->ndim ? target->shape[0] : 1));
    if (x->ndim < 3 && target->ndim > 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_cross_entropy: 0D or 1D target tensor expected, multi-target not "
                         "supported (got %s)",
                         TERN_TENSOR_TEXT(target));
    if (x->ndim == 1 && target->ndim == 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_cross_entropy: size mismatch (got input: %s, target: %s)",
                         TERN_TENSOR_TEXT(x), TERN_TENSOR_TEXT(target));
    tern_shape expected = {1, {x->shape[0]}}, got = tern_shape_of(target);
    for (int d = 2; d < x->ndim; d++)
        expected.dims[expected.ndim++] = x->shape[d];
    if (x->ndim > 2 && !tern_shape_equal(&expected, &got))
        return tern_fail(TERN_ERR_SHAPE, "tern_cross_entropy: Expected target size %s, got %s",
                         TERN_SHAPE_TEXT(&expected), TERN_SHAPE_TEXT(&got));
    if (target->dtype != TERN_I64)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_cross_entropy: expected scalar type int64 but found %s (target)",
                         tern_dtype_name(target->dtype));
    return TERN_OK;
}

/* Returns x if each of its rows is contiguous, whatever the stride between rows, or a contiguous
 * copy. */
static tern_tensor *dense_rows(tern_tensor *x)
{
    const bool dense = x && x->numel > 0 && x->stride[1] == 1 && x->stride[0] >= x->shape[1];
    return dense ? x : tern_contiguous(x);
}

/* Returns the loss for class indices, by the fused operation with all positions as rows. Without a
 * reduction the losses get the shape of the target. */
static tern_tensor *of_class_indices(tern_tensor *x, tern_tensor *target, tern_tensor *weight,
                                     const tern_entropy_attributes *at)
{
    if (check_classes(x, target) != TERN_OK || check_weight(x, weight) != TERN_OK)
        return NULL;
    tern_shape flat = {2, {target->numel, classes_of(x)}}, rows = {1, {target->numel}};
    tern_shape shape = tern_shape_of(target);
    if (weight && !(weight = tern_contiguous(weight)))
        return NULL; /* contiguous failed; NULL would mean no weight */
    tern_tensor *in[] = {dense_rows(tern_reshape(classes_last(x), flat)),
                         tern_contiguous(tern_reshape(target, rows)), weight};
    tern_tensor *loss = tern_apply(&cross_entropy_op, in, 3, at, sizeof *at);
    return at->reduction == TERN_REDUCTION_NONE ? tern_view(loss, shape) : loss;
}

/* Returns -sum_c w[c] q[c] log softmax(x)[c] with q = (1 - s) target + s / C. The mean divides by
 * the number of rows, not by the weights. It is composed of other operations, since the target may
 * need a gradient too. */
static tern_tensor *of_class_probabilities(tern_tensor *x, tern_tensor *target, tern_tensor *weight,
                                           const tern_entropy_attributes *at)
{
    if (!tern_dtype_is_floating_point(target->dtype))
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_cross_entropy: Expected floating point type for target with class "
            "probabilities, got %s",
            tern_dtype_name(target->dtype));
    if (at->ignored >= 0)
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_cross_entropy: ignore_index is not supported for floating point "
            "target");
    if (x->ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_cross_entropy: Expected 1 or more dimensions (got 0)");
    if (check_weight(x, weight) != TERN_OK)
        return NULL;
    int64_t classes = classes_of(x), rows = classes ? x->numel / classes : 0;
    if (at->smoothing > 0)
        target = tern_add_scalar(tern_mul_scalar(target, tern_scalar_real(1 - at->smoothing)),
                                 tern_scalar_real(at->smoothing / (double)classes));
    target = classes_last(target);
    if (weight)
        target = tern_mul(target, weight);
    tern_tensor *terms = tern_neg(tern_mul(tern_log_softmax(classes_last(x), -1), target));
    if (at->reduction == TERN_REDUCTION_NONE)
        return tern_sum_dim(terms, TERN_DIMS(-1), false);
    terms = tern_sum(terms);
    if (at->reduction == TERN_REDUCTION_MEAN)
        terms = tern_div_scalar(terms, tern_scalar_real((double)rows));
    return terms;
}

/* Returns whether the kernels read half precision logits that autocast would cast to float32. This
 * saves a copy of what may be a model's largest tensor, and gives the same numbers. A trace records
 * the cast. */
static bool is_widened(const tern_tensor *x, const tern_tensor *target, const tern_tensor *weight)
{
    return x && target && !weight && tern_dtype_is_half(x->dtype) && tern_loss_is_cast(x) &&
           !tern_same_shape(x, target) && !tern_thread.mode.trace;
}

/* A target with the shape of the logits holds class probabilities, any other target class
 * indices. */
tern_tensor *tern_cross_entropy(tern_tensor *input, tern_tensor *target,
                                const tern_cross_entropy_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_cross_entropy_options o = tern_read_cross_entropy(options);
    tern_tensor *weight = o.weight, *cast = input;
    bool wide = is_widened(input, target, weight);
    if (wide)
        cast = NULL;
    TERN_CAST_FOR(&cross_entropy_op, &cast, &target, &weight);
    if (!wide)
        input = cast;
    if (!input || !target) {
        tern_fail_argument_null(__func__, input ? "target" : "input");
        return NULL;
    }
    tern_entropy_attributes at = {o.ignore_index.value, o.label_smoothing, o.reduction, wide};
    if (!(at.smoothing >= 0 && at.smoothing <= 1))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: %g",
            at.smoothing);
    if (at.reduction < TERN_REDUCTION_MEAN || at.reduction > TERN_REDUCTION_NONE)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_cross_entropy: %d is not a reduction",
                              (int)at.reduction);
    if (tern_check_floating(__func__, input->dtype) != TERN_OK)
        return NULL;
    return tern_same_shape(input, target) ? of_class_probabilities(input, target, weight, &at)
                                          : of_class_indices(input, target, weight, &at);
}
