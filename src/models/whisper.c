/* whisper.c -- Whisper (Radford et al. 2022): an encoder of audio features, and a text decoder that
 * attends to the encoder's output. */
#include "models/cache.h"
#include <stdlib.h>

#define WHISPER_NAMES                                                                              \
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",           \
    .out = "self_attn.out_proj", .norm1 = "self_attn_layer_norm", .up = "fc1", .down = "fc2",      \
    .norm2 = "final_layer_norm", .norm_first = true, .no_key_bias = true

static const models_layer_names encoder_names = {WHISPER_NAMES,
                                                 .class_name = "WhisperEncoderLayer"};
static const models_layer_names decoder_names = {WHISPER_NAMES,
                                                 .class_name = "WhisperDecoderLayer",
                                                 .cross_query = "encoder_attn.q_proj",
                                                 .cross_key = "encoder_attn.k_proj",
                                                 .cross_value = "encoder_attn.v_proj",
                                                 .cross_out = "encoder_attn.out_proj",
                                                 .cross_norm = "encoder_attn_layer_norm"};

/* ---- modules --------------------------------------------------------------------------------- */

/* Returns (places, width): sines, then cosines, of wavelengths from 2 pi to 20000 pi; not
 * trained. */
static tern_tensor *sinusoids(int64_t places, int64_t width)
{
    int64_t half = width / 2;
    float *x = malloc((size_t)(places * width) * sizeof *x);
    if (!x)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_models: no memory");
    for (int64_t t = 0; t < places; t++)
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)t * exp(-log(10000) / (double)(half - 1) * (double)i);
            x[t * width + i] = (float)sin(angle);
            x[t * width + half + i] = (float)cos(angle);
        }
    tern_tensor *table = tern_from_data(x, TERN_SHAPE(places, width), TERN_F32, NULL);
    free(x);
    return table;
}

static tern_status add_conv(tern_module *m, const char *path, int64_t in, int64_t out,
                            int64_t stride)
{
    tern_conv_options o = {.stride = TERN_SHAPE(stride), .padding = TERN_SHAPE(1)};
    return models_put(m, path, tern_nn_conv1d(in, out, TERN_SHAPE(3), &o)) ? TERN_OK
                                                                           : tern_last_status();
}

static tern_status build_encoder(models_model *m, tern_module *base)
{
    models_config *c = &m->c;
    const models_config decoder = *c;
    TRY(add_conv(base, "encoder.conv1", c->channels, c->width, 1));
    TRY(add_conv(base, "encoder.conv2", c->width, c->width, 2));
    TRY(models_embedding(base, "encoder.embed_positions", c->image, c->width));
    tern_tensor *table = tern_nn_parameter(base, "encoder.embed_positions.weight");
    tern_tensor *values = sinusoids(c->image, c->width);
    if (!table || !values || !tern_set_data_(table, values) || !tern_requires_grad_(table, false))
        return tern_last_status();
    c->layers = c->encoder_layers;
    c->heads = c->kv_heads = c->encoder_heads;
    c->head_dim = c->width / c->heads;
    c->hidden = c->encoder_hidden;
    tern_status status = models_layers(m, base, "encoder.layers", &encoder_names, false);
    *c = decoder;
    TRY(status);
    return models_layer_norm(base, "encoder.layer_norm", c->width, c->eps);
}

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    tern_module *base = models_base(m);
    TRY(build_encoder(m, base));
    TRY(models_embedding(base, "decoder.embed_tokens", c->vocab, c->width));
    TRY(models_embedding(base, "decoder.embed_positions", c->places, c->width));
    TRY(models_layers(m, base, "decoder.layers", &decoder_names, true));
    TRY(models_layer_norm(base, "decoder.layer_norm", c->width, c->eps));
    TRY(models_linear(m->module, "proj_out", c->width, c->vocab, false));
    return c->tied ? models_tie(m, "model.decoder.embed_tokens") : TERN_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns the encoder's output: (N, mels, frames) -> (N, frames / 2, width). */
static tern_tensor *encode(models_model *m, const tern_model_inputs *in)
{
    const models_config *c = &m->c;
    const models_shared s = {0};
    tern_module *base = models_base(m);
    tern_tensor *x = in->input_features;
    if (models_need(m, x, "input_features or encoder_hidden_states") != TERN_OK)
        return NULL;
    if (tern_dim(x) != 3 || tern_size(x, 1) != c->channels || tern_size(x, 2) != 2 * c->image)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_models_call: Whisper expects the mel input features to be of "
                              "shape (N, %lld, %lld)",
                              (long long)c->channels, (long long)(2 * c->image));
    for (int i = 0; i < 2 && x; i++) {
        x = models_run(base, i ? "encoder.conv2" : "encoder.conv1", x);
        x = x ? tern_gelu(x) : NULL;
    }
    x = x ? tern_add(tern_contiguous(tern_transpose(x, 1, 2)),
                     tern_nn_parameter(base, "encoder.embed_positions.weight"))
          : NULL;
    x = x ? tern_dropout(x, c->dropout, tern_nn_is_training(m->module)) : NULL;
    x = x ? models_run_layers(m, base, "encoder.layers", x, &s) : NULL;
    return x ? models_run(base, "encoder.layer_norm", x) : NULL;
}

static tern_status call(models_model *m, const tern_model_inputs *given, tern_model_outputs *out)
{
    tern_module *base = models_base(m);
    tern_model_inputs in = *given;
    models_shared s = {.cache = in.cache};
    out->encoder_last_hidden_state = s.memory =
        in.encoder_hidden_states ? in.encoder_hidden_states : encode(m, given);
    in.input_ids = s.memory ? models_decoder_ids(m, given) : NULL;
    in.attention_mask = NULL;
    tern_tensor *x = in.input_ids ? models_embed(m, &in, "model.decoder.embed_tokens") : NULL;
    tern_tensor *places = x ? models_positions(&in, x) : NULL;
    places = places ? models_run(base, "decoder.embed_positions", places) : NULL;
    if (!places)
        return tern_last_status();
    int64_t t = tern_size(x, 1);
    TRY(models_mask(&in, x, true, &s.mask));
    x = tern_dropout(tern_add(x, places), m->c.dropout, tern_nn_is_training(m->module));
    x = models_run_layers(m, base, "decoder.layers", x, &s);
    out->last_hidden_state = x ? models_run(base, "decoder.layer_norm", x) : NULL;
    if (!out->last_hidden_state)
        return tern_last_status();
    TRY(models_cache_advance(in.cache, t));
    return models_token_head(m, &in, out->last_hidden_state, out);
}

static const models_field fields[] = {SIZE("vocab_size", vocab, 51865),
                                      SIZE("num_mel_bins", channels, 80),
                                      SIZE("d_model", width, 384),
                                      SIZE("encoder_layers", encoder_layers, 4),
                                      SIZE("encoder_attention_heads", encoder_heads, 6),
                                      SIZE("encoder_ffn_dim", encoder_hidden, 1536),
                                      SIZE("decoder_layers", layers, 4),
                                      SIZE("decoder_attention_heads", heads, 6),
                                      SIZE("decoder_ffn_dim", hidden, 1536),
                                      SIZE("max_source_positions", image, 1500),
                                      SIZE("max_target_positions", places, 448),
                                      INT("decoder_start_token_id", first, 50257),
                                      INT("pad_token_id", pad, 50256),
                                      REAL("dropout", dropout, 0),
                                      REAL("attention_dropout", attention_dropout, 0),
                                      FLAG("tie_word_embeddings", tied, 1),
                                      ACTIVATION("activation_function", "gelu"),
                                      REAL("activation_dropout", activation_dropout, 0),
                                      ONLY("encoder_layerdrop", "0"),
                                      ONLY("decoder_layerdrop", "0"),
                                      ONLY("scale_embedding", "false"),
                                      ONLY("apply_spec_augment", "false"),
                                      LIST("num_hidden_layers"),
                                      LIST("classifier_proj_size"),
                                      LIST("use_weighted_layer_sum"),
                                      LIST("median_filter_width"),
                                      LIST("init_std"),
                                      LIST("mask_time_prob"),
                                      LIST("mask_time_length"),
                                      LIST("mask_time_min_masks"),
                                      LIST("mask_feature_prob"),
                                      LIST("mask_feature_length"),
                                      LIST("mask_feature_min_masks"),
                                      FIELDS_END};

static tern_status configure(models_model *m)
{
    m->c.bias = m->c.out_bias = m->c.mlp_bias = true;
    m->c.eps = 1e-5;
    return m->c.width % m->c.encoder_heads == 0
               ? TERN_OK
               : tern_fail(TERN_ERR_IO,
                           "config.json of %s: encoder_attention_heads do not divide "
                           "d_model",
                           m->kind->name);
}

static const char *const left_out[] = {"proj_out.weight", NULL};

const models_architecture models_whisper = {.name = "WhisperForConditionalGeneration",
                                            .type = "whisper",
                                            .fields = fields,
                                            .configure = configure,
                                            .build = build,
                                            .spread = "init_std",
                                            .call = call,
                                            .prefix = "model.",
                                            .head = "proj_out",
                                            .left_out = left_out,
                                            .generates = true,
                                            .learned = true,
                                            .encode = encode};
