/* param_groups.c -- parameter groups: their parameters, and options by name. */
#include "optim/optimizer.h"
#include "nn/module.h"
#include "tensor/ranks.h"
#include <math.h>
#include <string.h>

/* ---- parameters -------------------------------------------------------------------------- */

/* Fails unless parameter i is a floating point leaf that is in no group yet. */
static tern_status check_parameter(const tern_optimizer *o, tern_tensor *const *x, int i)
{
    const char *name = o->kind->name;
    if (!x[i])
        return tern_fail_argument_null(name, "a parameter");
    if (!tern_there(x[i], "tensor", name, "a parameter"))
        return TERN_ERR_STATE;
    if (!tern_is_leaf(x[i]))
        return tern_fail(TERN_ERR_STATE, "%s: can't optimize a non-leaf Tensor (parameter %d)",
                         name, i);
    if (!tern_dtype_is_floating_point(tern_dtype_of(x[i])))
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: parameter %d is %s; only floating point parameters can "
                         "be optimized",
                         name, i, tern_dtype_name(tern_dtype_of(x[i])));
    for (int j = 0; j < i; j++)
        if (x[j] == x[i])
            return tern_fail(
                TERN_ERR_ARGUMENT,
                "%s: parameters %d and %d are the same tensor: duplicate parameters are "
                "not allowed",
                name, j, i);
    for (int j = 0; j < o->n; j++)
        if (o->slots[j].x == x[i])
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: some parameters appear in more than one parameter group "
                             "(parameter %d of the new one)",
                             name, i);
    const tern_optim_parts *own = o->kind->parts;
    if ((tern_ranks_of(x[i]) && own->closure_step) ||
        (tern_is_part(x[i]) && (own->prepare || own->step)))
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "%s: a step needs whole parameters, and parameter %d is sharded over ranks", name, i);
    return own->check_parameter ? own->check_parameter(x[i]) : TERN_OK;
}

tern_status tern_optim_check_parameters(const tern_optimizer *o, tern_tensor *const *x, int n)
{
    for (int i = 0; i < n; i++)
        TERN_TRY(check_parameter(o, x, i));
    return TERN_OK;
}

tern_tensor **tern_optim_collect(tern_module *module, int *n, const char *function)
{
    if (!module) {
        tern_fail_argument_null(function, "module");
        return NULL;
    }
    const int64_t count = tern_nn_parameters(module, NULL, 0);
    tern_tensor **x = count < 0 ? NULL : tern_alloc(sizeof *x * (size_t)(count + 1));
    if (x && (*n = (int)tern_nn_parameters(module, x, count)) == count)
        return x;
    tern_free(x);
    return NULL;
}

tern_status tern_optim_append(tern_optimizer *o, tern_tensor *const *x, int n, int group)
{
    tern_optim_slot *slots = tern_grow(o->slots, sizeof *slots * (size_t)(o->n + n));
    if (!slots)
        return TERN_ERR_MEMORY;
    o->slots = slots;
    for (int i = 0; i < n; i++)
        slots[o->n++] = (tern_optim_slot){.x = tern_keep(x[i]), .group = group, .batch = -1};
    return TERN_OK;
}

/* Adds a group with the options of group 0. Returns its number, or -1 after an error. */
static int add_group(tern_optimizer *o, tern_tensor *const *parameters, int n, const char *function)
{
    if (o->kind->parts->closure_step) {
        tern_fail(TERN_ERR_UNSUPPORTED,
                  "%s: LBFGS doesn't support per-parameter options (parameter groups)", function);
        return -1;
    }
    if (tern_optim_check_parameters(o, parameters, n) != TERN_OK)
        return -1;
    tern_param_group *groups = tern_grow(o->groups, sizeof *groups * (size_t)(o->n_groups + 1));
    if (!groups)
        return -1;
    o->groups = groups;
    if (tern_optim_append(o, parameters, n, o->n_groups) != TERN_OK)
        return -1;
    groups[o->n_groups] = groups[0];
    groups[o->n_groups].has_initial_lr = false;
    return o->n_groups++;
}

int tern_optim_add_param_group(tern_optimizer *o, tern_tensor *const *parameters, int n)
{
    TERN_NAMED_IN_ERRORS;
    TERN_OPTIMIZER_GIVEN(o, __func__);
    const char *function = __func__;
    if (!o || !parameters) {
        tern_fail_argument_null(function, o ? "parameters" : "optimizer");
        return -1;
    }
    if (n < 0) {
        tern_fail(TERN_ERR_ARGUMENT, "%s: %d parameters", function, n);
        return -1;
    }
    return add_group(o, parameters, n, function);
}

int tern_optim_add_module(tern_optimizer *o, tern_module *module)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_add_module");
    const char *function = "tern_optim_add_module";
    int n = 0;
    if (!o) {
        tern_fail_argument_null(function, "optimizer");
        return -1;
    }
    tern_tensor **x = tern_optim_collect(module, &n, function);
    int group = x ? add_group(o, x, n, function) : -1;
    tern_free(x);
    return group;
}

int tern_optim_param_groups(const tern_optimizer *o)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_param_groups");
    return o ? o->n_groups : 0;
}

/* ---- options ----------------------------------------------------------------------------- */

tern_status tern_optim_check_value(const tern_optim_kind *kind, int i, double value,
                                   const char *function)
{
    const tern_optim_row *row = &kind->rows[i];
    if (tern_in_range(&row->range, value))
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: Invalid %s: %s", function, row->words,
                     TERN_NUMBER_TEXT(value));
}

tern_status tern_optim_check_group(const tern_optim_kind *kind, int i, double value,
                                   const char *function)
{
    return value < 0 && strcmp(kind->rows[i].name, "lr") == 0
               ? TERN_OK
               : tern_optim_check_value(kind, i, value, function);
}

/* Returns the index of a named option among the values, or -1. */
static int option_index(const tern_optim_kind *kind, const char *name)
{
    for (int i = 0; kind->rows[i].name; i++)
        if (kind->rows[i].kind == VALUE_OPTION && strcmp(kind->rows[i].name, name) == 0)
            return i;
    return -1;
}

/* Returns the index of a group's option, or -1 after an error. */
static int find(const tern_optimizer *o, int group, const char *name, const char *function)
{
    TERN_OPTIMIZER_GIVEN(o, function);
    if (!o || !name) {
        tern_fail_argument_null(function, o ? "name" : "optimizer");
        return -1;
    }
    if (group < 0 || group >= o->n_groups) {
        tern_fail(TERN_ERR_ARGUMENT, "%s: group %d is out of range (%s has %d parameter groups)",
                  function, group, o->kind->name, o->n_groups);
        return -1;
    }
    int i = option_index(o->kind, name);
    if (i < 0)
        tern_fail(TERN_ERR_ARGUMENT, "%s: %s has no option '%s'", function, o->kind->name, name);
    return i;
}

bool tern_optim_has_option(const tern_optimizer *o, const char *name)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_has_option");
    return o && name && option_index(o->kind, name) >= 0;
}

double tern_optim_get_option(const tern_optimizer *o, int group, const char *name)
{
    int i = find(o, group, name, "tern_optim_get_option");
    return i < 0 ? NAN : o->groups[group].values[i];
}

tern_status tern_optim_set_option(tern_optimizer *o, int group, const char *name, double value)
{
    int i = find(o, group, name, "tern_optim_set_option");
    if (i < 0)
        return tern_last_status();
    TERN_TRY(tern_optim_check_group(o->kind, i, value, "tern_optim_set_option"));
    o->groups[group].values[i] = value;
    o->states |= o->kind->states(o->groups[group].values);
    return TERN_OK;
}

tern_status tern_optim_check_lr(const tern_optimizer *o, double lr, const char *function)
{
    return tern_optim_check_value(o->kind, option_index(o->kind, "lr"), lr, function);
}

double tern_optim_get_lr(const tern_optimizer *o)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_get_lr");
    if (!o)
        tern_fail_argument_null("tern_optim_get_lr", "optimizer");
    return o ? o->groups[0].lr : NAN;
}

tern_status tern_optim_set_lr(tern_optimizer *o, double lr)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_set_lr");
    if (!o)
        return tern_fail_argument_null("tern_optim_set_lr", "optimizer");
    TERN_TRY(tern_optim_check_lr(o, lr, "tern_optim_set_lr"));
    for (int i = 0; i < o->n_groups; i++)
        o->groups[i].lr = lr;
    return TERN_OK;
}
