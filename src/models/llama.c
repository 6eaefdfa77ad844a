/* llama.c -- Llama, Mistral, Qwen 2 and 3, Phi-3: rotary embeddings, grouped-query attention, a
 * gated MLP, RMS norms. */
#include "models/cache.h"
#include <string.h>

#define LLAMA_NAMES                                                                                \
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",           \
    .out = "self_attn.o_proj", .gate = "mlp.gate_proj", .up = "mlp.up_proj",                       \
    .down = "mlp.down_proj", .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm",      \
    .norm_first = true, .rms = true

static const models_layer_names llama_names = {LLAMA_NAMES, .class_name = "LlamaDecoderLayer"};
static const models_layer_names qwen3_names = {LLAMA_NAMES, .class_name = "Qwen3DecoderLayer",
                                               .query_norm = "self_attn.q_norm",
                                               .key_norm = "self_attn.k_norm"};

static const models_layer_names phi3_names = {.class_name = "Phi3DecoderLayer",
                                              .qkv = "self_attn.qkv_proj",
                                              .out = "self_attn.o_proj",
                                              .gate_up = "mlp.gate_up_proj",
                                              .down = "mlp.down_proj",
                                              .norm1 = "input_layernorm",
                                              .norm2 = "post_attention_layernorm",
                                              .norm_first = true,
                                              .rms = true};

static tern_status build_with(models_model *m, const models_layer_names *names)
{
    const models_config *c = &m->c;
    TRY(models_embedding(m->module, "model.embed_tokens", c->vocab, c->width));
    TRY(models_layers(m, m->module, "model.layers", names, true));
    TRY(models_rms_norm(m->module, "model.norm", c->width, c->eps));
    TRY(models_linear(m->module, "lm_head", c->width, c->vocab, false));
    return c->tied ? models_tie(m, "model.embed_tokens") : TERN_OK;
}

static tern_status build(models_model *m)
{
    return build_with(m, &llama_names);
}

static tern_status build_qwen3(models_model *m)
{
    return build_with(m, &qwen3_names);
}

static tern_status build_phi3(models_model *m)
{
    return build_with(m, &phi3_names);
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    models_shared s = {.cache = in->cache};
    tern_tensor *x = models_embed(m, in, "model.embed_tokens");
    tern_tensor *positions = x ? models_positions(in, x) : NULL;
    if (!positions)
        return tern_last_status();
    int64_t t = tern_size(x, 1);
    TRY(models_mask(in, x, true, &s.mask));
    TRY(models_rope_tables(&m->c, &m->c.rope, positions, models_reach(in, t), &s.cos, &s.sin));
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
        SIZE("head_dim", head_dim, 0), SIZE("max_position_embeddings", places, 2048),              \
        REAL("rms_norm_eps", eps, 1e-6), REAL("attention_dropout", attention_dropout, 0),          \
        FLAG("tie_word_embeddings", tied, 0), ACTIVATION("hidden_act", "silu")
#define WINDOW_FIELDS                                                                              \
    SIZE("sliding_window", window, 0), INT("max_window_layers", window_from, 28),                  \
        FLAG("use_sliding_window", windowed, 0), LIST("layer_types")

static const models_field llama_fields[] = {COMMON_FIELDS, FLAG("attention_bias", bias, 0),
                                            FLAG("mlp_bias", mlp_bias, 0), FIELDS_END};
static const models_field mistral_fields[] = {COMMON_FIELDS, SIZE("sliding_window", window, 0),
                                              FIELDS_END};
static const models_field qwen2_fields[] = {COMMON_FIELDS, WINDOW_FIELDS, FIELDS_END};
static const models_field qwen3_fields[] = {COMMON_FIELDS, WINDOW_FIELDS,
                                            FLAG("attention_bias", bias, 0), FIELDS_END};

static const models_field phi3_fields[] = {COMMON_FIELDS,
                                           SIZE("sliding_window", window, 0),
                                           REAL("resid_pdrop", dropout, 0),
                                           ONLY("embd_pdrop", "0"),
                                           ONLY("attention_bias", "false"),
                                           LIST("original_max_position_embeddings"),
                                           LIST("partial_rotary_factor"),
                                           FIELDS_END};

static tern_status configure_llama(models_model *m)
{
    m->c.out_bias = m->c.bias;
    return models_read_rope(m, 10000);
}

static tern_status configure_qwen(models_model *m)
{
    if (!m->c.windowed)
        m->c.window = 0;
    TRY(models_check_layer_types(m));
    return models_read_rope(m, 10000);
}

static tern_status configure_qwen2(models_model *m)
{
    m->c.bias = true; /* biases of query, key and value */
    return configure_qwen(m);
}

static tern_status configure_qwen3(models_model *m)
{
    m->c.out_bias = m->c.bias;
    return configure_qwen(m);
}

static const char *const left_out[] = {"lm_head.weight", "*rotary_emb.inv_freq", NULL};

#define CAUSAL(NAME, CLASS, TYPE, FIELDS, CONFIGURE, BUILD)                                        \
    const models_architecture models_##NAME = {.name = CLASS,                                      \
                                               .type = TYPE,                                       \
                                               .fields = FIELDS,                                   \
                                               .configure = CONFIGURE,                             \
                                               .build = BUILD,                                     \
                                               .spread = "initializer_range",                      \
                                               .call = call,                                       \
                                               .prefix = "model.",                                 \
                                               .head = "lm_head",                                  \
                                               .left_out = left_out,                               \
                                               .generates = true};

CAUSAL(llama, "LlamaForCausalLM", "llama", llama_fields, configure_llama, build)
CAUSAL(mistral, "MistralForCausalLM", "mistral", mistral_fields, configure_llama, build)
CAUSAL(qwen2, "Qwen2ForCausalLM", "qwen2", qwen2_fields, configure_qwen2, build)
CAUSAL(qwen3, "Qwen3ForCausalLM", "qwen3", qwen3_fields, configure_qwen3, build_qwen3)
CAUSAL(phi3, "Phi3ForCausalLM", "phi3", phi3_fields, configure_llama, build_phi3)
