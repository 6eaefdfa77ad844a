/* config.c -- converts the keys of a GGUF file to the config.json of the same model. Values without
 * a key are fixed by the architecture. */
#include "models/gguf/gguf.h"
#include <stdio.h>
#include <string.h>

/* The values of the keys. */
typedef struct facts {
    const gguf_file *g;
    json_t *json;
    int64_t layers, width, hidden, heads, kv_heads, head_dim, places, rotary_dims, rows;
    double eps, theta;
    char (*keys)[128]; /* two buffers that key_of uses alternately */
    int turn;
} facts;

typedef struct architecture {
    const char *name, *class_name, *type;
    const char *activation; /* value of hidden_act */
    tern_status (*more)(facts *f);
    bool layer_norm; /* the key of eps is that of layer norms, layer_norm_epsilon */
    bool fused;      /* gate and up are one matrix */
} architecture;

/* Returns the full key; the results of the last two calls stay valid. */
static const char *key_of(facts *f, const char *name)
{
    return gguf_key(f->g, name, f->keys[f->turn++ % 2]);
}

static tern_status set_in(facts *f, json_t *object, const char *name, json_t *value)
{
    return value && json_object_set_new(object, name, value) == 0
               ? TERN_OK
               : tern_fail(TERN_ERR_MEMORY, "%s: no memory", f->g->function);
}

static tern_status set(facts *f, const char *name, json_t *value)
{
    return set_in(f, f->json, name, value);
}

static tern_status set_integer(facts *f, const char *name, int64_t x)
{
    return set(f, name, json_integer((json_int_t)x));
}

static tern_status set_real(facts *f, const char *name, double x)
{
    return set(f, name, json_real(x));
}

static bool has_tensor(facts *f, const char *name)
{
    return tern_file_has(f->g->file, name);
}

/* ---- rotary positions -------------------------------------------------------------------- */

/* Appends the values of a factors tensor, which frequencies are divided by, to list. */
static tern_status take_factors(facts *f, const char *name, json_t *list)
{
    tern_status status = TERN_OK;
    tern_shape shape = tern_file_shape(f->g->file, name);
    int64_t pairs = f->rotary_dims / 2;
    if (shape.ndim != 1 || shape.dims[0] != pairs)
        return gguf_bad(f->g, "`%s` has %lld elements, and one for each of %lld pairs is expected",
                        name, (long long)(shape.ndim == 1 ? shape.dims[0] : -1), (long long)pairs);
    TERN_SCOPE {
        tern_tensor *x = tern_file_get(f->g->file, name, "cpu");
        x = x ? tern_to_dtype(x, TERN_F64) : NULL;
        const double *values = x ? tern_data(x) : NULL;
        status = values ? TERN_OK : tern_last_status();
        for (int64_t i = 0; i < pairs && status == TERN_OK; i++) {
            if (!(values[i] > 0) || !isfinite(values[i]))
                status = gguf_bad(f->g, "`%s` has the element %g, and positive ones are expected",
                                  name, values[i]);
            else if (json_array_append_new(list, json_real(values[i])) != 0)
                status = tern_fail(TERN_ERR_MEMORY, "%s: no memory", f->g->function);
        }
    }
    return status;
}

/* Sets the length that the model was trained with before its context was extended. */
static tern_status set_original(facts *f, json_t *rope)
{
    int64_t original;
    TRY(gguf_size(f->g, key_of(f, "rope.scaling.original_context_length"), 1, f->places,
                  &original));
    return set_in(f, rope, "original_max_position_embeddings", json_integer(original));
}

static tern_status use_factors(facts *f, json_t *rope, const char *long_name,
                               const char *short_name)
{
    double attention;
    TRY(gguf_real(f->g, key_of(f, "rope.scaling.attn_factor"), 1, &attention));
    TRY(set_in(f, rope, "rope_type", json_string("longrope")));
    TRY(set_in(f, rope, "attention_factor", json_real(attention)));
    TRY(set_in(f, rope, "factor", json_real(1)));
    TRY(set_original(f, rope));
    TRY(set_in(f, rope, "long_factor", json_array()));
    TRY(set_in(f, rope, "short_factor", json_array()));
    TRY(take_factors(f, long_name, json_object_get(rope, "long_factor")));
    return take_factors(f, short_name, json_object_get(rope, "short_factor"));
}

static tern_status use_yarn(facts *f, json_t *rope)
{
    double factor, attention, extension, fast, slow;
    TRY(gguf_real(f->g, key_of(f, "rope.scaling.factor"), 1, &factor));
    TRY(gguf_real(f->g, key_of(f, "rope.scaling.yarn_attn_factor"), 1, &attention));
    TRY(gguf_real(f->g, key_of(f, "rope.scaling.yarn_ext_factor"), 1, &extension));
    TRY(gguf_real(f->g, key_of(f, "rope.scaling.yarn_beta_fast"), 32, &fast));
    TRY(gguf_real(f->g, key_of(f, "rope.scaling.yarn_beta_slow"), 1, &slow));
    if (extension != 1 && extension != -1)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: \"%s\": `%s` is %g, and 1 is supported",
                         f->g->function, f->g->path, key_of(f, "rope.scaling.yarn_ext_factor"),
                         extension);
    TRY(set_in(f, rope, "rope_type", json_string("yarn")));
    TRY(set_in(f, rope, "factor", json_real(factor)));
    TRY(set_in(f, rope, "beta_fast", json_real(fast)));
    TRY(set_in(f, rope, "beta_slow", json_real(slow)));
    if (attention != 1)
        TRY(set_in(f, rope, "attention_factor",
                   json_real(attention * (factor > 1 ? 0.1 * log(factor) + 1 : 1))));
    return set_original(f, rope);
}

/* Reads the scaling of the frequencies: a tensor of factors, or `rope.scaling.type`. */
static tern_status read_scaling(facts *f, json_t *rope)
{
    const char *type;
    double factor;
    TRY(gguf_text(f->g, key_of(f, "rope.scaling.type"), &type));
    bool linear = type && strcmp(type, "linear") == 0, yarn = type && strcmp(type, "yarn") == 0;
    if (type && !linear && !yarn && strcmp(type, "none") != 0 && strcmp(type, "longrope") != 0)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: \"%s\": `%s` is %.40s, and none, linear, yarn or longrope is "
                         "supported",
                         f->g->function, f->g->path, key_of(f, "rope.scaling.type"), type);
    if (has_tensor(f, "rope_factors_long.weight") && has_tensor(f, "rope_factors_short.weight"))
        return use_factors(f, rope, "rope_factors_long.weight", "rope_factors_short.weight");
    if (type && strcmp(type, "longrope") == 0)
        return gguf_bad(f->g, "`%s` is longrope, and there is no tensor `rope_factors_%s.weight`",
                        key_of(f, "rope.scaling.type"),
                        has_tensor(f, "rope_factors_long.weight") ? "short" : "long");
    if (has_tensor(f, "rope_freqs.weight")) {
        if (linear || yarn)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: \"%s\": `rope_freqs.weight` beside `%s` %s is not supported",
                             f->g->function, f->g->path, key_of(f, "rope.scaling.type"), type);
        return use_factors(f, rope, "rope_freqs.weight", "rope_freqs.weight");
    }
    if (yarn)
        return use_yarn(f, rope);
    TRY(gguf_real(f->g, key_of(f, "rope.scale_linear"), 1, &factor)); /* key of old files */
    TRY(gguf_real(f->g, key_of(f, "rope.scaling.factor"), factor, &factor));
    linear = (linear || !type) && factor != 1 && factor != 0;
    TRY(set_in(f, rope, "rope_type", json_string(linear ? "linear" : "default")));
    return linear ? set_in(f, rope, "factor", json_real(factor)) : TERN_OK;
}

/* Sets the rotated fraction of a head, if that is not 1. */
static tern_status set_rotary_dims(facts *f, json_t *rope)
{
    return f->rotary_dims == f->head_dim
               ? TERN_OK
               : set_in(f, rope, "partial_rotary_factor",
                        json_real((double)f->rotary_dims / (double)f->head_dim));
}

static tern_status set_rope(facts *f, const char *layers)
{
    json_t *rope = json_object(); /* added to the config before it is filled */
    TRY(set(f, "rope_parameters", layers ? json_pack("{s:o}", layers, rope) : rope));
    TRY(set_in(f, rope, "rope_theta", json_real(f->theta)));
    TRY(set_rotary_dims(f, rope));
    return read_scaling(f, rope);
}

/* ---- architectures ----------------------------------------------------------------------- */

static tern_status more_llama(facts *f)
{
    TRY(set(f, "attention_bias", json_boolean(has_tensor(f, "blk.0.attn_q.bias"))));
    if (strcmp(f->g->arch, "llama") == 0)
        TRY(set(f, "mlp_bias", json_boolean(has_tensor(f, "blk.0.ffn_up.bias"))));
    if (f->rotary_dims != f->head_dim)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: \"%s\": `%s` is %lld, and %lld is supported",
                         f->g->function, f->g->path, key_of(f, "rope.dimension_count"),
                         (long long)f->rotary_dims, (long long)f->head_dim);
    return set_rope(f, NULL);
}

static tern_status more_qwen2(facts *f)
{
    return set_rope(f, NULL);
}

static tern_status set_window(facts *f)
{
    int64_t window;
    TRY(gguf_size(f->g, key_of(f, "attention.sliding_window"), 0, 0, &window));
    return window ? set_integer(f, "sliding_window", window) : TERN_OK;
}

static tern_status more_phi3(facts *f)
{
    TRY(set_window(f));
    TRY(set_rope(f, NULL));
    const json_t *rope = json_object_get(f->json, "rope_parameters");
    json_t *original = json_object_get(rope, "original_max_position_embeddings");
    return original ? set(f, "original_max_position_embeddings", json_incref(original)) : TERN_OK;
}

static tern_status more_gemma(facts *f)
{
    return set_rope(f, NULL);
}

/* The scale of queries is 1 / sqrt(head_dim), except for the models with 27 billion parameters. */
static tern_status set_scale(facts *f, int64_t layers_of_27b)
{
    return set_real(f, "query_pre_attn_scalar",
                    f->layers == layers_of_27b ? (double)f->width / (double)f->heads
                                               : (double)f->head_dim);
}

static tern_status set_cap(facts *f, const char *name, const char *field, double absent)
{
    double cap;
    TRY(gguf_real(f->g, key_of(f, name), absent, &cap));
    return cap > 0 ? set_real(f, field, cap) : TERN_OK;
}

static tern_status more_gemma2(facts *f)
{
    TRY(set_window(f));
    TRY(set_scale(f, 46));
    TRY(set_cap(f, "attn_logit_softcapping", "attn_logit_softcapping", 50));
    TRY(set_cap(f, "final_logit_softcapping", "final_logit_softcapping", 30));
    return set_rope(f, NULL);
}

static tern_status more_gemma3(facts *f)
{
    TRY(set_window(f));
    TRY(set_scale(f, 62));
    TRY(set_cap(f, "attn_logit_softcapping", "attn_logit_softcapping", 0));
    TRY(set_cap(f, "final_logit_softcapping", "final_logit_softcapping", 0));
    TRY(set_rope(f, "full_attention"));
    json_t *local = json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", 10000.0);
    TRY(set_in(f, json_object_get(f->json, "rope_parameters"), "sliding_attention", local));
    return set_rotary_dims(f, local);
}

/* Sets dropouts to 0, because no key holds them. */
static tern_status no_dropout(facts *f, const char *const *names)
{
    for (; *names; names++)
        TRY(set_real(f, *names, 0));
    return TERN_OK;
}

static tern_status more_gpt2(facts *f)
{
    static const char *const dropouts[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop", NULL};
    static const char *const renamed[][2] = {{"hidden_size", "n_embd"},
                                             {"intermediate_size", "n_inner"},
                                             {"num_hidden_layers", "n_layer"},
                                             {"num_attention_heads", "n_head"},
                                             {"max_position_embeddings", "n_positions"},
                                             {"layer_norm_eps", "layer_norm_epsilon"},
                                             {"hidden_act", "activation_function"}};
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        TRY(set(f, renamed[i][1], json_incref(json_object_get(f->json, renamed[i][0]))));
        json_object_del(f->json, renamed[i][0]);
    }
    json_object_del(f->json, "num_key_value_heads");
    json_object_del(f->json, "head_dim");
    return no_dropout(f, dropouts);
}

static tern_status more_bert(facts *f)
{
    static const char *const dropouts[] = {"hidden_dropout_prob", "attention_probs_dropout_prob",
                                           NULL};
    tern_shape types = has_tensor(f, "token_types.weight")
                           ? tern_file_shape(f->g->file, "token_types.weight")
                           : (tern_shape){0};
    if (types.ndim != 2)
        return gguf_bad(f->g, "there is no tensor `token_types.weight` of two dims");
    TRY(set_integer(f, "type_vocab_size", types.dims[0]));
    json_object_del(f->json, "num_key_value_heads");
    json_object_del(f->json, "head_dim");
    json_object_del(f->json, "tie_word_embeddings");
    return no_dropout(f, dropouts);
}

static const architecture architectures[] = {
    {"llama", "LlamaForCausalLM", "llama", "silu", more_llama, false, false},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", "silu", more_qwen2, false, false},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", "silu", more_llama, false, false},
    {"gemma", "GemmaForCausalLM", "gemma", "gelu_pytorch_tanh", more_gemma, false, false},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", "gelu_pytorch_tanh", more_gemma2, false, false},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text", "gelu_pytorch_tanh", more_gemma3, false, false},
    {"phi3", "Phi3ForCausalLM", "phi3", "silu", more_phi3, false, true},
    {"gpt2", "GPT2LMHeadModel", "gpt2", "gelu_new", more_gpt2, true, false},
    {"bert", "BertModel", "bert", "gelu", more_bert, true, false},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

static const architecture *find(const gguf_file *g)
{
    char names[256] = "";
    size_t n = 0;
    for (int i = 0; i < ARCHITECTURES; i++) {
        if (strcmp(architectures[i].name, g->arch) == 0)
            return &architectures[i];
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                              architectures[i].name);
    }
    return tern_fail_null(TERN_ERR_UNSUPPORTED,
                          "%s: \"%s\": `general.architecture` is %s, and one of %s is expected",
                          g->function, g->path, g->arch, names);
}

/* ---- the tensors must have the sizes in the keys --------------------------------------------- */

static tern_status check_tensor(facts *f, const char *name, int64_t rows, int64_t columns)
{
    if (!has_tensor(f, name))
        return gguf_bad(f->g, "there is no tensor `%s`, which `%s` %lld promises", name,
                        key_of(f, "block_count"), (long long)f->layers);
    tern_shape s = tern_file_shape(f->g->file, name);
    if (s.ndim == 2 && s.dims[1] == columns && (rows < 0 || s.dims[0] == rows))
        return TERN_OK;
    return gguf_bad(f->g, "tensor `%s` is (%lld, %lld), and by the keys (%lld, %lld) is expected",
                    name, (long long)(s.ndim > 0 ? s.dims[0] : -1),
                    (long long)(s.ndim > 1 ? s.dims[1] : -1), (long long)rows, (long long)columns);
}

/* The sizes are compared with the tensors before anything is allocated by them. */
static tern_status check_layers(facts *f, const architecture *a)
{
    char name[64];
    int64_t q = f->heads * f->head_dim, kv = f->kv_heads * f->head_dim;
    TRY(check_tensor(f, "token_embd.weight", -1, f->width));
    for (int64_t i = 0; i < f->layers; i++) {
        bool fused = a->fused || strcmp(a->name, "gpt2") == 0;
        snprintf(name, sizeof name, "blk.%lld.attn_%s.weight", (long long)i, fused ? "qkv" : "q");
        TRY(check_tensor(f, name, fused ? q + 2 * kv : q, f->width));
        snprintf(name, sizeof name, "blk.%lld.ffn_up.weight", (long long)i);
        TRY(check_tensor(f, name, a->fused ? 2 * f->hidden : f->hidden, f->width));
    }
    f->rows = tern_file_shape(f->g->file, "token_embd.weight").dims[0];
    return TERN_OK;
}

static tern_status read_sizes(facts *f, const architecture *a)
{
    int64_t experts, values;
    TRY(gguf_size(f->g, key_of(f, "block_count"), 1, 0, &f->layers));
    if (f->layers > tern_file_count(f->g->file))
        return gguf_bad(f->g, "`%s` is %lld, and there are %d tensors", key_of(f, "block_count"),
                        (long long)f->layers, tern_file_count(f->g->file));
    TRY(gguf_size(f->g, key_of(f, "attention.head_count"), 1, 0, &f->heads));
    TRY(gguf_size(f->g, key_of(f, "expert_count"), 0, 0, &experts));
    if (experts)
        return tern_fail(
            TERN_ERR_UNSUPPORTED, "%s: \"%s\": `%s` is %lld: experts of %s are not supported",
            f->g->function, f->g->path, key_of(f, "expert_count"), (long long)experts, f->g->arch);
    TRY(gguf_size(f->g, key_of(f, "embedding_length"), 1, 0, &f->width));
    TRY(gguf_size(f->g, key_of(f, "feed_forward_length"), 1, 0, &f->hidden));
    TRY(gguf_size(f->g, key_of(f, "context_length"), 1, 0, &f->places));
    TRY(gguf_size(f->g, key_of(f, "attention.head_count_kv"), 1, f->heads, &f->kv_heads));
    TRY(gguf_size(f->g, key_of(f, "attention.key_length"), 1, f->width / f->heads, &f->head_dim));
    TRY(gguf_size(f->g, key_of(f, "attention.value_length"), 1, f->head_dim, &values));
    if (f->heads * f->head_dim > INT32_MAX || f->kv_heads * f->head_dim > INT32_MAX)
        return gguf_bad(f->g, "`%s` is %lld, and with %lld heads, %lld of keys, that is too much",
                        key_of(f, "attention.key_length"), (long long)f->head_dim,
                        (long long)f->heads, (long long)f->kv_heads);
    if (values != f->head_dim)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: \"%s\": `%s` is %lld, and %lld is supported",
                         f->g->function, f->g->path, key_of(f, "attention.value_length"),
                         (long long)values, (long long)f->head_dim);
    TRY(gguf_size(f->g, key_of(f, "rope.dimension_count"), 0, f->head_dim, &f->rotary_dims));
    f->rotary_dims = f->rotary_dims && f->rotary_dims < f->head_dim ? f->rotary_dims : f->head_dim;
    TRY(gguf_real(f->g, key_of(f, "rope.freq_base"), 10000, &f->theta));
    TRY(gguf_real(f->g,
                  key_of(f, a->layer_norm ? "attention.layer_norm_epsilon"
                                          : "attention.layer_norm_rms_epsilon"),
                  NAN, &f->eps));
    return check_layers(f, a);
}

static tern_status set_ids(facts *f)
{
    static const char *const names[] = {"bos", "eos", "padding"};
    static const char *const fields[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    char key[64];
    int64_t id;
    for (int i = 0; i < 3; i++) {
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", names[i]);
        TRY(gguf_size(f->g, key, 0, INT32_MAX, &id));
        if (id != INT32_MAX)
            TRY(set_integer(f, fields[i], id));
    }
    return TERN_OK;
}

static tern_status write_config(facts *f, const architecture *a)
{
    bool gemma = strncmp(a->name, "gemma", 5) == 0;
    TRY(read_sizes(f, a));
    TRY(set(f, "architectures", json_pack("[s]", a->class_name)));
    TRY(set(f, "model_type", json_string(a->type)));
    TRY(set_integer(f, "vocab_size", f->rows));
    TRY(set_integer(f, "hidden_size", f->width));
    TRY(set_integer(f, "intermediate_size", f->hidden));
    TRY(set_integer(f, "num_hidden_layers", f->layers));
    TRY(set_integer(f, "num_attention_heads", f->heads));
    TRY(set_integer(f, "num_key_value_heads", f->kv_heads));
    TRY(set_integer(f, "head_dim", f->head_dim));
    TRY(set_integer(f, "max_position_embeddings", f->places));
    TRY(set_real(f, a->layer_norm ? "layer_norm_eps" : "rms_norm_eps", f->eps));
    TRY(set(f, gemma ? "hidden_activation" : "hidden_act", json_string(a->activation)));
    TRY(set(f, "tie_word_embeddings", json_boolean(!has_tensor(f, "output.weight"))));
    TRY(set_ids(f));
    return a->more(f);
}

json_t *gguf_config(const gguf_file *g)
{
    const architecture *a = find(g);
    char keys[2][128];
    facts f = {.g = g, .json = a ? json_object() : NULL, .keys = keys};
    if (f.json && write_config(&f, a) == TERN_OK)
        return f.json;
    json_decref(f.json);
    return NULL;
}
