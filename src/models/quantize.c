/* quantize.c -- linear layers with weights of 8 or 4 bits. */
#include "models/skinny.h"
#include "models/gguf/layer.h"
#include "models/nf4.h"
#include "models/wide.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 };

static const char *const names[] = {"", "Linear8bitLt", "Linear4bit", "LinearInt4"};
/* The third buffer of int8 is the scales (out, 1) in the layout of tern_linear_packed; the names of
 * INT4 do not occur in GPTQ's files. */
const char *const quantize_buffers[TERN_QUANTIZE_INT4 + 1][3] = {{NULL},
                                                                 {"weight", "absmax", "steps"},
                                                                 {"weight", "absmax", "pairs"},
                                                                 {"codes", "scale", "zero"}};

bool quantize_is_type(tern_quantization type)
{
    return type >= TERN_QUANTIZE_INT8 && type <= TERN_QUANTIZE_INT4;
}

bool quantize_is(tern_module *m)
{
    const char *name = tern_nn_name(m);
    for (int i = TERN_QUANTIZE_INT8; name && i <= TERN_QUANTIZE_INT4; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return gguf_is_linear(m);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* bitsandbytes' values (create_normal_map). */
static const float quantiles[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

static int nearest(float x)
{
    int i = 0;
    while (i < 15 && x > (quantiles[i] + quantiles[i + 1]) / 2)
        i++;
    return i;
}

static int64_t blocks_of(const quantize_layer *l)
{
    return (l->out * l->in + BLOCK - 1) / BLOCK;
}

static float largest(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    return most;
}

/* Two elements per byte, the first in the high bits; the last block is padded with zeros. */
static void to_nf4(const float *x, int64_t n, uint8_t *codes, float *scales)
{
    for (int64_t b = 0; b * BLOCK < n; b++) {
        int64_t count = n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK;
        float most = scales[b] = largest(x + b * BLOCK, count);
        for (int64_t i = 0; i < BLOCK; i++) {
            int code = nearest(i < count && most > 0 ? x[b * BLOCK + i] / most : 0);
            uint8_t *at = &codes[(b * BLOCK + i) / 2];
            *at = (uint8_t)(i % 2 ? *at | code : code << 4);
        }
    }
}

static void to_int8(const float *x, int64_t rows, int64_t n, int8_t *codes, float *scales)
{
    for (int64_t r = 0; r < rows; r++) {
        float most = scales[r] = largest(x + r * n, n);
        for (int64_t i = 0; i < n; i++)
            codes[r * n + i] = (int8_t)lrintf(most > 0 ? x[r * n + i] * (127 / most) : 0);
    }
}

int64_t quantize_group(int64_t in)
{
    for (int64_t n = 128; n >= 32; n /= 2)
        if (in % n == 0)
            return n;
    return in;
}

void quantize_pack(const uint8_t *codes, int64_t n, int64_t group, uint8_t *bytes)
{
    for (int64_t i = 0; i < n; i += group)
        for (int64_t k = 0; k < group / 2; k++)
            bytes[i / 2 + k] = (uint8_t)(codes[i + k] | codes[i + group / 2 + k] << 4);
}

/* The 16 levels are evenly spaced from the minimum to the maximum of a group. */
static tern_status to_int4(const float *x, int64_t n, int64_t group, uint8_t *bytes, float *scales,
                           float *zeros)
{
    uint8_t *codes = malloc((size_t)n + 1);
    if (!codes)
        return tern_fail(TERN_ERR_MEMORY, "tern_quantize_linear: no memory");
    for (int64_t g = 0; g * group < n; g++) {
        const float *from = x + g * group;
        float low = from[0], high = from[0];
        for (int64_t i = 1; i < group; i++) {
            low = fminf(low, from[i]);
            high = fmaxf(high, from[i]);
        }
        float step = high > low ? (high - low) / 15 : high != 0 ? fabsf(high) : 1;
        scales[g] = step;
        zeros[g] = -low / step;
        for (int64_t i = 0; i < group; i++)
            codes[g * group + i] = (uint8_t)lrintf(fminf(fmaxf((from[i] - low) / step, 0), 15));
    }
    quantize_pack(codes, n, group, bytes);
    free(codes);
    return TERN_OK;
}

/* Computes the codes, scales and (for INT4) zeros of a weight (out, in) on its device. */
static tern_status encode(const quantize_layer *l, tern_tensor *weight, tern_tensor *parts[3])
{
    bool nf4 = l->type == TERN_QUANTIZE_NF4, int4 = l->type == TERN_QUANTIZE_INT4;
    const char *device = tern_device(weight);
    tern_tensor *host =
        tern_contiguous(tern_to(tern_to_dtype(tern_detach(weight), TERN_F32), "cpu"));
    int64_t blocks = nf4 ? blocks_of(l) : l->out, group = quantize_group(l->in);
    tern_shape shape = int4 ? TERN_SHAPE(l->out, l->in / group) : TERN_SHAPE(blocks);
    tern_tensor *c = tern_empty(nf4    ? TERN_SHAPE(blocks * (BLOCK / 2), 1)
                                : int4 ? TERN_SHAPE(l->out, l->in / 2)
                                       : TERN_SHAPE(l->out, l->in),
                                nf4 || int4 ? TERN_U8 : TERN_I8, "cpu");
    tern_tensor *s = tern_empty(shape, TERN_F32, "cpu"), *z = tern_empty(shape, TERN_F32, "cpu");
    if (!host || !c || !s || !z)
        return tern_last_status();
    if (nf4)
        to_nf4(tern_data(host), l->out * l->in, tern_data(c), tern_data(s));
    else if (int4)
        TRY(to_int4(tern_data(host), l->out * l->in, group, tern_data(c), tern_data(s),
                    tern_data(z)));
    else
        to_int8(tern_data(host), l->out, l->in, tern_data(c), tern_data(s));
    parts[0] = tern_to(c, device);
    parts[1] = tern_to(s, device);
    parts[2] = tern_to(z, device);
    return parts[0] && parts[1] && parts[2] ? TERN_OK : tern_last_status();
}

/* The scales that tern_linear_packed takes: (out, 1) of int8, (out, groups) of INT4. */
static tern_tensor *scales_of(const quantize_layer *l, tern_tensor *const parts[3])
{
    return parts[l->type == TERN_QUANTIZE_INT4 ? 1 : 2];
}

static tern_tensor *zeros_of(const quantize_layer *l, tern_tensor *const parts[3])
{
    return l->type == TERN_QUANTIZE_INT4 ? parts[2] : NULL;
}

/* Returns rows from .. from + n of the weight; parts: codes, scales, and zeros or pairs. */
static tern_tensor *decode(const quantize_layer *l, tern_tensor *const parts[3], int64_t from,
                           int64_t n)
{
    if (l->type != TERN_QUANTIZE_NF4) {
        tern_tensor *zeros = zeros_of(l, parts);
        return tern_unpack_weight(tern_narrow(parts[0], 0, from, n),
                                  tern_narrow(scales_of(l, parts), 0, from, n),
                                  zeros ? tern_narrow(zeros, 0, from, n) : NULL, l->in);
    }
    if (nf4_is_direct(l, parts))
        return nf4_decode(l, parts, from, n);
    const int64_t first = from * l->in / BLOCK,
                  blocks = ((from + n) * l->in + BLOCK - 1) / BLOCK - first;
    tern_tensor *codes = tern_narrow(tern_view(parts[0], TERN_SHAPE(-1)), 0, first * (BLOCK / 2),
                                     blocks * (BLOCK / 2));
    tern_tensor *x = tern_index_select(parts[2], 0, tern_to_dtype(codes, TERN_I32));
    tern_tensor *scales = tern_narrow(parts[1], 0, first, blocks);
    x = tern_mul(tern_view(x, TERN_SHAPE(-1, BLOCK)), tern_unsqueeze(scales, 1));
    return tern_view(tern_narrow(tern_view(x, TERN_SHAPE(-1)), 0, 0, n * l->in),
                     TERN_SHAPE(n, l->in));
}

/* ---- running ------------------------------------------------------------------------------- */

/* Up to SKINNY_ROWS rows are multiplied with the codes directly; for more rows, about PART elements
 * of the weight are decoded at a time. */
enum { SKINNY_ROWS = 8, PART = 8 << 20, MOST_PARTS = 256 };

/* Returns the number of weight rows that are decoded at a time: a multiple of BLOCK, because NF4's
 * blocks may cross rows. */
static int64_t part_of(const quantize_layer *l)
{
    int64_t n = PART / l->in + 1, least = (l->out + MOST_PARTS - 1) / MOST_PARTS;
    n = n < least ? least : n;
    n = (n + BLOCK - 1) / BLOCK * BLOCK;
    return n < l->out ? n : l->out;
}

/* Returns the dtype of the product with a decoded weight. A processor without products of x's dtype
 * would convert the weight back to float32, and rounding the weight does not pay for a few rows. */
static tern_dtype product_type(tern_tensor *x, int64_t columns)
{
    const tern_dtype dtype = tern_dtype_of(x);
    const bool halves = wide_has_bf16() && tern_numel(x) > SKINNY_ROWS * columns;
    bool wide = dtype == TERN_F16 || (dtype == TERN_BF16 && !halves);
    return wide && strcmp(tern_device(x), "cpu") == 0 ? TERN_F32 : dtype;
}

static tern_tensor *multiply(const quantize_layer *l, tern_tensor *x, tern_tensor *const parts[3])
{
    tern_tensor *y[MOST_PARTS], *given;
    int64_t n = part_of(l);
    int k = 0;
    if (l->type != TERN_QUANTIZE_NF4 && tern_numel(x) <= SKINNY_ROWS * l->in) {
        const skinny w = {parts[0], scales_of(l, parts), zeros_of(l, parts)};
        return skinny_takes(l, x, &w) ? skinny_linear(l, x, &w)
                                      : tern_linear_packed(x, w.codes, w.scales, w.zeros);
    }
    if (l->type == TERN_QUANTIZE_NF4 && tern_numel(x) <= NF4_ROWS * l->in && tern_numel(x) > 0 &&
        tern_size(x, -1) == l->in && l->in % BLOCK == 0 && nf4_is_direct(l, parts) &&
        strcmp(tern_device(x), tern_device(parts[0])) == 0)
        return nf4_linear(l, x, parts);
    given = tern_to_dtype(x, product_type(x, l->in));
    for (int64_t at = 0; given && at < l->out; at += n) {
        TERN_SCOPE {
            tern_tensor *w = decode(l, parts, at, at + n < l->out ? n : l->out - at);
            w = w ? tern_to_dtype(w, tern_dtype_of(given)) : NULL;
            y[k] = w ? tern_linear(given, w, NULL) : NULL;
            y[k] = y[k] ? tern_escape(y[k]) : NULL;
        }
        if (!y[k++])
            return NULL;
    }
    return k ? tern_to_dtype(k == 1 ? y[0] : tern_cat(y, k, -1), tern_dtype_of(x)) : NULL;
}

/* in: x, codes, scales, and zeros or pairs. The backward pass decodes the weight again. */
static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    (void)k;
    tern_tensor *const parts[] = {in[1], in[2], n > 3 ? in[3] : NULL};
    for (int i = 1; i < n; i++)
        TRY(tern_function_save(f, in[i]));
    out[0] = multiply(tern_function_data(f), in[0], parts);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_status backward(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n)
{
    (void)k;
    for (int i = 0; i < n; i++)
        grad_in[i] = NULL;
    if (!grad_out[0] || !tern_function_needs_grad(f, 0))
        return TERN_OK;
    const quantize_layer *l = tern_function_data(f);
    tern_tensor *const parts[] = {tern_function_saved(f, 0), tern_function_saved(f, 1),
                                  n > 3 ? tern_function_saved(f, 2) : NULL};
    int64_t rows = part_of(l);
    tern_tensor *given = tern_to_dtype(grad_out[0], product_type(grad_out[0], l->out));
    for (int64_t at = 0; at < l->out; at += rows) {
        int64_t some = at + rows < l->out ? rows : l->out - at;
        TERN_SCOPE {
            tern_tensor *w = decode(l, parts, at, some);
            tern_tensor *dy = tern_narrow(given, -1, at, some);
            tern_tensor *dx = w ? tern_matmul(dy, tern_to_dtype(w, tern_dtype_of(dy))) : NULL;
            dx = at && dx ? tern_add(grad_in[0], dx) : dx;
            grad_in[0] = dx ? tern_escape(dx) : NULL;
        }
        if (!grad_in[0])
            return tern_last_status();
    }
    grad_in[0] = tern_to_dtype(grad_in[0], tern_dtype_of(grad_out[0]));
    return grad_in[0] ? TERN_OK : tern_last_status();
}

static const tern_function_type product = {"MatMul4Bit", forward, backward, free, {0}};

/* Returns the two quantiles of each byte, (256, 2). */
static tern_tensor *pairs_of(const float map[16], const char *device)
{
    float pairs[256][2];
    for (int i = 0; i < 256; i++) {
        pairs[i][0] = map[i >> 4];
        pairs[i][1] = map[i & 15];
    }
    return tern_from_data(pairs, TERN_SHAPE(256, 2), TERN_F32, device);
}

static tern_tensor *steps_of(tern_tensor *absmax)
{
    return tern_unsqueeze(tern_div_scalar(absmax, TERN_SCALAR(127.0)), 1);
}

/* Returns the buffer that is derived from the layer's state and not saved: int8's steps from
 * absmax, NF4's pairs from quant_map. */
static tern_tensor *made_of(const quantize_layer *l, tern_tensor *state)
{
    if (l->type == TERN_QUANTIZE_INT8)
        return steps_of(state);
    tern_tensor *map = tern_contiguous(tern_to(state, "cpu"));
    return map ? pairs_of(tern_data(map), tern_device(state)) : NULL;
}

static tern_tensor *state_of(tern_module *m, const quantize_layer *l)
{
    return tern_nn_buffer(m, l->type == TERN_QUANTIZE_INT8 ? "absmax" : "quant_map");
}

static int64_t version_of(tern_module *m, const quantize_layer *l)
{
    return l->type == TERN_QUANTIZE_INT4 ? 0 : tern_version(state_of(m, l));
}

void quantize_parts(tern_module *m, tern_tensor *parts[3])
{
    quantize_layer *l = tern_nn_data(m);
    for (int i = 0; i < 3; i++)
        parts[i] = tern_nn_buffer(m, quantize_buffers[l->type][i]);
    const int64_t version = version_of(m, l);
    if (version == l->version)
        return;
    TERN_SCOPE
        TERN_NO_GRAD
            parts[2] = tern_copy_(parts[2], made_of(l, state_of(m, l)));
    l->version = parts[2] ? version : l->version;
}

static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const quantize_layer *l = tern_nn_data(self);
    tern_tensor *given[4] = {n == 1 && k == 1 ? in[0] : NULL};
    if (l->ordered && given[0])
        given[0] = tern_index_select(given[0], -1, tern_nn_buffer(self, "order"));
    quantize_parts(self, given + 1);
    if (!tern_is_grad_enabled() && given[0]) {
        out[0] = multiply(l, given[0], given + 1);
    } else {
        quantize_layer *copy = malloc(sizeof *copy);
        if (!copy)
            return tern_fail(TERN_ERR_MEMORY, "%s: no memory", names[l->type]);
        *copy = *l;
        TRY(tern_function_apply(&product, copy, given, 3 + (given[3] != NULL), out, 1));
    }
    tern_tensor *bias = tern_nn_parameter_at(self, 0);
    if (bias)
        out[0] = tern_add(out[0], tern_to_dtype(bias, tern_dtype_of(out[0])));
    return out[0] ? TERN_OK : tern_last_status();
}

/* ---- making -------------------------------------------------------------------------------- */

static tern_status fill(tern_module *m, tern_tensor *const parts[3], const float map[16],
                        tern_tensor *bias)
{
    quantize_layer *l = tern_nn_data(m);
    const char *device = tern_device(parts[0]);
    bool trained = bias && tern_requires_grad(bias);
    for (int i = 0; i < (l->type == TERN_QUANTIZE_INT4 ? 3 : 2); i++)
        if (!tern_nn_add_buffer(m, quantize_buffers[l->type][i], parts[i]))
            return tern_last_status();
    if (l->type == TERN_QUANTIZE_INT8 &&
        !tern_nn_add_buffer_with(m, "steps", steps_of(parts[1]), false))
        return tern_last_status();
    if (map && (!tern_nn_add_buffer(m, "quant_map",
                                    tern_from_data(map, TERN_SHAPE(16), TERN_F32, device)) ||
                !tern_nn_add_buffer_with(m, "pairs", pairs_of(map, device), false)))
        return tern_last_status();
    l->version = version_of(m, l);
    if (!tern_nn_add_parameter(m, "bias", bias) && bias)
        return tern_last_status();
    if (bias && !tern_requires_grad_(bias, trained))
        return tern_last_status();
    return tern_nn_set_extra(m, "in_features=%lld, out_features=%lld, bias=%s", (long long)l->in,
                             (long long)l->out, bias ? "True" : "False");
}

tern_module *quantize_make(quantize_layer l, tern_tensor *const parts[3], const float map[16],
                           tern_tensor *bias)
{
    tern_module *m = parts[0] && parts[1] ? models_module(names[l.type], call, &l, sizeof l) : NULL;
    if (m && fill(m, parts, map, bias) == TERN_OK)
        return m;
    tern_nn_free(m);
    return NULL;
}

tern_module *tern_quantize_linear(tern_module *linear, tern_quantization type)
{
    const char *name = linear ? tern_nn_name(linear) : NULL;
    bool columns = name && strcmp(name, "Conv1D") == 0;
    tern_module *m = NULL;
    if (!quantize_is_type(type))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_quantize_linear: type %d is none of INT8, NF4 and INT4",
                              (int)type);
    if (!name || (!columns && strcmp(name, "Linear") != 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_quantize_linear: %s is neither Linear nor Conv1D",
                              name ? name : "NULL");
    TERN_SCOPE {
        tern_tensor *w = tern_nn_parameter(linear, "weight"), *parts[3] = {NULL};
        w = columns ? tern_transpose(w, 0, 1) : w;
        quantize_layer l = {.type = type, .out = tern_size(w, 0), .in = tern_size(w, 1)};
        if (w && type == TERN_QUANTIZE_INT4 && l.in % 2)
            tern_fail(TERN_ERR_UNSUPPORTED,
                      "tern_quantize_linear: INT4 of %lld inputs, which are not even",
                      (long long)l.in);
        else if (w && encode(&l, w, parts) == TERN_OK)
            m = quantize_make(l, parts, type == TERN_QUANTIZE_NF4 ? quantiles : NULL,
                              tern_nn_parameter_at(linear, 1));
        if (m)
            tern_nn_train(m, tern_nn_is_training(linear));
    }
    return m;
}

tern_tensor *tern_dequantize_weight(tern_module *m)
{
    if (!m || !quantize_is(m))
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_dequantize_weight: %s is no quantized layer",
                              m ? tern_nn_name(m) : "NULL");
    if (gguf_is_linear(m))
        return gguf_weight(m);
    const quantize_layer *l = tern_nn_data(m);
    tern_tensor *parts[3];
    quantize_parts(m, parts);
    tern_tensor *w = decode(l, parts, 0, l->out);
    return l->ordered ? tern_index_select(w, 1, tern_argsort(tern_nn_buffer(m, "order"), 0, false))
                      : w;
}

tern_status quantize_set(tern_module *m, tern_tensor *weight)
{
    const quantize_layer *l = tern_nn_data(m);
    tern_tensor *parts[3];
    if (gguf_is_linear(m))
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "tern_lora_merge: %s over blocks of a GGUF can't be written: load the model "
            "with .dtype = TERN_F32 to merge adapters into it",
            tern_nn_name(m));
    TRY(encode(l, l->ordered ? tern_index_select(weight, 1, tern_nn_buffer(m, "order")) : weight,
               parts));
    for (int i = 0; i < (l->type == TERN_QUANTIZE_INT4 ? 3 : 2); i++)
        if (!tern_nn_set_buffer(m, quantize_buffers[l->type][i], parts[i]))
            return tern_last_status();
    if (l->type == TERN_QUANTIZE_INT8 && !tern_nn_set_buffer(m, "steps", steps_of(parts[1])))
        return tern_last_status();
    return TERN_OK;
}
