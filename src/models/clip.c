/* clip.c -- CLIP (Radford et al. 2021): an image encoder and a text encoder with a common embedding
 * space. */
#include "models/model.h"
#include <string.h>

static const models_layer_names names = {.class_name = "CLIPEncoderLayer",
                                         .query = "self_attn.q_proj",
                                         .key = "self_attn.k_proj",
                                         .value = "self_attn.v_proj",
                                         .out = "self_attn.out_proj",
                                         .norm1 = "layer_norm1",
                                         .norm2 = "layer_norm2",
                                         .up = "mlp.fc1",
                                         .down = "mlp.fc2",
                                         .norm_first = true};

/* ---- modules --------------------------------------------------------------------------------- */

static tern_status add_numbers(tern_module *m, const char *name, tern_tensor *x)
{
    return x && tern_nn_add_parameter(m, name, x) ? TERN_OK : tern_last_status();
}

static tern_status build_texts(models_model *m)
{
    const models_config *c = &m->c;
    tern_module *base = m->module;
    TRY(models_embedding(base, "text_model.embeddings.token_embedding", c->vocab, c->width));
    TRY(models_embedding(base, "text_model.embeddings.position_embedding", c->places, c->width));
    TRY(models_layers(m, base, "text_model.encoder.layers", &names, true));
    TRY(models_layer_norm(base, "text_model.final_layer_norm", c->width, c->eps));
    return models_linear(base, "text_projection", c->width, c->labels, false);
}

static tern_status build_images(models_model *m)
{
    const models_config text = m->c, *c = &m->c;
    tern_module *base = m->module;
    int64_t side = m->image.image / m->image.patch, width = m->image.width;
    tern_conv_options o = {.stride = TERN_SHAPE(m->image.patch), .no_bias = true};
    if (!models_put(base, "vision_model.embeddings.patch_embedding",
                    tern_nn_conv2d(m->image.channels, width, TERN_SHAPE(m->image.patch), &o)))
        return tern_last_status();
    TERN_SCOPE_HERE;
    TRY(add_numbers(
        tern_nn_child(base, "vision_model.embeddings"), "class_embedding",
        tern_nn_init_normal_(tern_empty(TERN_SHAPE(width), TERN_DTYPE_DEFAULT, NULL), 0, 0.02)));
    TRY(models_embedding(base, "vision_model.embeddings.position_embedding", side * side + 1,
                         width));
    TRY(models_layer_norm(base, "vision_model.pre_layrnorm", width, m->image.eps));
    m->c = m->image;
    tern_status status = models_layers(m, base, "vision_model.encoder.layers", &names, false);
    m->c = text;
    TRY(status);
    TRY(models_layer_norm(base, "vision_model.post_layernorm", width, m->image.eps));
    return models_linear(base, "visual_projection", width, c->labels, false);
}

static tern_status build(models_model *m)
{
    TERN_SCOPE_HERE;
    const json_t *scale = json_object_get(m->json, "logit_scale_init_value");
    double start = json_is_number(scale) ? json_number_value(scale) : 2.6592;
    TRY(add_numbers(
        m->module, "logit_scale",
        tern_full(TERN_SHAPE_SCALAR, tern_scalar_real(start), TERN_DTYPE_DEFAULT, NULL)));
    TRY(build_texts(m));
    return build_images(m);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns the position of the end token of each text, (N): of the first end token, or, for old
 * files whose end token is 2, of the largest id. */
static tern_tensor *ends_of(const models_model *m, tern_tensor *ids)
{
    tern_tensor *at =
        m->c.first == 2 ? ids
                        : tern_to_dtype(tern_eq_scalar(ids, tern_scalar_int(m->c.first)), TERN_I64);
    return at ? tern_argmax_dim(at, 1, false) : NULL;
}

/* Projects x to the common space and normalizes it to length 1. */
static tern_tensor *project(models_model *m, const char *path, tern_tensor *x)
{
    x = models_run(m->module, path, x);
    return x ? tern_div(x, tern_linalg_vector_norm(x, 2, TERN_DIMS(1), true)) : NULL;
}

static tern_tensor *texts(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    models_shared s = {0};
    tern_tensor *x = models_embed(m, in, "text_model.embeddings.token_embedding");
    tern_tensor *place = x ? models_positions(in, x) : NULL;
    place = place ? models_run(m->module, "text_model.embeddings.position_embedding", place) : NULL;
    if (!place || !in->input_ids || models_mask(in, x, true, &s.mask) != TERN_OK)
        return in->input_ids ? NULL
                             : tern_fail_null(TERN_ERR_ARGUMENT,
                                              "tern_models_call: CLIP finds the end of a text in "
                                              "input_ids");
    x = models_run_layers(m, m->module, "text_model.encoder.layers", tern_add(x, place), &s);
    out->last_hidden_state = x = models_run(m->module, "text_model.final_layer_norm", x);
    tern_tensor *at = x ? ends_of(m, in->input_ids) : NULL;
    if (!at)
        return NULL;
    int64_t n = tern_size(x, 0), width = tern_size(x, 2);
    at = tern_expand(tern_view(at, TERN_SHAPE(n, 1, 1)), TERN_SHAPE(n, 1, width));
    out->pooler_output = tern_squeeze_dim(tern_gather(x, 1, at), 1);
    return project(m, "text_projection", out->pooler_output);
}

static tern_tensor *images(models_model *m, tern_tensor *image, tern_tensor **hidden)
{
    const models_config *c = &m->image;
    const models_shared s = {0};
    tern_module *base = m->module;
    if (tern_dim(image) != 4 || tern_size(image, 2) != c->image || tern_size(image, 3) != c->image)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_models_call: Input image size (%lld*%lld) doesn't match model "
                              "(%lld*%lld)",
                              (long long)tern_size(image, -2), (long long)tern_size(image, -1),
                              (long long)c->image, (long long)c->image);
    tern_tensor *x = models_run(base, "vision_model.embeddings.patch_embedding", image);
    x = x ? tern_transpose(tern_flatten(x, 2, 3), 1, 2) : NULL;
    tern_tensor *rows[2] = {
        tern_expand(tern_nn_parameter(base, "vision_model.embeddings.class_embedding"),
                    TERN_SHAPE(tern_size(image, 0), 1, c->width)),
        x};
    x = x ? tern_cat(rows, 2, 1) : NULL;
    x = x ? tern_add(x,
                     tern_nn_parameter(base, "vision_model.embeddings.position_embedding.weight"))
          : NULL;
    x = models_run(base, "vision_model.pre_layrnorm", x);
    x = models_run_layers(m, base, "vision_model.encoder.layers", x, &s);
    *hidden = x;
    x = x ? models_run(base, "vision_model.post_layernorm", tern_select(x, 1, 0)) : NULL;
    return project(m, "visual_projection", x);
}

/* Returns the mean of both cross entropies: over the texts of each image, and over the images of
 * each text. */
static tern_tensor *contrast(tern_tensor *logits, tern_tensor *labels)
{
    tern_tensor *loss[] = {tern_cross_entropy(logits, labels, NULL),
                           tern_cross_entropy(tern_transpose(logits, 0, 1), labels, NULL)};
    return tern_mul_scalar(tern_add(loss[0], loss[1]), tern_scalar_real(0.5));
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    bool some_text = in->input_ids && tern_dim(in->input_ids) == 2;
    bool some_image = in->pixel_values && tern_dim(in->pixel_values) == 4;
    if (!some_text && !some_image)
        return models_need(m, NULL, "input_ids (N, T) or pixel_values (N, C, H, W)");
    tern_tensor *hidden = NULL;
    if (some_text && !(out->text_embeds = texts(m, in, out)))
        return tern_last_status();
    if (some_image && !(out->image_embeds = images(m, in->pixel_values, &hidden)))
        return tern_last_status();
    if (!some_text)
        out->last_hidden_state = hidden;
    if (!some_text || !some_image)
        return TERN_OK;
    tern_tensor *scale = tern_exp(tern_nn_parameter(m->module, "logit_scale"));
    out->logits =
        tern_mul(tern_matmul(out->image_embeds, tern_transpose(out->text_embeds, 0, 1)), scale);
    if (!out->logits || !in->labels)
        return out->logits ? TERN_OK : tern_last_status();
    out->loss = contrast(out->logits, in->labels);
    return out->loss ? TERN_OK : tern_last_status();
}

/* ---- config.json ----------------------------------------------------------------------------- */

static const models_field fields[] = {SIZE("projection_dim", labels, 512),
                                      LIST("logit_scale_init_value"),
                                      LIST("text_config"),
                                      LIST("vision_config"),
                                      LIST("text_config_dict"),
                                      LIST("vision_config_dict"),
                                      LIST("initializer_factor"),
                                      FIELDS_END};
#define COMMON_FIELDS(WIDTH, HIDDEN, HEADS)                                                        \
    SIZE("hidden_size", width, WIDTH), SIZE("intermediate_size", hidden, HIDDEN),                  \
        SIZE("num_hidden_layers", layers, 12), SIZE("num_attention_heads", heads, HEADS),          \
        REAL("layer_norm_eps", eps, 1e-5), REAL("attention_dropout", attention_dropout, 0),        \
        ACTIVATION("hidden_act", "quick_gelu"), ONLY("dropout", "0"), LIST("projection_dim"),      \
        LIST("initializer_factor")
static const models_field text_fields[] = {
    COMMON_FIELDS(512, 2048, 8), SIZE("vocab_size", vocab, 49408),
    SIZE("max_position_embeddings", places, 77), INT("eos_token_id", first, 49407), FIELDS_END};
static const models_field image_fields[] = {
    COMMON_FIELDS(768, 3072, 12), SIZE("image_size", image, 224), SIZE("patch_size", patch, 32),
    SIZE("num_channels", channels, 3), FIELDS_END};

static tern_status configure(models_model *m)
{
    const char *const parts[] = {"text_config", "vision_config"};
    models_config *configs[] = {&m->c, &m->image};
    int64_t width = m->c.labels; /* of the common space */
    for (int i = 0; i < 2; i++) {
        TRY(models_read_part(m, parts[i], i ? image_fields : text_fields, configs[i]));
        configs[i]->bias = configs[i]->out_bias = configs[i]->mlp_bias = true;
        configs[i]->labels = width;
        const json_t *act = json_object_get(json_object_get(m->json, parts[i]), "hidden_act");
        if (!json_is_string(act))
            configs[i]->activation = models_activation_of("quick_gelu");
    }
    return m->image.image % m->image.patch == 0
               ? TERN_OK
               : tern_fail(TERN_ERR_UNSUPPORTED,
                           "config.json of %s: image_size %lld is no multiple of patch_size %lld",
                           m->kind->name, (long long)m->image.image, (long long)m->image.patch);
}

static const char *const left_out[] = {"*embeddings.position_ids", NULL};

const models_architecture models_clip = {.name = "CLIPModel",
                                         .type = "clip",
                                         .fields = fields,
                                         .configure = configure,
                                         .build = build,
                                         .call = call,
                                         .left_out = left_out};
