/* quantized.c -- ONNX operations of quantized numbers: q represents (q - zero point) scale. */
#include "io/onnx/operations.h"
#include <math.h>
#include <string.h>

/* Sets *low and *high to the range of a quantized dtype. Returns false for other dtypes. */
static bool range_of(tern_dtype dtype, double *low, double *high)
{
    static const struct {
        tern_dtype dtype;
        double low, high;
    } ranges[] = {{TERN_U8, 0, UINT8_MAX},
                  {TERN_I8, INT8_MIN, INT8_MAX},
                  {TERN_U16, 0, UINT16_MAX},
                  {TERN_I16, INT16_MIN, INT16_MAX}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].dtype == dtype) {
            *low = ranges[i].low;
            *high = ranges[i].high;
            return true;
        }
    return false;
}

/* Returns a scale or zero point as a `dtype` tensor that broadcasts to x. It has one element, one
 * for each entry of dim axis, or one for each block of entries along that dim. */
static tern_tensor *along(const onnx_call *c, tern_tensor *p, const tern_tensor *x, int axis,
                          tern_dtype dtype)
{
    tern_shape shape = {.ndim = tern_dim(x)};
    const int64_t block = onnx_int(c, "block_size", 0);
    if (!p)
        return NULL;
    p = tern_to_dtype(p, dtype);
    if (tern_numel(p) == 1)
        return tern_reshape(p, TERN_SHAPE_SCALAR);
    if (axis < 0 || axis >= tern_dim(x)) {
        onnx_fail(c, TERN_ERR_SHAPE, "axis %d of %d dims", axis, tern_dim(x));
        return NULL;
    }
    if (tern_dim(p) == 1) {
        for (int d = 0; d < shape.ndim; d++)
            shape.dims[d] = d == axis ? tern_numel(p) : 1;
        return tern_reshape(p, shape);
    }
    if (block > 0 && tern_dim(p) == tern_dim(x) && block <= tern_size(x, axis)) {
        p = tern_repeat_interleave(p, block, (tern_optional_int){true, axis});
        return p ? tern_narrow(p, axis, 0, tern_size(x, axis)) : NULL;
    }
    return p;
}

/* Returns round(x) + zero point, rounded half to even and clamped to the range of dtype. */
static tern_tensor *saturated(const onnx_call *c, tern_tensor *x, tern_tensor *zero,
                              tern_dtype dtype)
{
    double low, high;
    if (dtype == TERN_F8_E4M3FN || dtype == TERN_F8_E5M2)
        return tern_to_dtype(x, dtype);
    if (!range_of(dtype, &low, &high)) {
        onnx_fail(c, TERN_ERR_UNSUPPORTED, "quantizes to %s", tern_dtype_name(dtype));
        return NULL;
    }
    x = tern_round(x);
    return tern_to_dtype(tern_clamp(zero ? tern_add(x, zero) : x, low, high), dtype);
}

/* Returns the dtype in which x is computed, at least float32. */
static tern_dtype wide(const tern_tensor *x)
{
    return tern_dtype_of(x) == TERN_F64 ? TERN_F64 : TERN_F32;
}

tern_status onnx_quantize(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *scale = onnx_in(c, 1), *zero = onnx_in(c, 2);
    if (!x || !scale)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "lacks its input or its scale");
    const int64_t type = onnx_int(c, "output_dtype", 0);
    tern_dtype dtype = zero ? tern_dtype_of(zero) : type ? onnx_dtype(type, "a result") : TERN_U8;
    const int axis = onnx_axis(onnx_int(c, "axis", 1), tern_dim(x));
    if (!dtype)
        return TERN_ERR_DTYPE;
    const tern_dtype real = wide(x);
    tern_tensor *y = tern_div(tern_to_dtype(x, real), along(c, scale, x, axis, real));
    return onnx_give(c, y ? saturated(c, y, along(c, zero, x, axis, real), dtype) : NULL);
}

/* Returns (x - zero) scale, in the dtype of the scale. */
static tern_tensor *dequantized(const onnx_call *c, tern_tensor *x, tern_tensor *scale,
                                tern_tensor *zero, int axis)
{
    tern_tensor *y = tern_to_dtype(x, TERN_F32);
    if (zero)
        y = tern_sub(y, along(c, zero, x, axis, TERN_F32));
    y = tern_mul(y, along(c, scale, x, axis, TERN_F32));
    return y ? tern_to_dtype(y, tern_dtype_of(scale)) : NULL;
}

tern_status onnx_dequantize(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *scale = onnx_in(c, 1);
    if (!x || !scale)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "lacks its input or its scale");
    return onnx_give(
        c, dequantized(c, x, scale, onnx_in(c, 2), onnx_axis(onnx_int(c, "axis", 1), tern_dim(x))));
}

/* Returns x quantized to uint8. Sets *scale and *zero, both floating point, from the minimum and
 * maximum of x and 0, so that 0 is represented exactly. */
static tern_tensor *quantized(const onnx_call *c, tern_tensor *x, tern_tensor **scale,
                              tern_tensor **zero)
{
    tern_shape all = {0};
    for (int d = 0; d < tern_dim(x); d++)
        all.dims[all.ndim++] = d;
    tern_tensor *low = tern_clamp_max_scalar(tern_amin(x, all, false), TERN_SCALAR(0.0));
    tern_tensor *high = tern_clamp_min_scalar(tern_amax(x, all, false), TERN_SCALAR(0.0));
    tern_tensor *range = tern_div_scalar(tern_sub(high, low), TERN_SCALAR(255.0));
    *scale = tern_where(tern_eq_scalar(range, TERN_SCALAR(0.0)), tern_ones_like(range), range);
    *zero = tern_clamp(tern_round(tern_neg(tern_div(low, *scale))), 0, 255);
    return saturated(c, tern_div(x, *scale), *zero, TERN_U8);
}

tern_status onnx_dynamic_quantize(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *scale = NULL, *zero = NULL;
    if (!x || tern_numel(x) == 0)
        return onnx_fail(c, TERN_ERR_SHAPE, "quantizes nothing");
    c->out[0] = quantized(c, x, &scale, &zero);
    if (c->n_out > 1)
        c->out[1] = scale;
    if (c->n_out > 2)
        c->out[2] = tern_to_dtype(zero, TERN_U8);
    return TERN_OK;
}

/* ---- exact products -------------------------------------------------------------------------- */

/* How a sum of k products of integers below 256 is computed exactly: in float32 for k up to a few
 * hundred, in float32 with one factor split into 16 high + low for k up to some thousand, and else
 * in float64. */
typedef enum exactness { WHOLE, PARTED, DOUBLE } exactness;

static exactness exactness_of(int64_t k)
{
    const int64_t exact = INT64_C(1) << 24;
    return k <= exact / (255 * 255) ? WHOLE : k <= exact / (255 * 16) ? PARTED : DOUBLE;
}

/* Returns q - zero point as a tensor of the dtype `real`. */
static tern_tensor *centred(const onnx_call *c, tern_tensor *q, tern_tensor *zero, int axis,
                            tern_dtype real)
{
    double low, high;
    if (!q || !range_of(tern_dtype_of(q), &low, &high) || high > UINT8_MAX) {
        onnx_fail(c, TERN_ERR_DTYPE, "multiplies int8 and uint8, not %s",
                  q ? tern_dtype_name(tern_dtype_of(q)) : "nothing");
        return NULL;
    }
    tern_tensor *x = tern_to_dtype(q, real);
    return zero ? tern_sub(x, along(c, zero, q, axis, real)) : x;
}

/* Splits w into floor(w / 16) and the remainder. */
static void part(tern_tensor *w, tern_tensor *parts[2])
{
    parts[0] = tern_floor(tern_mul_scalar(w, TERN_SCALAR(0.0625)));
    parts[1] = tern_sub(w, tern_mul_scalar(parts[0], TERN_SCALAR(16.0)));
}

/* How a weight is prepared for a product: its zero points, the dim that they follow, and the kind
 * of product. */
typedef struct weighing {
    const onnx_call *c;
    tern_tensor *zero;
    int axis;
    exactness how;
    bool joins; /* parts are concatenated as rows of one weight, else stacked */
} weighing;

static tern_tensor *weighed(tern_tensor *q, const void *how)
{
    const weighing *g = how;
    tern_tensor *parts[2],
        *w = centred(g->c, q, g->zero, g->axis, g->how == DOUBLE ? TERN_F64 : TERN_F32);
    if (!w || g->how != PARTED)
        return w;
    part(w, parts);
    return g->joins ? tern_cat(parts, 2, 0) : tern_stack(parts, 2, 0);
}

/* Returns input i prepared for the product; its zero points are input `zero`. The result is kept
 * between calls if both are constant. */
static tern_tensor *weight_of(const onnx_call *c, int i, int zero, weighing g)
{
    g.c = c;
    g.zero = onnx_in(c, zero);
    return onnx_is_constant(c, zero) ? onnx_derived(c, i, weighed, &g) : weighed(onnx_in(c, i), &g);
}

/* Returns 16 high + low, as int32. */
static tern_tensor *joined(tern_tensor *high, tern_tensor *low)
{
    return tern_add(tern_mul_scalar(tern_to_dtype(high, TERN_I32), TERN_SCALAR(INT64_C(16))),
                    tern_to_dtype(low, TERN_I32));
}

/* Returns the product of inputs 0 and b, whose zero points are inputs a_zero and b_zero. */
static tern_tensor *integer_matmul(const onnx_call *c, int a_zero, int b, int b_zero)
{
    tern_tensor *a = onnx_in(c, 0), *q = onnx_in(c, b);
    const exactness how = exactness_of(a && tern_dim(a) > 0 ? tern_size(a, -1) : 1);
    const tern_dtype real = how == DOUBLE ? TERN_F64 : TERN_F32;
    /* a has a zero point for each row, b for each column */
    tern_tensor *x = a ? centred(c, a, onnx_in(c, a_zero), tern_dim(a) - 2, real) : NULL;
    tern_tensor *w =
        q ? weight_of(c, b, b_zero, (weighing){.axis = tern_dim(q) - 1, .how = how}) : NULL;
    if (how != PARTED || !w)
        return tern_to_dtype(tern_matmul(x, w), TERN_I32);
    return joined(tern_matmul(x, tern_select(w, 0, 0)), tern_matmul(x, tern_select(w, 0, 1)));
}

tern_status onnx_matmul_integer(onnx_call *c)
{
    return onnx_give(c, integer_matmul(c, 2, 1, 3));
}

/* Returns the convolution of input 0 by input `weight`, whose zero points are inputs `zero` and
 * weight_zero. */
static tern_tensor *integer_conv(onnx_call *c, int zero, int weight, int weight_zero)
{
    tern_tensor *q = onnx_in(c, 0), *by = onnx_in(c, weight);
    const int64_t n = by && tern_dim(by) > 2 ? tern_size(by, 0) : 0;
    if (!q || n < 1)
        return onnx_fail(c, TERN_ERR_SHAPE, "convolves by nothing"), NULL;
    const exactness how = exactness_of(tern_numel(by) / n);
    const bool joins = onnx_int(c, "group", 1) == 1;
    tern_tensor *x = centred(c, q, onnx_in(c, zero), 1, how == DOUBLE ? TERN_F64 : TERN_F32);
    tern_tensor *w = weight_of(c, weight, weight_zero, (weighing){.how = how, .joins = joins});
    if (!x || !w)
        return NULL;
    if (how != PARTED)
        return tern_to_dtype(onnx_convolve(c, x, w, NULL), TERN_I32);
    if (!joins)
        return joined(onnx_convolve(c, x, tern_select(w, 0, 0), NULL),
                      onnx_convolve(c, x, tern_select(w, 0, 1), NULL));
    tern_tensor *y = onnx_convolve(c, x, w, NULL);
    return y ? joined(tern_narrow(y, 1, 0, n), tern_narrow(y, 1, n, n)) : NULL;
}

tern_status onnx_conv_integer(onnx_call *c)
{
    return onnx_give(c, integer_conv(c, 2, 1, 3));
}

/* Returns an exact sum, multiplied by the scales of the factors, divided by the scale of the result
 * and quantized. */
static tern_tensor *requantized(const onnx_call *c, tern_tensor *sum, tern_tensor *a_scale,
                                tern_tensor *b_scale, int b_axis, tern_tensor *scale,
                                tern_tensor *zero)
{
    if (!sum || !a_scale || !b_scale || !scale || !zero)
        return sum ? onnx_fail(c, TERN_ERR_ARGUMENT, "lacks a scale or a zero point"), NULL : NULL;
    const int rows = tern_dim(sum) - 2;
    tern_tensor *factor =
        tern_mul(along(c, a_scale, sum, rows, TERN_F32), along(c, b_scale, sum, b_axis, TERN_F32));
    factor = tern_div(factor, along(c, scale, sum, rows, TERN_F32));
    tern_tensor *y = tern_mul(tern_to_dtype(sum, TERN_F32), factor);
    return y ? saturated(c, y, along(c, zero, sum, rows, TERN_F32), tern_dtype_of(zero)) : NULL;
}

tern_status onnx_qlinear_matmul(onnx_call *c)
{
    tern_tensor *sum = integer_matmul(c, 2, 3, 5);
    return onnx_give(c, requantized(c, sum, onnx_in(c, 1), onnx_in(c, 4),
                                    sum ? tern_dim(sum) - 1 : 0, onnx_in(c, 6), onnx_in(c, 7)));
}

tern_status onnx_qlinear_conv(onnx_call *c)
{
    tern_tensor *sum = integer_conv(c, 2, 3, 5);
    tern_tensor *bias = onnx_in(c, 8);
    if (sum && bias) {
        tern_shape channels = {.ndim = tern_dim(sum)};
        for (int d = 0; d < channels.ndim; d++)
            channels.dims[d] = d == 1 ? tern_numel(bias) : 1;
        sum = tern_add(sum, tern_reshape(bias, channels));
    }
    return onnx_give(
        c, requantized(c, sum, onnx_in(c, 1), onnx_in(c, 4), 1, onnx_in(c, 6), onnx_in(c, 7)));
}

/* ---- onnxruntime's LSTM with quantized weights ----------------------------------------------- */

/* Returns x after quantization to uint8 and dequantization. */
static tern_tensor *rounded(const onnx_call *c, tern_tensor *x)
{
    tern_tensor *scale = NULL, *zero = NULL, *q = quantized(c, x, &scale, &zero);
    return tern_mul(tern_sub(tern_to_dtype(q, TERN_F32), zero), scale);
}

typedef struct cell {
    tern_tensor *h, *c;
} cell;

/* Computes one step from gates (N, 4 H) in the order i o f c. */
static cell step(tern_tensor *gates, tern_tensor *c, int64_t n)
{
    tern_tensor *in = tern_sigmoid(tern_narrow(gates, 1, 0, n));
    tern_tensor *out = tern_sigmoid(tern_narrow(gates, 1, n, n));
    tern_tensor *forget = tern_sigmoid(tern_narrow(gates, 1, 2 * n, n));
    tern_tensor *fresh = tern_tanh(tern_narrow(gates, 1, 3 * n, n));
    c = tern_add(tern_mul(forget, c), tern_mul(in, fresh));
    return (cell){tern_mul(out, tern_tanh(c)), c};
}

/* Returns W or R (directions, rows, 4 H) minus the zero points, of which each direction has one or
 * 4 H. */
static tern_tensor *directions_of(tern_tensor *q, const void *how)
{
    const onnx_call *c = how;
    tern_tensor *zero = onnx_in(c, q == onnx_in(c, 1) ? 9 : 11);
    const tern_shape shape = TERN_SHAPE(tern_size(q, 0), 1, -1);
    return tern_sub(tern_to_dtype(q, TERN_F32), tern_reshape(tern_to_dtype(zero, TERN_F32), shape));
}

/* Runs direction d over x (T, N, I). Sets *all to the hidden states of all steps (T, N, H) and
 * returns the last state. */
static cell direction(const onnx_call *call, tern_tensor *x, int d, bool backwards,
                      tern_tensor **all)
{
    const int64_t steps = tern_size(x, 0), batch = tern_size(x, 1);
    tern_tensor *weights[2], *scales[2], *b = onnx_in(call, 3);
    for (int i = 0; i < 2; i++) { /* weights (I, 4 H) and (H, 4 H), with one scale or one for each
                                     column */
        tern_tensor *all_weights = onnx_is_constant(call, 9 + 2 * i)
                                       ? onnx_derived(call, 1 + i, directions_of, call)
                                       : directions_of(onnx_in(call, 1 + i), call);
        weights[i] = all_weights ? tern_select(all_weights, 0, d) : NULL;
        scales[i] = tern_reshape(tern_select(onnx_in(call, 8 + 2 * i), 0, d), TERN_SHAPE(1, -1));
    }
    const int64_t n = tern_size(onnx_in(call, 2), 1);
    tern_tensor *bias = b ? tern_select(b, 0, d) : NULL;
    tern_tensor *inputs = tern_mul(tern_matmul(rounded(call, x), weights[0]), scales[0]);
    if (bias)
        inputs = tern_add(
            inputs, tern_add(tern_narrow(bias, 0, 0, 4 * n), tern_narrow(bias, 0, 4 * n, 4 * n)));
    const tern_shape state = TERN_SHAPE(batch, n);
    tern_tensor *h0 = onnx_in(call, 5), *c0 = onnx_in(call, 6);
    cell at = {h0 ? tern_select(h0, 0, d) : tern_new_zeros(x, state),
               c0 ? tern_select(c0, 0, d) : tern_new_zeros(x, state)};
    *all = NULL;
    for (int64_t i = 0; i < steps && at.h; i++) {
        const int64_t t = backwards ? steps - 1 - i : i;
        tern_tensor *gates =
            tern_add(tern_select(inputs, 0, t),
                     tern_mul(tern_matmul(rounded(call, at.h), weights[1]), scales[1]));
        at = step(gates, at.c, n);
        tern_tensor *row = tern_unsqueeze(at.h, 0);
        *all = !*all       ? row
               : backwards ? tern_cat((tern_tensor *[]){row, *all}, 2, 0)
                           : tern_cat((tern_tensor *[]){*all, row}, 2, 0);
    }
    return at;
}

tern_status onnx_quantized_lstm(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *w = onnx_in(c, 1), *r = onnx_in(c, 2);
    tern_tensor *all[2] = {NULL}, *h[2] = {NULL}, *cells[2] = {NULL};
    bool whole = x && tern_dim(x) == 3 && w && tern_dim(w) == 3 && r && tern_dim(r) == 3 &&
                 tern_size(x, 0) > 0;
    for (int i = 8; i < 12; i++)
        whole = whole && onnx_in(c, i) && tern_dim(onnx_in(c, i)) > 0;
    const int64_t directions = whole ? tern_size(w, 0) : 0;
    if (directions < 1 || directions > 2)
        return onnx_fail(c, TERN_ERR_SHAPE, "X, W and R have three dims, of one or two directions");
    if (onnx_in(c, 4) || onnx_in(c, 7) || onnx_attribute(c, "clip") ||
        onnx_int(c, "input_forget", 0))
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "lengths, peepholes, clip or input_forget");
    const bool reverse = onnx_text_is(c, "direction", "reverse", false);
    for (int d = 0; d < directions; d++) {
        cell last = direction(c, x, d, reverse || d == 1, &all[d]);
        h[d] = last.h;
        cells[d] = last.c;
    }
    c->out[0] = tern_stack(all, (int)directions, 1);
    if (c->n_out > 1)
        c->out[1] = tern_stack(h, (int)directions, 0);
    if (c->n_out > 2)
        c->out[2] = tern_stack(cells, (int)directions, 0);
    return TERN_OK;
}
