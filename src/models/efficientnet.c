/* efficientnet.c -- MobileNet v2 and v3 (Sandler et al. 2018, Howard et al. 2019) and EfficientNet
 * (Tan, Le 2019) with timm's names, and files with torchvision's: stages of blocks of an expanding,
 * a depthwise and a projecting convolution. */
#include "models/model.h"
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The structure of a family of models. */
typedef struct family {
    int64_t stem, features;
    models_activation activation;
    models_activation reduce, gate; /* activations of squeeze and excitation */
    bool head_last;                 /* the head's convolution follows the mean and has a bias */
    const char *stages;             /* timm's notation; stages are separated by bars */
} family;

static const family v2 = {
    32,
    1280,
    tern_relu6,
    NULL,
    NULL,
    false,
    "ds_r1_k3_s1_c16|ir_r2_k3_s2_e6_c24|ir_r3_k3_s2_e6_c32|ir_r4_k3_s2_e6_c64|ir_r3_k3_s1_e6_c96|"
    "ir_r3_k3_s2_e6_c160|ir_r1_k3_s1_e6_c320"};
static const family v3_large = {
    16,
    1280,
    tern_hardswish,
    tern_relu,
    tern_hardsigmoid,
    true,
    "ds_r1_k3_s1_e1_c16_nre|ir_r1_k3_s2_e4_c24_nre ir_r1_k3_s1_e3_c24_nre|"
    "ir_r3_k5_s2_e3_c40_se0.25_nre|"
    "ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80|ir_r2_k3_s1_e6_c112_se0.25|"
    "ir_r3_k5_s2_e6_c160_se0.25|cn_r1_k1_s1_c960"};
static const family v3_small = {
    16,
    1024,
    tern_hardswish,
    tern_relu,
    tern_hardsigmoid,
    true,
    "ds_r1_k3_s2_e1_c16_se0.25_nre|ir_r1_k3_s2_e4.5_c24_nre ir_r1_k3_s1_e3.67_c24_nre|"
    "ir_r1_k5_s2_e4_c40_se0.25 ir_r2_k5_s1_e6_c40_se0.25|ir_r2_k5_s1_e3_c48_se0.25|"
    "ir_r3_k5_s2_e6_c96_se0.25|cn_r1_k1_s1_c576"};
static const family efficient = {
    32,
    1280,
    tern_silu,
    tern_silu,
    tern_sigmoid,
    false,
    "ds_r1_k3_s1_e1_c16_se0.25|ir_r2_k3_s2_e6_c24_se0.25|ir_r2_k5_s2_e6_c40_se0.25|"
    "ir_r3_k3_s2_e6_c80_se0.25|ir_r3_k5_s1_e6_c112_se0.25|ir_r4_k5_s2_e6_c192_se0.25|"
    "ir_r1_k3_s1_e6_c320_se0.25"};

static const struct {
    const char *name;
    const family *of;
    double wide, deep;
} rows[] = {
    {"mobilenet_v2", &v2, 1, 1}, /* torchvision's name; its EfficientNets have timm's names */
    {"mobilenet_v3_large", &v3_large, 1, 1},
    {"mobilenet_v3_small", &v3_small, 1, 1},
    {"mobilenetv2_100", &v2, 1, 1},
    {"mobilenetv2_140", &v2, 1.4, 1},
    {"mobilenetv3_large_100", &v3_large, 1, 1},
    {"mobilenetv3_small_100", &v3_small, 1, 1},
    {"mobilenetv3_small_075", &v3_small, 0.75, 1},
    {"mobilenetv3_small_050", &v3_small, 0.5, 1},
    {"efficientnet_b0", &efficient, 1, 1},
    {"efficientnet_b1", &efficient, 1, 1.1},
    {"efficientnet_b2", &efficient, 1.1, 1.2},
    {"efficientnet_b3", &efficient, 1.2, 1.4},
    {"efficientnet_b4", &efficient, 1.4, 1.8},
    {"efficientnet_b5", &efficient, 1.6, 2.2},
    {"efficientnet_b6", &efficient, 1.8, 2.6},
    {"efficientnet_b7", &efficient, 2, 3.1},
};

static int row_of(const models_model *m)
{
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
        if (strcmp(m->kind->name, rows[i].name) == 0)
            return i;
    return -1;
}

static const family *family_of(const models_model *m)
{
    return rows[row_of(m)].of;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Returns the nearest multiple of 8 that is at least 0.9 x. */
static int64_t by_eights(double x)
{
    int64_t n = (int64_t)(x + 4) / 8 * 8;
    n = n < 8 ? 8 : n;
    return (double)n < 0.9 * x ? n + 8 : n;
}

/* One block definition of a stage, for example "ir_r2_k3_s2_e6_c24_se0.25_nre". */
typedef struct word {
    char kind; /* i: inverted residual, d: depthwise separable, c: convolution */
    int repeats, kernel, stride;
    double expand, channels, squeeze;
    bool relu;
} word;

static word parse(const char *text)
{
    word w = {.kind = text[0], .repeats = 1, .kernel = 3, .stride = 1, .expand = 1};
    for (const char *at = strchr(text, '_'); at && *at == '_'; at += strcspn(at + 1, "_ |") + 1) {
        double x = tern_os_strtod(at + 2, NULL);
        switch (at[1]) {
        case 'r':
            w.repeats = (int)x;
            break;
        case 'k':
            w.kernel = (int)x;
            break;
        case 'e':
            w.expand = x;
            break;
        case 'c':
            w.channels = x;
            break;
        case 'n':
            w.relu = true;
            break;
        default:
            if (at[2] == 'e')
                w.squeeze = tern_os_strtod(at + 3, NULL);
            else
                w.stride = (int)x;
        }
    }
    return w;
}

/* Parses the words of a stage and scales their repeats to ceil(all repeats * deep) in total,
 * starting with the last word. */
static int parse_stage(const char *text, double deep, word *list)
{
    int n = 0, sum = 0;
    for (const char *at = text; n < 8; at++) {
        list[n] = parse(at);
        sum += list[n++].repeats;
        at += strcspn(at, " |");
        if (*at != ' ')
            break;
    }
    int scaled = (int)ceil(sum * deep);
    for (int i = n - 1; i >= 0; i--) {
        int count = (int)rint((double)list[i].repeats / sum * scaled);
        sum -= list[i].repeats;
        list[i].repeats = count < 1 ? 1 : count;
        scaled -= list[i].repeats;
    }
    return n;
}

/* ---- a block --------------------------------------------------------------------------------- */

typedef struct block {
    models_activation activation, reduce, gate;
    char kind;
    bool squeeze, skip;
} block;

static tern_tensor *conv_bn(tern_module *self, const char *conv, const char *bn, tern_tensor *x,
                            models_activation activation)
{
    x = models_run(self, bn, models_run(self, conv, x));
    return x && activation ? activation(x) : x;
}

static tern_tensor *squeeze(tern_module *self, const block *b, tern_tensor *x)
{
    tern_tensor *y = x ? tern_mean_dim(x, TERN_DIMS(2, 3), true) : NULL;
    y = models_run(self, "se.conv_reduce", y);
    y = y ? models_run(self, "se.conv_expand", b->reduce(y)) : NULL;
    return y ? tern_mul(x, b->gate(y)) : NULL;
}

static tern_status call_block(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                              int k)
{
    const block *b = tern_nn_data(self);
    if (n != 1 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: a block takes one tensor");
    bool inverted = b->kind == 'i';
    tern_tensor *x = in[0];
    if (b->kind == 'c') {
        out[0] = conv_bn(self, "conv", "bn1", x, b->activation);
        return out[0] ? TERN_OK : tern_last_status();
    }
    if (inverted)
        x = conv_bn(self, "conv_pw", "bn1", x, b->activation);
    x = conv_bn(self, "conv_dw", inverted ? "bn2" : "bn1", x, b->activation);
    if (b->squeeze)
        x = squeeze(self, b, x);
    x = conv_bn(self, inverted ? "conv_pwl" : "conv_pw", inverted ? "bn3" : "bn2", x, NULL);
    out[0] = x && b->skip ? tern_add(x, in[0]) : x;
    return out[0] ? TERN_OK : tern_last_status();
}

/* The eps of batch norms; torchvision's MobileNet v3 and EfficientNets from b5 on have 1e-3. */
static double eps_of(const models_model *m)
{
    const char *name = m->kind->name;
    bool large = strncmp(name, "efficientnet_b", 14) == 0 && name[14] >= '5';
    return m->c.torchvision && (large || family_of(m)->head_last) ? 1e-3 : 1e-5;
}

static tern_status add_conv(tern_module *m, const char *conv, const char *bn, int64_t in,
                            int64_t out, int64_t size, int64_t stride, int64_t groups, double eps)
{
    tern_conv_options o = {.stride = TERN_SHAPE(stride),
                           .padding = TERN_SHAPE((stride - 1 + size - 1) / 2),
                           .groups = groups,
                           .no_bias = bn != NULL};
    return models_put(m, conv, tern_nn_conv2d(in, out, TERN_SHAPE(size), &o)) &&
                   (!bn ||
                    models_put(m, bn,
                               tern_nn_batch_norm2d(out, &(tern_batch_norm_options){.eps = eps})))
               ? TERN_OK
               : tern_last_status();
}

static tern_status fill_block(tern_module *m, const family *f, const word *w, int64_t in,
                              int64_t out, int64_t stride, double eps)
{
    bool inverted = w->kind == 'i';
    int64_t middle = inverted ? by_eights((double)in * w->expand) : in;
    if (w->kind == 'c')
        return add_conv(m, "conv", "bn1", in, out, w->kernel, stride, 1, eps);
    if (inverted)
        TRY(add_conv(m, "conv_pw", "bn1", in, middle, 1, 1, 1, eps));
    TRY(add_conv(m, "conv_dw", inverted ? "bn2" : "bn1", middle, middle, w->kernel, stride, middle,
                 eps));
    if (w->squeeze > 0) { /* a fraction of the block's input channels, in MobileNet v3 of the
                             expanded channels */
        double squeezed =
            (double)middle * (w->squeeze / (inverted && !f->head_last ? w->expand : 1));
        int64_t n = f->head_last ? by_eights(squeezed) : (int64_t)rint(squeezed);
        TRY(add_conv(m, "se.conv_reduce", NULL, middle, n, 1, 1, 1, 0));
        TRY(add_conv(m, "se.conv_expand", NULL, n, middle, 1, 1, 1, 0));
    }
    return add_conv(m, inverted ? "conv_pwl" : "conv_pw", inverted ? "bn3" : "bn2", middle, out, 1,
                    1, 1, eps);
}

/* ---- the network ----------------------------------------------------------------------------- */

static tern_status add_stage(models_model *m, const char *text, int stage, int64_t *in)
{
    const family *f = family_of(m);
    word words[8];
    char path[32];
    int n = parse_stage(text, m->c.deep, words);
    snprintf(path, sizeof path, "blocks.%d", stage);
    tern_module *list = models_put(m->module, path, tern_nn_sequential_of(NULL, 0));
    for (int i = 0, first = 1; list && i < n; i++)
        for (int r = 0; r < words[i].repeats; r++, first = 0) {
            const word *w = &words[i];
            int64_t out = by_eights(w->channels * m->c.wide), stride = first ? w->stride : 1;
            block b = {.activation = w->relu ? tern_relu : f->activation,
                       .reduce = f->reduce,
                       .gate = f->gate,
                       .kind = w->kind,
                       .squeeze = w->squeeze > 0,
                       .skip = stride == 1 && *in == out};
            tern_module *one =
                tern_nn_append(list, models_module("InvertedResidual", call_block, &b, sizeof b));
            if (!one)
                return tern_last_status();
            TRY(fill_block(one, f, w, *in, out, stride, eps_of(m)));
            *in = out;
        }
    return list ? TERN_OK : tern_last_status();
}

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    const family *f = family_of(m);
    bool fixed = f->head_last && c->wide < 0.75;
    int64_t in = fixed ? f->stem : by_eights((double)f->stem * c->wide);
    int stage = 0;
    TRY(add_conv(m->module, "conv_stem", "bn1", c->channels, in, 3, 2, 1, eps_of(m)));
    for (const char *at = f->stages; at; at = strchr(at, '|'), at = at ? at + 1 : NULL)
        TRY(add_stage(m, at, stage++, &in));
    TRY(add_conv(m->module, "conv_head", f->head_last ? NULL : "bn2", in, c->hidden, 1, 1, 1,
                 eps_of(m)));
    return models_linear(m->module, "classifier", c->hidden, c->labels, true);
}

static tern_tensor *run_stages(models_model *m, tern_tensor *x)
{
    tern_module *stages = tern_nn_child(m->module, "blocks");
    for (int i = 0; stages && x && i < tern_nn_children_count(stages); i++) {
        tern_module *one = tern_nn_child_at(stages, i);
        x = m->checkpointing && tern_is_grad_enabled()
                ? tern_checkpoint_sequential(one, tern_nn_children_count(one), x, NULL)
                : tern_nn_forward(one, x);
    }
    return x;
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    const family *f = family_of(m);
    TRY(models_need(m, in->pixel_values, "pixel_values"));
    tern_tensor *x = conv_bn(m->module, "conv_stem", "bn1", in->pixel_values, f->activation);
    x = run_stages(m, x);
    if (x && !f->head_last)
        x = conv_bn(m->module, "conv_head", "bn2", x, f->activation);
    out->last_hidden_state = x;
    x = x ? tern_mean_dim(x, TERN_DIMS(2, 3), f->head_last) : NULL;
    if (x && f->head_last) {
        x = models_run(m->module, "conv_head", x);
        x = x ? tern_flatten(f->activation(x), 1, 3) : NULL;
    }
    out->pooler_output = x;
    out->logits = x ? models_run(m->module, "classifier", x) : NULL;
    return models_class_loss(in, out);
}

static const models_field fields[] = {SIZE("num_classes", labels, 1000),
                                      SIZE("in_chans", channels, 3),
                                      SIZE("num_features", hidden, 0),
                                      REAL("channel_multiplier", wide, 0),
                                      REAL("depth_multiplier", deep, 0),
                                      ONLY("global_pool", "\"avg\""),
                                      LIST("names"),
                                      FIELDS_END};

static tern_status configure(models_model *m)
{
    models_config *c = &m->c;
    int i = row_of(m);
    const char *names = json_string_value(json_object_get(m->json, "names"));
    c->torchvision = names ? strcmp(names, "torchvision") == 0 : m->kind->name[9] == '_';
    if (names && !c->torchvision && strcmp(names, "timm") != 0)
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "config.json of %s: `names` is \"%.40s\", neither \"timm\" nor \"torchvision\"",
            m->kind->name, names);
    if (i < 0 || json_object_size(json_object_get(m->json, "model_args")))
        return tern_fail(TERN_ERR_UNSUPPORTED, "config.json of %s: `model_args` is not empty",
                         m->kind->name);
    if (!(c->wide >= 0 && c->wide <= 16) || !(c->deep >= 0 && c->deep <= 16))
        return tern_fail(TERN_ERR_IO,
                         "config.json of %s: channel_multiplier %g and depth_multiplier %g are up "
                         "to 16",
                         m->kind->name, c->wide, c->deep);
    c->wide = c->wide > 0 ? c->wide : rows[i].wide;
    c->deep = c->deep > 0 ? c->deep : rows[i].deep;
    int64_t features = rows[i].of->features;
    /* The last layer of MobileNet v2 is not scaled below its size, that of v3 is not scaled, and
     * timm's num_features of v3 refers to the layer before. */
    bool own = !rows[i].of->head_last || json_object_get(m->json, "channel_multiplier");
    if (!c->hidden || !own) {
        int64_t scaled = by_eights((double)features * c->wide);
        c->hidden = rows[i].of->head_last                    ? features
                    : rows[i].of == &v2 && scaled < features ? features
                                                             : scaled;
    }
    return TERN_OK;
}

/* ---- torchvision's names --------------------------------------------------------------------- */

/* Returns the number of blocks in the stages before `stage`. */
static int blocks_before(const models_model *m, int stage)
{
    tern_module *stages = tern_nn_child(m->module, "blocks");
    int n = 0;
    for (int i = 0; stages && i < stage; i++)
        n += tern_nn_children_count(tern_nn_child_at(stages, i));
    return n;
}

/* Returns torchvision's index of a layer in its block: expansion, depthwise, squeeze and
 * excitation, projection. */
static int place_in(const block *b, const char *layer)
{
    bool inverted = b->kind == 'i';
    int last = inverted + 1 + b->squeeze;
    switch (layer[0]) {
    case 's':
        return inverted + 1;
    case 'b':
        return layer[2] == '1' ? 0 : layer[2] == '2' && inverted ? 1 : last;
    default:
        return strncmp(layer, "conv_dw.", 8) == 0    ? inverted
               : strncmp(layer, "conv_pw.", 8) == 0  ? (inverted ? 0 : last)
               : strncmp(layer, "conv_pwl.", 9) == 0 ? last
                                                     : 0;
    }
}

static bool name_in_block(const models_model *m, int stage, int i, const char *layer, char *name,
                          size_t bytes)
{
    const family *f = family_of(m);
    tern_module *one =
        tern_nn_child_at(tern_nn_child_at(tern_nn_child(m->module, "blocks"), stage), i);
    const block *b = one ? tern_nn_data(one) : NULL;
    const char *end = strrchr(layer, '.');
    char where[64];
    if (!b || !end)
        return false;
    if (f == &efficient)
        snprintf(where, sizeof where, "features.%d.%d.block", stage + 1, i);
    else
        snprintf(where, sizeof where, "features.%d%s", 1 + blocks_before(m, stage) + i,
                 f == &v2         ? ".conv"
                 : b->kind == 'c' ? ""
                                  : ".block");
    int place = place_in(b, layer), norm = layer[0] == 'b';
    if (b->kind == 'c')
        snprintf(name, bytes, "%s.%d%s", where, norm, end);
    else if (layer[0] == 's')
        snprintf(name, bytes, "%s.%d.fc%d%s", where, place, strstr(layer, "expand") ? 2 : 1, end);
    else if (f == &v2 && place == 1 + (b->kind == 'i'))
        snprintf(name, bytes, "%s.%d%s", where, place + norm, end);
    else
        snprintf(name, bytes, "%s.%d.%d%s", where, place, norm, end);
    return true;
}

static bool file_name(const models_model *m, const char *path, char *name, size_t bytes)
{
    const family *f = family_of(m);
    int stage, i, used = 0;
    const char *end = strrchr(path, '.');
    if (!m->c.torchvision || !end)
        return false;
    if (sscanf(path, "blocks.%d.%d.%n", &stage, &i, &used) == 2 && used)
        return name_in_block(m, stage, i, path + used, name, bytes);
    int stages = tern_nn_children_count(tern_nn_child(m->module, "blocks"));
    int last = 1 + (f == &efficient ? stages : blocks_before(m, stages));
    if (path[0] == 'b')
        snprintf(name, bytes, "features.%d.1%s", path[2] == '1' ? 0 : last, end);
    else if (strncmp(path, "conv_stem", 9) == 0)
        snprintf(name, bytes, "features.0.0%s", end);
    else if (strncmp(path, "conv_head", 9) == 0 && !f->head_last)
        snprintf(name, bytes, "features.%d.0%s", last, end);
    else
        snprintf(name, bytes, "classifier.%d%s", !f->head_last ? 1 : path[1] == 'o' ? 0 : 3, end);
    return true;
}

static const char *const left_out[] = {"*.num_batches_tracked", NULL};

#define TIMM(NAME)                                                                                 \
    const models_architecture models_##NAME = {.name = #NAME,                                      \
                                               .type = "timm",                                     \
                                               .fields = fields,                                   \
                                               .configure = configure,                             \
                                               .build = build,                                     \
                                               .call = call,                                       \
                                               .head = "classifier",                               \
                                               .left_out = left_out,                               \
                                               .file_name = file_name,                             \
                                               .classifies = true};
TIMM(mobilenet_v2)
TIMM(mobilenet_v3_large)
TIMM(mobilenet_v3_small)
TIMM(mobilenetv2_100)
TIMM(mobilenetv2_140)
TIMM(mobilenetv3_large_100)
TIMM(mobilenetv3_small_100)
TIMM(mobilenetv3_small_075)
TIMM(mobilenetv3_small_050)
TIMM(efficientnet_b0)
TIMM(efficientnet_b1)
TIMM(efficientnet_b2)
TIMM(efficientnet_b3)
TIMM(efficientnet_b4)
TIMM(efficientnet_b5)
TIMM(efficientnet_b6)
TIMM(efficientnet_b7)
