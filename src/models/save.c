/* save.c -- writes a model's directory in the format that transformers and timm read. */
#include "models/gguf/gguf.h"
#include "base/os.h"
#include "models/gguf/write.h"
#include "models/lora.h"
#include "models/quantize.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_models_save_pretrained";

/* ---- files ------------------------------------------------------------------------------- */

/* Writes a temporary file and renames it, so that the file is never incomplete. */
static tern_status write_json(const json_t *json, const char *directory, const char *file)
{
    char path[4096], part[4096];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    snprintf(part, sizeof part, "%s/%s.part", directory, file);
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    FILE *to = text ? tern_os_fopen(part, "we") : NULL;
    bool good = to && fputs(text, to) >= 0 && fputc('\n', to) != EOF;
    good = to && fclose(to) == 0 && good;
    good = good && tern_os_rename(part, path) == 0;
    free(text);
    return good ? TERN_OK : tern_fail(TERN_ERR_IO, "%s: can't write \"%s\"", function, path);
}

static tern_status make_directory(const char *directory)
{
    struct tern_os_stat about;
    if (tern_os_mkdir(directory, 0777) == 0 ||
        (errno == EEXIST && tern_os_stat(directory, &about) == 0 && S_ISDIR(about.st_mode)))
        return TERN_OK;
    return tern_fail(TERN_ERR_IO, "%s: can't make the directory \"%s\"", function, directory);
}

/* ---- weights ----------------------------------------------------------------------------- */

/* Keeps the first name of a tied tensor, as transformers does. */
typedef struct first_names {
    tern_state_dict *dict;
    tern_tensor **seen;
    int n, capacity;
} first_names;

static tern_status count_one(const char *path, tern_tensor *x, void *user)
{
    (void)path, (void)x;
    ++*(int *)user;
    return TERN_OK;
}

static tern_status keep_first(const char *path, tern_tensor *x, void *user)
{
    first_names *f = user;
    for (int i = 0; i < f->n; i++)
        if (f->seen[i] == x)
            return tern_state_dict_remove(f->dict, path);
    f->seen[f->n++] = x;
    return TERN_OK;
}

/* Replaces *dict by one with the file's names, if the architecture has other names there. */
static tern_status rename_all(const models_model *m, tern_state_dict **dict)
{
    char name[512];
    tern_state_dict *renamed = m->kind->file_name ? tern_state_dict_new() : *dict;
    if (renamed == *dict)
        return TERN_OK;
    tern_status status = renamed ? TERN_OK : tern_last_status();
    for (int i = 0; status == TERN_OK && i < tern_state_dict_count(*dict); i++) {
        const char *path = tern_state_dict_key_at(*dict, i);
        tern_tensor *x = tern_state_dict_at(*dict, i);
        bool other = !quantize_has(m, path) && m->kind->file_name(m, path, name, sizeof name);
        if (other && strncmp(name, "classifier.0.weight", 19) == 0)
            x = tern_flatten(x, 1, -1); /* the file has a linear layer's shape */
        status = x ? tern_state_dict_set(renamed, other ? name : path, x) : tern_last_status();
    }
    tern_state_dict_free(*dict);
    *dict = renamed;
    return status;
}

/* Decodes the layers of GGUF blocks. */
typedef struct numbers_of_blocks {
    const models_model *m;
    tern_state_dict *dict;
} numbers_of_blocks;

static tern_status decode_one(const char *path, tern_module *m, void *user)
{
    numbers_of_blocks *n = user;
    char name[512];
    tern_status status = TERN_OK;
    if (!gguf_is_layer(m) ||
        (size_t)snprintf(name, sizeof name, "%s.weight", path) >= sizeof name ||
        !tern_state_dict_get(n->dict, name))
        return TERN_OK;
    TERN_SCOPE {
        tern_tensor *w = gguf_weight(m);
        w = w && gguf_is_transposed(n->m, name) ? tern_contiguous(tern_transpose(w, 0, 1)) : w;
        status = w ? tern_state_dict_set(n->dict, name, w) : tern_last_status();
    }
    return status;
}

static tern_status save_weights(tern_module *m, const char *directory,
                                const tern_save_options *options)
{
    char path[4096];
    first_names f = {.dict = tern_nn_state_dict(m)};
    tern_status status =
        f.dict ? tern_nn_each_state(m, count_one, &f.capacity) : tern_last_status();
    if (status == TERN_OK && !(f.seen = calloc((size_t)f.capacity + 1, sizeof(tern_tensor *))))
        status = tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    if (status == TERN_OK)
        status = tern_nn_each_state(m, keep_first, &f);
    if (status == TERN_OK)
        status = tern_nn_each_module(m, decode_one, &(numbers_of_blocks){tern_nn_data(m), f.dict});
    if (status == TERN_OK)
        TERN_SCOPE
            status = rename_all(tern_nn_data(m), &f.dict);
    if (status == TERN_OK)
        status = tern_state_dict_set_metadata(f.dict, "format", "pt");
    bool shards = options && options->max_shard_size;
    snprintf(path, sizeof path, "%s%s", directory, shards ? "" : "/model.safetensors");
    if (status == TERN_OK)
        status = tern_save(f.dict, path, options);
    free(f.seen);
    tern_state_dict_free(f.dict);
    return status;
}

/* ---- config.json ------------------------------------------------------------------------- */

static tern_status find_dtype(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    if (!*(tern_dtype *)user)
        *(tern_dtype *)user = tern_dtype_of(x);
    return TERN_OK;
}

/* Updates the fields that may have changed since the file was read: architecture, dtype, classes,
 * quantization. */
static tern_status renew(models_model *m, json_t *json, bool quantized)
{
    tern_dtype dtype = TERN_DTYPE_DEFAULT;
    json_object_del(json, "quantization_config");
    if (quantized)
        json_object_set_new(json, "quantization_config",
                            json_pack("{s:s}", "quant_method", QUANTIZE_METHOD));
    bool timm = json_object_get(json, "architecture") != NULL;
    TRY(tern_nn_each_parameter(m->module, find_dtype, &dtype));
    const char *field = json_object_get(json, "dtype") ? "dtype" : "torch_dtype";
    if (timm) {
        json_object_set_new(json, "num_classes", json_integer(m->c.labels));
        return TERN_OK;
    }
    json_object_set_new(json, "architectures", json_pack("[s]", m->kind->name));
    json_object_set_new(json, field, json_string(tern_dtype_name(dtype)));
    const json_t *labels = json_object_get(json, "id2label");
    if (!m->kind->classifies || (labels && (int64_t)json_object_size(labels) == m->c.labels))
        return TERN_OK;
    json_t *names = json_object(), *numbers = json_object();
    for (int64_t i = 0; i < m->c.labels; i++) {
        char number[32], name[48];
        snprintf(number, sizeof number, "%lld", (long long)i);
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        json_object_set_new(names, number, json_string(name));
        json_object_set_new(numbers, name, json_integer(i));
    }
    if (json_object_set_new(json, "id2label", names) ||
        json_object_set_new(json, "label2id", numbers))
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    json_object_del(json, "num_labels");
    return TERN_OK;
}

/* Fails for adapters, whose weights have other names than the architecture's; *quantized: the model
 * has quantized layers. */
static tern_status look(const char *path, tern_module *m, void *quantized)
{
    *(bool *)quantized = *(bool *)quantized || (quantize_is(m) && !gguf_is_linear(m));
    if (!lora_of(m))
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE,
                     "%s: %s is %s: tern_lora_merge makes it plain, tern_lora_save writes adapters "
                     "alone",
                     function, path, tern_nn_name(m));
}

tern_status tern_models_save_pretrained(tern_module *model, const char *directory,
                                        const tern_save_options *options)
{
    models_model *m = models_of(model, function);
    if (!m)
        return tern_last_status();
    if (!directory)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: directory is NULL", function);
    TRY(tern_last_status());
    bool quantized = false;
    TRY(tern_nn_each_module(model, look, &quantized));
    if (gguf_is_name(directory))
        return gguf_save_model(m, directory, options ? options->type : NULL, function);
    TRY(make_directory(directory));
    json_t *json = json_deep_copy(m->json);
    tern_status status =
        json ? renew(m, json, quantized) : tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    if (status == TERN_OK)
        status = save_weights(model, directory, options);
    if (status == TERN_OK)
        status = write_json(json, directory, "config.json");
    if (status == TERN_OK && m->processor)
        status = write_json(m->processor, directory, "preprocessor_config.json");
    if (status == TERN_OK && m->generation)
        status = write_json(m->generation, directory, "generation_config.json");
    json_decref(json);
    return status;
}
