/* config_write.c -- converts a model's config.json to the keys of a GGUF file, the inverse of
 * config.c. A value without a key must be the one that the architecture fixes, or the model is
 * refused with the field's name. */
#include "models/gguf/write.h"
#include <stdio.h>
#include <string.h>

/* The keys of an architecture, which all begin with its name. */
typedef struct keys {
    gguf_writer *w;
    const models_model *m;
    const char *arch;
    char text[128];
} keys;

static const char *key(keys *k, const char *name)
{
    snprintf(k->text, sizeof k->text, "%s.%s", k->arch, name);
    return k->text;
}

static tern_status no_key(const keys *k, const char *what)
{
    return tern_fail(TERN_ERR_UNSUPPORTED, "%s: \"%s\": a GGUF of %s has no key that says that %s",
                     k->w->function, k->w->path, k->arch, what);
}

static bool is(const keys *k, const char *arch)
{
    return strcmp(k->arch, arch) == 0;
}

/* ---- rotary positions ------------------------------------------------------------------------ */

/* Adds a tensor of factors, which frequencies are divided by. */
static tern_status add_factors(keys *k, const char *name, const double *factors, int64_t n)
{
    tern_tensor *x = tern_empty(TERN_SHAPE(n), TERN_F32, "cpu");
    float *to = x ? tern_data(x) : NULL;
    for (int64_t i = 0; to && i < n; i++)
        to[i] = (float)factors[i];
    gguf_item item = {.name = (char *)name,
                      .shape = TERN_SHAPE(n),
                      .block = io_block_named("F32"),
                      .encoder = gguf_encoder_named("F32"),
                      .values = x};
    return to ? gguf_write_tensor(k->w, &item) : tern_last_status();
}

/* Adds the factors of a list in the config. */
static tern_status add_list(keys *k, const char *name, const json_t *list, int64_t n)
{
    double factors[MODELS_MOST_PAIRS];
    for (int64_t i = 0; i < n && i < MODELS_MOST_PAIRS; i++)
        factors[i] = json_number_value(json_array_get(list, (size_t)i));
    return add_factors(k, name, factors, n);
}

static tern_status add_llama3(keys *k, int64_t pairs)
{
    double plain[MODELS_MOST_PAIRS], scaled[MODELS_MOST_PAIRS];
    models_rope r = k->m->c.rope;
    models_rope_frequencies(&k->m->c, &r, 1, scaled);
    r.type = ROPE_DEFAULT;
    models_rope_frequencies(&k->m->c, &r, 1, plain);
    for (int64_t i = 0; i < pairs; i++)
        plain[i] /= scaled[i];
    return add_factors(k, "rope_freqs.weight", plain, pairs);
}

static tern_status add_yarn(keys *k, const models_rope *r)
{
    const double usual = r->factor > 1 ? 0.1 * log(r->factor) + 1 : 1;
    if (r->mscale || r->mscale_all)
        return no_key(k, "rope_scaling has mscale");
    gguf_write_text(k->w, key(k, "rope.scaling.type"), "yarn");
    gguf_write_f32(k->w, key(k, "rope.scaling.factor"), r->factor);
    gguf_write_u32(k->w, key(k, "rope.scaling.original_context_length"), (int64_t)r->original);
    gguf_write_f32(k->w, key(k, "rope.scaling.yarn_beta_fast"), r->fast);
    gguf_write_f32(k->w, key(k, "rope.scaling.yarn_beta_slow"), r->slow);
    if (r->attention > 0)
        gguf_write_f32(k->w, key(k, "rope.scaling.yarn_attn_factor"), r->attention / usual);
    return TERN_OK;
}

static tern_status add_longrope(keys *k, const models_rope *r, int64_t pairs)
{
    const double usual =
        r->factor > 1 && r->original > 1 ? sqrt(1 + log(r->factor) / log(r->original)) : 1;
    gguf_write_text(k->w, key(k, "rope.scaling.type"), "longrope");
    gguf_write_u32(k->w, key(k, "rope.scaling.original_context_length"), (int64_t)r->original);
    gguf_write_f32(k->w, key(k, "rope.scaling.attn_factor"),
                   r->attention > 0 ? r->attention : usual);
    TRY(add_list(k, "rope_factors_long.weight", r->long_factor, pairs));
    return add_list(k, "rope_factors_short.weight", r->short_factor, pairs);
}

static tern_status add_rope(keys *k)
{
    const models_config *c = &k->m->c;
    const models_rope *r = &c->rope;
    const double partial = r->partial > 0 ? r->partial : 1;
    const int64_t dims = (int64_t)((double)c->head_dim * partial);
    if (partial != 1 && !is(k, "phi3"))
        return no_key(k, "a part of a head turns");
    gguf_write_u32(k->w, key(k, "rope.dimension_count"), dims);
    gguf_write_f32(k->w, key(k, "rope.freq_base"), r->theta);
    if (dims / 2 > MODELS_MOST_PAIRS)
        return no_key(k, "heads are that wide");
    switch (r->type) {
    case ROPE_LINEAR:
        gguf_write_text(k->w, key(k, "rope.scaling.type"), "linear");
        gguf_write_f32(k->w, key(k, "rope.scaling.factor"), r->factor);
        return TERN_OK;
    case ROPE_YARN:
        return add_yarn(k, r);
    case ROPE_LONGROPE:
        return add_longrope(k, r, dims / 2);
    case ROPE_LLAMA3:
        return add_llama3(k, dims / 2);
    case ROPE_DYNAMIC:
        return no_key(k, "rope_scaling is dynamic");
    default:
        return TERN_OK;
    }
}

/* ---- values that the architecture fixes ------------------------------------------------------ */

static const struct {
    const char *arch, *activation;
} activations[] = {{"gemma", "gelu_pytorch_tanh"},
                   {"gemma2", "gelu_pytorch_tanh"},
                   {"gemma3", "gelu_pytorch_tanh"},
                   {"gpt2", "gelu_new"},
                   {"bert", "gelu"}};

static tern_status check_activation(const keys *k)
{
    const char *name = "silu";
    char what[96];
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (is(k, activations[i].arch))
            name = activations[i].activation;
    if (k->m->c.activation == models_activation_of(name))
        return TERN_OK;
    snprintf(what, sizeof what, "hidden_act is another than %s", name);
    return no_key(k, what);
}

/* In Gemma's models the layers with a window must be those that the architecture fixes; phi3 is not
 * checked; in other models no layer may have a window shorter than the context. */
static tern_status check_windows(const keys *k)
{
    const models_config *c = &k->m->c;
    const bool phi3 = is(k, "phi3"), gemma = is(k, "gemma2") || is(k, "gemma3");
    if (!gemma && !phi3)
        return c->window && c->window < c->places && models_is_local(k->m, c->layers - 1)
                   ? no_key(k, "layers have a sliding_window")
                   : TERN_OK;
    for (int64_t i = 0; gemma && i < c->layers; i++)
        if (models_is_local(k->m, i) != (is(k, "gemma2") ? i % 2 == 0 : (i + 1) % 6 != 0))
            return no_key(k, "layer_types are others than the architecture's");
    return TERN_OK;
}

static tern_status check_gemma(const keys *k)
{
    const models_config *c = &k->m->c;
    const json_t *scalar = json_object_get(k->m->json, "query_pre_attn_scalar");
    const bool of_27b = c->layers == (is(k, "gemma2") ? 46 : 62);
    const double usual = of_27b ? (double)c->width / (double)c->heads : (double)c->head_dim;
    if (scalar && fabs(json_number_value(scalar) - usual) > 1e-6 * usual)
        return no_key(k, "query_pre_attn_scalar is another than the architecture's");
    if (is(k, "gemma3") && (c->local_rope.theta != 10000 || c->local_rope.type > ROPE_DEFAULT))
        return no_key(k, "rope_local_base_freq is another than 10000");
    return TERN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void add_sizes(keys *k)
{
    const models_config *c = &k->m->c;
    const bool norms = is(k, "gpt2") || is(k, "bert");
    gguf_write_u32(k->w, key(k, "context_length"), c->places);
    gguf_write_u32(k->w, key(k, "embedding_length"), c->width);
    gguf_write_u32(k->w, key(k, "block_count"), c->layers);
    gguf_write_u32(k->w, key(k, "feed_forward_length"), c->hidden);
    gguf_write_u32(k->w, key(k, "attention.head_count"), c->heads);
    if (!norms) {
        gguf_write_u32(k->w, key(k, "attention.head_count_kv"), c->kv_heads);
        gguf_write_u32(k->w, key(k, "attention.key_length"), c->head_dim);
        gguf_write_u32(k->w, key(k, "attention.value_length"), c->head_dim);
    }
    gguf_write_f32(
        k->w, key(k, norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
        c->eps);
    gguf_write_u32(k->w, key(k, "vocab_size"), c->vocab);
    if (is(k, "bert"))
        gguf_write_bool(k->w, key(k, "attention.causal"), false);
}

/* A cap of 0 means none. Readers always divide by gemma2's caps, and read a missing key of gemma3
 * as no cap. */
static tern_status add_cap(keys *k, const char *name, double cap)
{
    char what[64];
    if (cap > 0)
        gguf_write_f32(k->w, key(k, name), cap);
    else if (is(k, "gemma2")) {
        snprintf(what, sizeof what, "%s is not above 0", name);
        return no_key(k, what);
    }
    return TERN_OK;
}

tern_status gguf_write_config(gguf_writer *w, const models_model *m, const char *arch)
{
    keys k = {.w = w, .m = m, .arch = arch};
    const models_config *c = &m->c;
    TRY(check_activation(&k));
    TRY(check_windows(&k));
    add_sizes(&k);
    if (is(&k, "gpt2") || is(&k, "bert"))
        return TERN_OK;
    if (c->window && (is(&k, "gemma2") || is(&k, "gemma3") || is(&k, "phi3")))
        gguf_write_u32(w, key(&k, "attention.sliding_window"), c->window);
    if (is(&k, "gemma2") || is(&k, "gemma3")) {
        TRY(check_gemma(&k));
        TRY(add_cap(&k, "attn_logit_softcapping", c->softcap));
        TRY(add_cap(&k, "final_logit_softcapping", c->logit_cap));
    }
    return add_rope(&k);
}
