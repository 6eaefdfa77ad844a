/* quantize_model.c -- quantizes the linear layers of a model to 8 or 4 bits, with or without its
 * head. */
#include "base/error.h"
#include "models/gguf/layer.h"
#include "models/option.h"
#include "models/quantize.h"
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_quantize_";

bool quantize_can(tern_module *m)
{
    const char *name = tern_nn_name(m);
    return name && (strcmp(name, "Linear") == 0 || strcmp(name, "Conv1D") == 0);
}

bool quantize_has(const models_model *m, const char *path)
{
    char layer[512];
    const char *dot = strrchr(path, '.');
    if (!dot || (size_t)(dot - path) >= sizeof layer || strcmp(dot, ".bias") == 0)
        return false;
    memcpy(layer, path, (size_t)(dot - path));
    layer[dot - path] = 0;
    tern_module *child = tern_nn_child(m->module, layer);
    return child && (quantize_is(child) || gguf_is_layer(child));
}

tern_status quantize_put(tern_module *model, const char *path, tern_module *made)
{
    models_model *m = models_is(model) ? tern_nn_data(model) : NULL;
    tern_tensor *tied = NULL;
    if (m && m->tied && m->kind->head && strcmp(path, m->kind->head) == 0) {
        tied = tern_nn_parameter_at(tern_nn_child(model, m->tied), 0);
        if (tied != tern_nn_parameter_at(tern_nn_child(model, path), 0))
            tied = NULL;
    }
    if (!made || !tern_nn_set_child(model, path, made))
        return tern_last_status();
    if (tied && !tern_requires_grad_(tied, false))
        return tern_last_status();
    if (tied)
        m->copied = true;
    return TERN_OK;
}

/* ---- all of them --------------------------------------------------------------------------- */

typedef struct layer {
    char *path;
    tern_quantization type;
} layer;
typedef struct plan {
    layer *layers;
    int n, capacity;
    const char *head; /* path of the head; or NULL */
    tern_quantization type, of_head;
    bool has_head;
} plan;

static tern_status add(plan *p, const char *path, tern_quantization type)
{
    if (p->n == p->capacity) {
        int capacity = 2 * p->capacity + 64;
        layer *longer = realloc(p->layers, (size_t)capacity * sizeof *longer);
        if (!longer)
            return tern_fail(TERN_ERR_MEMORY, "%s: no memory for the layers", function);
        p->layers = longer;
        p->capacity = capacity;
    }
    p->layers[p->n] = (layer){strdup(path), type};
    if (!p->layers[p->n].path)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for the layers", function);
    p->n++;
    return TERN_OK;
}

static tern_status collect(const char *path, tern_module *m, void *user)
{
    plan *p = user;
    bool head = p->head && strcmp(path, p->head) == 0;
    tern_quantization type = head ? p->of_head : p->type;
    if (!type || !quantize_can(m) || !*path || strstr(path, "lora_"))
        return TERN_OK;
    const bool columns = strcmp(tern_nn_name(m), "Conv1D") == 0;
    const int64_t in = tern_size(tern_nn_parameter_at(m, 0), columns ? 0 : 1);
    if (type == TERN_QUANTIZE_INT4 && in % 2)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: INT4 of %s, whose %lld inputs are not even",
                         function, path, (long long)in);
    p->has_head = p->has_head || head;
    return add(p, path, type);
}

/* Collects the layers to quantize, and fails before any change. */
static tern_status look(plan *p, tern_module *model)
{
    const models_model *m = models_is(model) ? tern_nn_data(model) : NULL;
    p->head = m ? m->kind->head : NULL;
    if (p->of_head && !p->head)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: options have a type for the head, and %s has none",
                         function, tern_nn_name(model));
    TRY(tern_nn_each_module(model, collect, p));
    if (p->of_head && !p->has_head)
        return tern_fail(TERN_ERR_STATE, "%s: the head %s is %s: Linear is quantized", function,
                         p->head, tern_nn_name(tern_nn_child(model, p->head)));
    return TERN_OK;
}

tern_status tern_quantize_(tern_module *model, tern_quantization type)
{
    TERN_NAMED_IN_ERRORS;
    return tern_quantize_with_(model, type, NULL);
}

tern_status tern_quantize_with_(tern_module *model, tern_quantization type,
                                const tern_quantize_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_quantize_options o = tern_read_quantize(options);
    plan p = {.type = type, .of_head = o.head};
    if (!model || !quantize_is_type(type) || (o.head && !quantize_is_type(o.head)))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: model %s, type %d, of the head %d", function,
                         model ? "given" : "NULL", (int)type, (int)o.head);
    tern_status status = look(&p, model);
    for (int i = 0; i < p.n; i++) {
        const layer *l = &p.layers[i];
        if (status == TERN_OK)
            status = quantize_put(model, l->path,
                                  tern_quantize_linear(tern_nn_child(model, l->path), l->type));
        free(l->path);
    }
    free(p.layers);
    return status;
}
