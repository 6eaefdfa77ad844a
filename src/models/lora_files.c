/* lora_files.c -- adapters in PEFT's files: adapter_config.json and adapter_model.safetensors, or
 * adapter_model.bin in older ones. */
#include "models/gguf/write.h"
#include "base/os.h"
#include "models/lora.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------------------- */

/* A tensor of the active adapter: its path in the model and its name in the file. */
typedef struct entry {
    const char *path, *peft; /* path of the layer, and PEFT's name of the layer */
    const char *own;         /* path below the layer, for example "lora_A.default.weight" */
    const char *file;        /* name below the layer in the file, for example "lora_A.weight" */
    tern_tensor *x;
} entry;
typedef tern_status (*entry_visit)(const entry *e, void *user);

typedef struct visitor {
    models_model *m;
    entry_visit visit;
    void *user;
} visitor;

static tern_status give(const visitor *w, const char *path, const char *own, const char *file,
                        tern_tensor *x)
{
    char peft[1024];
    lora_peft_path(w->m, path, peft, sizeof peft);
    return w->visit(&(entry){path, peft, own, file, x}, w->user);
}

typedef struct whole_part {
    const visitor *w;
    const char *path, *adapter;
} whole_part;

static tern_status give_whole(const char *name, tern_tensor *x, void *user)
{
    const whole_part *p = user;
    char own[512];
    snprintf(own, sizeof own, "modules_to_save.%s.%s", p->adapter, name);
    return give(p->w, p->path, own, name, x);
}

static tern_status visit_layer(const char *path, tern_module *wrapper, void *user)
{
    static const char *const parts[][2] = {{"lora_A", "lora_A.weight"},
                                           {"lora_B", "lora_B.weight"},
                                           {"lora_magnitude_vector", "lora_magnitude_vector"}};
    const visitor *w = user;
    const lora_data *d = lora_of(wrapper);
    if (d->active < 0)
        return TERN_OK;
    const lora_adapter *a = &d->adapters[d->active];
    tern_module *whole = lora_part(wrapper, "modules_to_save", a->name);
    for (int i = 0; i < 3; i++) {
        char own[128];
        tern_module *part = lora_part(wrapper, parts[i][0], a->name);
        snprintf(own, sizeof own, "%s.%s.weight", parts[i][0], a->name);
        if (part)
            TRY(give(w, path, own, parts[i][1], tern_nn_parameter_at(part, 0)));
    }
    if (whole)
        TRY(tern_nn_each_state(whole, give_whole, &(whole_part){w, path, a->name}));
    const char *bias = json_string_value(json_object_get(a->config, "bias"));
    tern_tensor *own = bias && strcmp(bias, "lora_only") == 0 && !d->whole
                           ? lora_bias(tern_nn_child_at(wrapper, 0))
                           : NULL;
    return own ? give(w, path, "base_layer.bias", "base_layer.bias", own) : TERN_OK;
}

/* For bias "all": visits the biases of all modules except the adapters' copies. */
static tern_status visit_bias(const char *path, tern_tensor *x, void *user)
{
    const char *dot = strrchr(path, '.');
    char layer[1024];
    if (!dot || strcmp(dot, ".bias") != 0 || strstr(path, ".modules_to_save.") ||
        (size_t)(dot - path) >= sizeof layer)
        return TERN_OK;
    memcpy(layer, path, (size_t)(dot - path));
    layer[dot - path] = 0;
    return give(user, layer, "bias", "bias", x);
}

static tern_status each_entry(models_model *m, entry_visit visit, void *user)
{
    visitor w = {m, visit, user};
    const lora_adapter *a = lora_active(m->module);
    const char *bias = a ? json_string_value(json_object_get(a->config, "bias")) : NULL;
    TRY(lora_each(m->module, visit_layer, &w));
    return bias && strcmp(bias, "all") == 0 ? tern_nn_each_parameter(m->module, visit_bias, &w)
                                            : TERN_OK;
}

/* ---- saving -------------------------------------------------------------------------------- */

static tern_status put(const entry *e, void *user)
{
    char key[2048];
    snprintf(key, sizeof key, "base_model.model.%s.%s", e->peft, e->file);
    return tern_state_dict_set(user, key, e->x);
}

static tern_status save_config(const char *function, const char *directory, json_t *config)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/adapter_config.json", directory);
    char *text = json_dumps(config, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII |
                                        JSON_REAL_PRECISION(15));
    FILE *to = text ? tern_os_fopen(path, "we") : NULL;
    bool good = to && fputs(text, to) >= 0;
    good = to && fclose(to) == 0 && good;
    free(text);
    return good ? TERN_OK : tern_fail(TERN_ERR_IO, "%s: can't write \"%s\"", function, path);
}

tern_status tern_lora_save(tern_module *model, const char *directory)
{
    static const char function[] = "tern_lora_save";
    char path[4096];
    models_model *m = models_of(model, function);
    const lora_adapter *a = m ? lora_active(model) : NULL;
    if (!m || !directory || !a)
        return !m ? tern_last_status()
                  : tern_fail(directory ? TERN_ERR_STATE : TERN_ERR_ARGUMENT, "%s: %s", function,
                              directory ? "the model has no adapter" : "directory is NULL");
    const bool gguf = gguf_is_name(directory);
    if (!gguf && tern_os_mkdir(directory, 0777) != 0 && errno != EEXIST)
        return tern_fail(TERN_ERR_IO, "%s: can't make the directory \"%s\"", function, directory);
    tern_state_dict *dict = tern_state_dict_new();
    tern_status status = dict ? each_entry(m, put, dict) : tern_last_status();
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", directory);
    if (status == TERN_OK)
        status = tern_state_dict_set_metadata(dict, "format", "pt");
    if (status == TERN_OK)
        TERN_SCOPE
            status = gguf ? gguf_save_adapter(m, directory, dict, a->config, function)
                          : tern_save(dict, path, NULL);
    tern_state_dict_free(dict);
    if (gguf)
        return status;
    return status == TERN_OK ? save_config(function, directory, a->config) : status;
}

/* ---- loading ------------------------------------------------------------------------------- */

typedef struct loading {
    const char *function;
    tern_state_dict *file, *own;
} loading;

static tern_status take(const entry *e, void *user)
{
    loading *l = user;
    char key[2048], own[2048];
    const char *const names[] = {e->peft, e->path};
    tern_tensor *x = NULL;
    for (int i = 0; i < 2 && !x; i++) {
        snprintf(key, sizeof key, "base_model.model.%s.%s", names[i], e->file);
        x = tern_state_dict_get(l->file, key);
    }
    if (!x)
        return strstr(e->file, "bias") && !strstr(e->own, "modules_to_save")
                   ? TERN_OK /* PEFT does not save the biases for lora_only */
                   : tern_fail(TERN_ERR_STATE, "%s: the file has no \"base_model.model.%s.%s\"",
                               l->function, e->peft, e->file);
    snprintf(own, sizeof own, "%s.%s", e->path, e->own);
    TRY(tern_state_dict_set(l->own, own, x));
    return tern_state_dict_remove(l->file, key);
}

/* Returns the tensors of a directory under PEFT's names, or NULL after an error. */
static tern_state_dict *open_weights(const char *function, const char *directory)
{
    static const char *const files[] = {"adapter_model.safetensors", "adapter_model.bin"};
    char path[4096];
    struct tern_os_stat about;
    snprintf(path, sizeof path, "%s/%s", directory, files[0]);
    if (tern_os_stat(path, &about) != 0)
        snprintf(path, sizeof path, "%s/%s", directory, files[1]);
    if (tern_os_stat(path, &about) != 0)
        return tern_fail_null(TERN_ERR_IO, "%s: \"%s\": the directory has neither %s nor %s",
                              function, directory, files[0], files[1]);
    return tern_load(path, &(tern_load_options){.map_location = "cpu"});
}

/* Takes file over. */
static tern_status load_weights(const char *function, models_model *m, tern_state_dict *file)
{
    loading l = {function, file, tern_state_dict_new()};
    tern_status status = l.file && l.own ? each_entry(m, take, &l) : tern_last_status();
    if (status == TERN_OK && tern_state_dict_count(l.file))
        status = tern_fail(TERN_ERR_STATE, "%s: the model has no place for \"%s\"", function,
                           tern_state_dict_key_at(l.file, 0));
    if (status == TERN_OK)
        status = tern_nn_load_state_dict(m->module, l.own,
                                         &(tern_load_state_dict_options){.no_strict = true});
    tern_state_dict_free(l.own);
    tern_state_dict_free(l.file);
    return status;
}

static tern_module *load(const char *function, tern_module *model, const char *directory,
                         const char *adapter, bool trainable)
{
    models_model *m = models_of(model, function);
    if (!m || !directory || !adapter)
        return m ? tern_fail_null(TERN_ERR_ARGUMENT, "%s: %s is NULL", function,
                                  directory ? "adapter" : "directory")
                 : NULL;
    const bool gguf = gguf_is_file(directory);
    json_t *config = gguf ? NULL : models_read_json(function, directory, "adapter_config.json");
    tern_state_dict *file = NULL;
    if (gguf)
        TERN_SCOPE
            file = gguf_load_adapter(m, directory, &config, function);
    tern_status status = config ? lora_apply(function, m, adapter, config) : TERN_ERR_IO;
    json_decref(config);
    if (status != TERN_OK) {
        tern_state_dict_free(file);
        return NULL;
    }
    TERN_SCOPE
        status = load_weights(function, m, gguf ? file : open_weights(function, directory));
    if (status == TERN_OK)
        return lora_set_trainable(model, trainable) == TERN_OK ? model : NULL;
    lora_delete(model, adapter);
    return NULL;
}

tern_module *tern_lora_load(tern_module *model, const char *directory, bool trainable)
{
    return load("tern_lora_load", model, directory, "default", trainable);
}

tern_module *tern_lora_load_adapter(tern_module *model, const char *directory, const char *adapter,
                                    bool trainable)
{
    return load("tern_lora_load_adapter", model, directory, adapter, trainable);
}
