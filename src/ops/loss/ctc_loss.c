/* ctc_loss.c -- connectionist temporal classification (Graves et al. 2006).
 *
 * The loss is -log of the summed probability of all alignments of T steps that give the target once
 * repeated labels are merged and blanks are removed. A target of L labels becomes 2 L + 1 states
 * (blank, label, blank, ..., label, blank). alpha[t][s] is the log of the summed probability of all
 * paths that are in state s at step t:
 *   alpha[t][s] = log p[t][s] + log(e^alpha[t-1][s] + e^alpha[t-1][s-1] (+ e^alpha[t-1][s-2])),
 * where the last term is added only for a label that differs from the label before it. The loss is
 * -log(e^alpha[T-1][last] + e^alpha[T-1][last-1]). */
#include "ops/loss/loss.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>

typedef struct ctc_attributes {
    int64_t blank, states; /* states: number of states of the longest target */
    bool zero_infinity;
} ctc_attributes;

/* Inputs: log_probs (T, N, C), all targets in one dim, the start of each target (N), input lengths
 * and target lengths (N). Outputs: losses (N), and alpha (N, T, states) for the backward pass. */
static tern_status ctc_infer(tern_call *call)
{
    const ctc_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    call->n_out = 2;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = {1, {x->shape[1]}}};
    call->result[1] =
        (tern_result){.dtype = x->dtype, .shape = {3, {x->shape[1], x->shape[0], at->states}}};
    return TERN_OK;
}

/* Computes alpha into `sums`, or, if `back`, beta: the same recursion from the last step to the
 * first. One work-group computes one sequence of the batch, step by step. `in` has the inputs of
 * the operation. Lengths that do not fit are a fault. */
static tern_status launch_sums(tern_tensor *sums, tern_tensor *losses, tern_tensor *const *in,
                               const ctc_attributes *at, bool back)
{
    static const tern_kernel_ref kernel = {"loss_ctc", "ctc_sums"};
    tern_place *place = sums->storage->place;
    const tern_tensor *x = in[0], *targets = in[1]->numel ? in[1] : in[2];
    tern_arg fault;
    TERN_TRY(tern_fault_arg(place, &fault));
    TERN_TRY(
        TERN_LAUNCH(place, &kernel, x->dtype,
                    tern_groups(x->shape[1], 16 * at->states * x->shape[0]), tern_arg_out(sums),
                    tern_arg_out(losses), tern_arg_in(x), tern_arg_in(targets), tern_arg_in(in[2]),
                    tern_arg_in(in[3]), tern_arg_in(in[4]), fault, tern_arg_i64(x->shape[0]),
                    tern_arg_i64(x->shape[1]), tern_arg_i64(x->shape[2]), tern_arg_i64(at->states),
                    tern_arg_i64(at->blank), tern_arg_i32(back), tern_arg_fault(TERN_FAULT_CTC)));
    return tern_fault_check(place);
}

static tern_status ctc_forward(tern_call *call)
{
    if (call->in[0]->numel == 0)
        return tern_fill_(call->out[0], tern_scalar_int(0)) ? TERN_OK : tern_last_status();
    return launch_sums(call->out[1], call->out[0], call->in, call->attributes, false);
}

/* ---- backward ---------------------------------------------------------------------------- */

/* Inputs: the five inputs of the forward, then losses, alpha, dy. dx has the shape of log_probs. */
static tern_status gradient_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    return TERN_OK;
}

/* dx[t][c] = dy (p[t][c] - e^loss / p[t][c] sum of e^(alpha + beta) over the states s of class c).
 * This is the gradient with respect to the logits from which log_softmax computed log_probs, as in
 * PyTorch. alpha + beta counts p[t][c] twice, hence the division. With zero_infinity the gradient
 * of an infinite loss is 0. */
static tern_status gradient_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"loss_ctc", "ctc_gradient"};
    const ctc_attributes *at = call->attributes;
    tern_tensor *const *in = call->in;
    const tern_tensor *x = in[0], *targets = in[1]->numel ? in[1] : in[2];
    if (x->numel == 0)
        return TERN_OK;
    tern_shape shape = tern_shape_of(in[6]);
    tern_tensor *sums = tern_tensor_new(&shape, x->dtype, call->place, "tern_ctc_loss");
    if (!sums)
        return tern_last_status();
    tern_status status = launch_sums(sums, in[5], in, at, true);
    TERN_NO_GRAD {
        if (status == TERN_OK && !tern_add_(sums, in[6]))
            status = tern_last_status();
    }
    if (status == TERN_OK)
        status = TERN_LAUNCH(
            call->place, &kernel, x->dtype,
            tern_items_of(x->shape[0] * x->shape[1], 16 * (at->states + x->shape[2])),
            tern_arg_out(call->out[0]), tern_arg_in(in[7]), tern_arg_in(x), tern_arg_in(sums),
            tern_arg_in(in[5]), tern_arg_in(targets), tern_arg_in(in[2]), tern_arg_in(in[3]),
            tern_arg_in(in[4]), tern_arg_i64(x->shape[0]), tern_arg_i64(x->shape[1]),
            tern_arg_i64(x->shape[2]), tern_arg_i64(at->states), tern_arg_i64(at->blank),
            tern_arg_i32(at->zero_infinity));
    tern_release(sums);
    return status;
}

static tern_status gradient_backward(tern_gradient *g)
{
    (void)g;
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "tern_ctc_loss: the derivative for _ctc_loss_backward is not implemented");
}

static const tern_op gradient_op = {.name = "ctc_loss_gradient",
                                    .infer = gradient_infer,
                                    .forward = gradient_forward,
                                    .backward = gradient_backward};

/* Lengths and targets have no gradient. */
static tern_status ctc_backward(tern_gradient *g)
{
    tern_tensor *dy = g->dout[0];
    if (!g->needs[0] || !dy)
        return TERN_OK;
    tern_tensor *in[] = {g->in[0], g->in[1],  g->in[2],  g->in[3],
                         g->in[4], g->out[0], g->out[1], tern_contiguous(dy)};
    g->din[0] = tern_apply(&gradient_op, in, 8, g->attributes, sizeof(ctc_attributes));
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op ctc_op = {.name = "ctc_loss",
                               .cast = TERN_CAST_FLOAT32,
                               .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1) | TERN_SAVE_IN(2) |
                                        TERN_SAVE_IN(3) | TERN_SAVE_IN(4) | TERN_SAVE_OUT(0) |
                                        TERN_SAVE_OUT(1),
                               .no_grad_out = 1u << 1,
                               .infer = ctc_infer,
                               .forward = ctc_forward,
                               .backward = ctc_backward};

/* ---- the public function ----------------------------------------------------------------- */

static tern_status check(const tern_tensor *x, const tern_tensor *targets,
                         const tern_tensor *x_lengths, const tern_tensor *y_lengths, int64_t blank)
{
    static const char function[] = "tern_ctc_loss";
    if (x->dtype != TERN_F32 && x->dtype != TERN_F64)
        return tern_fail_dtype(function, x->dtype);
    if (targets->dtype != TERN_I64 && targets->dtype != TERN_I32)
        return tern_fail(TERN_ERR_DTYPE, "%s: targets must be int64 or int32, not %s", function,
                         tern_dtype_name(targets->dtype));
    if (tern_dtype_is_floating_point(x_lengths->dtype))
        return tern_fail(TERN_ERR_DTYPE, "%s: input_lengths must be integral", function);
    if (tern_dtype_is_floating_point(y_lengths->dtype))
        return tern_fail(TERN_ERR_DTYPE, "%s: target_lengths must be integral", function);
    if (x->ndim != 2 && x->ndim != 3)
        return tern_fail(TERN_ERR_SHAPE, "%s: log_probs must be (T, N, C) or (T, C), not %s",
                         function, TERN_TENSOR_TEXT(x));
    int64_t batch = x->ndim == 3 ? x->shape[1] : 1, classes = x->shape[x->ndim - 1];
    if (blank < 0 || blank >= classes)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: blank must be in label range (%lld, %lld classes)",
                         function, (long long)blank, (long long)classes);
    if (x_lengths->numel != batch)
        return tern_fail(TERN_ERR_SHAPE, "%s: input_lengths must be of size batch_size (%lld, %s)",
                         function, (long long)batch, TERN_TENSOR_TEXT(x_lengths));
    if (y_lengths->numel != batch)
        return tern_fail(TERN_ERR_SHAPE, "%s: target_lengths must be of size batch_size (%lld, %s)",
                         function, (long long)batch, TERN_TENSOR_TEXT(y_lengths));
    if (targets->ndim > 2 || (targets->ndim == 2 && targets->shape[0] != batch))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Expected tensor to have size %lld at dimension 0, but got %s for "
                         "argument #2 'targets'",
                         function, (long long)batch, TERN_TENSOR_TEXT(targets));
    return TERN_OK;
}

/* Returns the start of each target among all targets in one dim, and sets *longest to a bound of
 * the targets' lengths. Targets (N, S) have rows of S. Targets of one dim are concatenated, and
 * their starts are the exclusive sums of the lengths. */
static tern_tensor *starts_of(const tern_tensor *targets, tern_tensor *lengths, int64_t *longest)
{
    int64_t batch = lengths->numel;
    *longest = 0;
    if (targets->ndim == 2) {
        *longest = targets->shape[1];
        return *longest ? tern_arange(0, (double)(batch * *longest), (double)*longest, TERN_I64,
                                      tern_device(targets))
                        : tern_zeros_like(lengths);
    }
    tern_tensor *ends = tern_cumsum(lengths, 0);
    int64_t all = 0;
    if (batch > 0 &&
        (tern_hidden_read(tern_max(lengths), longest, sizeof *longest, "tern_ctc_loss") !=
             TERN_OK ||
         tern_hidden_read(tern_select(ends, 0, -1), &all, sizeof all, "tern_ctc_loss") != TERN_OK))
        return NULL;
    if (all != targets->numel)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_ctc_loss: Expected targets to have the sum of target_lengths, "
                              "%lld, elements, but got %s",
                              (long long)all, TERN_TENSOR_TEXT(targets));
    return tern_sub(ends, lengths);
}

/* Reduces the losses. For the mean over the batch each loss is first divided by its target length
 * (at least 1). */
static tern_tensor *reduced(tern_tensor *losses, tern_tensor *lengths, bool batched,
                            const tern_ctc_loss_options *o)
{
    if (o->zero_infinity)
        losses = tern_masked_fill(losses, tern_isinf(losses), tern_scalar_int(0));
    if (o->reduction == TERN_REDUCTION_MEAN)
        losses = tern_div(losses, tern_clamp(lengths, 1, (double)(1ll << 53)));
    if (o->reduction == TERN_REDUCTION_NONE && !batched)
        losses = tern_squeeze_dim(losses, 0);
    return tern_loss_reduce(losses, o->reduction, losses, losses);
}

/* log_probs (T, C) without a batch dim are a batch of one. */
tern_tensor *tern_ctc_loss(tern_tensor *log_probs, tern_tensor *targets, tern_tensor *input_lengths,
                           tern_tensor *target_lengths, const tern_ctc_loss_options *options)
{
    static const tern_ctc_loss_options none;
    const tern_ctc_loss_options *o = options ? options : &none;
    if (tern_loss_check(log_probs, targets, o->reduction, "tern_ctc_loss") != TERN_OK)
        return NULL;
    if (!input_lengths || !target_lengths) {
        tern_fail_argument_null("tern_ctc_loss",
                                input_lengths ? "target_lengths" : "input_lengths");
        return NULL;
    }
    if (check(log_probs, targets, input_lengths, target_lengths, o->blank) != TERN_OK)
        return NULL;
    ctc_attributes at = {.blank = o->blank, .zero_infinity = o->zero_infinity};
    bool batched = log_probs->ndim == 3;
    tern_shape one = {1, {target_lengths->numel}}, flat = {1, {targets->numel}};
    tern_tensor *x = batched ? log_probs : tern_unsqueeze(log_probs, 1);
    tern_tensor *lengths = tern_reshape(tern_to_dtype(target_lengths, TERN_I64), one);
    if (!lengths)
        return NULL;
    if (!batched && targets->ndim == 1)
        targets = tern_unsqueeze(targets, 0);
    tern_tensor *starts = targets ? starts_of(targets, lengths, &at.states) : NULL;
    if (!starts)
        return NULL;
    at.states = 2 * at.states + 1;
    tern_tensor *in[] = {
        tern_contiguous(x), tern_contiguous(tern_reshape(tern_to_dtype(targets, TERN_I64), flat)),
        starts, tern_contiguous(tern_reshape(tern_to_dtype(input_lengths, TERN_I64), one)),
        tern_contiguous(lengths)};
    tern_tensor *out[2];
    if (tern_apply_all(&ctc_op, in, 5, &at, sizeof at, out, 2) != TERN_OK)
        return NULL;
    return reduced(out[0], lengths, batched, o);
}
