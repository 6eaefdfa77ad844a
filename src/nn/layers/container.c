/* container.c -- modules made of modules. */
#include "nn/module.h"
#include <stdio.h>

static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    for (int i = 0; x && i < self->count; i++)
        if (self->members[i].child)
            x = tern_nn_forward(self->members[i].child, x);
    return x;
}

static bool met_before(tern_module *const *layers, int i)
{
    for (int j = 0; j < i; j++)
        if (layers[j] == layers[i])
            return true;
    return false;
}

static tern_status check(tern_module *const *layers, int n)
{
    for (int i = 0; i < n; i++) {
        if (!layers[i])
            return tern_fail_argument_null("tern_nn_sequential", "a layer");
        if (layers[i]->parent || met_before(layers, i))
            return tern_fail(
                TERN_ERR_STATE,
                "tern_nn_sequential: layer %d (%s) is part of a module already; a module "
                "has one parent",
                i, layers[i]->name);
    }
    return TERN_OK;
}

/* Those that nobody else owns, each once: a later double is found in what came before it. */
static void free_all(tern_module *const *layers, int n)
{
    for (int i = n - 1; i >= 0; i--)
        if (layers[i] && !met_before(layers, i) && !layers[i]->parent)
            tern_nn_free(layers[i]);
}

tern_module *tern_nn_sequential_of(tern_module *const *layers, int n)
{
    if (n < 0 || (!layers && n > 0)) {
        tern_fail_argument_null("tern_nn_sequential", "layers");
        return NULL;
    }
    tern_module *self =
        check(layers, n) == TERN_OK ? tern_nn_module("Sequential", forward, NULL) : NULL;
    if (!self) {
        free_all(layers, n);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        if (!tern_nn_add(self, name, layers[i])) { /* which freed layer i */
            free_all(layers + i + 1, n - i - 1);
            tern_nn_free(self);
            return NULL;
        }
    }
    return self;
}
