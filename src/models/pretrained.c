/* pretrained.c -- from_pretrained: models built by config.json and filled from files. */
#include "models/gguf/gguf.h"
#include "base/os.h"
#include "models/gguf/layer.h"
#include "models/option.h"
#include "models/quantize.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 0x6d6f646c };
static const char from_pretrained[] = "tern_models_from_pretrained";

/* ---- the root ---------------------------------------------------------------------------- */

static void free_model(void *data)
{
    models_model *m = data;
    json_decref(m->json);
    json_decref(m->processor);
    json_decref(m->generation);
    free(m->directory);
    free(m);
}

static void *copy_model(const void *data, tern_module *copy)
{
    const models_model *from = data;
    models_model *m = malloc(sizeof *m);
    if (!m)
        return NULL;
    *m = *from;
    m->module = copy;
    m->json = json_deep_copy(from->json);
    m->processor = json_deep_copy(from->processor);
    m->generation = json_deep_copy(from->generation);
    m->directory = from->directory ? strdup(from->directory) : NULL;
    if (m->json && models_read_config(m) == TERN_OK)
        return m;
    free_model(m);
    return NULL;
}

bool models_is(tern_module *module)
{
    const char *name = module ? tern_nn_name(module) : NULL;
    const models_model *m = name ? tern_nn_data(module) : NULL;
    bool known = false;
    for (int i = 0; name && models_all[i] && !known; i++)
        known = strcmp(models_all[i]->name, name) == 0;
    return known && m && m->mark == MARK && m->module == module;
}

models_model *models_of(tern_module *module, const char *function)
{
    const char *name = module ? tern_nn_name(module) : NULL;
    if (!module)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: model is NULL", function);
    if (models_is(module))
        return tern_nn_data(module);
    return name ? tern_fail_null(TERN_ERR_ARGUMENT, "%s: %s is no model of tern_models", function,
                                 name)
                : NULL;
}

/* ---- which architecture ------------------------------------------------------------------ */

int tern_models_architectures(const char *const **names)
{
    static const char *list[64];
    int n = 0;
    for (; models_all[n] && n < 63; n++)
        list[n] = models_all[n]->name;
    if (names)
        *names = list;
    return n;
}

static const char *text_of(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    return json_is_string(value) ? json_string_value(value) : "";
}

static const models_architecture *named(const char *name, const char *type, bool classifies)
{
    for (int i = 0; models_all[i]; i++) {
        const models_architecture *a = models_all[i];
        if (type ? strcmp(a->type, type) == 0 && (!classifies || a->classifies)
                 : strcmp(a->name, name) == 0)
            return a;
    }
    return NULL;
}

/* Finds the architecture by architectures[0], else by timm's field architecture, else by
 * model_type. */
static const models_architecture *architecture_of(const json_t *json, bool classifies,
                                                  const char *function)
{
    const json_t *first = json_array_get(json_object_get(json, "architectures"), 0);
    const char *type = text_of(json, "model_type"), *timm = text_of(json, "architecture");
    const char *name = json_is_string(first) ? json_string_value(first) : timm;
    const models_architecture *a = *name ? named(name, NULL, false) : named("", type, false);
    if (classifies && *type && (!a || !a->classifies))
        a = named("", type, true);
    const models_architecture *base = *type ? named("", type, false) : NULL;
    if (!a && base && !base->head &&
        (strstr(name, "ForMaskedLM") || strstr(name, "ForPreTraining")))
        a = base; /* the base model reads files of MaskedLM and PreTraining models */
    if (a)
        return a;
    return tern_fail_null(TERN_ERR_UNSUPPORTED,
                          "%s: %.80s%s%.80s is none of tern_models_architectures%s", function, name,
                          *type ? " of model_type " : "", type, classifies ? " that classify" : "");
}

/* ---- making it --------------------------------------------------------------------------- */

/* Returns a model without initialized values, or NULL after an error. Takes json over. */
static models_model *make(json_t *json, int64_t labels, const char *function)
{
    const models_architecture *a = architecture_of(json, labels > 0, function);
    models_model *m = a ? calloc(1, sizeof *m) : NULL;
    if (!m) {
        json_decref(json);
        return a ? tern_fail_null(TERN_ERR_MEMORY, "%s: no memory", function) : NULL;
    }
    *m = (models_model){.mark = MARK, .kind = a, .json = json};
    m->c.labels = labels;
    m->module = tern_nn_module_with_call(a->name, models_call_root, m);
    if (!m->module) {
        free_model(m);
        return NULL;
    }
    tern_nn_on_free(m->module, free_model);
    tern_nn_on_copy(m->module, copy_model);
    tern_status status = models_read_config(m);
    if (status == TERN_OK)
        TERN_DEVICE ("cpu")
            status = a->build(m);
    if (status == TERN_OK)
        return m;
    tern_nn_free(m->module);
    return NULL;
}

/* ---- names ------------------------------------------------------------------------------- */

typedef struct filling {
    models_model *m;
    tern_file *file;
    const tern_pretrained_options *o;
    bool *used; /* for each name of the file: whether it was read */
    tern_tensor **filled;
    int n_filled, capacity;
    char *missing; /* the first missing name, or NULL */
} filling;

/* Finds the file's name for a name of the model: the same name, the name with or without the base
 * model's prefix, or the name that old BERT files use. */
static bool in_file(const filling *f, const char *path, char *name, size_t bytes)
{
    static const models_rename old[] = {{".gamma", ".weight"}, {".beta", ".bias"}};
    const char *prefix = f->m->kind->prefix;
    size_t n = prefix ? strlen(prefix) : 0;
    const char *candidates[3] = {path, NULL, NULL};
    char longer[512];
    if (io_gguf_is(f->file))
        return gguf_name(f->m, path, name, bytes) && tern_file_has(f->file, name);
    if (f->m->kind->file_name && f->m->kind->file_name(f->m, path, name, bytes))
        return tern_file_has(f->file, name);
    if (n && strncmp(path, prefix, n) == 0)
        candidates[1] = path + n;
    else if (n && snprintf(longer, sizeof longer, "%s%s", prefix, path) < (int)sizeof longer)
        candidates[2] = longer; /* the model is a base model, the file's model has a head */
    for (int i = 0; i < 3; i++) {
        if (!candidates[i])
            continue;
        snprintf(name, bytes, "%s", candidates[i]);
        if (tern_file_has(f->file, name))
            return true;
        for (size_t k = 0; k < 2; k++) {
            size_t end = strlen(old[k].model), all = strlen(candidates[i]);
            if (all < end || strcmp(candidates[i] + all - end, old[k].model) != 0)
                continue;
            snprintf(name, bytes, "%.*s%s", (int)(all - end), candidates[i], old[k].file);
            if (tern_file_has(f->file, name))
                return true;
        }
    }
    return false;
}

static bool is_left_out(const models_model *m, const char *name)
{
    for (int i = 0; m->kind->left_out && m->kind->left_out[i]; i++)
        if (tern_os_matches(m->kind->left_out[i], name))
            return true;
    return false;
}

static bool of_head(const models_model *m, const char *path)
{
    size_t n = m->kind->head ? strlen(m->kind->head) : 0;
    return n && strncmp(path, m->kind->head, n) == 0 && path[n] == '.';
}

static void mark_used(void *user, const char *name)
{
    filling *f = user;
    for (int i = 0; i < tern_file_count(f->file); i++)
        if (strcmp(tern_file_name_at(f->file, i), name) == 0)
            f->used[i] = true;
}

/* ---- filling it -------------------------------------------------------------------------- */

static bool is_filled(const filling *f, const tern_tensor *x)
{
    for (int i = 0; i < f->n_filled; i++)
        if (f->filled[i] == x)
            return true;
    return false;
}

static tern_status take(filling *f, const char *path, const char *name, tern_tensor *x)
{
    tern_shape shape = tern_file_shape(f->file, name);
    int dims = shape.ndim;
    bool is_gguf = io_gguf_is(f->file);
    if (is_gguf && gguf_is_transposed(f->m, path) && dims == 2)
        shape = TERN_SHAPE(shape.dims[1], shape.dims[0]);
    while (f->m->kind->file_name && dims < tern_dim(x)) /* the file has a linear layer's weight,
                                                           the model a convolution's */
        shape.dims[dims++] = 1;
    bool same = dims == tern_dim(x);
    for (int i = 0; i < dims && same; i++)
        same = shape.dims[i] == tern_size(x, i);
    if (!same && f->o->num_labels > 0 && of_head(f->m, path))
        return TERN_OK; /* the file's head has another number of classes */
    if (!same)
        return tern_fail(TERN_ERR_STATE,
                         "%s: size mismatch for %s: the file has %d dims%s%lld..., the model wants "
                         "another shape",
                         from_pretrained, path, shape.ndim, shape.ndim ? ", the first of " : " ",
                         (long long)(shape.ndim ? shape.dims[0] : 0));
    tern_tensor *values = tern_file_get(f->file, name, f->o->device);
    values = values && is_gguf ? gguf_values(f->m, path, values) : values;
    tern_dtype dtype = is_gguf && !f->o->dtype ? TERN_F32 : f->o->dtype;
    if (values && dtype && tern_dtype_is_floating_point(tern_dtype_of(values)))
        values = tern_to_dtype(values, dtype);
    if (values && tern_dtype_is_floating_point(tern_dtype_of(x)) &&
        !tern_dtype_is_floating_point(tern_dtype_of(values)))
        return tern_fail(TERN_ERR_STATE, "%s: %s is of %s in the file, and no quantized layer's",
                         from_pretrained, path, tern_dtype_name(tern_dtype_of(values)));
    if (dims > shape.ndim)
        values = tern_view(values, tern_shape_of(x));
    if (!values || !tern_set_data_(x, values))
        return tern_last_status();
    if (f->n_filled < f->capacity)
        f->filled[f->n_filled++] = x;
    return TERN_OK;
}

static tern_status fill_one(const char *path, tern_tensor *x, void *user)
{
    filling *f = user;
    char name[512];
    tern_status status = TERN_OK;
    if (quantize_has(f->m, path) || !in_file(f, path, name, sizeof name))
        return TERN_OK;
    mark_used(f, name);
    TERN_SCOPE
        TERN_NO_GRAD
            status = take(f, path, name, x);
    return status;
}

/* Fills a tensor that the file lacks. Tied tensors were filled under their other name; a new head,
 * biases and matrices get their initial values. */
static tern_status complete_one(const char *path, tern_tensor *x, void *user)
{
    filling *f = user;
    if (is_filled(f, x) || quantize_has(f->m, path))
        return TERN_OK;
    bool head = of_head(f->m, path) && f->o->num_labels > 0;
    if (!head && !is_left_out(f->m, path)) {
        if (!f->o->missing)
            return tern_fail(TERN_ERR_STATE, "%s: the files have no %s", from_pretrained, path);
        f->o->missing(path, f->o->user);
    }
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            bool real = tern_dtype_is_floating_point(tern_dtype_of(x));
            const char *end = strrchr(path, '.');
            bool bias = end && strcmp(end, ".bias") == 0;
            tern_tensor *values = tern_to(x, f->o->device);
            values = real && f->o->dtype ? tern_to_dtype(values, f->o->dtype) : values;
            values = values ? tern_clone(values) : NULL;
            if (values && (bias || tern_dim(x) > 1)) /* other vectors are weights of norms and
                                                        keep their values */
                values =
                    bias ? tern_zero_(values) : tern_normal_(values, 0, models_deviation(f->m));
            status = values && tern_set_data_(x, values) ? TERN_OK : tern_last_status();
        }
    return status;
}

static tern_status check_unexpected(const filling *f)
{
    for (int i = 0; i < tern_file_count(f->file); i++) {
        const char *name = tern_file_name_at(f->file, i);
        if (f->used[i] || is_left_out(f->m, name) || (io_gguf_is(f->file) && gguf_is_extra(name)))
            continue;
        if (!f->o->unexpected)
            return tern_fail(TERN_ERR_STATE, "%s: the files have %s, which %s has not",
                             from_pretrained, name, f->m->kind->name);
        f->o->unexpected(name, f->o->user);
    }
    return TERN_OK;
}

static tern_status count_one(const char *path, tern_tensor *x, void *user)
{
    (void)path, (void)x;
    ++*(int *)user;
    return TERN_OK;
}

/* Sets config.json's field "names" for timm's architectures, if it is absent: which library's
 * tensor names the file has. */
static tern_status find_names(json_t *json, const char *directory)
{
    const char *name = json_string_value(json_object_get(json, "architecture"));
    if (!name || json_object_get(json, "names") ||
        (strncmp(name, "mobilenet", 9) != 0 && strncmp(name, "efficientnet", 12) != 0))
        return TERN_OK;
    tern_file *file = tern_safe_open(directory);
    if (!file)
        return TERN_ERR_IO;
    bool torchvision = tern_file_has(file, "features.0.0.weight");
    if (torchvision || name[9] == '_')
        json_object_set_new(json, "names", json_string(torchvision ? "torchvision" : "timm"));
    tern_file_free(file);
    return TERN_OK;
}

/* Fills the model from a file and closes the file. */
static tern_status fill_from(models_model *m, tern_file *file, const tern_pretrained_options *o)
{
    filling f = {.m = m, .o = o, .file = file};
    const quantize_source source = {f.file, mark_used, &f, o->device};
    tern_status status = f.file ? TERN_OK : tern_last_status();
    if (f.file && !(f.used = calloc((size_t)tern_file_count(f.file) + 1, sizeof *f.used)))
        status = tern_fail(TERN_ERR_MEMORY, "%s: no memory", from_pretrained);
    if (status == TERN_OK)
        status = io_gguf_is(file) && !o->dtype ? gguf_read_layers(m, file, o->device, mark_used, &f)
                                               : quantize_read_layers(m, &source);
    if (status == TERN_OK)
        status = tern_nn_each_state(m->module, count_one, &f.capacity);
    if (status == TERN_OK) {
        f.filled = calloc((size_t)f.capacity + 1, sizeof(tern_tensor *));
        status = f.filled ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory", from_pretrained);
    }
    if (status == TERN_OK)
        status = tern_nn_each_state(m->module, fill_one, &f);
    if (status == TERN_OK)
        status = check_unexpected(&f);
    if (status == TERN_OK)
        status = tern_nn_each_state(m->module, complete_one, &f);
    free(f.used);
    free(f.filled);
    tern_file_free(f.file);
    return status;
}

static bool there(const char *directory, const char *file)
{
    char path[4096];
    struct tern_os_stat about;
    int n = snprintf(path, sizeof path, "%s/%s", directory, file);
    return n > 0 && (size_t)n < sizeof path && tern_os_stat(path, &about) == 0;
}

/* Reads the optional JSON files of the directory. */
static tern_status read_beside(models_model *m, const char *directory, const char *function)
{
    static const char *const files[] = {"preprocessor_config.json", "generation_config.json"};
    json_t **beside[] = {&m->processor, &m->generation};
    for (int i = 0; i < 2; i++)
        if (there(directory, files[i]) &&
            !(*beside[i] = models_read_json(function, directory, files[i])))
            return tern_last_status();
    return TERN_OK;
}

/* Returns a model built by config.json and filled from an open file (NULL: the files at path), or
 * NULL after an error. Takes json and file over. */
static models_model *make_from(json_t *json, tern_file *file, const char *path, bool folder,
                               const tern_pretrained_options *o)
{
    models_model *m = NULL;
    models_hollow = io_gguf_is(file);
    TERN_SCOPE
        TERN_SKIP_INIT
    m = make(json, o->num_labels, from_pretrained);
    models_hollow = false;
    if (!m) {
        tern_file_free(file);
        return NULL;
    }
    m->directory = strdup(path);
    tern_status status = m->directory ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK && folder)
        status = read_beside(m, path, from_pretrained);
    if (status == TERN_OK && !file && !(file = tern_safe_open(path)))
        status = tern_last_status();
    if (status == TERN_OK)
        status = fill_from(m, file, o);
    else
        tern_file_free(file);
    if (status == TERN_OK && tern_nn_eval(m->module))
        return m;
    tern_nn_free(m->module);
    return NULL;
}

static models_model *from_gguf(const char *path, const tern_pretrained_options *o)
{
    gguf_file g;
    tern_file *file = tern_safe_open(path);
    json_t *json = NULL;
    if (file && gguf_begin(&g, file, from_pretrained, path) == TERN_OK &&
        gguf_check_vocabulary(&g) == TERN_OK)
        json = gguf_config(&g);
    if (json)
        return make_from(json, file, path, false, o);
    tern_file_free(file);
    return NULL;
}

tern_module *tern_models_from_pretrained(const char *directory,
                                         const tern_pretrained_options *options)
{
    tern_pretrained_options o = tern_read_pretrained(options);
    if (!directory)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: directory is NULL", from_pretrained);
    models_model *m;
    if (gguf_is_file(directory))
        m = from_gguf(directory, &o);
    else {
        json_t *json = models_read_json(from_pretrained, directory, "config.json");
        if (!json || find_names(json, directory) != TERN_OK) {
            json_decref(json);
            return NULL;
        }
        m = make_from(json, NULL, directory, true, &o);
    }
    return m ? m->module : NULL;
}

tern_module *tern_models_from_config(const char *path, const tern_pretrained_options *options)
{
    static const char function[] = "tern_models_from_config";
    tern_pretrained_options o = tern_read_pretrained(options);
    struct tern_os_stat about;
    models_model *m = NULL;
    if (!path)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: path is NULL", function);
    bool folder = tern_os_stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    json_t *json = models_read_json(function, path, folder ? "config.json" : NULL);
    if (json)
        TERN_SCOPE {
            m = make(json, o.num_labels, function);
            if (m && models_initialize(m) != TERN_OK) {
                tern_nn_free(m->module);
                m = NULL;
            }
        }
    if (!m)
        return NULL;
    tern_module *made = tern_nn_to(m->module, o.device ? o.device : tern_default_device());
    if (made && (!o.dtype || tern_nn_to_dtype(made, o.dtype)) &&
        (!folder || read_beside(m, path, function) == TERN_OK))
        return made;
    tern_nn_free(m->module);
    return NULL;
}
