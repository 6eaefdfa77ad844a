/* traffic_steps.c -- the steps that are counted: the models of the comparison, and one attention. */
#include "../examples/char_gpt/gpt.h"
#include "networks.h"
#include "traffic.h"
#include <string.h>

static const step steps[] = {
#define STEP(NAME, DTYPE, TITLE, MAY, RECORDED, AIM, MOST)                                         \
    {.name = #NAME,                                                                                \
     .title = TITLE,                                                                               \
     .dtype = TERN_##DTYPE,                                                                        \
     .may = MAY,                                                                                   \
     .recorded = RECORDED,                                                                         \
     .aim = AIM,                                                                                   \
     .most = MOST},
#include "traffic_steps.def"
#undef STEP
};
_Static_assert(sizeof steps / sizeof *steps == STEPS, "STEPS is the rows of traffic_steps.def");

step step_at(int i)
{
    return steps[i];
}

/* ---- models ---- */

static tern_module *small_gpt(void)
{
    return gpt_new(
        &(gpt_options){.vocabulary = 65, .layers = 4, .width = 128, .heads = 4, .context = 64});
}

static tern_module *gpt2(void)
{
    return gpt_new(&(gpt_options){.vocabulary = 50257,
                                  .layers = 12,
                                  .width = 768,
                                  .heads = 12,
                                  .context = 1024,
                                  .tied = true});
}

/* (N, T, 3 C) -> (N, T, C): causal attention of 12 heads, as GPT-2 has it between two layers. */
static tern_tensor *attention_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    const int64_t heads = 12, n = tern_size(x, 0), length = tern_size(x, 1);
    const int64_t width = tern_size(x, 2) / 3;
    tern_tensor *part[3] = {NULL, NULL, NULL};
    tern_split(x, width, 2, part, 3);
    for (int i = 0; i < 3; i++)
        part[i] =
            tern_transpose(tern_view(part[i], TERN_SHAPE(n, length, heads, width / heads)), 1, 2);
    tern_tensor *y = tern_scaled_dot_product_attention(
        part[0], part[1], part[2], &(tern_scaled_dot_product_attention_options){.is_causal = true});
    return tern_reshape(tern_transpose(y, 1, 2), TERN_SHAPE(n, length, width));
}

static tern_module *attention(void)
{
    return tern_nn_module("Attention", attention_forward, NULL);
}

/* ---- a layer of Llama 3.2 1B: 32 heads and 8 of keys and values of width 64, 8192 inside ---- */

enum { LLAMA_WIDTH = 2048, LLAMA_HEADS = 32, LLAMA_KV_HEADS = 8, LLAMA_INNER = 8192 };

static tern_tensor *child(tern_module *self, const char *name, tern_tensor *x)
{
    return tern_nn_forward(tern_nn_child(self, name), x);
}

/* (N, T, heads 64) -> (N, heads, T, 64). */
static tern_tensor *heads_of(tern_tensor *x, int64_t heads)
{
    x = tern_view(x,
                  TERN_SHAPE(tern_size(x, 0), tern_size(x, 1), heads, LLAMA_WIDTH / LLAMA_HEADS));
    return tern_transpose(x, 1, 2);
}

static tern_tensor *llama_forward(tern_module *self, tern_tensor *x)
{
    tern_tensor *h = child(self, "input_norm", x);
    tern_tensor *q = child(self, "rotary", heads_of(child(self, "q", h), LLAMA_HEADS));
    tern_tensor *k = child(self, "rotary", heads_of(child(self, "k", h), LLAMA_KV_HEADS));
    tern_tensor *v = heads_of(child(self, "v", h), LLAMA_KV_HEADS);
    tern_tensor *y = tern_scaled_dot_product_attention(
        q, k, v,
        &(tern_scaled_dot_product_attention_options){.is_causal = true, .enable_gqa = true});
    x = tern_add(x, child(self, "o", tern_reshape(tern_transpose(y, 1, 2), tern_shape_of(x))));
    h = child(self, "post_norm", x);
    h = tern_mul(tern_silu(child(self, "gate", h)), child(self, "up", h));
    return tern_add(x, child(self, "down", h));
}

static tern_module *llama(void)
{
    static const struct {
        const char *name;
        int64_t in, out;
    } layers[] = {{"q", LLAMA_WIDTH, LLAMA_WIDTH},     {"k", LLAMA_WIDTH, LLAMA_WIDTH / 4},
                  {"v", LLAMA_WIDTH, LLAMA_WIDTH / 4}, {"o", LLAMA_WIDTH, LLAMA_WIDTH},
                  {"gate", LLAMA_WIDTH, LLAMA_INNER},  {"up", LLAMA_WIDTH, LLAMA_INNER},
                  {"down", LLAMA_INNER, LLAMA_WIDTH}};
    tern_module *self = tern_nn_module("LlamaLayer", llama_forward, NULL);
    tern_nn_add(self, "input_norm", tern_nn_rms_norm(TERN_SHAPE(LLAMA_WIDTH), NULL));
    tern_nn_add(self, "post_norm", tern_nn_rms_norm(TERN_SHAPE(LLAMA_WIDTH), NULL));
    tern_nn_add(self, "rotary", tern_nn_rotary_embedding(LLAMA_WIDTH / LLAMA_HEADS, NULL));
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        tern_nn_add(
            self, layers[i].name,
            tern_nn_linear(layers[i].in, layers[i].out, &(tern_linear_options){.no_bias = true}));
    return self;
}

static tern_module *linear(void)
{
    return tern_nn_linear(10, 1, NULL);
}

static tern_module *resnet50(void)
{
    return bottlenecks(64, "3-4-6-3", 1000);
}

static tern_module *resnet50_last(void)
{
    return tern_nn_to_memory_format(resnet50(), TERN_CHANNELS_LAST);
}

static tern_tensor *squared_error(tern_tensor *output, tern_tensor *y)
{
    return tern_mse_loss(output, y, NULL);
}

static tern_tensor *cross_entropy(tern_tensor *output, tern_tensor *y)
{
    return tern_cross_entropy(output, y, NULL);
}

static tern_optimizer *sgd(tern_module *model)
{
    return tern_optim_sgd(model, 0.1, NULL);
}

static tern_optimizer *momentum(tern_module *model)
{
    return tern_optim_sgd(model, 0.1, &(tern_sgd_options){.momentum = 0.9});
}

static tern_optimizer *adam(tern_module *model)
{
    return tern_optim_adam(model, 1e-3, NULL);
}

static tern_optimizer *adamw(tern_module *model)
{
    return tern_optim_adamw(model, 1e-3, NULL);
}

/* The steps' models and data. */
static const struct {
    const char *name;
    tern_module *(*model)(void);
    tern_optimizer *(*optimizer)(tern_module *model);
    tern_tensor *(*loss)(tern_tensor *output, tern_tensor *y);
    bool ids; /* x is whole numbers */
    tern_shape x;
    /* Targets (without a loss: the width of the result), their classes (0: real), layers with
     * attention, the mean width of their queries, keys, values and results. */
    int64_t size[4];
} kinds[] = {
    {"a", linear, sgd, squared_error, false, {2, {100, 10}}, {100, 0}},
    {"b", mlp, sgd, cross_entropy, false, {2, {64, 784}}, {64, 10}},
    {"c", lenet, adam, cross_entropy, false, {4, {64, 1, 28, 28}}, {64, 10}},
    {"d", resnet, momentum, cross_entropy, false, {4, {32, 3, 32, 32}}, {32, 10}},
    {"e", small_gpt, adamw, cross_entropy, true, {2, {16, 64}}, {1024, 65, 4, 128}},
    {"f", char_lstm, adam, cross_entropy, true, {2, {32, 32}}, {1024, 65}},
    {"resnet50", resnet50, momentum, cross_entropy, false, {4, {128, 3, 224, 224}}, {128, 1000}},
    {"resnet50_last",
     resnet50_last,
     momentum,
     cross_entropy,
     false,
     {4, {128, 3, 224, 224}},
     {128, 1000}},
    {"attention", attention, NULL, NULL, false, {3, {16, 1024, 2304}}, {768, 0, 1, 768}},
    {"llama", llama, NULL, NULL, false, {3, {4, 2048, 2048}}, {2048, 0, 1, 1280}},
    {"gpt2", gpt2, adamw, cross_entropy, true, {2, {16, 1024}}, {16384, 50257, 12, 768}},
};

static tern_status count_parameter(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    *(double *)user += (double)tern_numel(x);
    return TERN_OK;
}

/* q, k, v and the result once each way; their gradients once: twelve tensors of the layer's width. */
static double least_attention(const step *s, int64_t layers, int64_t width)
{
    double each = s->dtype == TERN_F32 ? 4 : 2;
    return 12 * each * (double)(layers * width) * (double)tern_size(s->x, 0) *
           (double)tern_size(s->x, 1);
}

bool step_open(step *s, const char *device)
{
    tern_set_default_device(device);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, s->name) != 0)
            continue;
        s->model = kinds[i].model();
        s->optimizer = kinds[i].optimizer ? kinds[i].optimizer(s->model) : NULL;
        s->loss = kinds[i].loss;
        tern_dtype half = !kinds[i].loss ? s->dtype : TERN_F32;
        tern_shape x = kinds[i].x;
        const int64_t each = kinds[i].size[0] / x.dims[0];
        if (s->batch)
            x.dims[0] = s->batch;
        s->x = tern_keep(tern_zeros(x, kinds[i].ids ? TERN_I64 : half, NULL));
        if (kinds[i].model == resnet50_last)
            s->x = tern_keep(tern_to_memory_format(s->x, TERN_CHANNELS_LAST));
        if (!kinds[i].loss)
            s->y = tern_keep(
                tern_zeros(TERN_SHAPE(x.dims[0], x.dims[1], kinds[i].size[0]), half, NULL));
        else if (kinds[i].size[1])
            s->y = tern_keep(tern_zeros(TERN_SHAPE(each * x.dims[0]), TERN_I64, NULL));
        else
            s->y = tern_keep(tern_zeros(TERN_SHAPE(each * x.dims[0], 1), TERN_F32, NULL));
        if (!kinds[i].loss)
            tern_requires_grad_(s->x, true);
        tern_nn_each_parameter(s->model, count_parameter, &s->parameters);
        if (kinds[i].size[2] && tern_last_status() == TERN_OK)
            s->attention_bytes = least_attention(s, kinds[i].size[2], kinds[i].size[3]);
    }
    return tern_last_status() == TERN_OK && s->model;
}

void step_close(step *s)
{
    tern_optim_free(s->optimizer);
    tern_nn_free(s->model);
    tern_release(s->x);
    tern_release(s->y);
}

static tern_tensor *output_of(step *s)
{
    tern_tensor *y = tern_nn_forward(s->model, s->x);
    return s->loss ? s->loss(y, s->y) : y;
}

static tern_tensor *mixed_output(step *s)
{
    tern_tensor *loss = NULL;
    TERN_AUTOCAST (NULL, s->dtype)
        loss = output_of(s);
    return loss;
}

tern_tensor *step_run(step *s)
{
    if (s->optimizer)
        tern_optim_zero_grad(s->optimizer);
    else
        tern_set_grad(s->x, NULL);
    tern_tensor *loss = s->dtype == TERN_F32 ? output_of(s) : mixed_output(s);
    if (!s->loss) {
        tern_backward_with(loss, &(tern_backward_options){.gradient = s->y});
        return loss;
    }
    tern_backward(loss);
    tern_optim_step(s->optimizer);
    return loss;
}
