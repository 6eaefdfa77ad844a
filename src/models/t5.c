/* t5.c -- T5 (Raffel et al. 2019), 1.0 and 1.1: encoder and decoder with relative position biases,
 * a learned number for each bucket of distances and each head. */
#include "models/cache.h"
#include <stdlib.h>
#include <string.h>

#define SELF_NAMES                                                                                 \
    .query = "layer.0.SelfAttention.q", .key = "layer.0.SelfAttention.k",                          \
    .value = "layer.0.SelfAttention.v", .out = "layer.0.SelfAttention.o",                          \
    .norm1 = "layer.0.layer_norm", .norm_first = true, .rms = true, .unscaled = true,              \
    .class_name = "T5Block"
#define CROSS_NAMES                                                                                \
    .cross_query = "layer.1.EncDecAttention.q", .cross_key = "layer.1.EncDecAttention.k",          \
    .cross_value = "layer.1.EncDecAttention.v", .cross_out = "layer.1.EncDecAttention.o",          \
    .cross_norm = "layer.1.layer_norm"
#define MLP_NAMES(LAYER)                                                                           \
    .up = LAYER ".DenseReluDense.wi", .down = LAYER ".DenseReluDense.wo",                          \
    .norm2 = LAYER ".layer_norm"
#define GATED_NAMES(LAYER)                                                                         \
    .gate = LAYER ".DenseReluDense.wi_0", .up = LAYER ".DenseReluDense.wi_1",                      \
    .down = LAYER ".DenseReluDense.wo", .norm2 = LAYER ".layer_norm"

/* [encoder, decoder][without gate, with gate] */
static const models_layer_names names[2][2] = {
    {{SELF_NAMES, MLP_NAMES("layer.1")}, {SELF_NAMES, GATED_NAMES("layer.1")}},
    {{SELF_NAMES, CROSS_NAMES, MLP_NAMES("layer.2")},
     {SELF_NAMES, CROSS_NAMES, GATED_NAMES("layer.2")}}};

static const char *const sides[] = {"encoder", "decoder"};

/* Writes "encoder" or "decoder" and rest to path, and returns path. */
static const char *at(int decoder, const char *rest, char *path)
{
    strcpy(path, sides[decoder]);
    return strcat(path, rest);
}

static tern_status build(models_model *m)
{
    models_config *c = &m->c;
    const int64_t decoder_layers = c->layers;
    char path[128];
    TRY(models_embedding(m->module, "shared", c->vocab, c->width));
    for (int side = 0; side < 2; side++) {
        c->layers = side ? decoder_layers : c->encoder_layers;
        tern_status status = models_layers(m, m->module, at(side, ".block", path),
                                           &names[side][c->gated], side == 1);
        c->layers = decoder_layers;
        TRY(status);
        TRY(models_embedding(
            m->module, at(side, ".block.0.layer.0.SelfAttention.relative_attention_bias", path),
            c->buckets, c->heads));
        TRY(models_rms_norm(m->module, at(side, ".final_layer_norm", path), c->width, c->eps));
    }
    TRY(models_linear(m->module, "lm_head", c->width, c->vocab, false));
    return c->tied ? models_tie(m, "shared") : TERN_OK;
}

/* ---- relative positions ---------------------------------------------------------------------- */

/* Returns the bucket of a distance: small distances have a bucket each, larger ones share buckets
 * on a logarithmic scale. */
static int64_t bucket_of(const models_config *c, int64_t distance, bool both_ways)
{
    int64_t n = both_ways ? c->buckets / 2 : c->buckets, first = both_ways && distance > 0 ? n : 0;
    int64_t far = both_ways ? llabs(distance) : distance < 0 ? -distance : 0, exact = n / 2;
    if (far < exact)
        return first + far;
    float share = logf((float)far / (float)exact) / (float)log((double)c->reach / (double)exact);
    int64_t k = exact + (int64_t)(share * (float)(n - exact));
    return first + (k < n - 1 ? k : n - 1);
}

/* Returns (1, heads, T, S), the bias added to the scores; in a decoder the last query is at the
 * position of the last key. */
static tern_tensor *distances(models_model *m, int decoder, int64_t queries, int64_t keys,
                              tern_tensor *like)
{
    char path[128];
    int64_t *bucket = malloc((size_t)(queries * keys) * sizeof *bucket + 1);
    if (!bucket)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_models_call: no memory");
    for (int64_t t = 0; t < queries; t++)
        for (int64_t s = 0; s < keys; s++)
            bucket[t * keys + s] = bucket_of(&m->c, s - (t + keys - queries), !decoder);
    tern_tensor *x = tern_from_data(bucket, TERN_SHAPE(queries, keys), TERN_I64, tern_device(like));
    free(bucket);
    x = x ? models_run(m->module,
                       at(decoder, ".block.0.layer.0.SelfAttention.relative_attention_bias", path),
                       x)
          : NULL;
    return x ? tern_unsqueeze(tern_permute(x, TERN_DIMS(2, 0, 1)), 0) : NULL;
}

/* Returns the biases, with -infinity where mask forbids attention. */
static tern_tensor *scores_mask(tern_tensor *distances, tern_tensor *mask)
{
    return !distances || !mask
               ? distances
               : tern_masked_fill(distances, tern_logical_not(mask), tern_scalar_real(-INFINITY));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static tern_tensor *stack(models_model *m, int decoder, const tern_model_inputs *in,
                          models_shared *s)
{
    char path[128];
    bool training = tern_nn_is_training(m->module);
    tern_tensor *x = models_embed(m, in, "shared"), *mask = NULL;
    if (!x || models_mask(in, x, decoder, &mask) != TERN_OK)
        return NULL;
    int64_t t = tern_size(x, 1), keys = models_past(in) + t;
    if (decoder && !mask && t > 1 && !(mask = models_causal(t, keys, tern_device(x))))
        return NULL;
    s->mask = scores_mask(distances(m, decoder, t, keys, x), mask);
    x = s->mask ? tern_dropout(x, m->c.dropout, training) : NULL;
    x = x ? models_run_layers(m, m->module, at(decoder, ".block", path), x, s) : NULL;
    x = x ? models_run(m->module, at(decoder, ".final_layer_norm", path), x) : NULL;
    return x ? tern_dropout(x, m->c.dropout, training) : NULL;
}

static tern_tensor *encode(models_model *m, const tern_model_inputs *given)
{
    tern_model_inputs in = *given;
    models_shared s = {0};
    in.cache = NULL;
    return stack(m, 0, &in, &s);
}

static tern_status call(models_model *m, const tern_model_inputs *given, tern_model_outputs *out)
{
    tern_model_inputs in = *given;
    models_shared s = {.cache = in.cache};
    if (models_cache_static(in.cache))
        return tern_fail(TERN_ERR_UNSUPPORTED, "tern_models_call: T5 has no static cache");
    out->encoder_last_hidden_state = s.memory =
        in.encoder_hidden_states ? in.encoder_hidden_states : encode(m, given);
    in.input_ids = s.memory ? models_decoder_ids(m, given) : NULL;
    if (!in.input_ids)
        return tern_last_status();
    if (in.attention_mask) {
        s.memory_mask = tern_view(
            tern_ne_scalar(in.attention_mask, tern_scalar_int(0)),
            TERN_SHAPE(tern_size(in.attention_mask, 0), 1, 1, tern_size(in.attention_mask, 1)));
        if (!s.memory_mask)
            return tern_last_status();
    }
    in.attention_mask = in.inputs_embeds = NULL;
    tern_tensor *x = out->last_hidden_state = stack(m, 1, &in, &s);
    if (x && m->c.scaled)
        x = tern_mul_scalar(x, tern_scalar_real(1 / sqrt((double)m->c.width)));
    if (!x)
        return tern_last_status();
    TRY(models_cache_advance(in.cache, tern_size(x, 1)));
    return models_token_head(m, &in, x, out);
}

static const models_field fields[] = {SIZE("vocab_size", vocab, 32128),
                                      SIZE("d_model", width, 512),
                                      SIZE("d_kv", head_dim, 64),
                                      SIZE("d_ff", hidden, 2048),
                                      SIZE("num_layers", encoder_layers, 6),
                                      SIZE("num_decoder_layers", layers, 0),
                                      SIZE("num_heads", heads, 8),
                                      SIZE("relative_attention_num_buckets", buckets, 32),
                                      SIZE("relative_attention_max_distance", reach, 128),
                                      INT("decoder_start_token_id", first, 0),
                                      INT("pad_token_id", pad, 0),
                                      REAL("dropout_rate", dropout, 0.1),
                                      REAL("layer_norm_epsilon", eps, 1e-6),
                                      FLAG("tie_word_embeddings", tied, 1),
                                      FLAG("scale_decoder_outputs", scaled, -1),
                                      ONLY("is_decoder", "false"),
                                      LIST("feed_forward_proj"),
                                      LIST("dense_act_fn"),
                                      LIST("is_gated_act"),
                                      LIST("n_positions"),
                                      LIST("classifier_dropout"),
                                      FIELDS_END};

/* In T5 1.1, tie_word_embeddings is false: the head has its own weight and is not scaled. */
static tern_status configure(models_model *m)
{
    models_config *c = &m->c;
    const json_t *proj = json_object_get(m->json, "feed_forward_proj");
    const char *name = json_is_string(proj) ? json_string_value(proj) : "relu";
    c->gated = strncmp(name, "gated-", 6) == 0;
    c->activation = models_activation_of(name + (c->gated ? 6 : 0));
    if (strcmp(name, "gated-gelu") == 0)
        c->activation = tern_gelu_tanh;
    if (!c->activation || c->buckets < 4)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "config.json of %s: `feed_forward_proj` %.40s or too few buckets",
                         m->kind->name, name);
    c->layers = c->layers ? c->layers : c->encoder_layers;
    c->attention_dropout = c->activation_dropout = c->dropout;
    if (!json_object_get(m->json, "scale_decoder_outputs"))
        c->scaled = c->tied;
    return TERN_OK;
}

static const char *const left_out[] = {
    "lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", NULL};

const models_architecture models_t5 = {.name = "T5ForConditionalGeneration",
                                       .type = "t5",
                                       .fields = fields,
                                       .configure = configure,
                                       .build = build,
                                       .call = call,
                                       .head = "lm_head",
                                       .left_out = left_out,
                                       .generates = true,
                                       .encode = encode};
