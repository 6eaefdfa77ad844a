/* quantize.c -- linear layers whose weights take 8 or 4 bits. */
#include "models/quantize.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 };

static const char *const names[] = {"", "Linear8bitLt", "Linear4bit"};

bool quantize_is(tern_module *m)
{
    const char *name = tern_nn_name(m);
    return name && (strcmp(name, names[TERN_QUANTIZE_INT8]) == 0 ||
                    strcmp(name, names[TERN_QUANTIZE_NF4]) == 0);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* bitsandbytes' (create_normal_map). */
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

/* Two elements a byte, the first in the high bits; the last block is filled up with zeros. */
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

/* Codes and scales of a weight (out, in) on its device. */
static tern_status encode(const quantize_layer *l, tern_tensor *weight, tern_tensor **codes,
                          tern_tensor **scales)
{
    bool nf4 = l->type == TERN_QUANTIZE_NF4;
    const char *device = tern_device(weight);
    tern_tensor *host =
        tern_contiguous(tern_to(tern_to_dtype(tern_detach(weight), TERN_F32), "cpu"));
    int64_t blocks = nf4 ? blocks_of(l) : l->out;
    tern_tensor *c =
        tern_empty(nf4 ? TERN_SHAPE(blocks * (BLOCK / 2), 1) : TERN_SHAPE(l->out, l->in),
                   nf4 ? TERN_U8 : TERN_I8, "cpu");
    tern_tensor *s = tern_empty(TERN_SHAPE(blocks), TERN_F32, "cpu");
    if (!host || !c || !s)
        return tern_last_status();
    if (nf4)
        to_nf4(tern_data(host), l->out * l->in, tern_data(c), tern_data(s));
    else
        to_int8(tern_data(host), l->out, l->in, tern_data(c), tern_data(s));
    *codes = tern_to(c, device);
    *scales = tern_to(s, device);
    return *codes && *scales ? TERN_OK : tern_last_status();
}

/* Each byte's two quantiles, (256, 2). */
static tern_tensor *pairs_of(const float map[16], const char *device)
{
    float pairs[256][2];
    for (int i = 0; i < 256; i++) {
        pairs[i][0] = map[i >> 4];
        pairs[i][1] = map[i & 15];
    }
    return tern_from_data(pairs, TERN_SHAPE(256, 2), TERN_F32, device);
}

/* The weight (out, in); pairs is NULL for int8. */
static tern_tensor *decode(const quantize_layer *l, tern_tensor *codes, tern_tensor *scales,
                           tern_tensor *pairs)
{
    if (l->type == TERN_QUANTIZE_INT8)
        return tern_mul(tern_to_dtype(codes, TERN_F32),
                        tern_unsqueeze(tern_div_scalar(scales, TERN_SCALAR(127.0)), 1));
    tern_tensor *index = tern_to_dtype(tern_view(codes, TERN_SHAPE(-1)), TERN_I32);
    tern_tensor *x = tern_view(tern_index_select(pairs, 0, index), TERN_SHAPE(-1, BLOCK));
    x = tern_view(tern_mul(x, tern_unsqueeze(scales, 1)), TERN_SHAPE(-1));
    return tern_view(tern_narrow(x, 0, 0, l->out * l->in), TERN_SHAPE(l->out, l->in));
}

/* ---- running ------------------------------------------------------------------------------- */

/* in: x, codes, scales, pairs or NULL's stand-in. The weight is made again in backward. */
static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    (void)k;
    tern_tensor *w = decode(tern_function_data(f), in[1], in[2], n > 3 ? in[3] : NULL);
    for (int i = 1; i < n; i++)
        TRY(tern_function_save(f, in[i]));
    out[0] = w ? tern_linear(in[0], tern_to_dtype(w, tern_dtype_of(in[0])), NULL) : NULL;
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
    tern_tensor *w = decode(tern_function_data(f), tern_function_saved(f, 0),
                            tern_function_saved(f, 1), n > 3 ? tern_function_saved(f, 2) : NULL);
    grad_in[0] = w ? tern_matmul(grad_out[0], tern_to_dtype(w, tern_dtype_of(grad_out[0]))) : NULL;
    return grad_in[0] ? TERN_OK : tern_last_status();
}

static const tern_function_type product = {"MatMul4Bit", forward, backward, free, {0}};

static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const quantize_layer *l = tern_nn_data(self);
    tern_tensor *given[4] = {n == 1 && k == 1 ? in[0] : NULL, tern_nn_buffer(self, "weight"),
                             tern_nn_buffer(self, "absmax"), NULL};
    bool nf4 = l->type == TERN_QUANTIZE_NF4;
    quantize_layer *copy = malloc(sizeof *copy);
    if (!copy)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory", names[l->type]);
    *copy = *l;
    if (nf4)
        given[3] = tern_nn_buffer(self, "pairs");
    TRY(tern_function_apply(&product, copy, given, 3 + nf4, out, 1));
    tern_tensor *bias = tern_nn_parameter_at(self, 0);
    if (bias)
        out[0] = tern_add(out[0], tern_to_dtype(bias, tern_dtype_of(out[0])));
    return out[0] ? TERN_OK : tern_last_status();
}

/* ---- making -------------------------------------------------------------------------------- */

static tern_status fill(tern_module *m, tern_tensor *codes, tern_tensor *scales,
                        const float map[16], tern_tensor *bias)
{
    const quantize_layer *l = tern_nn_data(m);
    const char *device = tern_device(codes);
    bool trained = bias && tern_requires_grad(bias);
    if (!tern_nn_add_buffer(m, "weight", codes) || !tern_nn_add_buffer(m, "absmax", scales))
        return tern_last_status();
    if (map && (!tern_nn_add_buffer(m, "quant_map",
                                    tern_from_data(map, TERN_SHAPE(16), TERN_F32, device)) ||
                !tern_nn_add_buffer_with(m, "pairs", pairs_of(map, device), false)))
        return tern_last_status();
    if (!tern_nn_add_parameter(m, "bias", bias) && bias)
        return tern_last_status();
    if (bias && !tern_requires_grad_(bias, trained))
        return tern_last_status();
    return tern_nn_set_extra(m, "in_features=%lld, out_features=%lld, bias=%s", (long long)l->in,
                             (long long)l->out, bias ? "True" : "False");
}

tern_module *quantize_make(quantize_layer l, tern_tensor *codes, tern_tensor *scales,
                           const float map[16], tern_tensor *bias)
{
    tern_module *m = codes && scales ? models_module(names[l.type], call, &l, sizeof l) : NULL;
    if (m && fill(m, codes, scales, map, bias) == TERN_OK)
        return m;
    tern_nn_free(m);
    return NULL;
}

tern_module *tern_quantize_linear(tern_module *linear, tern_quantization type)
{
    const char *name = linear ? tern_nn_name(linear) : NULL;
    bool columns = name && strcmp(name, "Conv1D") == 0;
    tern_module *m = NULL;
    if (type != TERN_QUANTIZE_INT8 && type != TERN_QUANTIZE_NF4)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_quantize_linear: type %d is neither INT8 nor NF4", (int)type);
    if (!name || (!columns && strcmp(name, "Linear") != 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_quantize_linear: %s is neither Linear nor Conv1D",
                              name ? name : "NULL");
    TERN_SCOPE {
        tern_tensor *w = tern_nn_parameter(linear, "weight"), *codes = NULL, *scales = NULL;
        w = columns ? tern_transpose(w, 0, 1) : w;
        quantize_layer l = {type, tern_size(w, 0), tern_size(w, 1)};
        if (w && encode(&l, w, &codes, &scales) == TERN_OK)
            m = quantize_make(l, codes, scales, type == TERN_QUANTIZE_NF4 ? quantiles : NULL,
                              tern_nn_parameter_at(linear, 1));
        if (m)
            tern_nn_train(m, tern_nn_is_training(linear));
    }
    return m;
}

typedef struct plan {
    char *paths[4096];
    int n;
    const char *head;
} plan;

static tern_status collect(const char *path, tern_module *m, void *user)
{
    plan *p = user;
    const char *name = tern_nn_name(m);
    bool linear = name && (strcmp(name, "Linear") == 0 || strcmp(name, "Conv1D") == 0);
    if (!linear || !*path || (p->head && strcmp(path, p->head) == 0) || strstr(path, "lora_"))
        return TERN_OK;
    if (p->n == 4096 || !(p->paths[p->n] = strdup(path)))
        return tern_fail(TERN_ERR_MEMORY, "tern_quantize_: no memory for the layers");
    p->n++;
    return TERN_OK;
}

tern_status tern_quantize_(tern_module *model, tern_quantization type)
{
    plan *p = calloc(1, sizeof *p);
    const models_model *m = NULL;
    if (!model || !p || (type != TERN_QUANTIZE_INT8 && type != TERN_QUANTIZE_NF4)) {
        free(p);
        return !model || p ? tern_fail(TERN_ERR_ARGUMENT, "tern_quantize_: model %s, type %d",
                                       model ? "given" : "NULL", (int)type)
                           : tern_fail(TERN_ERR_MEMORY, "tern_quantize_: no memory");
    }
    if (models_is(model))
        m = tern_nn_data(model);
    p->head = m ? m->kind->head : NULL;
    tern_status status = tern_nn_each_module(model, collect, p);
    for (int i = 0; i < p->n; i++) {
        tern_module *made = status == TERN_OK
                                ? tern_quantize_linear(tern_nn_child(model, p->paths[i]), type)
                                : NULL;
        if (status == TERN_OK && (!made || !tern_nn_set_child(model, p->paths[i], made)))
            status = tern_last_status();
        free(p->paths[i]);
    }
    free(p);
    return status;
}

tern_tensor *tern_dequantize_weight(tern_module *m)
{
    if (!m || !quantize_is(m))
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_dequantize_weight: %s is no quantized layer",
                              m ? tern_nn_name(m) : "NULL");
    const quantize_layer *l = tern_nn_data(m);
    tern_tensor *pairs = l->type == TERN_QUANTIZE_NF4 ? tern_nn_buffer(m, "pairs") : NULL;
    return decode(l, tern_nn_buffer(m, "weight"), tern_nn_buffer(m, "absmax"), pairs);
}

tern_status quantize_set(tern_module *m, tern_tensor *weight)
{
    tern_tensor *codes, *scales;
    TRY(encode(tern_nn_data(m), weight, &codes, &scales));
    return tern_nn_set_buffer(m, "weight", codes) && tern_nn_set_buffer(m, "absmax", scales)
               ? TERN_OK
               : tern_last_status();
}
