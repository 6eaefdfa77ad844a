/* lora.c -- adapters on all layers of a model: adding, choosing, merging and removing them. */
#include "base/error.h"
#include "models/gguf/layer.h"
#include "models/lora.h"
#include <stdlib.h>
#include <string.h>

/* ---- every layer --------------------------------------------------------------------------- */

typedef struct found {
    char *path;
    tern_module *wrapper; /* NULL: the layer has no wrapper */
} found;
typedef struct search {
    found *list;
    size_t n, capacity;
    bool unwrapped; /* modules without a wrapper are listed too */
} search;

static tern_status keep(search *s, const char *path, tern_module *wrapper)
{
    if (s->n == s->capacity) {
        size_t capacity = 2 * s->capacity + 16;
        found *grown = realloc(s->list, capacity * sizeof *grown);
        if (!grown)
            return tern_fail(TERN_ERR_MEMORY, "tern_lora: no memory for %zu layers", capacity);
        s->list = grown;
        s->capacity = capacity;
    }
    s->list[s->n].path = strdup(path);
    s->list[s->n].wrapper = wrapper;
    return s->list[s->n++].path ? TERN_OK
                                : tern_fail(TERN_ERR_MEMORY, "tern_lora: no memory for a path");
}

static tern_status look(const char *path, tern_module *m, void *user)
{
    search *s = user;
    const found *last = s->n ? &s->list[s->n - 1] : NULL;
    size_t n = last ? strlen(last->path) : 0;
    if (last && last->wrapper && strncmp(path, last->path, n) == 0 && path[n] == '.')
        return TERN_OK; /* the submodules of a wrapper are not the model's own */
    if (lora_of(m) || (s->unwrapped && *path))
        return keep(s, path, lora_of(m) ? m : NULL);
    return TERN_OK;
}

static tern_status find(tern_module *model, bool unwrapped, search *s)
{
    *s = (search){.unwrapped = unwrapped};
    return tern_nn_each_module(model, look, s);
}

static void end(search *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->list[i].path);
    free(s->list);
}

tern_status lora_each(tern_module *model, lora_visit visit, void *user)
{
    search s;
    tern_status status = find(model, false, &s);
    for (size_t i = 0; i < s.n && status == TERN_OK; i++)
        status = visit(s.list[i].path, s.list[i].wrapper, user);
    end(&s);
    return status;
}

static tern_status first_active(const char *path, tern_module *wrapper, void *user)
{
    const lora_data *d = lora_of(wrapper);
    (void)path;
    if (d->active >= 0)
        *(const lora_adapter **)user = &d->adapters[d->active];
    return TERN_OK;
}

const lora_adapter *lora_active(tern_module *model)
{
    const lora_adapter *a = NULL;
    return lora_each(model, first_active, &a) == TERN_OK ? a : NULL;
}

/* ---- removing ------------------------------------------------------------------------------ */

static tern_status remove_one(const char *path, tern_module *wrapper, void *user)
{
    (void)path;
    lora_remove(wrapper, user);
    return TERN_OK;
}

/* Unwraps the modules that have no adapter left, or all. */
static tern_status unwrap_empty(tern_module *model, bool all)
{
    search s;
    tern_status status = find(model, false, &s);
    for (size_t i = 0; i < s.n && status == TERN_OK; i++) {
        const lora_data *d = lora_of(s.list[i].wrapper);
        if (!all && d->n)
            continue;
        const char *name = d->whole ? "original_module" : "base_layer";
        status = tern_nn_unwrap(model, s.list[i].path, name) ? TERN_OK : tern_last_status();
    }
    end(&s);
    return status;
}

tern_status lora_delete(tern_module *model, const char *adapter)
{
    char name[LORA_NAME]; /* a copy: adapter may point into the adapter that is freed */
    strcpy(name, adapter);
    TRY(lora_each(model, remove_one, name));
    return unwrap_empty(model, false);
}

/* ---- adding -------------------------------------------------------------------------------- */

typedef struct wanted {
    const char *function, *adapter;
    models_model *m;
    json_t *config;
    int layers, there;
} wanted;

/* Decides whether a module gets an adapter (*linear), a trained copy (*whole), or neither. */
static tern_status wants(const wanted *w, const found *f, bool *linear, bool *whole)
{
    tern_module *m = f->wrapper ? f->wrapper : tern_nn_child(w->m->module, f->path);
    const lora_data *d = f->wrapper ? lora_of(m) : NULL;
    *whole = lora_is_saved(w->config, f->path) && (!d || d->whole);
    *linear = false;
    if (*whole && !d && gguf_is_layer(m))
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: %s is %s, whose blocks are not trained: load the model with .dtype = "
                         "TERN_F32 to train it whole",
                         w->function, f->path, tern_nn_name(m));
    if (*whole || (d && d->whole))
        return TERN_OK;
    TRY(lora_is_target(w->function, w->m, w->config, f->path, linear));
    bool fits = d || lora_is_linear(m);
    const json_t *names = json_object_get(w->config, "target_modules");
    if (*linear && !fits && json_is_array(names))
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "%s: Target module %s is not supported. %s is %s, adapters go around Linear and Conv1D",
            w->function, tern_nn_name(m), f->path, tern_nn_name(m));
    *linear = *linear && fits;
    return TERN_OK;
}

static tern_status add_one(wanted *w, const found *f)
{
    bool linear, whole;
    int64_t r = 0;
    double scale = 1;
    TRY(wants(w, f, &linear, &whole));
    if (!linear && !whole)
        return TERN_OK;
    if (linear)
        TRY(lora_numbers(w->function, w->m, w->config, f->path, &r, &scale));
    tern_module *wrapper = f->wrapper ? f->wrapper : lora_wrap(w->m->module, f->path, whole);
    if (!wrapper)
        return tern_last_status();
    w->layers += linear;
    return lora_add(wrapper, w->adapter, w->config, r, scale);
}

static tern_status is_there(const char *path, tern_module *wrapper, void *user)
{
    wanted *w = user;
    const lora_data *d = lora_of(wrapper);
    (void)path;
    for (int i = 0; i < d->n; i++)
        w->there += strcmp(d->adapters[i].name, w->adapter) == 0;
    return d->merged
               ? tern_fail(TERN_ERR_STATE,
                           "%s: an adapter is merged; tern_lora_unmerge_adapter first", w->function)
               : TERN_OK;
}

tern_status lora_apply(const char *function, models_model *m, const char *adapter, json_t *config)
{
    wanted w = {.function = function, .adapter = adapter, .m = m, .config = config};
    search s;
    TRY(lora_config_check(function, config));
    if (!*adapter || strlen(adapter) >= LORA_NAME || strchr(adapter, '.'))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: an adapter's name has 1 to %d bytes and no dot, not '%s'", function,
                         LORA_NAME - 1, adapter);
    TRY(lora_each(m->module, is_there, &w));
    if (w.there)
        return tern_fail(TERN_ERR_STATE, "%s: there is an adapter '%s' already", function, adapter);
    tern_status status = find(m->module, true, &s);
    for (size_t i = 0; i < s.n && status == TERN_OK; i++)
        status = add_one(&w, &s.list[i]);
    if (status == TERN_OK && w.layers == 0)
        status = tern_fail(TERN_ERR_ARGUMENT,
                           "%s: Target modules not found in the base model: no linear layer's path "
                           "ends in one of them",
                           function);
    end(&s);
    if (status != TERN_OK)
        lora_delete(m->module, adapter);
    return status;
}

/* ---- what is trained ----------------------------------------------------------------------- */

static tern_status train_all(const char *path, tern_tensor *x, void *user)
{
    (void)path, (void)user;
    return tern_requires_grad_(x, true) ? TERN_OK : tern_last_status();
}

static tern_status train_bias(const char *path, tern_tensor *x, void *user)
{
    size_t n = strlen(path);
    return n >= 4 && strcmp(path + n - 4, "bias") == 0 ? train_all(path, x, user) : TERN_OK;
}

static tern_status train_one(const char *path, tern_module *wrapper, void *user)
{
    static const char *const parts[] = {"lora_A", "lora_B", "lora_magnitude_vector",
                                        "modules_to_save"};
    const lora_data *d = lora_of(wrapper);
    (void)path, (void)user;
    if (d->active < 0)
        return TERN_OK;
    const lora_adapter *a = &d->adapters[d->active];
    for (int i = 0; i < 4; i++) {
        tern_module *part = lora_part(wrapper, parts[i], a->name);
        if (part)
            TRY(tern_nn_each_parameter(part, train_all, NULL));
    }
    const char *bias = json_string_value(json_object_get(a->config, "bias"));
    if (bias && strcmp(bias, "lora_only") == 0 && !d->whole)
        TRY(tern_nn_each_parameter(tern_nn_child_at(wrapper, 0), train_bias, NULL));
    return TERN_OK;
}

tern_status lora_set_trainable(tern_module *model, bool trainable)
{
    if (!tern_nn_requires_grad_(model, false))
        return tern_last_status();
    if (!trainable)
        return TERN_OK;
    const lora_adapter *a = lora_active(model);
    const char *bias = a ? json_string_value(json_object_get(a->config, "bias")) : NULL;
    if (bias && strcmp(bias, "all") == 0)
        TRY(tern_nn_each_parameter(model, train_bias, NULL));
    return lora_each(model, train_one, NULL);
}

/* ---- public -------------------------------------------------------------------------------- */

tern_module *tern_lora_add(tern_module *model, const tern_lora_options *options)
{
    static const char function[] = "tern_lora_add";
    models_model *m = models_of(model, function);
    json_t *config = m ? lora_config_of(function, m, options) : NULL;
    const char *adapter = options && options->adapter ? options->adapter : "default";
    tern_status status = config ? lora_apply(function, m, adapter, config) : TERN_ERR_ARGUMENT;
    json_decref(config);
    if (status == TERN_OK)
        status = lora_set_trainable(model, true);
    return status == TERN_OK ? model : NULL;
}

/* Argument of a function that lora_each calls for every wrapper. */
typedef struct change {
    const char *name;
    bool on;
    int there;
} change;

static tern_status activate(const char *path, tern_module *wrapper, void *user)
{
    change *c = user;
    lora_data *d = lora_of(wrapper);
    int at = -1;
    (void)path;
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->adapters[i].name, c->name) == 0)
            at = i;
    if (c->on)
        d->active = at;
    c->there += at >= 0;
    return d->merged ? tern_fail(TERN_ERR_STATE, "tern_lora_set_adapter: the adapter is merged; "
                                                 "tern_lora_unmerge_adapter first")
                     : TERN_OK;
}

static tern_status need(tern_module *model, const char *function, const char *adapter)
{
    change c = {.name = adapter};
    if (!model || !adapter)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s is NULL", function,
                         model ? "adapter" : "model");
    TRY(lora_each(model, activate, &c));
    return c.there
               ? TERN_OK
               : tern_fail(TERN_ERR_ARGUMENT, "%s: there is no adapter '%s'", function, adapter);
}

tern_status tern_lora_set_adapter(tern_module *model, const char *adapter)
{
    change c = {.name = adapter, .on = true};
    TRY(need(model, "tern_lora_set_adapter", adapter));
    TRY(lora_each(model, activate, &c));
    return lora_set_trainable(model, true);
}

tern_status tern_lora_delete_adapter(tern_module *model, const char *adapter)
{
    TRY(need(model, "tern_lora_delete_adapter", adapter));
    TRY(lora_delete(model, adapter));
    return lora_set_trainable(model, true);
}

static tern_status switch_one(const char *path, tern_module *wrapper, void *user)
{
    (void)path;
    lora_of(wrapper)->enabled = ((change *)user)->on;
    return TERN_OK;
}

tern_status tern_lora_enable(tern_module *model, bool on)
{
    change c = {.on = on};
    return model ? lora_each(model, switch_one, &c)
                 : tern_fail(TERN_ERR_ARGUMENT, "tern_lora_enable: model is NULL");
}

static tern_status fold_one(const char *path, tern_module *wrapper, void *user)
{
    (void)path;
    return lora_fold(wrapper, ((change *)user)->on);
}

tern_status tern_lora_merge_adapter(tern_module *model)
{
    change c = {.on = true};
    return model ? lora_each(model, fold_one, &c)
                 : tern_fail(TERN_ERR_ARGUMENT, "tern_lora_merge_adapter: model is NULL");
}

tern_status tern_lora_unmerge_adapter(tern_module *model)
{
    change c = {.on = false};
    return model ? lora_each(model, fold_one, &c)
                 : tern_fail(TERN_ERR_ARGUMENT, "tern_lora_unmerge_adapter: model is NULL");
}

/* Loads the trained copy's state into the original module. */
static tern_status take_whole(const char *path, tern_module *wrapper, void *user)
{
    const lora_data *d = lora_of(wrapper);
    (void)path, (void)user;
    tern_module *part = d->whole && d->active >= 0
                            ? lora_part(wrapper, "modules_to_save", d->adapters[d->active].name)
                            : NULL;
    if (!part)
        return TERN_OK;
    tern_state_dict *dict = tern_nn_state_dict(part);
    tern_status status = dict ? tern_nn_load_state_dict(tern_nn_child_at(wrapper, 0), dict, NULL)
                              : tern_last_status();
    tern_state_dict_free(dict);
    return status;
}

tern_module *tern_lora_merge(tern_module *model)
{
    TERN_NAMED_IN_ERRORS;
    if (tern_lora_merge_adapter(model) != TERN_OK ||
        lora_each(model, take_whole, NULL) != TERN_OK || unwrap_empty(model, true) != TERN_OK)
        return NULL;
    return model;
}

tern_module *tern_lora_unload(tern_module *model)
{
    TERN_NAMED_IN_ERRORS;
    return tern_lora_unmerge_adapter(model) == TERN_OK && unwrap_empty(model, true) == TERN_OK
               ? model
               : NULL;
}
