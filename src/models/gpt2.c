/* gpt2.c -- GPT-2: learned positions, one linear layer for query, key and value, weights (in,
 * out). */
#include "models/cache.h"

static const models_layer_names names = {.class_name = "GPT2Block",
                                         .qkv = "attn.c_attn",
                                         .out = "attn.c_proj",
                                         .up = "mlp.c_fc",
                                         .down = "mlp.c_proj",
                                         .norm1 = "ln_1",
                                         .norm2 = "ln_2",
                                         .norm_first = true,
                                         .columns = true};

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    TRY(models_embedding(m->module, "transformer.wte", c->vocab, c->width));
    TRY(models_embedding(m->module, "transformer.wpe", c->places, c->width));
    TRY(models_layers(m, m->module, "transformer.h", &names, true));
    TRY(models_layer_norm(m->module, "transformer.ln_f", c->width, c->eps));
    TRY(models_linear(m->module, "lm_head", c->width, c->vocab, false));
    return c->tied ? models_tie(m, "transformer.wte") : TERN_OK;
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    models_shared s = {.cache = in->cache};
    tern_tensor *x = models_embed(m, in, "transformer.wte");
    tern_tensor *positions = x ? models_positions(in, x) : NULL;
    tern_tensor *places = positions ? models_run(m->module, "transformer.wpe", positions) : NULL;
    if (!places)
        return tern_last_status();
    int64_t t = tern_size(x, 1);
    TRY(models_mask(in, x, true, &s.mask));
    x = tern_add(x, places);
    x = tern_dropout(x, m->c.embedding_dropout, tern_nn_is_training(m->module));
    x = models_run_layers(m, m->module, "transformer.h", x, &s);
    out->last_hidden_state = x ? models_run(m->module, "transformer.ln_f", x) : NULL;
    if (!out->last_hidden_state)
        return tern_last_status();
    TRY(models_cache_advance(in->cache, t));
    return models_token_head(m, in, out->last_hidden_state, out);
}

static const models_field fields[] = {SIZE("vocab_size", vocab, 50257),
                                      SIZE("n_positions", places, 1024),
                                      SIZE("n_embd", width, 768),
                                      SIZE("n_layer", layers, 12),
                                      SIZE("n_head", heads, 12),
                                      SIZE("n_inner", hidden, 0),
                                      REAL("layer_norm_epsilon", eps, 1e-5),
                                      REAL("resid_pdrop", dropout, 0.1),
                                      REAL("embd_pdrop", embedding_dropout, 0.1),
                                      REAL("attn_pdrop", attention_dropout, 0.1),
                                      FLAG("tie_word_embeddings", tied, 1),
                                      ACTIVATION("activation_function", "gelu_new"),
                                      ONLY("scale_attn_weights", "true"),
                                      ONLY("scale_attn_by_inverse_layer_idx", "false"),
                                      ONLY("reorder_and_upcast_attn", "false"),
                                      ONLY("add_cross_attention", "false"),
                                      FIELDS_END};

static tern_status configure(models_model *m)
{
    models_config *c = &m->c;
    c->hidden = c->hidden ? c->hidden : 4 * c->width;
    if (!json_object_get(m->json, "activation_function"))
        c->activation = tern_gelu_tanh;
    c->bias = c->out_bias = c->mlp_bias = true;
    return TERN_OK;
}

static const char *const left_out[] = {"lm_head.weight", "*attn.bias", "*attn.masked_bias", NULL};

const models_architecture models_gpt2 = {.name = "GPT2LMHeadModel",
                                         .type = "gpt2",
                                         .fields = fields,
                                         .configure = configure,
                                         .build = build,
                                         .spread = "initializer_range",
                                         .call = call,
                                         .prefix = "transformer.",
                                         .head = "lm_head",
                                         .left_out = left_out,
                                         .generates = true,
                                         .learned = true};
