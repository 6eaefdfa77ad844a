/* gemma.c -- Gemma 1, 2 and 3: norms with 1 + weight, embeddings scaled by sqrt(width), layers with
 * and without a sliding window, soft caps of scores and logits. */
#include "models/cache.h"
#include <string.h>

#define GEMMA_NAMES                                                                                \
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",           \
    .out = "self_attn.o_proj", .gate = "mlp.gate_proj", .up = "mlp.up_proj",                       \
    .down = "mlp.down_proj", .norm1 = "input_layernorm", .norm_first = true, .one_plus = true
/* Gemma 2 and 3 also normalize the outputs of attention and MLP. */
#define POST_NORMS                                                                                 \
    .post1 = "post_attention_layernorm", .norm2 = "pre_feedforward_layernorm",                     \
    .post2 = "post_feedforward_layernorm"

static const models_layer_names names[] = {
    {GEMMA_NAMES, .class_name = "GemmaDecoderLayer", .norm2 = "post_attention_layernorm"},
    {GEMMA_NAMES, POST_NORMS, .class_name = "Gemma2DecoderLayer"},
    {GEMMA_NAMES, POST_NORMS, .class_name = "Gemma3DecoderLayer", .query_norm = "self_attn.q_norm",
     .key_norm = "self_attn.k_norm"}};

static int version(const models_model *m)
{
    const char *type = m->kind->type;
    return type[5] == '3' ? 2 : type[5] == '2';
}

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    TRY(models_embedding(m->module, "model.embed_tokens", c->vocab, c->width));
    TRY(models_layers(m, m->module, "model.layers", &names[version(m)], true));
    TRY(models_rms_norm_one(m->module, "model.norm", c->width, c->eps));
    TRY(models_linear(m->module, "lm_head", c->width, c->vocab, false));
    return c->tied ? models_tie(m, "model.embed_tokens") : TERN_OK;
}

/* The factor has the model's dtype: in bfloat16, sqrt(3072) is 55.5. */
static tern_tensor *embed(models_model *m, const tern_model_inputs *in)
{
    tern_tensor *x = models_embed(m, in, "model.embed_tokens");
    if (!x || (in->inputs_embeds && version(m) == 2))
        return x;
    return tern_mul(x, tern_full(TERN_SHAPE(1), tern_scalar_real(sqrt((double)m->c.width)),
                                 tern_dtype_of(x), tern_device(x)));
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    const models_config *c = &m->c;
    models_shared s = {.cache = in->cache};
    tern_tensor *x = embed(m, in);
    tern_tensor *positions = x ? models_positions(in, x) : NULL;
    if (!positions)
        return tern_last_status();
    int64_t t = tern_size(x, 1), reach = models_reach(in, t);
    TRY(models_mask(in, x, true, &s.mask));
    TRY(models_rope_tables(c, &c->rope, positions, reach, &s.cos, &s.sin));
    if (c->local_rope.type)
        TRY(models_rope_tables(c, &c->local_rope, positions, reach, &s.local_cos, &s.local_sin));
    x = models_run_layers(m, m->module, "model.layers", x, &s);
    out->last_hidden_state = x ? models_run(m->module, "model.norm", x) : NULL;
    if (!out->last_hidden_state)
        return tern_last_status();
    TRY(models_cache_advance(in->cache, t));
    return models_token_head(m, in, out->last_hidden_state, out);
}

/* ---- config.json ----------------------------------------------------------------------------- */

#define COMMON_FIELDS                                                                              \
    SIZE("vocab_size", vocab, NEEDED), SIZE("hidden_size", width, NEEDED),                         \
        SIZE("intermediate_size", hidden, NEEDED), SIZE("num_hidden_layers", layers, NEEDED),      \
        SIZE("num_attention_heads", heads, NEEDED), SIZE("num_key_value_heads", kv_heads, 0),      \
        SIZE("head_dim", head_dim, 256), SIZE("max_position_embeddings", places, 8192),            \
        REAL("rms_norm_eps", eps, 1e-6), REAL("attention_dropout", attention_dropout, 0),          \
        FLAG("tie_word_embeddings", tied, 1), FLAG("attention_bias", bias, 0),                     \
        ACTIVATION("hidden_act", "gelu_pytorch_tanh"),                                             \
        ACTIVATION("hidden_activation", "gelu_pytorch_tanh")
#define WINDOW_FIELDS                                                                              \
    SIZE("sliding_window", window, 4096), LIST("layer_types"), LIST("cache_implementation"),       \
        ONLY("use_bidirectional_attention", "false")

static const models_field gemma_fields[] = {
    COMMON_FIELDS, ONLY("use_bidirectional_attention", "false"), FIELDS_END};
static const models_field gemma2_fields[] = {COMMON_FIELDS,
                                             WINDOW_FIELDS,
                                             REAL("query_pre_attn_scalar", scale, 256),
                                             REAL("attn_logit_softcapping", softcap, 0),
                                             REAL("final_logit_softcapping", logit_cap, 0),
                                             FIELDS_END};
static const models_field gemma3_fields[] = {COMMON_FIELDS,
                                             WINDOW_FIELDS,
                                             REAL("query_pre_attn_scalar", scale, 256),
                                             REAL("attn_logit_softcapping", softcap, 0),
                                             REAL("final_logit_softcapping", logit_cap, 0),
                                             SIZE("sliding_window_pattern", full_every, 6),
                                             LIST("_sliding_window_pattern"),
                                             LIST("rope_local_base_freq"),
                                             FIELDS_END};

static tern_status configure(models_model *m)
{
    models_config *c = &m->c;
    if (c->activation == tern_gelu) /* in old files "gelu" means gelu_tanh */
        c->activation = tern_gelu_tanh;
    c->out_bias = c->bias;
    if (version(m) == 0)
        return models_read_rope(m, 10000);
    c->scale = c->scale > 0 ? 1 / sqrt(c->scale) : 0;
    c->full_every = version(m) == 2 ? c->full_every : 2;
    c->full_at = c->full_every - 1;
    TRY(models_check_layer_types(m));
    if (version(m) == 1)
        return models_read_rope(m, 10000);
    TRY(models_read_rope_of(m, "sliding_attention", "rope_local_base_freq", 10000, false,
                            &c->local_rope));
    return models_read_rope_of(m, "full_attention", "rope_theta", 1e6, true, &c->rope);
}

static const char *const left_out[] = {"lm_head.weight", "*rotary_emb.inv_freq", NULL};

#define GEMMA(NAME, CLASS, TYPE, FIELDS)                                                           \
    const models_architecture models_##NAME = {.name = CLASS,                                      \
                                               .type = TYPE,                                       \
                                               .fields = FIELDS,                                   \
                                               .configure = configure,                             \
                                               .build = build,                                     \
                                               .spread = "initializer_range",                      \
                                               .call = call,                                       \
                                               .prefix = "model.",                                 \
                                               .head = "lm_head",                                  \
                                               .left_out = left_out,                               \
                                               .generates = true};
GEMMA(gemma, "GemmaForCausalLM", "gemma", gemma_fields)
GEMMA(gemma2, "Gemma2ForCausalLM", "gemma2", gemma2_fields)
GEMMA(gemma3, "Gemma3ForCausalLM", "gemma3_text", gemma3_fields)
