/* resnet.c -- ResNets (He et al. 2015) with the names of torchvision and timm. */
#include "models/model.h"
#include <string.h>

/* The number of blocks in each of the four stages. */
typedef struct depth {
    const char *name;
    int blocks[4];
    bool bottleneck;
    int64_t groups, share; /* groups of a bottleneck's 3x3 convolution, and its channels per
                              group at width 64 */
} depth;

static const depth depths[] = {
    {"resnet18", {2, 2, 2, 2}, false, 1, 64},
    {"resnet34", {3, 4, 6, 3}, false, 1, 64},
    {"resnet50", {3, 4, 6, 3}, true, 1, 64},
    {"resnet101", {3, 4, 23, 3}, true, 1, 64},
    {"resnet152", {3, 8, 36, 3}, true, 1, 64},
    {"resnext50_32x4d", {3, 4, 6, 3}, true, 32, 4},
    {"wide_resnet50_2", {3, 4, 6, 3}, true, 1, 128},
    {"wide_resnet101_2", {3, 4, 23, 3}, true, 1, 128},
};

static const depth *depth_of(const models_model *m)
{
    const json_t *name = json_object_get(m->json, "architecture");
    for (size_t i = 0; json_is_string(name) && i < sizeof depths / sizeof *depths; i++)
        if (strcmp(json_string_value(name), depths[i].name) == 0)
            return &depths[i];
    return NULL;
}

/* ---- a block --------------------------------------------------------------------------------- */

static tern_tensor *conv_bn(tern_module *self, tern_tensor *x, int i, bool relu)
{
    const char conv[] = {'c', 'o', 'n', 'v', (char)('0' + i), 0};
    const char bn[] = {'b', 'n', (char)('0' + i), 0};
    x = models_run(self, bn, models_run(self, conv, x));
    return x && relu ? tern_relu(x) : x;
}

static tern_status call_block(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                              int k)
{
    const int *shape = tern_nn_data(self); /* number of convolutions, and whether x is
                                              downsampled */
    if (n != 1 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: a block takes one tensor");
    tern_tensor *x = in[0], *y = x;
    for (int i = 1; i <= shape[0] && y; i++)
        y = conv_bn(self, y, i, i < shape[0]);
    if (shape[1])
        x = models_run(self, "downsample", x);
    out[0] = x && y ? tern_relu(tern_add(y, x)) : NULL;
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_status add_conv(tern_module *m, int i, int64_t in, int64_t out, int64_t size,
                            int64_t stride, int64_t groups)
{
    const char conv[] = {'c', 'o', 'n', 'v', (char)('0' + i), 0};
    const char bn[] = {'b', 'n', (char)('0' + i), 0};
    tern_conv_options o = {.stride = TERN_SHAPE(stride),
                           .padding = TERN_SHAPE(size / 2),
                           .groups = groups,
                           .no_bias = true};
    return models_put(m, conv, tern_nn_conv2d(in, out, TERN_SHAPE(size), &o)) &&
                   models_put(m, bn, tern_nn_batch_norm2d(out, NULL))
               ? TERN_OK
               : tern_last_status();
}

static tern_status fill_block(tern_module *m, const depth *d, int64_t in, int64_t width,
                              int64_t out, int64_t stride)
{
    int64_t middle = width * d->share / 64 * d->groups;
    if (!d->bottleneck) {
        TRY(add_conv(m, 1, in, width, 3, stride, 1));
        TRY(add_conv(m, 2, width, out, 3, 1, 1));
    } else {
        TRY(add_conv(m, 1, in, middle, 1, 1, 1));
        TRY(add_conv(m, 2, middle, middle, 3, stride, d->groups));
        TRY(add_conv(m, 3, middle, out, 1, 1, 1));
    }
    if (stride == 1 && in == out)
        return TERN_OK;
    tern_conv_options o = {.stride = TERN_SHAPE(stride), .no_bias = true};
    tern_module *down = tern_nn_sequential(tern_nn_conv2d(in, out, TERN_SHAPE(1), &o),
                                           tern_nn_batch_norm2d(out, NULL));
    return models_put(m, "downsample", down) ? TERN_OK : tern_last_status();
}

/* ---- the network ----------------------------------------------------------------------------- */

static tern_status add_stage(models_model *m, const depth *d, int stage, int64_t *in)
{
    const char path[] = {'l', 'a', 'y', 'e', 'r', (char)('1' + stage), 0};
    int64_t width = m->c.width << stage, out = d->bottleneck ? 4 * width : width;
    tern_module *list = models_put(m->module, path, tern_nn_sequential_of(NULL, 0));
    for (int i = 0; list && i < d->blocks[stage]; i++) {
        int64_t stride = stage && !i ? 2 : 1;
        int shape[] = {d->bottleneck ? 3 : 2, stride != 1 || *in != out};
        tern_module *block =
            tern_nn_append(list, models_module(d->bottleneck ? "Bottleneck" : "BasicBlock",
                                               call_block, shape, sizeof shape));
        if (!block)
            return tern_last_status();
        TRY(fill_block(block, d, *in, width, out, stride));
        *in = out;
    }
    return list ? TERN_OK : tern_last_status();
}

static tern_status build(models_model *m)
{
    const depth *d = depth_of(m);
    int64_t in = m->c.width;
    TRY(add_conv(m->module, 1, m->c.channels, in, 7, 2, 1));
    for (int stage = 0; stage < 4; stage++)
        TRY(add_stage(m, d, stage, &in));
    return models_linear(m->module, "fc", in, m->c.labels, true);
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    static const char *const stages[] = {"layer1", "layer2", "layer3", "layer4"};
    TRY(models_need(m, in->pixel_values, "pixel_values"));
    tern_tensor *x = conv_bn(m->module, in->pixel_values, 1, true);
    x = x ? tern_max_pool2d(
                x, TERN_SHAPE(3),
                &(tern_max_pool_options){.stride = TERN_SHAPE(2), .padding = TERN_SHAPE(1)})
          : NULL;
    for (int i = 0; i < 4 && x; i++) {
        tern_module *stage = tern_nn_child(m->module, stages[i]);
        bool checkpoints = m->checkpointing && tern_is_grad_enabled();
        x = !stage ? NULL
            : checkpoints
                ? tern_checkpoint_sequential(stage, tern_nn_children_count(stage), x, NULL)
                : tern_nn_forward(stage, x);
    }
    out->last_hidden_state = x;
    out->pooler_output = x ? tern_mean_dim(x, TERN_DIMS(2, 3), false) : NULL;
    out->logits = out->pooler_output ? models_run(m->module, "fc", out->pooler_output) : NULL;
    return models_class_loss(in, out);
}

static const models_field fields[] = {SIZE("num_classes", labels, 1000), SIZE("width", width, 64),
                                      SIZE("in_chans", channels, 3), ONLY("global_pool", "\"avg\""),
                                      FIELDS_END};

/* Refuses a non-empty model_args. */
static tern_status configure(models_model *m)
{
    const json_t *args = json_object_get(m->json, "model_args");
    if (json_object_size(args))
        return tern_fail(TERN_ERR_UNSUPPORTED, "config.json of %s: `model_args` is not empty",
                         m->kind->name);
    return depth_of(m) ? TERN_OK : tern_fail(TERN_ERR_UNSUPPORTED, "config.json: no such ResNet");
}

static const char *const left_out[] = {"*.num_batches_tracked", NULL};

#define RESNET(NAME, TEXT)                                                                         \
    const models_architecture models_##NAME = {.name = TEXT,                                       \
                                               .type = "timm",                                     \
                                               .fields = fields,                                   \
                                               .configure = configure,                             \
                                               .build = build,                                     \
                                               .call = call,                                       \
                                               .head = "fc",                                       \
                                               .left_out = left_out,                               \
                                               .classifies = true};
RESNET(resnet18, "resnet18")
RESNET(resnet34, "resnet34")
RESNET(resnet50, "resnet50")
RESNET(resnet101, "resnet101")
RESNET(resnet152, "resnet152")
RESNET(resnext50_32x4d, "resnext50_32x4d")
RESNET(wide_resnet50_2, "wide_resnet50_2")
RESNET(wide_resnet101_2, "wide_resnet101_2")
