/* dropout.c -- dropout, with the mask of what was kept for the way back. */
#include "tensor/op.h"
#include <math.h>
#include <tern/ops.h>

/* y = x scale where kept: dropout's gradient, which is its own gradient. Inputs x, kept (bool),
 * both dense. */
static tern_status kept_only_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] =
        (tern_result){.dtype = call->in[0]->dtype, .shape = tern_shape_of(call->in[0])};
    return TERN_OK;
}

static tern_status kept_only_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"random", "kept_only"};
    const double *scale = call->attributes;
    tern_tensor *x = call->in[0];
    tern_arg args[] = {tern_arg_tensor(call->out[0]), tern_arg_tensor(x),
                       tern_arg_tensor(call->in[1]), tern_arg_i64(x->numel),
                       tern_arg_real(x->dtype, *scale)};
    return tern_launch(call->place, &kernel, x->dtype, tern_items(x->numel), args, 5);
}

static tern_status kept_only_backward(tern_gradient *g);

static const tern_op kept_only_op = {.name = "dropout_gradient",
                                     .saves = TERN_SAVE_IN(1),
                                     .infer = kept_only_infer,
                                     .forward = kept_only_forward,
                                     .backward = kept_only_backward};

static tern_tensor *kept_only(tern_tensor *x, tern_tensor *kept, double scale)
{
    x = tern_contiguous(x);
    return tern_apply(&kept_only_op, (tern_tensor *[]){x, kept}, 2, &scale, sizeof scale);
}

static tern_status kept_only_backward(tern_gradient *g)
{
    const double *scale = g->attributes;
    g->din[0] = kept_only(g->dout[0], g->in[1], *scale);
    return g->din[0] ? TERN_OK : tern_last_status();
}

typedef struct dropout_attributes {
    double scale; /* first: kept_only's attributes */
    double p;
} dropout_attributes;

static tern_status dropout_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    if (!tern_dtype_is_floating_point(x->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_dropout: result type float32 can't be cast to the desired output "
                         "type %s",
                         tern_dtype_name(x->dtype));
    call->n_out = 2;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    call->result[1] = (tern_result){.dtype = TERN_BOOL, .shape = tern_shape_of(x)};
    return TERN_OK;
}

static tern_status dropout_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"random", "dropout"};
    const dropout_attributes *at = call->attributes;
    tern_tensor *x = call->in[0];
    tern_arg state;
    int64_t first;
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_rng_take(call->place, (x->numel + 3) / 4, &state, &first));
    tern_arg args[] = {tern_arg_tensor(call->out[0]),
                       tern_arg_tensor(call->out[1]),
                       tern_arg_tensor(x),
                       state,
                       tern_arg_i64(first),
                       tern_arg_i64(x->numel),
                       tern_arg_i32((int32_t)ceil(at->p * (1 << 24))),
                       tern_arg_real(x->dtype, at->scale)};
    return tern_launch(call->place, &kernel, x->dtype, tern_items_of((x->numel + 3) / 4, 16), args,
                       8);
}

static tern_status dropout_backward(tern_gradient *g)
{
    const dropout_attributes *at = g->attributes;
    g->din[0] = kept_only(g->dout[0], g->out[1], at->scale);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op dropout_op = {.name = "dropout",
                                   .saves = TERN_SAVE_OUT(1),
                                   .no_grad_out = 1u << 1,
                                   .infer = dropout_infer,
                                   .forward = dropout_forward,
                                   .backward = dropout_backward};

tern_tensor *tern_dropout(tern_tensor *x, double p, bool training)
{
    if (!(p >= 0 && p <= 1))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_dropout: dropout probability has to be between 0 and 1, but got %g", p);
    if (!x) {
        tern_fail_argument_null("tern_dropout", "x");
        return NULL;
    }
    if (!training || p == 0)
        return x;
    dropout_attributes at = {p == 1 ? 0 : 1 / (1 - p), p};
    x = tern_contiguous(x);
    return tern_apply(&dropout_op, &x, 1, &at, sizeof at);
}
