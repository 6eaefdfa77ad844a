/* config.c -- config.json, read by the table of its architecture; unknown fields are refused. */
#include "base/address.h"
#include "base/os.h"
#include "models/quantize.h"
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20 };

json_t *models_read_json(const char *function, const char *directory, const char *file)
{
    char path[4096];
    struct tern_os_stat about;
    json_error_t error;
    int n = file ? snprintf(path, sizeof path, "%s/%s", directory, file)
                 : snprintf(path, sizeof path, "%s", directory);
    if (n < 0 || (size_t)n >= sizeof path)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: a path of %d bytes", function, n);
    if (tern_os_stat(path, &about) != 0 && tern_refuse_address(function, directory) != TERN_OK)
        return NULL;
    if (tern_os_stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > MOST_BYTES)
        return tern_fail_null(TERN_ERR_IO, "%s: \"%s\" is not there, no file or too large",
                              function, path);
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return tern_fail_null(TERN_ERR_IO, "%s: \"%s\": line %d: %s", function, path, error.line,
                              error.text);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return tern_fail_null(TERN_ERR_IO, "%s: \"%s\" is no object", function, path);
}

/* ---- values ------------------------------------------------------------------------------ */

static tern_tensor *quick_gelu(tern_tensor *x)
{
    return tern_mul(x, tern_sigmoid(tern_mul_scalar(x, tern_scalar_real(1.702))));
}

static tern_tensor *relu_squared(tern_tensor *x)
{
    return tern_square(tern_relu(x));
}

models_activation models_activation_of(const char *name)
{
    static const struct {
        const char *name;
        models_activation function;
    } rows[] = {
        {"gelu", tern_gelu},
        {"gelu_new", tern_gelu_tanh},
        {"gelu_pytorch_tanh", tern_gelu_tanh},
        {"gelu_fast", tern_gelu_tanh},
        {"gelu_python", tern_gelu},
        {"quick_gelu", quick_gelu},
        {"silu", tern_silu},
        {"swish", tern_silu},
        {"relu", tern_relu},
        {"relu2", relu_squared},
        {"tanh", tern_tanh},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].function;
    return NULL;
}

static tern_status refuse(const models_model *m, const char *name, const json_t *value,
                          const char *wanted)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    tern_status status =
        tern_fail(TERN_ERR_UNSUPPORTED, "config.json of %s: `%s` is %.80s, and not %s",
                  m->kind->name, name, text ? text : "?", wanted);
    free(text);
    return status;
}

static tern_status check_only(const models_model *m, const models_field *f, const json_t *value)
{
    json_error_t error;
    json_t *only = json_loads(f->only, JSON_DECODE_ANY, &error);
    bool same = json_equal(only, value) || (json_is_number(only) && json_is_number(value) &&
                                            json_number_value(only) == json_number_value(value));
    json_decref(only);
    return same ? TERN_OK : refuse(m, f->name, value, f->only);
}

static tern_status take_number(const models_model *m, const models_field *f, const json_t *value,
                               void *to)
{
    double x = !value ? f->absent : json_is_true(value) ? 1 : json_number_value(value);
    bool whole = f->kind != FIELD_REAL;
    if (value &&
        (f->kind == FIELD_BOOL ? !json_is_boolean(value)
                               : !(whole ? json_is_integer(value) : json_is_number(value))))
        return refuse(m, f->name, value, f->kind == FIELD_BOOL ? "a bool" : "a number");
    if (isnan(x))
        return tern_fail(TERN_ERR_IO, "config.json of %s: there is no `%s`", m->kind->name,
                         f->name);
    if (value && f->kind == FIELD_SIZE && !(x >= 1 && x <= INT32_MAX))
        return refuse(m, f->name, value, "a size from 1 to 2147483647");
    if (f->kind == FIELD_BOOL)
        *(bool *)to = x != 0;
    else if (whole)
        *(int64_t *)to = value ? (int64_t)json_integer_value(value) : (int64_t)x;
    else
        *(double *)to = x;
    return TERN_OK;
}

static tern_status take(const models_model *m, const json_t *json, const models_field *f,
                        models_config *c)
{
    const json_t *value = json_object_get(json, f->name);
    void *to = (char *)c + f->at;
    if (json_is_null(value))
        value = NULL;
    if (f->kind == FIELD_LIST)
        return TERN_OK;
    if (f->kind == FIELD_ONLY)
        return value ? check_only(m, f, value) : TERN_OK;
    if (f->kind != FIELD_ACTIVATION)
        return take_number(m, f, value, to);
    if (!value) {
        c->activation = c->activation ? c->activation : models_activation_of(f->only);
        return TERN_OK;
    }
    if (!json_is_string(value) || !(c->activation = models_activation_of(json_string_value(value))))
        return refuse(m, f->name, value, "an activation of this library");
    return TERN_OK;
}

/* ---- ignored fields ---------------------------------------------------------------------- */

/* Fields that do not affect the forward pass or that other code reads: training, generation,
 * files. */
static const char *const idle[] = {"architectures",
                                   "architecture",
                                   "model_type",
                                   "transformers_version",
                                   "torch_dtype",
                                   "dtype",
                                   "auto_map",
                                   "use_cache",
                                   "initializer_range",
                                   "initializer_factor",
                                   "finetuning_task",
                                   "bos_token_id",
                                   "eos_token_id",
                                   "sep_token_id",
                                   "cls_token_id",
                                   "mask_token_id",
                                   "decoder_start_token_id",
                                   "forced_bos_token_id",
                                   "forced_eos_token_id",
                                   "unk_token_id",
                                   "suppress_tokens",
                                   "begin_suppress_tokens",
                                   "forced_decoder_ids",
                                   "id2label",
                                   "label2id",
                                   "num_labels",
                                   "num_classes",
                                   "task_specific_params",
                                   "problem_type",
                                   "output_attentions",
                                   "output_hidden_states",
                                   "return_dict",
                                   "return_dict_in_generate",
                                   "pretraining_tp",
                                   "gradient_checkpointing",
                                   "is_encoder_decoder",
                                   "tokenizer_class",
                                   "prefix",
                                   "max_length",
                                   "min_length",
                                   "do_sample",
                                   "num_beams",
                                   "temperature",
                                   "top_k",
                                   "top_p",
                                   "typical_p",
                                   "repetition_penalty",
                                   "length_penalty",
                                   "no_repeat_ngram_size",
                                   "early_stopping",
                                   "num_return_sequences",
                                   "diversity_penalty",
                                   "num_beam_groups",
                                   "bad_words_ids",
                                   "encoder_no_repeat_ngram_size",
                                   "exponential_decay_length_penalty",
                                   "remove_invalid_values",
                                   "output_scores",
                                   "torchscript",
                                   "use_bfloat16",
                                   "pruned_heads",
                                   "pretrained_cfg",
                                   "model_args",
                                   "num_features",
                                   "encoder_stride",
                                   "pooler_output_size",
                                   "pooler_act",
                                   "summary_type",
                                   "summary_use_proj",
                                   "summary_activation",
                                   "summary_first_dropout",
                                   "summary_proj_to_labels",
                                   "vocab_file",
                                   "directionality",
                                   "pooler_fc_size",
                                   "pooler_num_attention_heads",
                                   "pooler_num_fc_layers",
                                   "pooler_size_per_head",
                                   "pooler_type",
                                   "attn_implementation",
                                   "n_ctx",
                                   "rope_theta",
                                   "rope_scaling",
                                   "rope_parameters",
                                   "pad_token_id",
                                   "gradient_checkpointing_kwargs",
                                   "qa_dropout",
                                   "output_past",
                                   NULL};

static bool is_idle(const char *name)
{
    for (int i = 0; idle[i]; i++)
        if (strcmp(idle[i], name) == 0)
            return true;
    return name[0] == '_'; /* transformers' private fields */
}

static tern_status check_known(const models_model *m, json_t *json, const models_field *fields)
{
    const char *name;
    json_t *value;
    json_object_foreach(json, name, value)
    {
        bool known = json_is_null(value) || is_idle(name);
        if (strcmp(name, "quantization_config") == 0 && json_object_size(value)) {
            TRY(quantize_check(m));
            known = true;
        }
        for (const models_field *f = fields; f->name && !known; f++)
            known = strcmp(f->name, name) == 0;
        if (!known)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "config.json of %s: the field `%s` is not known, and may change what "
                             "is computed",
                             m->kind->name, name);
    }
    return TERN_OK;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Returns the number of classes of the file's head. */
static int64_t labels_of(const json_t *json)
{
    const json_t *labels = json_object_get(json, "id2label");
    const json_t *n = json_object_get(json, "num_labels");
    if (json_is_object(labels))
        return (int64_t)json_object_size(labels);
    return json_is_integer(n) ? (int64_t)json_integer_value(n) : 2; /* transformers' default */
}

/* Refuses problem_type other than one class per input: its loss would be another one. */
static tern_status check_problem(const models_model *m)
{
    const json_t *problem = json_object_get(m->json, "problem_type");
    if (!m->kind->classifies || !json_is_string(problem) ||
        strcmp(json_string_value(problem), "single_label_classification") == 0)
        return TERN_OK;
    return refuse(m, "problem_type", problem, "\"single_label_classification\"");
}

static tern_status read_fields(const models_model *m, json_t *json, const models_field *fields,
                               models_config *c)
{
    c->activation = NULL;
    for (const models_field *f = fields; f->name; f++)
        TRY(take(m, json, f, c));
    c->activation = c->activation ? c->activation : tern_gelu;
    return check_known(m, json, fields);
}

/* Computes the numbers of heads and their width where config.json lacks them, and checks them. */
static tern_status complete(const models_model *m, models_config *c)
{
    if (c->heads && !c->kv_heads)
        c->kv_heads = c->heads;
    if (c->heads && !c->head_dim) {
        if (c->width % c->heads)
            return tern_fail(TERN_ERR_IO, "config.json of %s: %lld heads do not divide width %lld",
                             m->kind->name, (long long)c->heads, (long long)c->width);
        c->head_dim = c->width / c->heads;
    }
    if (c->heads && c->heads % c->kv_heads)
        return tern_fail(TERN_ERR_IO,
                         "config.json of %s: %lld heads are no multiple of %lld of keys",
                         m->kind->name, (long long)c->heads, (long long)c->kv_heads);
    return TERN_OK;
}

tern_status models_read_part(models_model *m, const char *part, const models_field *fields,
                             models_config *c)
{
    json_t *json = json_object_get(m->json, part);
    if (!json_is_object(json))
        return tern_fail(TERN_ERR_IO, "config.json of %s: there is no `%s`", m->kind->name, part);
    TRY(read_fields(m, json, fields, c));
    return complete(m, c);
}

tern_status models_check_layer_types(const models_model *m)
{
    const json_t *types = json_object_get(m->json, "layer_types");
    if (!json_is_array(types))
        return TERN_OK;
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        bool local = type && strcmp(type, "sliding_attention") == 0;
        if (!type || (!local && strcmp(type, "full_attention") != 0) || (local && !m->c.window))
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "config.json of %s: layer %zu of `layer_types` is neither "
                             "full_attention nor sliding_attention of a sliding_window",
                             m->kind->name, i);
    }
    return (int64_t)json_array_size(types) == m->c.layers
               ? TERN_OK
               : tern_fail(TERN_ERR_IO, "config.json of %s: `layer_types` of %zu layers, not %lld",
                           m->kind->name, json_array_size(types), (long long)m->c.layers);
}

tern_status models_read_config(models_model *m)
{
    models_config *c = &m->c;
    int64_t labels = c->labels; /* number of classes that the caller asked for, or 0 */
    TRY(read_fields(m, m->json, m->kind->fields, c));
    TRY(check_problem(m));
    if (labels)
        c->labels = labels;
    else if (m->kind->classifies && !c->labels)
        c->labels = labels_of(m->json);
    TRY(complete(m, c));
    return m->kind->configure ? m->kind->configure(m) : TERN_OK;
}
