/* layer.c -- functions that the constructors of layers use. */
#include "nn/layers/layer.h"
#include "nn/module.h"
#include <string.h>

/* Copies data to the memory `copy`, which becomes the data of m. Frees `copy` and returns NULL if m
 * is NULL. */
static tern_module *finish(tern_module *m, void *copy, const void *data, size_t bytes)
{
    if (!m) {
        tern_free(copy);
        return NULL;
    }
    memcpy(copy, data, bytes);
    m->data_bytes = bytes;
    tern_nn_on_free(m, tern_free);
    return m;
}

tern_module *tern_layer(const char *name, tern_module_forward forward, const void *data,
                        size_t bytes)
{
    void *copy = tern_alloc(bytes);
    tern_module *m = copy ? tern_nn_module(name, forward, copy) : NULL;
    return finish(m, copy, data, bytes);
}

tern_module *tern_layer_loss(const char *name, tern_module_call call, const void *data,
                             size_t bytes)
{
    void *copy = tern_alloc(bytes);
    tern_module *m = copy ? tern_nn_module_with_call(name, call, copy) : NULL;
    return finish(m, copy, data, bytes);
}

/* An absent parameter and an error both give NULL, so the number of members distinguishes them. */
tern_status tern_layer_parameter(tern_module *m, const char *name, tern_tensor *x)
{
    int before = m->count;
    tern_nn_add_parameter(m, name, x);
    return m->count > before ? TERN_OK : tern_last_status();
}

tern_status tern_layer_buffer(tern_module *m, const char *name, tern_tensor *x)
{
    int before = m->count;
    tern_nn_add_buffer(m, name, x);
    return m->count > before ? TERN_OK : tern_last_status();
}

tern_module *tern_layer_if(tern_module *m, tern_status status)
{
    if (m && status == TERN_OK)
        return m;
    tern_nn_free(m);
    return NULL;
}

bool tern_layer_runs(const tern_module *m, tern_module_forward forward)
{
    return m->forward == forward;
}

bool tern_layer_calls(const tern_module *m, tern_module_call call)
{
    return m->call == call;
}

/* ---- the inplace option ---------------------------------------------------------------------- */

/* Appends "inplace=True" to the printed text, or replaces "inplace=False" at its end. */
static tern_status print_inplace(tern_module *m)
{
    static const char off[] = "inplace=False";
    const char *text = m->extra ? m->extra : "";
    int n = (int)strlen(text), cut = (int)sizeof off - 1;
    if (n >= cut && strcmp(text + n - cut, off) == 0)
        return tern_nn_set_extra(m, "%.*sinplace=True", n - cut, text);
    return tern_nn_set_extra(m, "%s%sinplace=True", text, n ? ", " : "");
}

tern_module *tern_nn_inplace(tern_module *m)
{
    if (!m)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_nn_inplace: m is NULL");
    if (m->inplace)
        return m;
    if (!m->takes_inplace)
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "tern_nn_inplace: %s has no option inplace",
                              m->name);
    if (!m->hides_inplace && print_inplace(m) != TERN_OK)
        return NULL;
    m->inplace = true;
    return m;
}

tern_module *tern_layer_with_inplace(tern_module *m, tern_layer_inplace kind, bool on)
{
    if (!m)
        return NULL;
    m->takes_inplace = kind != INPLACE_NEVER;
    m->hides_inplace = kind == INPLACE_SILENT;
    return tern_layer_if(m, !on || tern_nn_inplace(m) ? TERN_OK : tern_last_status());
}

bool tern_layer_is_inplace(const tern_module *m)
{
    return m->inplace;
}
