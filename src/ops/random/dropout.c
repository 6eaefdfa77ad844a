/* dropout.c -- dropout of elements and of channels, with the mask of kept elements for the
 * backward. */
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* The gradient of dropout: y = scale x for a kept element, else 0. It is linear in x, so its own
 * gradient is the same operation. The inputs x and kept (bool) are both dense or channels_last. */
static tern_status apply_mask_infer(tern_call *call)
{
    call->n_out = 1;
    call->channels_last = tern_is_channels_last(call->in[0]);
    call->result[0] =
        (tern_result){.dtype = call->in[0]->dtype, .shape = tern_shape_of(call->in[0])};
    return TERN_OK;
}

static tern_status apply_mask_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"random", "kept_only"};
    const double *scale = call->attributes;
    tern_tensor *x = call->in[0];
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items(x->numel),
                       tern_arg_out(call->out[0]), tern_arg_in(x), tern_arg_in(call->in[1]),
                       tern_arg_i64(x->numel), tern_arg_real(x->dtype, *scale));
}

static tern_status apply_mask_backward(tern_gradient *g);

static const tern_op apply_mask_op = {.name = "dropout_gradient",
                                      .saves = TERN_SAVE_IN(1),
                                      .infer = apply_mask_infer,
                                      .forward = apply_mask_forward,
                                      .backward = apply_mask_backward};

static tern_tensor *apply_mask(tern_tensor *x, tern_tensor *kept, double scale)
{
    x = tern_lie_as(x, kept);
    return tern_apply(&apply_mask_op, (tern_tensor *[]){x, kept}, 2, &scale, sizeof scale);
}

static tern_status apply_mask_backward(tern_gradient *g)
{
    const double *scale = g->attributes;
    g->din[0] = apply_mask(g->dout[0], g->in[1], *scale);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* y = scale x + kept for a kept element, y = dropped for any other; p is the probability of
 * dropping. */
typedef struct dropout_attributes {
    double scale; /* the first field, as apply_mask's attributes are this number alone */
    double p, kept, dropped;
} dropout_attributes;

/* Outputs: y, and the mask (bool) for the backward. */
static tern_status dropout_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    if (!tern_dtype_is_floating_point(x->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_%s: result type float32 can't be cast to the desired output type %s",
                         call->op->name, tern_dtype_name(x->dtype));
    call->n_out = 2;
    call->channels_last = tern_is_channels_last(x);
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    call->result[1] = (tern_result){.dtype = TERN_BOOL, .shape = tern_shape_of(x)};
    return TERN_OK;
}

/* An element is kept if 24 random bits are not below p 2^24. One call of the generator gives
 * four words, so that a work-item does four elements. */
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
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items_of((x->numel + 3) / 4, 16),
                       tern_arg_out(call->out[0]), tern_arg_out(call->out[1]), tern_arg_in(x),
                       state, tern_arg_i64(first), tern_arg_i64(x->numel),
                       tern_arg_i32((int32_t)ceil(at->p * (1 << 24))),
                       tern_arg_real(x->dtype, at->scale), tern_arg_real(x->dtype, at->kept),
                       tern_arg_real(x->dtype, at->dropped));
}

/* dx = scale dy for a kept element, else 0. The mask is saved, not drawn again. */
static tern_status dropout_backward(tern_gradient *g)
{
    const dropout_attributes *at = g->attributes;
    g->din[0] = apply_mask(g->dout[0], g->out[1], at->scale);
    return g->din[0] ? TERN_OK : tern_last_status();
}

#define DROPOUT_OP(NAME)                                                                           \
    {                                                                                              \
        .name = NAME, .saves = TERN_SAVE_OUT(1), .no_grad_out = 1u << 1, .infer = dropout_infer,   \
        .forward = dropout_forward, .backward = dropout_backward                                   \
    }
static const tern_op dropout_op = DROPOUT_OP("dropout"),
                     alpha_dropout_op = DROPOUT_OP("alpha_dropout");

static tern_status check(const char *function, const tern_tensor *x, double p, int least)
{
    if (!(p >= 0 && p <= 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: dropout probability has to be between 0 and 1, but got %g", function,
                         p);
    if (!tern_given(x, function, "x"))
        return TERN_ERR_STATE;
    if (x->ndim < least)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: Feature dropout requires at least %d dimensions in the input (got %d)", function,
            least, x->ndim);
    return TERN_OK;
}

/* Returns whether dropout needs no random numbers, for inputs of any type and dims: the result is x
 * itself outside of training, if p is 0 or x is empty, and 0 x if p is 1. certain() computes it. */
static bool is_certain(const tern_tensor *x, double p, bool training)
{
    return !training || p == 0 || p == 1 || (x && x->numel == 0);
}

static tern_tensor *certain(const char *function, tern_tensor *x, double p, bool training,
                            bool write)
{
    if (check(function, x, p, 0) != TERN_OK)
        return NULL;
    if (!training || p == 0 || x->numel == 0)
        return x;
    tern_tensor *zero = tern_new_zeros(x, TERN_SHAPE_SCALAR);
    return write ? tern_mul_(x, zero) : tern_mul(x, zero);
}

/* y = x / (1 - p) with probability 1 - p, else 0, so that the mean is unchanged; x itself
 * outside of training. */
tern_tensor *tern_dropout(tern_tensor *x, double p, bool training)
{
    TERN_NAMED_IN_ERRORS;
    if (is_certain(x, p, training))
        return certain(__func__, x, p, training, false);
    if (check(__func__, x, p, 0) != TERN_OK)
        return NULL;
    dropout_attributes at = {.scale = 1 / (1 - p), .p = p};
    x = tern_lie_as(x, x);
    return tern_apply(&dropout_op, &x, 1, &at, sizeof at);
}

/* A dropped element becomes -ALPHA, the limit of selu at -infinity, and y = a x + b restores mean 0
 * and variance 1: a = 1 / sqrt((1 - p) (1 + p ALPHA^2)), b = a p ALPHA. (Klambauer et al. 2017.) */
static const double ALPHA = 1.7580993408473766;

static dropout_attributes alpha_attributes(double p)
{
    double scale = 1 / sqrt((ALPHA * ALPHA * p + 1) * (1 - p));
    return (dropout_attributes){.scale = scale,
                                .p = p,
                                .kept = ALPHA * scale * p,
                                .dropped = ALPHA * scale * p - ALPHA * scale};
}

/* y = a x + b for a kept element, b - a ALPHA for a dropped one. */
tern_tensor *tern_alpha_dropout(tern_tensor *x, double p, bool training)
{
    TERN_NAMED_IN_ERRORS;
    if (is_certain(x, p, training))
        return certain(__func__, x, p, training, false);
    if (check(__func__, x, p, 0) != TERN_OK)
        return NULL;
    dropout_attributes at = alpha_attributes(p);
    x = tern_lie_as(x, x);
    return tern_apply(&alpha_dropout_op, &x, 1, &at, sizeof at);
}

/* ---- noise that broadcasts to x, for channels and for writing in place ----------------------- */

/* Returns numbers 1 / (1 - p) or 0, one for each index of the first `kept` dims of x; the other
 * dims have size 1 and broadcast. */
static tern_tensor *noise_of(tern_tensor *x, double p, int kept)
{
    tern_shape each = tern_shape_of(x);
    for (int d = kept; d < each.ndim; d++)
        each.dims[d] = 1;
    tern_tensor *noise = NULL;
    TERN_NO_GRAD
        noise = tern_dropout(tern_new_ones(x, each), p, true);
    return noise;
}

/* Returns x times noise, in place (write) or as a new tensor. */
static tern_tensor *multiply(tern_tensor *x, tern_tensor *noise, bool write)
{
    return write ? tern_mul_(x, noise) : tern_mul(x, noise);
}

/* Returns alpha dropout by noise: a x m + b + a ALPHA (m - 1) with m = noise (1 - p), 1 or 0. */
static tern_tensor *alpha_multiply(tern_tensor *x, tern_tensor *noise, double p, bool write)
{
    if (!noise)
        return NULL;
    dropout_attributes at = alpha_attributes(p);
    tern_tensor *scale = NULL, *shift = NULL;
    TERN_NO_GRAD {
        scale = tern_mul_scalar(noise, tern_scalar_real(at.scale * (1 - p)));
        shift = tern_add_scalar(tern_mul_scalar(scale, tern_scalar_real(ALPHA)),
                                tern_scalar_real(at.dropped));
    }
    tern_tensor *y = tern_add(tern_mul(x, scale), shift);
    return write && y ? tern_copy_(x, y) : y;
}

tern_tensor *tern_dropout_(tern_tensor *x, double p, bool training)
{
    TERN_NAMED_IN_ERRORS;
    if (is_certain(x, p, training))
        return certain(__func__, x, p, training, true);
    if (check(__func__, x, p, 0) != TERN_OK)
        return NULL;
    return multiply(x, noise_of(x, p, x->ndim), true);
}

tern_tensor *tern_alpha_dropout_(tern_tensor *x, double p, bool training)
{
    TERN_NAMED_IN_ERRORS;
    if (is_certain(x, p, training))
        return certain(__func__, x, p, training, true);
    if (check(__func__, x, p, 0) != TERN_OK)
        return NULL;
    return alpha_multiply(x, noise_of(x, p, x->ndim), p, true);
}

/* ---- whole channels -------------------------------------------------------------------------- */

/* Drops whole channels of x, which is (N, C, ...) if it has `batched` dims or `batched` is 0, else
 * (C, ...). */
static tern_tensor *channel_dropout(const char *function, tern_tensor *x, double p, bool training,
                                    int batched, bool write)
{
    int kept = x && batched && x->ndim != batched ? 1 : 2;
    if (is_certain(x, p, training))
        return certain(function, x, p, training, write);
    if (check(function, x, p, kept) != TERN_OK)
        return NULL;
    return multiply(x, noise_of(x, p, kept), write);
}

static tern_tensor *dropout1d(const char *function, tern_tensor *x, double p, bool training,
                              bool write)
{
    if (x && (x->ndim < 2 || x->ndim > 3))
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "%s: Expected 2D or 3D input, but received a %dD input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs "
            "with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs).",
            function, x->ndim);
    return channel_dropout(function, x, p, training, 3, write);
}

/* Alpha dropout of whole channels of x (N, C, ...). */
static tern_tensor *feature_alpha_dropout(const char *function, tern_tensor *x, double p,
                                          bool training, bool write)
{
    if (is_certain(x, p, training))
        return certain(function, x, p, training, write);
    if (check(function, x, p, 2) != TERN_OK)
        return NULL;
    return alpha_multiply(x, noise_of(x, p, 2), p, write);
}

#define BOTH(NAME, CALL)                                                                           \
    tern_tensor *tern_##NAME(tern_tensor *x, double p, bool training)                              \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        const char *function = "tern_" #NAME;                                                      \
        const bool write = false;                                                                  \
        return CALL;                                                                               \
    }                                                                                              \
    tern_tensor *tern_##NAME##_(tern_tensor *x, double p, bool training)                           \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        const char *function = "tern_" #NAME "_";                                                  \
        const bool write = true;                                                                   \
        return CALL;                                                                               \
    }
BOTH(dropout1d, dropout1d(function, x, p, training, write))
BOTH(dropout2d, channel_dropout(function, x, p, training, 0, write))
BOTH(dropout3d, channel_dropout(function, x, p, training, 5, write))
BOTH(feature_alpha_dropout, feature_alpha_dropout(function, x, p, training, write))
