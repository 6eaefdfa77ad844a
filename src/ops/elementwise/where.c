/* where.c -- where and masked_fill: a choice between two values for each element. */
#include "base/warning.h"
#include "ops/elementwise/nd_index.h"
#include "tensor/memory_format.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* The result has the broadcast shape of all three. x and y must have the same dtype here. */
static tern_status where_infer(tern_call *call)
{
    tern_tensor *c = call->in[0], *x = call->in[1], *y = call->in[2];
    if (c->dtype != TERN_BOOL)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_where: expected condition to be a boolean tensor, but got a tensor "
                         "with dtype %s",
                         tern_dtype_name(c->dtype));
    if (x->dtype != y->dtype)
        return tern_fail(TERN_ERR_DTYPE, "tern_where: x is %s and y is %s",
                         tern_dtype_name(x->dtype), tern_dtype_name(y->dtype));
    tern_shape sc = tern_shape_of(c), sx = tern_shape_of(x), sy = tern_shape_of(y), both;
    TERN_TRY(tern_shape_broadcast(&sx, &sy, &both, "tern_where"));
    TERN_TRY(tern_shape_broadcast(&sc, &both, &call->result[0].shape, "tern_where"));
    call->result[0].dtype = x->dtype;
    call->n_out = 1;
    call->channels_last = tern_keeps_channels_last(call->in, 3, &call->result[0].shape);
    return TERN_OK;
}

/* Computes out = condition ? x : y, for any strides. */
static tern_status choose(const tern_call *call, tern_tensor *condition, tern_tensor *x,
                          tern_tensor *y)
{
    static const tern_kernel_ref kernel = {"copy", "where"};
    tern_tensor *t[4] = {call->out[0], condition, x, y};
    tern_dtype mover = tern_mover(x->dtype);
    tern_nd_index w;
    tern_nd_index_make(&w, &call->result[0].shape, t, 4);
    return TERN_LAUNCH(call->place, &kernel, mover, tern_nd_index_grid(&w),
                       tern_arg_as(TERN_ROLE_OUT, mover, call->out[0]), tern_arg_in(condition),
                       tern_arg_as(TERN_ROLE_IN, mover, x), tern_arg_as(TERN_ROLE_IN, mover, y),
                       TERN_ARG_STRUCT(tern_nd_index, &w));
}

static tern_status where_forward(tern_call *call)
{
    if (call->out[0]->numel == 0)
        return TERN_OK;
    return choose(call, call->in[0], call->in[1], call->in[2]);
}

/* dx = condition ? dout : 0, dy = condition ? 0 : dout. */
static tern_status where_backward(tern_gradient *g)
{
    tern_tensor *zero =
        tern_tensor_scalar(tern_scalar_real(0), g->dout[0]->dtype, tern_device(g->dout[0]));
    if (g->needs[1] && !(g->din[1] = tern_where(g->in[0], g->dout[0], zero)))
        return tern_last_status();
    if (g->needs[2] && !(g->din[2] = tern_where(g->in[0], zero, g->dout[0])))
        return tern_last_status();
    return TERN_OK;
}

static const tern_op where_op = {.name = "where",
                                 .stored = TERN_STORED_MOVED,
                                 .takes_numbers = true,
                                 .saves = TERN_SAVE_IN(0),
                                 .infer = where_infer,
                                 .forward = where_forward,
                                 .backward = where_backward};

/* x and y are promoted here and not by the operation, because the condition's bool would take part
 * in that promotion. */
tern_tensor *tern_where(tern_tensor *condition, tern_tensor *x, tern_tensor *y)
{
    if (x && y && x->dtype != y->dtype) {
        TERN_NAMED_IN_ERRORS;
        tern_dtype common = tern_common_type((tern_tensor *[]){x, y}, 2);
        x = tern_to_dtype(x, common);
        y = tern_to_dtype(y, common);
    }
    if (condition && condition->dtype == TERN_U8) {
        tern_warn("dtype", __func__,
                  "where received a uint8 condition tensor. This behavior is deprecated. Use a "
                  "boolean condition instead.");
        condition = tern_to_dtype(condition, TERN_BOOL);
    }
    return tern_apply(&where_op, (tern_tensor *[]){condition, x, y}, 3, NULL, 0);
}

/* Returns a number as a tensor with x's dtype, or with the default dtype of the number if that is
 * of a higher kind (bool < integer < real). Returns NULL for a NULL x. */
static tern_tensor *number_beside(const tern_tensor *x, tern_scalar value)
{
    if (!x)
        return NULL;
    tern_dtype dtype = x->dtype;
    if (value.kind == TERN_SCALAR_REAL && !tern_dtype_is_floating_point(dtype))
        dtype = tern_default_real();
    else if (value.kind == TERN_SCALAR_INT && dtype == TERN_BOOL)
        dtype = TERN_I64;
    return tern_tensor_scalar(value, dtype, tern_device(x));
}

tern_tensor *tern_where_scalar(tern_tensor *condition, tern_tensor *x, tern_scalar y)
{
    TERN_NAMED_IN_ERRORS;
    return tern_where(condition, x, number_beside(x, y));
}

tern_tensor *tern_where_scalar_self(tern_tensor *condition, tern_scalar x, tern_tensor *y)
{
    TERN_NAMED_IN_ERRORS;
    return tern_where(condition, number_beside(y, x), y);
}

/* Both numbers become one dtype, that of the higher kind. */
tern_tensor *tern_where_scalars(tern_tensor *condition, tern_scalar x, tern_scalar y)
{
    TERN_NAMED_IN_ERRORS;
    const char *device = tern_device(condition);
    if (!condition)
        return tern_where(NULL, NULL, NULL);
    tern_tensor *a = tern_tensor_scalar(x, TERN_DTYPE_DEFAULT, device),
                *b = tern_tensor_scalar(y, TERN_DTYPE_DEFAULT, device);
    return tern_where(condition, a, b);
}

/* out = mask ? value : x. The first input is x, unlike where's, so that the in-place form writes
 * x. */
static tern_status masked_fill_infer(tern_call *call)
{
    const char *function = call->in_place ? "tern_masked_fill_" : "tern_masked_fill";
    tern_tensor *x = call->in[0], *mask = call->in[1];
    if (mask->dtype != TERN_BOOL)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: masked_fill only supports boolean masks, but got mask with dtype %s",
                         function, tern_dtype_name(mask->dtype));
    tern_shape sx = tern_shape_of(x), sm = tern_shape_of(mask);
    call->n_out = 1;
    call->result[0].dtype = x->dtype;
    return tern_shape_broadcast(&sx, &sm, &call->result[0].shape, function);
}

/* Passes the value as a tensor without dims, broadcast by the kernel of where. */
static tern_status masked_fill_forward(tern_call *call)
{
    const tern_scalar *value = call->attributes;
    tern_shape scalar = {0};
    tern_tensor *out = call->out[0];
    if (out->numel == 0)
        return TERN_OK;
    tern_tensor *fill = tern_tensor_new(&scalar, out->dtype, call->place, "tern_masked_fill");
    tern_status status = fill ? TERN_OK : tern_last_status();
    if (status == TERN_OK && !tern_fill_(fill, *value))
        status = tern_last_status();
    if (status == TERN_OK)
        status = choose(call, call->in[1], fill, call->in[0]);
    tern_release(fill);
    return status;
}

/* dx = mask ? 0 : dout. */
static tern_status masked_fill_backward(tern_gradient *g)
{
    g->din[0] = tern_masked_fill(g->dout[0], g->in[1], tern_scalar_int(0));
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op masked_fill_op = {.name = "masked_fill",
                                       .names = TERN_NAMES(TERN_WHOLE(tern_scalar, "value")),
                                       .saves = TERN_SAVE_IN(1),
                                       .infer = masked_fill_infer,
                                       .forward = masked_fill_forward,
                                       .backward = masked_fill_backward};

tern_tensor *tern_masked_fill(tern_tensor *x, tern_tensor *mask, tern_scalar value)
{
    return tern_apply(&masked_fill_op, (tern_tensor *[]){x, mask}, 2, &value, sizeof value);
}

tern_tensor *tern_masked_fill_(tern_tensor *x, tern_tensor *mask, tern_scalar value)
{
    return tern_apply_in_place(&masked_fill_op, (tern_tensor *[]){x, mask}, 2, &value,
                               sizeof value);
}
