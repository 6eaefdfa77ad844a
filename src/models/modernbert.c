/* modernbert.c -- ModernBERT (Warner et al. 2024): an encoder with rotary positions, in which two
 * of three layers have a sliding window. */
#include "models/model.h"
#include <string.h>

static const models_layer_names names = {.class_name = "ModernBertEncoderLayer",
                                         .qkv = "attn.Wqkv",
                                         .out = "attn.Wo",
                                         .norm1 = "attn_norm",
                                         .gate_up = "mlp.Wi",
                                         .down = "mlp.Wo",
                                         .norm2 = "mlp_norm",
                                         .norm_first = true,
                                         .no_norm_bias = true,
                                         .no_first_norm = true};

static tern_status norm(tern_module *m, const char *path, const models_config *c)
{
    const tern_layer_norm_options o = {.eps = c->eps, .no_bias = true};
    return models_put(m, path, tern_nn_layer_norm(TERN_SHAPE(c->width), &o)) ? TERN_OK
                                                                             : tern_last_status();
}

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    tern_module *base = models_base(m);
    TRY(models_embedding(base, "embeddings.tok_embeddings", c->vocab, c->width));
    TRY(norm(base, "embeddings.norm", c));
    TRY(models_layers(m, base, "layers", &names, false));
    TRY(norm(base, "final_norm", c));
    if (!m->kind->head)
        return TERN_OK;
    TRY(models_linear(m->module, "head.dense", c->width, c->width, c->gated));
    TRY(norm(m->module, "head.norm", c));
    return models_linear(m->module, m->kind->head, c->width, c->labels, true);
}

/* Returns the mask (1, 1, T, T) of keys at most local_attention / 2 away, combined with mask. */
static tern_tensor *neighbours(const models_model *m, tern_tensor *mask, int64_t t,
                               const char *device)
{
    tern_tensor *i = tern_arange_scalar(tern_scalar_int(0), tern_scalar_int(t), tern_scalar_int(1),
                                        TERN_I64, device);
    tern_tensor *apart = i ? tern_abs(tern_sub(tern_unsqueeze(i, 0), tern_unsqueeze(i, 1))) : NULL;
    tern_tensor *near = apart ? tern_le_scalar(apart, tern_scalar_int(m->c.reach / 2)) : NULL;
    near = near ? tern_view(near, TERN_SHAPE(1, 1, t, t)) : NULL;
    return near && mask ? tern_logical_and(near, mask) : near;
}

/* Returns the first token's state, or the mean over the tokens that the mask includes. */
static tern_tensor *pool(const models_model *m, const tern_model_inputs *in, tern_tensor *x)
{
    if (!m->c.scaled)
        return tern_select(x, 1, 0);
    if (!in->attention_mask)
        return tern_mean_dim(x, TERN_DIMS(1), false);
    tern_tensor *mask = tern_unsqueeze(tern_to_dtype(in->attention_mask, tern_dtype_of(x)), -1);
    return mask ? tern_div(tern_sum_dim(tern_mul(x, mask), TERN_DIMS(1), false),
                           tern_sum_dim(mask, TERN_DIMS(1), false))
                : NULL;
}

static tern_status classify(models_model *m, const tern_model_inputs *in, tern_tensor *x,
                            tern_model_outputs *out)
{
    const char *word = json_string_value(json_object_get(m->json, "classifier_activation"));
    models_activation activation = word ? models_activation_of(word) : tern_gelu;
    x = pool(m, in, x);
    x = x ? models_run(m->module, "head.dense", x) : NULL;
    x = x ? models_run(m->module, "head.norm", activation(x)) : NULL;
    x = x ? tern_dropout(x, m->c.head_dropout, tern_nn_is_training(m->module)) : NULL;
    out->logits = x ? models_run(m->module, m->kind->head, x) : NULL;
    return models_class_loss(in, out);
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    const models_config *c = &m->c;
    models_shared s = {0};
    tern_module *base = models_base(m);
    const char *table = "model.embeddings.tok_embeddings";
    tern_tensor *x = models_embed(m, in, base == m->module ? strchr(table, '.') + 1 : table);
    tern_tensor *positions = x ? models_positions(in, x) : NULL;
    x = positions ? models_run(base, "embeddings.norm", x) : NULL;
    if (!x)
        return tern_last_status();
    x = tern_dropout(x, c->embedding_dropout, tern_nn_is_training(m->module));
    int64_t t = tern_size(x, 1);
    TRY(models_mask(in, x, false, &s.mask));
    TRY(models_rope_tables(c, &c->rope, positions, t, &s.cos, &s.sin));
    TRY(models_rope_tables(c, &c->local_rope, positions, t, &s.local_cos, &s.local_sin));
    if (!(s.local_mask = neighbours(m, s.mask, t, tern_device(x))))
        return tern_last_status();
    x = models_run_layers(m, base, "layers", x, &s);
    out->last_hidden_state = x = x ? models_run(base, "final_norm", x) : NULL;
    if (!x)
        return tern_last_status();
    return m->kind->head ? classify(m, in, x, out) : TERN_OK;
}

static const models_field fields[] = {SIZE("vocab_size", vocab, 50368),
                                      SIZE("hidden_size", width, 768),
                                      SIZE("num_hidden_layers", layers, 22),
                                      SIZE("num_attention_heads", heads, 12),
                                      SIZE("intermediate_size", hidden, 1152),
                                      SIZE("max_position_embeddings", places, 8192),
                                      SIZE("local_attention", reach, 128),
                                      SIZE("global_attn_every_n_layers", full_every, 3),
                                      REAL("norm_eps", eps, 1e-5),
                                      REAL("embedding_dropout", embedding_dropout, 0),
                                      REAL("mlp_dropout", activation_dropout, 0),
                                      REAL("classifier_dropout", head_dropout, 0),
                                      FLAG("attention_bias", bias, 0),
                                      FLAG("mlp_bias", mlp_bias, 0),
                                      FLAG("classifier_bias", gated, 0),
                                      FLAG("tie_word_embeddings", tied, 1),
                                      ACTIVATION("hidden_activation", "gelu"),
                                      ONLY("norm_bias", "false"),
                                      ONLY("attention_dropout", "0"),
                                      LIST("classifier_activation"),
                                      LIST("classifier_pooling"),
                                      LIST("layer_types"),
                                      LIST("global_rope_theta"),
                                      LIST("local_rope_theta"),
                                      LIST("layer_norm_eps"),
                                      LIST("decoder_bias"),
                                      LIST("deterministic_flash_attn"),
                                      LIST("initializer_cutoff_factor"),
                                      LIST("position_embedding_type"),
                                      LIST("reference_compile"),
                                      LIST("repad_logits_with_grad"),
                                      LIST("sparse_pred_ignore_index"),
                                      LIST("sparse_prediction"),
                                      FIELDS_END};

/* c->scaled: the classifier uses the mean of the tokens; c->window is only used by
 * models_check_layer_types. */
static tern_status configure(models_model *m)
{
    models_config *c = &m->c;
    const char *pooling = json_string_value(json_object_get(m->json, "classifier_pooling"));
    const char *word = json_string_value(json_object_get(m->json, "classifier_activation"));
    c->out_bias = c->bias;
    c->scaled = pooling && strcmp(pooling, "mean") == 0;
    if ((pooling && !c->scaled && strcmp(pooling, "cls") != 0) ||
        (word && !models_activation_of(word)))
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "config.json of %s: classifier_pooling %.20s, classifier_activation %.20s",
                         m->kind->name, pooling ? pooling : "cls", word ? word : "gelu");
    c->window = c->reach;
    TRY(models_check_layer_types(m));
    c->window = 0; /* ModernBERT's window is a mask to both sides instead */
    TRY(models_read_rope_of(m, "full_attention", "global_rope_theta", 160000, true, &c->rope));
    return models_read_rope_of(m, "sliding_attention", "local_rope_theta", 10000, true,
                               &c->local_rope);
}

/* The pretraining head. */
static const char *const left_out[] = {"head.*", "decoder.*", "classifier.*", NULL};
static const char *const left_out_classes[] = {"decoder.*", NULL};

#define MODERNBERT(NAME, CLASS, HEAD, LEFT_OUT, CLASSIFIES)                                        \
    const models_architecture models_##NAME = {.name = CLASS,                                      \
                                               .type = "modernbert",                               \
                                               .fields = fields,                                   \
                                               .configure = configure,                             \
                                               .build = build,                                     \
                                               .call = call,                                       \
                                               .prefix = "model.",                                 \
                                               .head = HEAD,                                       \
                                               .left_out = LEFT_OUT,                               \
                                               .classifies = CLASSIFIES};
MODERNBERT(modernbert, "ModernBertModel", NULL, left_out, false)
MODERNBERT(modernbert_classes, "ModernBertForSequenceClassification", "classifier",
           left_out_classes, true)
