/* vit.c -- ViT (Dosovitskiy et al. 2020) and DeiT (Touvron et al. 2021): image classification by
 * patches. */
#include "models/model.h"
#include <string.h>

static const models_layer_names names = {.class_name = "ViTLayer",
                                         .query = "attention.attention.query",
                                         .key = "attention.attention.key",
                                         .value = "attention.attention.value",
                                         .out = "attention.output.dense",
                                         .norm1 = "layernorm_before",
                                         .norm2 = "layernorm_after",
                                         .up = "intermediate.dense",
                                         .down = "output.dense",
                                         .norm_first = true};

static bool is_deit(const models_model *m)
{
    return strcmp(m->kind->type, "deit") == 0;
}

/* Adds a learned parameter (1, n, width). */
static tern_status add_rows(tern_module *m, const char *name, int64_t n, int64_t width)
{
    TERN_SCOPE_HERE;
    tern_tensor *x = tern_empty(TERN_SHAPE(1, n, width), TERN_DTYPE_DEFAULT, NULL);
    x = tern_nn_init_normal_(x, 0, 0.02);
    return x && tern_nn_add_parameter(m, name, x) ? TERN_OK : tern_last_status();
}

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    tern_module *base = models_base(m);
    int64_t tokens = is_deit(m) ? 2 : 1, side = c->image / c->patch;
    tern_conv_options o = {.stride = TERN_SHAPE(c->patch)};
    if (!models_put(base, "embeddings.patch_embeddings.projection",
                    tern_nn_conv2d(c->channels, c->width, TERN_SHAPE(c->patch), &o)))
        return tern_last_status();
    tern_module *embeddings = tern_nn_child(base, "embeddings");
    TRY(add_rows(embeddings, "cls_token", 1, c->width));
    if (tokens == 2)
        TRY(add_rows(embeddings, "distillation_token", 1, c->width));
    TRY(add_rows(embeddings, "position_embeddings", side * side + tokens, c->width));
    TRY(models_layers(m, base, "encoder.layer", &names, false));
    TRY(models_layer_norm(base, "layernorm", c->width, c->eps));
    if (!m->kind->head)
        return models_linear(base, "pooler.dense", c->width, c->width, true);
    return models_linear(m->module, m->kind->head, c->width, c->labels, true);
}

/* Returns the embedded patches: (N, C, H, W) -> (N, tokens + patches, width). */
static tern_tensor *embed(models_model *m, tern_tensor *image)
{
    tern_module *base = models_base(m);
    const models_config *c = &m->c;
    if (tern_dim(image) != 4 || tern_size(image, 2) != c->image || tern_size(image, 3) != c->image)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_models_call: Input image size (%lld*%lld) doesn't match model "
                              "(%lld*%lld)",
                              (long long)tern_size(image, -2), (long long)tern_size(image, -1),
                              (long long)c->image, (long long)c->image);
    tern_tensor *x = models_run(base, "embeddings.patch_embeddings.projection", image);
    x = x ? tern_transpose(tern_flatten(x, 2, 3), 1, 2) : NULL;
    tern_tensor *rows[3] = {0};
    int n = 0;
    rows[n++] = tern_nn_parameter(base, "embeddings.cls_token");
    if (is_deit(m))
        rows[n++] = tern_nn_parameter(base, "embeddings.distillation_token");
    for (int i = 0; i < n; i++)
        rows[i] = tern_expand(rows[i], TERN_SHAPE(tern_size(image, 0), 1, c->width));
    rows[n++] = x;
    x = tern_cat(rows, n, 1);
    x = x ? tern_add(x, tern_nn_parameter(base, "embeddings.position_embeddings")) : NULL;
    return x ? tern_dropout(x, c->dropout, tern_nn_is_training(m->module)) : NULL;
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    const models_shared s = {0};
    tern_module *base = models_base(m);
    TRY(models_need(m, in->pixel_values, "pixel_values"));
    tern_tensor *x = embed(m, in->pixel_values);
    x = x ? models_run_layers(m, base, "encoder.layer", x, &s) : NULL;
    x = x ? models_run(base, "layernorm", x) : NULL;
    tern_tensor *first = x ? tern_select(x, 1, 0) : NULL;
    out->last_hidden_state = x;
    if (!first)
        return tern_last_status();
    if (m->kind->head) {
        out->logits = models_run(m->module, m->kind->head, first);
        return models_class_loss(in, out);
    }
    tern_tensor *pooled = models_run(base, "pooler.dense", first);
    out->pooler_output = pooled ? tern_tanh(pooled) : NULL;
    return out->pooler_output ? TERN_OK : tern_last_status();
}

static const models_field fields[] = {SIZE("hidden_size", width, 768),
                                      SIZE("num_hidden_layers", layers, 12),
                                      SIZE("num_attention_heads", heads, 12),
                                      SIZE("intermediate_size", hidden, 3072),
                                      SIZE("image_size", image, 224),
                                      SIZE("patch_size", patch, 16),
                                      SIZE("num_channels", channels, 3),
                                      REAL("layer_norm_eps", eps, 1e-12),
                                      REAL("hidden_dropout_prob", dropout, 0),
                                      REAL("attention_probs_dropout_prob", attention_dropout, 0),
                                      FLAG("qkv_bias", bias, 1),
                                      ACTIVATION("hidden_act", "gelu"),
                                      ONLY("pooler_act", "\"tanh\""),
                                      ONLY("chunk_size_feed_forward", "0"),
                                      FIELDS_END};

static tern_status configure(models_model *m)
{
    m->c.out_bias = m->c.mlp_bias = true;
    return m->c.image % m->c.patch == 0
               ? TERN_OK
               : tern_fail(TERN_ERR_UNSUPPORTED,
                           "config.json of %s: image_size %lld is no multiple of patch_size %lld",
                           m->kind->name, (long long)m->c.image, (long long)m->c.patch);
}

static const char *const left_out[] = {"*pooler.*", NULL};

#define VIT(NAME, CLASS, TYPE, HEAD, CLASSIFIES)                                                   \
    const models_architecture models_##NAME = {.name = CLASS,                                      \
                                               .type = TYPE,                                       \
                                               .fields = fields,                                   \
                                               .configure = configure,                             \
                                               .build = build,                                     \
                                               .spread = "initializer_range",                      \
                                               .call = call,                                       \
                                               .prefix = TYPE ".",                                 \
                                               .head = HEAD,                                       \
                                               .left_out = left_out,                               \
                                               .classifies = CLASSIFIES};
VIT(vit, "ViTModel", "vit", NULL, false)
VIT(vit_classes, "ViTForImageClassification", "vit", "classifier", true)
VIT(deit, "DeiTModel", "deit", NULL, false)
VIT(deit_classes, "DeiTForImageClassification", "deit", "classifier", true)
