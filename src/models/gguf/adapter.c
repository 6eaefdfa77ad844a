/* adapter.c -- LoRA adapters as GGUF files in llama.cpp's format, whose `general.type` is
 * adapter. */
#include "base/text.h"
#include "base/os.h"
#include "models/gguf/write.h"
#include "models/lora.h"
#include <math.h>
#include <stdio.h>

#define PEFT "base_model.model."
static const char *const parts[2][2] = {{".lora_A.weight", ".lora_a"},
                                        {".lora_B.weight", ".lora_b"}};

bool gguf_is_name(const char *path)
{
    const size_t n = path ? strlen(path) : 0;
    return n > 5 && tern_os_strcasecmp(path + n - 5, ".gguf") == 0;
}

/* ---- saving -------------------------------------------------------------------------------- */

typedef struct saving {
    models_model *m;
    const tern_state_dict *dict;
    const char *function;
    gguf_writer w;
    double alpha;
    const json_t *config;
} saving;

/* Copies the layer's path from PEFT's name of a tensor; returns which of the two parts it is, or
 * -1. */
static int part_of(const char *key, char path[512])
{
    for (int i = 0; i < 2; i++)
        if (strncmp(key, PEFT, strlen(PEFT)) == 0 && tern_ends_with(key, parts[i][0])) {
            snprintf(path, 512, "%.*s", (int)(strlen(key) - strlen(PEFT) - strlen(parts[i][0])),
                     key + strlen(PEFT));
            return i;
        }
    return -1;
}

/* Returns B with its rows in the order of the layer's weight in the file, multiplied by the part of
 * the scale that alpha / r does not express. */
static tern_tensor *values_of(void *user, const gguf_item *item)
{
    const saving *s = user;
    char weight[520];
    int64_t r;
    double scale;
    if (!item->path) /* the tensor is A */
        return item->values;
    snprintf(weight, sizeof weight, "%s.weight", item->path);
    tern_tensor *x = item->values;
    if (lora_numbers(s->function, s->m, s->config, item->path, &r, &scale) != TERN_OK)
        return NULL;
    const double more = scale * (double)r / s->alpha;
    x = fabs(more - 1) > 1e-12 ? tern_mul_scalar(x, TERN_SCALAR(more)) : x;
    return gguf_is_transposed(s->m, weight) ? x : gguf_unvalues(s->m, weight, x);
}

static tern_status add(saving *s, const char *key, tern_tensor *x)
{
    char *path = malloc(512), weight[520], name[600];
    const int part = path ? part_of(key, path) : -1;
    snprintf(weight, sizeof weight, "%s.weight", path ? path : "");
    if (part < 0 || !gguf_name(s->m, weight, name, 512)) {
        free(path);
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "%s: a GGUF has no place for %s: adapters of low rank around layers of its "
            "table are written",
            s->function, key);
    }
    strcat(name, parts[part][1]);
    gguf_item item = {.name = name,
                      .shape = tern_shape_of(x),
                      .block = io_block_named("F32"),
                      .encoder = gguf_encoder_named("F32"),
                      .values = x,
                      .path = part ? path : NULL};
    tern_status status = gguf_write_tensor(&s->w, &item);
    if (!part || status != TERN_OK)
        free(path);
    return status;
}

static tern_status check(const saving *s)
{
    static const char *const without[] = {"use_dora", "modules_to_save"};
    for (int i = 0; i < 2; i++) {
        const json_t *x = json_object_get(s->config, without[i]);
        if (json_is_true(x) || json_array_size(x))
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: a GGUF has no place for an adapter with %s: tern_lora_merge and "
                             "tern_models_save_pretrained write the whole model, a directory the "
                             "adapter",
                             s->function, without[i]);
    }
    const char *bias = json_string_value(json_object_get(s->config, "bias"));
    if (bias && strcmp(bias, "none") != 0)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: a GGUF has no place for an adapter with bias \"%s\"", s->function,
                         bias);
    return TERN_OK;
}

tern_status gguf_save_adapter(models_model *m, const char *path, const tern_state_dict *dict,
                              const json_t *config, const char *function)
{
    saving s = {.m = m, .dict = dict, .function = function, .config = config};
    s.w = (gguf_writer){.function = function, .path = path, .get = values_of, .user = &s};
    const char *arch = gguf_architecture(m, function);
    TRY(arch ? check(&s) : TERN_ERR_UNSUPPORTED);
    const double r = json_number_value(json_object_get(config, "r"));
    s.alpha = json_number_value(json_object_get(config, "lora_alpha"));
    s.alpha *= json_is_true(json_object_get(config, "use_rslora")) ? sqrt(r) : 1;
    if (s.alpha == 0)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: alpha is 0, which in a GGUF stands for a scale of 1", function);
    gguf_write_text(&s.w, "general.architecture", arch);
    gguf_write_text(&s.w, "general.type", "adapter");
    gguf_write_text(&s.w, "adapter.type", "lora");
    gguf_write_f32(&s.w, "adapter.lora.alpha", s.alpha);
    tern_status status = TERN_OK;
    for (int i = 0; i < tern_state_dict_count(dict) && status == TERN_OK; i++)
        status = add(&s, tern_state_dict_key_at(dict, i), tern_state_dict_at(dict, i));
    if (status == TERN_OK)
        status = gguf_write_file(&s.w);
    for (int i = 0; i < s.w.n; i++)
        free((char *)s.w.items[i].path);
    gguf_writer_free(&s.w);
    return status;
}

/* ---- loading ------------------------------------------------------------------------------- */

typedef struct reading {
    models_model *m;
    gguf_file g;
    tern_state_dict *dict;
    json_t *targets, *ranks;
    int64_t r;
    int found;
} reading;

/* Reads the two tensors of a layer if the file has them. */
static tern_status read_layer(const char *path, tern_module *layer, void *user)
{
    reading *f = user;
    char weight[512], base[512], name[2][520], key[700];
    if (!lora_is_linear(layer) ||
        (size_t)snprintf(weight, sizeof weight, "%s.weight", path) >= sizeof weight ||
        !gguf_name(f->m, weight, base, sizeof base))
        return TERN_OK;
    for (int i = 0; i < 2; i++)
        snprintf(name[i], sizeof name[i], "%s%s", base, parts[i][1]);
    const bool there[2] = {tern_file_has(f->g.file, name[0]), tern_file_has(f->g.file, name[1])};
    if (!there[0] && !there[1])
        return TERN_OK;
    if (there[0] != there[1])
        return gguf_bad(&f->g, "there is a tensor `%s`, and no `%s`", name[!there[0]],
                        name[there[0]]);
    for (int i = 0; i < 2; i++) {
        tern_tensor *x = tern_file_get(f->g.file, name[i], "cpu");
        x = x ? tern_to_dtype(x, TERN_F32) : NULL;
        x = x && i && !gguf_is_transposed(f->m, weight) ? gguf_values(f->m, weight, x) : x;
        snprintf(key, sizeof key, PEFT "%s%s", path, parts[i][0]);
        TRY(x ? tern_state_dict_set(f->dict, key, x) : tern_last_status());
        if (i == 0) {
            const int64_t r = tern_dim(x) == 2 ? tern_size(x, 0) : 0;
            f->r = f->r ? f->r : r;
            if (r != f->r)
                json_object_set_new(f->ranks, path, json_integer(r));
        }
    }
    json_array_append_new(f->targets, json_string(path));
    f->found++;
    return TERN_OK;
}

static tern_status check_file(reading *f)
{
    const char *type, *kind, *arch;
    TRY(gguf_text(&f->g, "general.type", &type));
    if (!type || strcmp(type, "adapter") != 0)
        return gguf_bad(&f->g, "`general.type` is %.40s, and adapter is expected",
                        type ? type : "not there");
    TRY(gguf_text(&f->g, "adapter.type", &kind));
    if (!kind || strcmp(kind, "lora") != 0 || gguf_has(&f->g, "adapter.alora.invocation_tokens"))
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: \"%s\": `adapter.type` is %.40s%s, and lora is supported",
                         f->g.function, f->g.path, kind ? kind : "not there",
                         kind && strcmp(kind, "lora") == 0 ? " with invocation tokens" : "");
    if (!(arch = gguf_architecture(f->m, f->g.function)))
        return TERN_ERR_UNSUPPORTED;
    if (strcmp(arch, f->g.arch) != 0)
        return tern_fail(TERN_ERR_STATE,
                         "%s: \"%s\": the adapter is of architecture %s, and the model of %s",
                         f->g.function, f->g.path, f->g.arch, arch);
    return TERN_OK;
}

/* Fails for tensors that no layer used. Norms beside an adapter are ignored, as in llama.cpp. */
static tern_status check_left(const reading *f)
{
    char name[600];
    for (int i = 0; i < tern_file_count(f->g.file); i++) {
        const char *own = tern_file_name_at(f->g.file, i);
        bool used = strstr(own, "_norm.weight") && !strstr(own, ".lora_");
        for (int k = 0; k < f->found && !used; k++) {
            char weight[512];
            snprintf(weight, sizeof weight, "%s.weight",
                     json_string_value(json_array_get(f->targets, (size_t)k)));
            used = gguf_name(f->m, weight, name, 512) && strncmp(name, own, strlen(name)) == 0 &&
                   (strcmp(own + strlen(name), parts[0][1]) == 0 ||
                    strcmp(own + strlen(name), parts[1][1]) == 0);
        }
        if (!used)
            return tern_fail(TERN_ERR_STATE, "%s: \"%s\": the model has no place for `%s`",
                             f->g.function, f->g.path, own);
    }
    return f->found ? TERN_OK : gguf_bad(&f->g, "there is no tensor of an adapter");
}

typedef struct ends {
    const json_t *targets;
    bool all; /* every layer whose path ends so has an adapter */
    const char *end;
} ends;

static const char *last_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static tern_status look(const char *path, tern_module *layer, void *user)
{
    ends *e = user;
    size_t i;
    const json_t *one;
    bool there = false;
    if (!*path || strcmp(last_of(path), e->end) != 0 || !lora_is_linear(layer))
        return TERN_OK;
    json_array_foreach(e->targets, i, one) there =
        there || strcmp(json_string_value(one), path) == 0;
    e->all = e->all && there;
    return TERN_OK;
}

/* Returns target_modules: a path's last word if all layers of that name have an adapter, else the
 * paths. */
static json_t *short_targets(const reading *f)
{
    json_t *words = json_object(), *list = json_array();
    size_t i;
    const json_t *one;
    bool all = true;
    json_array_foreach(f->targets, i, one)
    {
        ends e = {f->targets, true, last_of(json_string_value(one))};
        if (json_object_get(words, e.end))
            continue;
        all = all && tern_nn_each_module(f->m->module, look, &e) == TERN_OK && e.all;
        json_object_set_new(words, e.end, json_true());
        json_array_append_new(list, json_string(e.end));
    }
    json_decref(words);
    if (all)
        return list;
    json_decref(list);
    return json_incref(f->targets);
}

static json_t *config_of(reading *f)
{
    double alpha;
    if (gguf_real(&f->g, "adapter.lora.alpha", NAN, &alpha) != TERN_OK)
        return NULL;
    alpha = alpha == 0 ? (double)f->r : alpha; /* so that the scale is 1 */
    tern_lora_options o = tern_lora_defaults();
    const char *none[] = {"all-linear", NULL};
    o.r = f->r;
    o.alpha = alpha;
    o.target_modules = none;
    json_t *config = lora_config_of(f->g.function, f->m, &o);
    if (config) {
        json_object_set_new(config, "target_modules", short_targets(f));
        json_object_set(config, "rank_pattern", f->ranks);
    }
    return config;
}

tern_state_dict *gguf_load_adapter(models_model *m, const char *path, json_t **config,
                                   const char *function)
{
    reading f = {
        .m = m, .dict = tern_state_dict_new(), .targets = json_array(), .ranks = json_object()};
    tern_file *file = tern_safe_open(path);
    *config = NULL;
    if (file && f.dict && gguf_begin(&f.g, file, function, path) == TERN_OK &&
        check_file(&f) == TERN_OK && tern_nn_each_module(m->module, read_layer, &f) == TERN_OK &&
        check_left(&f) == TERN_OK)
        *config = config_of(&f);
    tern_file_free(file);
    json_decref(f.targets);
    json_decref(f.ranks);
    if (*config)
        return f.dict;
    tern_state_dict_free(f.dict);
    return NULL;
}
