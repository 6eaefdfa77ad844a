/* convolution.c -- convolutions, transposed convolutions, and their gradients.
 *
 * y = x * weight is linear in x and in weight, and so are its two gradients: dx = y' * weight
 * (which is the transposed convolution) and dweight = x * y'. The gradients of each of the three
 * operations are the other two, so that derivatives of any order are composed of these three. */
#include "ops/convolution/convolution.h"
#include "base/option.h"
#include "tensor/fuse/fuse.h"
#include "tensor/memory_format.h"

typedef struct conv_attributes {
    tern_conv_shape shape;
    int ndim;
    bool last; /* all tensors are channels_last */
    const char *function;
} conv_attributes;

/* ---- shapes ------------------------------------------------------------------------------ */

/* Returns the shape (a, b, *) with the last ndim of three spatial dims. */
static tern_shape with_dims(int64_t a, int64_t b, const int64_t *dims, int ndim)
{
    tern_shape shape = {2 + ndim, {a, b}};
    for (int d = 0; d < ndim; d++)
        shape.dims[2 + d] = dims[3 - ndim + d];
    return shape;
}

static tern_shape x_shape(const conv_attributes *at)
{
    return with_dims(at->shape.n, at->shape.c, at->shape.in, at->ndim);
}
static tern_shape weight_shape(const conv_attributes *at)
{
    const tern_conv_shape *s = &at->shape;
    return with_dims(s->o, s->c / s->groups, s->window, at->ndim);
}
static tern_shape y_shape(const conv_attributes *at)
{
    return with_dims(at->shape.n, at->shape.o, at->shape.out, at->ndim);
}

/* Infers one result with the inputs' dtype. x, weight and bias must have the same dtype. */
static tern_status infer(tern_call *call, tern_shape (*shape_of)(const conv_attributes *at))
{
    const conv_attributes *at = call->attributes;
    tern_dtype dtype = call->in[0]->dtype;
    for (int i = 1; i < call->n_in; i++)
        if (call->in[i] && call->in[i]->dtype != dtype)
            return tern_fail(TERN_ERR_DTYPE,
                             "%s: Input type (%s) and %s type (%s) should be the same",
                             at->function, tern_dtype_name(dtype), i == 2 ? "bias" : "weight",
                             tern_dtype_name(call->in[i]->dtype));
    if (!tern_dtype_in(dtype, TERN_SET_NUMBERS))
        return tern_fail_dtype(at->function, dtype);
    call->n_out = 1;
    call->channels_last = at->last;
    call->result[0] = (tern_result){.dtype = dtype, .shape = shape_of(at)};
    return TERN_OK;
}

static tern_status infer_y(tern_call *call)
{
    return infer(call, y_shape);
}
static tern_status infer_x(tern_call *call)
{
    return infer(call, x_shape);
}
static tern_status infer_weight(tern_call *call)
{
    return infer(call, weight_shape);
}

/* ---- forward: inputs (x, weight, bias), (y, weight) and (x, y) ------------------------------ */

/* Computes y = conv(x, weight) + bias. */
static tern_status forward_y(tern_call *call)
{
    const conv_attributes *at = call->attributes;
    return tern_conv_run(TERN_CONV_Y, &at->shape, call->in[0], call->in[1], call->out[0],
                         call->in[2], at->last);
}

/* Computes x = conv_transpose(y, weight), the gradient of conv with respect to x. */
static tern_status forward_x(tern_call *call)
{
    const conv_attributes *at = call->attributes;
    return tern_conv_run(TERN_CONV_X, &at->shape, call->out[0], call->in[1], call->in[0], NULL,
                         at->last);
}

/* Computes weight = the correlation of x and y, the gradient of conv with respect to the weight. */
static tern_status forward_weight(tern_call *call)
{
    const conv_attributes *at = call->attributes;
    return tern_conv_run(TERN_CONV_WEIGHT, &at->shape, call->in[0], call->out[0], call->in[1], NULL,
                         at->last);
}

/* Each map is bilinear: the gradient of one input needs only the other input, so an input is saved
 * only if the other one requires a gradient. With frozen weights no activations are saved. */
static uint32_t saves(const tern_call *call)
{
    return (call->in[1]->requires_grad ? TERN_SAVE_IN(0) : 0) |
           (call->in[0]->requires_grad ? TERN_SAVE_IN(1) : 0);
}

static tern_tensor *make_y(const conv_attributes *at, tern_tensor *x, tern_tensor *weight,
                           tern_tensor *bias);
static tern_tensor *make_x(const conv_attributes *at, tern_tensor *y, tern_tensor *weight);
/* The result is written to grad_out unless that is NULL. */
static tern_tensor *make_weight(const conv_attributes *at, tern_tensor *x, tern_tensor *y,
                                tern_tensor *grad_out);

/* Returns x in the memory format of this call. */
static tern_tensor *as_it_lies(const conv_attributes *at, tern_tensor *x)
{
    return at->last && x ? tern_to_memory_format(x, at->ndim == 2 ? TERN_CHANNELS_LAST
                                                                  : TERN_CHANNELS_LAST_3D)
                         : tern_contiguous(x);
}

/* dbias[o] = sum over images and positions of dy[n, o, q], in two steps: the positions are
 * contiguous in memory, and one reduction over dims 0 and 2 would read with strides. Half precision
 * is summed in float32. */
static tern_tensor *bias_gradient(const conv_attributes *at, tern_tensor *dy)
{
    tern_dtype dtype = tern_dtype_of(dy);
    if (tern_dtype_is_half(dtype))
        dy = tern_to_dtype(dy, TERN_F32);
    if (at->last) /* the channels are columns of a matrix */
        return tern_to_dtype(
            tern_sum_dim(tern_reshape(tern_movedim(dy, TERN_DIMS(1), TERN_DIMS(-1)),
                                      TERN_SHAPE(-1, at->shape.o)),
                         TERN_DIMS(0), false),
            dtype);
    dy = tern_reshape(dy, TERN_SHAPE(at->shape.n, at->shape.o, -1));
    tern_tensor *planes = tern_sum_dim(dy, TERN_DIMS(2), false);
    return tern_to_dtype(tern_sum_dim(planes, TERN_DIMS(0), false), dtype);
}

/* Adds dx to the gradient of x that is already there, if the device's routine can and no other
 * tensor shares that gradient's memory. */
static tern_status add_dx(tern_gradient *g, tern_tensor *dy)
{
    const conv_attributes *at = g->attributes;
    tern_tensor *weight = g->in[1], *sum = tern_accumulate_in_place(g);
    bool added = false;
    if (at->last || !sum || !sum->contiguous || !weight->contiguous)
        return TERN_OK;
    TERN_TRY(tern_conv_add_x(&at->shape, sum, weight, dy, &added));
    if (added) {
        g->din[0] = sum;
        tern_accumulated(g);
    }
    return TERN_OK;
}

/* y = conv(x, w) + b:  dx = conv_transpose(dy, w),  dw = correlation(x, dy),  db = sum dy. */
static tern_status backward_y(tern_gradient *g)
{
    const conv_attributes *at = g->attributes;
    tern_tensor *dy = as_it_lies(at, g->dout[0]);
    if (g->needs[0] && dy)
        TERN_TRY(add_dx(g, dy));
    if (g->needs[0] && !tern_is_accumulated(g))
        g->din[0] = make_x(at, dy, g->in[1]);
    if (g->needs[1])
        g->din[1] = make_weight(at, g->in[0], dy, *tern_grad_outs(g, 1));
    if (g->needs[2])
        g->din[2] = y_shape(at).dims[0] ? bias_gradient(at, dy)
                                        : tern_new_zeros(dy, TERN_SHAPE(at->shape.o));
    return TERN_OK;
}

/* x = conv_transpose(y, w):  dy = conv(dx, w),  dw = correlation(dx, y). */
static tern_status backward_x(tern_gradient *g)
{
    const conv_attributes *at = g->attributes;
    tern_tensor *dx = as_it_lies(at, g->dout[0]);
    if (g->needs[0])
        g->din[0] = make_y(at, dx, g->in[1], NULL);
    if (g->needs[1])
        g->din[1] = make_weight(at, dx, g->in[0], *tern_grad_outs(g, 1));
    return TERN_OK;
}

/* w = correlation(x, y):  dx = conv_transpose(y, dw),  dy = conv(x, dw). */
static tern_status backward_weight(tern_gradient *g)
{
    const conv_attributes *at = g->attributes;
    tern_tensor *dw = as_it_lies(at, g->dout[0]);
    if (g->needs[0])
        g->din[0] = make_x(at, g->in[1], dw);
    if (g->needs[1])
        g->din[1] = make_y(at, g->in[0], dw, NULL);
    return TERN_OK;
}

#define CONVOLUTION_NAMES                                                                          \
    TERN_NAMES(TERN_FIELD(conv_attributes, "dims", ndim),                                          \
               TERN_FIELD(conv_attributes, "groups", shape.groups),                                \
               TERN_FIELDS(conv_attributes, "kernel_size", shape.window),                          \
               TERN_FIELDS(conv_attributes, "stride", shape.stride),                               \
               TERN_FIELDS(conv_attributes, "padding", shape.padding),                             \
               TERN_FIELDS(conv_attributes, "dilation", shape.dilation))

static const tern_fusion y_fusion = {.accumulates = true, .grad_outs = 1u << 1},
                         x_fusion = {.grad_outs = 1u << 1};

static const tern_op y_op = {.name = "convolution",
                             .names = CONVOLUTION_NAMES,
                             .cast = TERN_CAST_LOWER,
                             .optional = 1u << 2,
                             .fusion = &y_fusion,
                             .choose_saves = saves,
                             .infer = infer_y,
                             .forward = forward_y,
                             .backward = backward_y};
static const tern_op x_op = {.name = "conv_transpose",
                             .names = CONVOLUTION_NAMES,
                             .cast = TERN_CAST_LOWER,
                             .fusion = &x_fusion,
                             .choose_saves = saves,
                             .infer = infer_x,
                             .forward = forward_x,
                             .backward = backward_x};
static const tern_op weight_op = {.name = "convolution_weight",
                                  .choose_saves = saves,
                                  .infer = infer_weight,
                                  .forward = forward_weight,
                                  .backward = backward_weight};

/* Returns the attributes for two inputs, and converts these to one memory format: channels_last if
 * one of them has it. */
static conv_attributes bring(const conv_attributes *at, tern_tensor **in)
{
    conv_attributes own = *at;
    own.last = in[0] && at->ndim > 1 &&
               (tern_is_channels_last(in[0]) || tern_is_channels_last(in[1])) &&
               !tern_dtype_in(in[0]->dtype, TERN_SET_WHOLES);
    in[0] = as_it_lies(&own, in[0]);
    in[1] = as_it_lies(&own, in[1]);
    return own;
}

static tern_tensor *make_y(const conv_attributes *at, tern_tensor *x, tern_tensor *weight,
                           tern_tensor *bias)
{
    if (bias && !(bias = tern_contiguous(bias)))
        return NULL; /* contiguous failed; NULL would mean no bias */
    tern_tensor *in[] = {x, weight, bias};
    const conv_attributes own = bring(at, in);
    return tern_apply(&y_op, in, 3, &own, sizeof own);
}
static tern_tensor *make_x(const conv_attributes *at, tern_tensor *y, tern_tensor *weight)
{
    tern_tensor *in[] = {y, weight};
    const conv_attributes own = bring(at, in);
    return tern_apply(&x_op, in, 2, &own, sizeof own);
}
static tern_tensor *make_weight(const conv_attributes *at, tern_tensor *x, tern_tensor *y,
                                tern_tensor *grad_out)
{
    tern_tensor *in[] = {x, y}, *weight = NULL;
    const conv_attributes own = bring(at, in);
    tern_apply_into(&weight_op, in, 2, &own, sizeof own, &weight, 1, &grad_out);
    return weight;
}

/* ---- public functions -------------------------------------------------------------------- */

static tern_status read_options(const tern_conv_function_options *options, tern_conv_window *w)
{
    const tern_conv_function_options read = tern_read_conv_function(options), *o = &read;
    const char *f = w->function;
    w->groups = o->groups;
    TERN_TRY(tern_conv_numbers(&o->stride, w->ndim, 1, "stride", f, w->stride));
    TERN_TRY(tern_conv_numbers(&o->dilation, w->ndim, 1, "dilation", f, w->dilation));
    TERN_TRY(tern_conv_numbers(&o->padding, w->ndim, 0, "padding", f, w->padding));
    w->same = o->named_padding == TERN_PADDING_SAME;
    return tern_check_enum(f, "named_padding", (int)o->named_padding, TERN_PADDING_SAME,
                           "tern_named_padding");
}

/* Returns an input without a batch dim as a batch of one, and any other input unchanged. */
static tern_tensor *batched(tern_tensor *x, int ndim, bool *alone)
{
    *alone = x && x->ndim == ndim + 1;
    return *alone ? tern_unsqueeze(x, 0) : x;
}

static bool given(tern_tensor *x, tern_tensor *weight, const char *function)
{
    if (!x || !weight)
        tern_fail_argument_null(function, x ? "weight" : "input");
    return x && weight;
}

/* Returns y[n, o, q] = bias[o] + sum over c, t of weight[o, c, t] x[n, c, q stride + t dilation -
 * padding], the cross-correlation that is called convolution in deep learning. */
static tern_tensor *conv(tern_tensor *x, tern_tensor *weight, tern_tensor *bias,
                         const tern_conv_function_options *options, int ndim, const char *function)
{
    bool alone;
    tern_conv_window w = {.function = function, .ndim = ndim};
    conv_attributes at = {.ndim = ndim, .function = function};
    if (!given(x, weight, function) || read_options(options, &w) != TERN_OK)
        return NULL;
    x = batched(x, ndim, &alone);
    tern_shape xs = tern_shape_of(x), ws = tern_shape_of(weight);
    if (!x || tern_conv_shape_of(&w, &xs, &ws, bias, &at.shape) != TERN_OK)
        return NULL;
    if (bias && options && options->named_padding && !(bias = tern_to_dtype(bias, x->dtype)))
        return NULL; /* PyTorch compares the dtypes if padding is given as numbers only */
    tern_tensor *y = make_y(&at, x, weight, bias);
    return alone ? tern_squeeze_dim(y, 0) : y;
}

/* Returns x + bias, one number for each channel, in x's dtype. In one and two dims PyTorch adds the
 * bias in place, so its dtype may differ unless x is bfloat16. */
static tern_tensor *add_bias(const conv_attributes *at, tern_tensor *x, tern_tensor *bias)
{
    const int64_t ones[3] = {1, 1, 1};
    if (bias->dtype != x->dtype && (at->ndim == 3 || x->dtype == TERN_BF16))
        return tern_fail_null(
            TERN_ERR_DTYPE, "%s: Input type (%s) and bias type (%s) should be the same",
            at->function, tern_dtype_name(x->dtype), tern_dtype_name(bias->dtype));
    if (tern_dtype_is_floating_point(bias->dtype) && !tern_dtype_is_floating_point(x->dtype))
        return tern_fail_null(
            TERN_ERR_DTYPE, "%s: result type %s can't be cast to the desired output type %s",
            at->function, tern_dtype_name(bias->dtype), tern_dtype_name(x->dtype));
    bias = tern_reshape(bias, with_dims(1, at->shape.c, ones, at->ndim));
    return tern_to_dtype(tern_add(x, bias), tern_dtype_of(x));
}

/* Returns the gradient of a convolution as an operation: each element of y, times the kernel, is
 * added to x at q stride + t dilation - padding. The bias, one number for each channel of x, is
 * added by a separate operation, since the pass that computes dx has none. */
static tern_tensor *conv_transpose(tern_tensor *y, tern_tensor *weight, tern_tensor *bias,
                                   const tern_conv_transpose_function_options *options, int ndim,
                                   const char *function)
{
    const tern_conv_transpose_function_options read = tern_read_conv_transpose_function(options),
                                               *o = &read;
    tern_conv_function_options plain = {o->stride, o->padding, o->dilation, .groups = o->groups};
    plain.reserved[0] = TERN_OPTIONS_AS_WRITTEN;
    bool alone;
    tern_conv_window w = {.function = function, .ndim = ndim};
    conv_attributes at = {.ndim = ndim, .function = function};
    TERN_CAST_FOR(&x_op, &y, &weight, &bias);
    if (!given(y, weight, function) || read_options(&plain, &w) != TERN_OK ||
        tern_conv_numbers(&o->output_padding, ndim, 0, "output_padding", function,
                          w.output_padding) != TERN_OK)
        return NULL;
    y = batched(y, ndim, &alone);
    tern_shape ys = tern_shape_of(y), ws = tern_shape_of(weight);
    if (!y || tern_conv_transpose_shape_of(&w, &ys, &ws, bias, &at.shape) != TERN_OK)
        return NULL;
    tern_tensor *x = make_x(&at, y, weight);
    if (x && bias)
        x = add_bias(&at, x, bias);
    return alone ? tern_squeeze_dim(x, 0) : x;
}

#define CONV(N)                                                                                    \
    tern_tensor *tern_conv##N##d(tern_tensor *input, tern_tensor *weight, tern_tensor *bias,       \
                                 const tern_conv_function_options *options)                        \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return conv(input, weight, bias, options, N, "tern_conv" #N "d");                          \
    }                                                                                              \
    tern_tensor *tern_conv_transpose##N##d(tern_tensor *input, tern_tensor *weight,                \
                                           tern_tensor *bias,                                      \
                                           const tern_conv_transpose_function_options *options)    \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return conv_transpose(input, weight, bias, options, N, "tern_conv_transpose" #N "d");      \
    }
CONV(1)
CONV(2)
CONV(3)
