/* operations.c -- the table of ONNX operations, and operations with numbers beside their
 * tensors. */
#include "io/onnx/operations.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- operations of one and two tensors ------------------------------------------------------- */

static tern_tensor *softplus(tern_tensor *x)
{
    return tern_softplus(x, 1, 20);
}

static bool is_real(const tern_tensor *x)
{
    return tern_dtype_is_floating_point(tern_dtype_of(x));
}

/* Returns x / y. Quotients of integers are rounded towards zero. */
static tern_tensor *divide(tern_tensor *x, tern_tensor *y)
{
    return is_real(x) ? tern_div(x, y) : tern_trunc_divide(x, y);
}

static const onnx_operation operations[] = {
#define UNARY(NAME, function)        {.name = #NAME, .unary = function},
#define BINARY(NAME, function)       {.name = #NAME, .binary = function},
#define RUN(NAME, function, on_host) {#NAME, NULL, NULL, onnx_##function, on_host, false, false},
#define KEEPS(NAME, function)        {#NAME, NULL, NULL, onnx_##function, 0, false, true},
#define MICROSOFT(NAME, function)    {#NAME, NULL, NULL, onnx_##function, 0, true, true},
#include "io/onnx/operations.def"
#undef UNARY
#undef BINARY
#undef RUN
#undef KEEPS
#undef MICROSOFT
};

const onnx_operation *onnx_find_operation(const char *domain, const char *name)
{
    const bool microsoft = domain && !strcmp(domain, "com.microsoft");
    if (domain && *domain && strcmp(domain, "ai.onnx") && !microsoft)
        return NULL;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].microsoft == microsoft && !strcmp(operations[i].name, name))
            return &operations[i];
    return NULL;
}

/* ---- activations ----------------------------------------------------------------------------- */

#define ACTIVATION(name, ...)                                                                      \
    tern_status onnx_##name(onnx_call *c)                                                          \
    {                                                                                              \
        tern_tensor *x = onnx_in(c, 0);                                                            \
        return onnx_give(c, __VA_ARGS__);                                                          \
    }
ACTIVATION(elu, tern_elu(x, onnx_real(c, "alpha", 1)))
ACTIVATION(celu, tern_celu(x, onnx_real(c, "alpha", 1)))
ACTIVATION(leaky_relu, tern_leaky_relu(x, onnx_real(c, "alpha", 0.01)))
ACTIVATION(thresholded_relu, tern_threshold(x, onnx_real(c, "alpha", 1), 0))
ACTIVATION(gelu, onnx_text_is(c, "approximate", "tanh", false) ? tern_gelu_tanh(x) : tern_gelu(x))
ACTIVATION(selu, tern_mul_scalar(tern_elu(x, onnx_real(c, "alpha", 1.67326319217681884765625)),
                                 TERN_SCALAR(onnx_real(c, "gamma", 1.05070102214813232421875))))
ACTIVATION(hard_sigmoid,
           tern_clamp(tern_add_scalar(tern_mul_scalar(x, TERN_SCALAR(onnx_real(c, "alpha", 0.2))),
                                      TERN_SCALAR(onnx_real(c, "beta", 0.5))),
                      0, 1))

/* Returns x + bias where x < -lambd, x - bias where x > lambd, and 0 elsewhere. */
tern_status onnx_shrink(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    double lambd = onnx_real(c, "lambd", 0.5), bias = onnx_real(c, "bias", 0);
    tern_tensor *above = tern_to_dtype(tern_gt_scalar(x, TERN_SCALAR(lambd)), tern_dtype_of(x));
    tern_tensor *below = tern_to_dtype(tern_lt_scalar(x, TERN_SCALAR(-lambd)), tern_dtype_of(x));
    return onnx_give(c, tern_add(tern_mul(above, tern_sub_scalar(x, TERN_SCALAR(bias))),
                                 tern_mul(below, tern_add_scalar(x, TERN_SCALAR(bias)))));
}

/* Up to operator set 12 the softmax is over all dims from axis on, flattened; since then over one
 * dim. */
tern_status onnx_softmax(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    bool flat = c->opset < 13, log = !strcmp(c->proto->op_type, "LogSoftmax");
    int axis = onnx_axis(onnx_int(c, "axis", flat ? 1 : -1), tern_dim(x));
    tern_tensor *rows = flat ? tern_flatten(x, axis, -1) : x;
    if (flat && axis == tern_dim(x))
        return onnx_fail(c, TERN_ERR_SHAPE, "axis %d is behind the last dim", axis);
    tern_tensor *y = log ? tern_log_softmax(rows, axis) : tern_softmax(rows, axis);
    return onnx_give(c, flat ? tern_reshape_as(y, x) : y);
}

tern_status onnx_hardmax(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    bool flat = c->opset < 13;
    int axis = onnx_axis(onnx_int(c, "axis", flat ? 1 : -1), tern_dim(x));
    tern_tensor *rows = flat ? tern_flatten(x, axis, -1) : x;
    tern_tensor *y =
        tern_scatter_scalar(tern_zeros_like(rows), axis, tern_argmax_dim(rows, axis, true),
                            TERN_SCALAR(1), TERN_REDUCE_NONE);
    return onnx_give(c, flat ? tern_reshape_as(y, x) : y);
}

/* ---- operations of several tensors ----------------------------------------------------------- */

static tern_status fold(onnx_call *c, onnx_binary function, bool divide_by_n)
{
    tern_tensor *y = onnx_in(c, 0);
    for (int i = 1; i < c->n_in; i++)
        y = function(y, c->in[i]);
    return onnx_give(c, divide_by_n ? tern_div_scalar(y, TERN_SCALAR(c->n_in)) : y);
}

static tern_tensor *add(tern_tensor *x, tern_tensor *y)
{
    return tern_add(x, y);
}

static tern_tensor *largest(tern_tensor *x, tern_tensor *y)
{
    return tern_maximum(x, y);
}

static tern_tensor *smallest(tern_tensor *x, tern_tensor *y)
{
    return tern_minimum(x, y);
}

tern_status onnx_sum(onnx_call *c)
{
    return fold(c, add, false);
}

tern_status onnx_mean(onnx_call *c)
{
    return fold(c, add, true);
}

tern_status onnx_maximum(onnx_call *c)
{
    return fold(c, largest, false);
}

tern_status onnx_minimum(onnx_call *c)
{
    return fold(c, smallest, false);
}

/* The exponent can have another dtype than the base, whose dtype the result has. A constant
 * exponent of one element is passed as a number, since squares and roots are cheaper then. */
tern_status onnx_power(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *y = onnx_in(c, 1);
    if (!x || !y)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "lacks an input");
    const onnx_value *exponent = &c->running->graph->values[c->node->in[1]];
    if (exponent->source == ONNX_CONSTANT && tern_numel(exponent->constant) == 1 && is_real(x) &&
        tern_dim(y) <= tern_dim(x))
        return onnx_give(c, tern_pow_scalar(x, TERN_SCALAR(tern_item(exponent->constant))));
    return onnx_give(c, tern_to_dtype(tern_pow(x, y), tern_dtype_of(x)));
}

tern_status onnx_where(onnx_call *c)
{
    return onnx_give(c, tern_where(onnx_in(c, 0), onnx_in(c, 1), onnx_in(c, 2)));
}

/* The remainder has the sign of the divisor, or with fmod that of the dividend. */
tern_status onnx_modulo(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *y = onnx_in(c, 1);
    return onnx_give(c, onnx_int(c, "fmod", 0) ? tern_fmod(x, y) : tern_remainder(x, y));
}

tern_status onnx_bit_shift(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *y = onnx_in(c, 1);
    return onnx_give(c, onnx_text_is(c, "direction", "LEFT", false)
                            ? tern_bitwise_left_shift(x, y)
                            : tern_bitwise_right_shift(x, y));
}

/* The limits are attributes up to operator set 10, and inputs since. */
tern_status onnx_clip(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    double low[ONNX_DIMS] = {-(double)INFINITY}, high[ONNX_DIMS] = {(double)INFINITY};
    if (c->opset < 11) {
        low[0] = onnx_real(c, "min", low[0]);
        high[0] = onnx_real(c, "max", high[0]);
    } else if (onnx_input_reals(c, 1, low) == -2 || onnx_input_reals(c, 2, high) == -2)
        return TERN_OK;
    if (is_real(x)) /* if low > high the result is high, as in numpy's minimum(max, maximum(x,
                       min)) */
        return onnx_give(c, low[0] <= high[0] ? tern_clamp(x, low[0], high[0])
                                              : tern_full_like(x, TERN_SCALAR(high[0])));
    if (isfinite(low[0]))
        x = tern_clamp_min_scalar(x, TERN_SCALAR((int64_t)low[0]));
    return onnx_give(c, isfinite(high[0]) ? tern_clamp_max_scalar(x, TERN_SCALAR((int64_t)high[0]))
                                          : x);
}

tern_status onnx_is_infinite(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    bool low = onnx_int(c, "detect_negative", 1), high = onnx_int(c, "detect_positive", 1);
    return onnx_give(c, low && high ? tern_isinf(x)
                        : low       ? tern_isneginf(x)
                        : high      ? tern_isposinf(x)
                                    : tern_ne(tern_isinf(x), tern_isinf(x)));
}

tern_status onnx_cast(onnx_call *c)
{
    char what[128];
    snprintf(what, sizeof what, "the result of node '%.60s' (Cast)",
             c->proto->name ? c->proto->name : "");
    tern_dtype dtype = onnx_dtype(onnx_type_in(c, "to"), what);
    return dtype ? onnx_give(c, tern_to_dtype(onnx_in(c, 0), dtype)) : TERN_ERR_DTYPE;
}

tern_status onnx_cast_like(onnx_call *c)
{
    return onnx_give(c, tern_to_dtype(onnx_in(c, 0), tern_dtype_of(onnx_in(c, 1))));
}

tern_status onnx_einsum(onnx_call *c)
{
    const Onnx__AttributeProto *a = onnx_attribute(c, "equation");
    char equation[256];
    if (!a || a->s.len >= sizeof equation)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "its equation is missing or too long");
    memcpy(equation, a->s.data, a->s.len);
    equation[a->s.len] = 0;
    return onnx_give(c, tern_einsum(equation, c->in, c->n_in));
}
