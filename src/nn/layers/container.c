/* container.c -- modules that consist of modules. */
#include "nn/layers/layer.h"
#include "nn/module.h"
#include "tensor/scope.h"
#include <stdio.h>

/* Runs as many children from member i on as can be fused into one operation. Returns their number,
 * or 0. */
static int run_chain(const tern_module *self, int i, tern_tensor **x, tern_tensor **y)
{
    tern_stage stages[TERN_CHAIN_MOST];
    int n = 0;
    while (n < TERN_CHAIN_MOST && i + n < self->count &&
           tern_layer_stage(self->members[i + n].child, &stages[n]))
        n++;
    return tern_fuse_chain(stages, n, x, y);
}

/* Runs the children of a Sequential in order. Each result is released after the next child has
 * run. */
static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    tern_tensor *held = NULL; /* x if a child computed it */
    for (int i = 0; x && i < self->count; i++) {
        if (!self->members[i].child)
            continue;
        tern_tensor *y = NULL;
        tern_scope_block scope = tern_call_scope_enter(self->name);
        const int n = run_chain(self, i, &x, &y);
        x = n ? y : tern_nn_forward(self->members[i].child, x);
        held = tern_call_scope_next(&scope, x, held);
        i += n ? n - 1 : 0;
    }
    return held ? tern_scoped(held) : x;
}

/* Returns whether an earlier layer in the list is the same as layer i. */
static bool is_repeated(tern_module *const *layers, int i)
{
    for (int j = 0; j < i; j++)
        if (layers[j] == layers[i])
            return true;
    return false;
}

/* Checks that no layer has a parent or is given twice, since a module has one parent. */
static tern_status check(tern_module *const *layers, int n, const char *function)
{
    for (int i = 0; i < n; i++) {
        if (!layers[i]) {
            char name[32];
            snprintf(name, sizeof name, "layer %d", i);
            return tern_fail_argument_null(function, name);
        }
        if (layers[i]->parent || is_repeated(layers, i))
            return tern_fail(
                TERN_ERR_STATE,
                "%s: layer %d (%s) is part of a module already; a module has one parent", function,
                i, layers[i]->name);
    }
    return TERN_OK;
}

/* Frees the layers without a parent after an error, each of them once. */
static void free_all(tern_module *const *layers, int n)
{
    for (int i = n - 1; i >= 0; i--)
        if (layers[i] && !is_repeated(layers, i) && !layers[i]->parent)
            tern_nn_free(layers[i]);
}

/* ---- numbered children ----------------------------------------------------------------------- */

/* Returns a container whose children are named "0", "1", ... It owns the layers, which are freed if
 * this fails. */
static tern_module *numbered(const char *name, tern_module_forward run, tern_module *const *layers,
                             int n, const char *function)
{
    if (n < 0 || (!layers && n > 0)) {
        tern_fail_argument_null(function, "layers");
        return NULL;
    }
    tern_module *self =
        check(layers, n, function) == TERN_OK ? tern_nn_module(name, run, NULL) : NULL;
    if (!self) {
        free_all(layers, n);
        return NULL;
    }
    self->numbered = true;
    for (int i = 0; i < n; i++)
        if (!tern_nn_append(self, layers[i])) { /* tern_nn_append has freed layer i */
            free_all(layers + i + 1, n - i - 1);
            tern_nn_free(self);
            return NULL;
        }
    return self;
}

tern_module *tern_nn_sequential_of(tern_module *const *layers, int n)
{
    return numbered("Sequential", forward, layers, n, "tern_nn_sequential");
}

tern_module *tern_nn_module_list_of(tern_module *const *layers, int n)
{
    return numbered("ModuleList", NULL, layers, n, "tern_nn_module_list");
}

tern_module *tern_nn_append(tern_module *list, tern_module *child)
{
    TERN_MODULE_GIVEN(list, "tern_nn_append");
    char name[16];
    if (!list || !list->numbered) {
        if (!list)
            tern_fail_argument_null("tern_nn_append", "list");
        else
            tern_fail(TERN_ERR_ARGUMENT,
                      "tern_nn_append: %s is neither a Sequential nor a ModuleList", list->name);
        free_all(&child, 1);
        return NULL;
    }
    snprintf(name, sizeof name, "%d", tern_nn_children_count(list));
    return tern_nn_add(list, name, child);
}

tern_module *tern_nn_insert(tern_module *list, int i, tern_module *child)
{
    TERN_NAMED_IN_ERRORS;
    int n = tern_nn_children_count(list), at = i < 0 ? i + n : i;
    if (at < 0 || at > n) {
        free_all(&child, 1);
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_insert: index %d is out of range (%s has %d children)", i,
                              list ? list->name : "NULL", n);
    }
    if (!tern_nn_append(list, child))
        return NULL;
    /* Names keep their positions, and the children from `at` on move to the next position. */
    for (int k = list->count - 1, last = k; k >= 0 && n > at; k--)
        if (k < last && list->members[k].child) {
            list->members[last].child = list->members[k].child;
            list->members[k].child = child;
            last = k;
            n--;
        }
    return child;
}

/* ---- named children and parameters ----------------------------------------------------------- */

tern_module *tern_nn_module_dict(void)
{
    return tern_nn_module("ModuleDict", NULL, NULL);
}

/* Returns a container of parameters, which are printed as children are in other modules. */
static tern_module *parameters(const char *name)
{
    tern_module *self = tern_nn_module(name, NULL, NULL);
    if (self)
        self->shows_parameters = true;
    return self;
}

tern_module *tern_nn_parameter_list_of(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    if (n < 0 || (!tensors && n > 0)) {
        tern_fail_argument_null(__func__, "tensors");
        return NULL;
    }
    tern_module *self = parameters("ParameterList");
    for (int i = 0; self && i < n; i++)
        if (!tern_nn_append_parameter(self, tensors[i])) {
            tern_nn_free(self);
            return NULL;
        }
    return self;
}

tern_tensor *tern_nn_append_parameter(tern_module *list, tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(list, __func__);
    char name[16];
    int n = 0;
    if (!list || !x) {
        tern_fail_argument_null(__func__, list ? "x" : "list");
        return NULL;
    }
    for (int i = 0; i < list->count; i++)
        n += list->members[i].kind == MEMBER_PARAMETER;
    snprintf(name, sizeof name, "%d", n);
    return tern_nn_add_parameter(list, name, x);
}

tern_module *tern_nn_parameter_dict(void)
{
    return parameters("ParameterDict");
}
