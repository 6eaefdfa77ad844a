/* lora_config.c -- adapter_config.json: the target layers and their numbers. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "models/lora.h"
#include "models/option.h"
#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------------------- */

/* transformers 5 renames submodules of some models; the model files keep the old names. */
static const struct {
    const char *type, *file, *inner;
} renames[] = {{"vit", ".encoder.layer.", ".layers."},
               {"vit", ".attention.attention.query", ".attention.q_proj"},
               {"vit", ".attention.attention.key", ".attention.k_proj"},
               {"vit", ".attention.attention.value", ".attention.v_proj"},
               {"vit", ".attention.output.dense", ".attention.o_proj"},
               {"vit", ".intermediate.dense", ".mlp.fc1"},
               {"vit", ".output.dense", ".mlp.fc2"}};

void lora_peft_path(const models_model *m, const char *path, char *to, size_t bytes)
{
    snprintf(to, bytes, "%s", path);
    for (size_t i = 0; i < sizeof renames / sizeof *renames; i++) {
        char *at = strcmp(m->kind->type, renames[i].type) == 0 ? strstr(to, renames[i].file) : NULL;
        size_t old = strlen(renames[i].file), new = strlen(renames[i].inner);
        if (!at || strlen(to) - old + new >= bytes)
            continue;
        memmove(at + new, at + old, strlen(at + old) + 1);
        memcpy(at, renames[i].inner, new);
    }
}

/* ---- patterns ------------------------------------------------------------------------------ */

/* Sets *yes if the regular expression matches all of path, or with `tail` all of path or its end
 * after a dot. */
static tern_status matches(const char *function, const char *regex, const char *path, bool tail,
                           bool *yes)
{
    int error;
    PCRE2_SIZE at;
    char text[1024];
    if (snprintf(text, sizeof text, tail ? "^(?:.*\\.)?(?:%s)$" : "^(?:%s)$", regex) >=
        (int)sizeof text)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: a pattern of %zu bytes", function, strlen(regex));
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &error, &at, NULL);
    if (!code)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: '%s' is no regular expression", function, regex);
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    int rc = match ? pcre2_match(code, (PCRE2_SPTR)path, PCRE2_ZERO_TERMINATED, 0, 0, match, NULL)
                   : PCRE2_ERROR_NOMEMORY;
    *yes = rc >= 0; /* 0: the match data is too small for the groups, which are not needed */
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return rc >= 0 || rc == PCRE2_ERROR_NOMATCH
               ? TERN_OK
               : tern_fail(TERN_ERR_UNSUPPORTED, "%s: '%s' can't be matched: %d", function, regex,
                           rc);
}

static bool ends_in(const char *path, const char *name)
{
    size_t n = strlen(path), k = strlen(name);
    return n >= k && strcmp(path + n - k, name) == 0 && (n == k || path[n - k - 1] == '.');
}

/* Sets *yes if one of the two paths matches names: a list of path endings, or a regular
 * expression. */
static tern_status is_named(const char *function, const json_t *names, const char *const paths[2],
                            bool *yes)
{
    size_t i;
    const json_t *name;
    *yes = false;
    for (int k = 0; k < 2 && !*yes; k++) {
        if (json_is_string(names))
            TRY(matches(function, json_string_value(names), paths[k], false, yes));
        json_array_foreach(names, i, name) *yes =
            *yes || (json_is_string(name) && ends_in(paths[k], json_string_value(name)));
    }
    return TERN_OK;
}

tern_status lora_is_target(const char *function, models_model *m, const json_t *config,
                           const char *path, bool *yes)
{
    char inner[1024];
    const char *const paths[2] = {path, inner};
    const json_t *names = json_object_get(config, "target_modules");
    bool out = false;
    lora_peft_path(m, path, inner, sizeof inner);
    TRY(is_named(function, json_object_get(config, "exclude_modules"), paths, &out));
    *yes = false;
    if (out)
        return TERN_OK;
    if (json_is_string(names) && strcmp(json_string_value(names), "all-linear") == 0) {
        *yes = !m->kind->head || strcmp(path, m->kind->head) != 0;
        return TERN_OK;
    }
    return is_named(function, names, paths, yes);
}

bool lora_is_saved(const json_t *config, const char *path)
{
    size_t i;
    const json_t *name;
    json_array_foreach(json_object_get(config, "modules_to_save"), i,
                       name) if (json_is_string(name) &&
                                 ends_in(path, json_string_value(name))) return true;
    return false;
}

/* Sets *number to the value of the first pattern that matches the end of a path; leaves it
 * unchanged if none does. */
static tern_status pattern_number(const char *function, const json_t *patterns,
                                  const char *const paths[2], double *number)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)patterns, key, value)
    {
        bool yes = false;
        for (int i = 0; i < 2 && !yes; i++)
            TRY(matches(function, key[0] == '^' ? key + 1 : key, paths[i], key[0] != '^', &yes));
        if (yes) {
            *number = json_number_value(value);
            return TERN_OK;
        }
    }
    return TERN_OK;
}

tern_status lora_numbers(const char *function, models_model *m, const json_t *config,
                         const char *path, int64_t *r, double *scale)
{
    char inner[1024];
    const char *const paths[2] = {path, inner};
    double rank = json_number_value(json_object_get(config, "r"));
    double alpha = json_number_value(json_object_get(config, "lora_alpha"));
    lora_peft_path(m, path, inner, sizeof inner);
    TRY(pattern_number(function, json_object_get(config, "rank_pattern"), paths, &rank));
    TRY(pattern_number(function, json_object_get(config, "alpha_pattern"), paths, &alpha));
    if (!(rank >= 1 && rank <= INT32_MAX) || rank != floor(rank))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: `r` should be a positive integer value but the value passed is %g",
                         function, rank);
    *r = (int64_t)rank;
    *scale = alpha / (json_is_true(json_object_get(config, "use_rslora")) ? sqrt(rank) : rank);
    return TERN_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool is_nothing(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

tern_status lora_config_check(const char *function, const json_t *config)
{
    static const char *const unknown[] = {"layers_to_transform", "layers_pattern",
                                          "layer_replication",   "use_qalora",
                                          "use_bdlora",          "lora_bias",
                                          "target_parameters",   "trainable_token_indices",
                                          "megatron_config",     "arrow_config",
                                          "kasa_config",         "velora_config",
                                          "monteclora_config",   "alora_invocation_tokens"};
    const char *type = json_string_value(json_object_get(config, "peft_type"));
    const json_t *names = json_object_get(config, "target_modules"), *dropout;
    dropout = json_object_get(config, "lora_dropout");
    double p = json_number_value(dropout);
    if (!type || strcmp(type, "LORA") != 0)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: peft_type is %s, not LORA", function,
                         type ? type : "not there");
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (!is_nothing(json_object_get(config, unknown[i])))
            return tern_fail(TERN_ERR_UNSUPPORTED, "%s: %s of adapter_config.json is not supported",
                             function, unknown[i]);
    if (!json_is_string(names) && !json_is_array(names))
        return tern_fail(TERN_ERR_IO, "%s: adapter_config.json has no target_modules", function);
    if (!json_is_number(json_object_get(config, "r")) ||
        !json_is_number(json_object_get(config, "lora_alpha")))
        return tern_fail(TERN_ERR_IO, "%s: adapter_config.json has no r or no lora_alpha",
                         function);
    if ((dropout && !json_is_number(dropout)) || !(p >= 0 && p < 1))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: dropout %g is not in [0, 1)", function, p);
    return TERN_OK;
}

/* ---- from options -------------------------------------------------------------------------- */

/* The defaults are PEFT's TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING. */
static json_t *default_targets(const char *function, const models_model *m)
{
    static const struct {
        const char *types, *names[2];
    } rows[] = {{"|llama|mistral|qwen2|qwen3|gemma|gemma2|gemma3_text|", {"q_proj", "v_proj"}},
                {"|gpt2|", {"c_attn", NULL}},
                {"|bert|roberta|xlm-roberta|electra|deberta|", {"query", "value"}},
                {"|t5|mt5|", {"q", "v"}}};
    char type[64];
    snprintf(type, sizeof type, "|%.60s|", m->kind->type);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i].types, type)) {
            json_t *list = json_array();
            for (int k = 0; k < 2 && rows[i].names[k]; k++)
                json_array_append_new(list, json_string(rows[i].names[k]));
            return list;
        }
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "%s: Please specify `target_modules`: there is no default for %s",
                          function, m->kind->type);
}

static json_t *list_of(const char *const *names)
{
    json_t *list = names ? json_array() : json_null();
    for (; names && *names; names++)
        json_array_append_new(list, json_string(*names));
    return list;
}

static json_t *patterns_of(const tern_lora_pattern *list)
{
    json_t *patterns = json_object();
    for (; list && list->pattern; list++)
        json_object_set_new(patterns, list->pattern,
                            list->value == floor(list->value)
                                ? json_integer((json_int_t)list->value)
                                : json_real(list->value));
    return patterns;
}

static json_t *targets_of(const char *function, const models_model *m, const tern_lora_options *o)
{
    if (o->target_pattern)
        return json_string(o->target_pattern);
    if (!o->target_modules)
        return default_targets(function, m);
    if (o->target_modules[0] && strcmp(o->target_modules[0], "all-linear") == 0)
        return json_string("all-linear");
    return list_of(o->target_modules);
}

json_t *lora_config_of(const char *function, models_model *m, const tern_lora_options *options)
{
    static const char *const biases[] = {"none", "all", "lora_only"};
    const tern_lora_options o = tern_read_lora(options);
    if ((unsigned)o.bias > TERN_LORA_BIAS_LORA_ONLY)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: bias %d is none of tern_lora_bias", function,
                              (int)o.bias);
    json_t *targets = targets_of(function, m, &o);
    json_t *alpha = o.alpha == floor(o.alpha) && fabs(o.alpha) < 1e15
                        ? json_integer((json_int_t)o.alpha)
                        : json_real(o.alpha);
    if (!targets) {
        json_decref(alpha);
        return NULL;
    }
    json_t *config = json_pack(
        "{s:o, s:n, s:s?, s:s, s:o, s:b, s:b, s:b, s:n, s:n, s:n, s:o, s:f, s:o, s:s, s:I, s:o, "
        "s:n, s:o, s:n, s:b, s:b}",
        "alpha_pattern", patterns_of(o.alpha_pattern), "auto_mapping", "base_model_name_or_path",
        m->directory, "bias", biases[o.bias], "exclude_modules", list_of(o.exclude_modules),
        "fan_in_fan_out", strcmp(m->kind->type, "gpt2") == 0, "inference_mode", 1,
        "init_lora_weights", 1, "layer_replication", "layers_pattern", "layers_to_transform",
        "lora_alpha", alpha, "lora_dropout", o.dropout, "modules_to_save",
        list_of(o.modules_to_save), "peft_type", "LORA", "r", (json_int_t)o.r, "rank_pattern",
        patterns_of(o.rank_pattern), "revision", "target_modules", targets, "task_type", "use_dora",
        (int)o.use_dora, "use_rslora", (int)o.use_rslora);
    return config ? config
                  : tern_fail_null(TERN_ERR_ARGUMENT,
                                   "%s: a name or number can't be written as JSON", function);
}
