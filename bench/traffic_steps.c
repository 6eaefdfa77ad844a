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

static tern_module *linear(void)
{
    return tern_nn_linear(10, 1, NULL);
}

static tern_module *resnet50(void)
{
    return bottlenecks(64, "3-4-6-3", 1000);
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
    int64_t size[4]; /* targets, their classes (0: real), layers with attention, their width */
} kinds[] = {
    {"a", linear, sgd, squared_error, false, {2, {100, 10}}, {100, 0}},
    {"b", mlp, sgd, cross_entropy, false, {2, {64, 784}}, {64, 10}},
    {"c", lenet, adam, cross_entropy, false, {4, {64, 1, 28, 28}}, {64, 10}},
    {"d", resnet, momentum, cross_entropy, false, {4, {32, 3, 32, 32}}, {32, 10}},
    {"e", small_gpt, adamw, cross_entropy, true, {2, {16, 64}}, {1024, 65, 4, 128}},
    {"f", char_lstm, adam, cross_entropy, true, {2, {32, 32}}, {1024, 65}},
    {"resnet50", resnet50, momentum, cross_entropy, false, {4, {128, 3, 224, 224}}, {128, 1000}},
    {"attention", attention, NULL, NULL, false, {3, {16, 1024, 2304}}, {0, 0, 1, 768}},
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
        if (kinds[i].size[1])
            s->y = tern_keep(tern_zeros(TERN_SHAPE(each * x.dims[0]), TERN_I64, NULL));
        else if (kinds[i].size[0])
            s->y = tern_keep(tern_zeros(TERN_SHAPE(each * x.dims[0], 1), TERN_F32, NULL));
        else
            s->y = tern_keep(tern_zeros(TERN_SHAPE(16, 1024, 768), half, NULL));
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
