/* state_dict.c -- visits and sets the state of an optimizer by name. */
#include "optim/optimizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 96 };

/* Returns a view of a parameter's step counts in its batch, one for each chunk; NULL for a
 * parameter without elements. */
static tern_tensor *steps_of(const tern_optimizer *o, const tern_optim_slot *s)
{
    const tern_optim_batch *b = &o->batches[s->batch];
    int64_t first = tern_foreach_first_chunk(b->table, s->row),
            end = tern_foreach_first_chunk(b->table, s->row + 1);
    return end > first ? tern_narrow(b->steps, 0, first, end - first) : NULL;
}

/* Visits state.<i>.<moment> and state.<i>.step, the first of the chunks' equal counts. A parameter
 * that has never had a gradient has no state, as in PyTorch. */
static tern_status visit_slot(tern_optimizer *o, int i, tern_tensor_visit visit, void *user)
{
    tern_optim_slot *s = &o->slots[i];
    char path[PATH];
    bool any = false;
    for (int k = 0; k < OPTIM_STATES; k++) {
        if (!s->state[k])
            continue;
        any = true;
        snprintf(path, sizeof path, "state.%d.%s", i, o->kind->state_names[k]);
        TERN_TRY(visit(path, s->state[k], user));
    }
    const uint64_t failures = tern_failures();
    tern_tensor *steps = s->batch >= 0 ? steps_of(o, s) : NULL;
    if (!steps || (!any && o->states))
        return tern_failed_since(failures);
    snprintf(path, sizeof path, "state.%d.step", i);
    return visit(path, tern_select(steps, 0, 0), user);
}

/* Visits param_groups.<i>.<option>, each a float64 number. */
static tern_status visit_group(tern_optimizer *o, int i, tern_tensor_visit visit, void *user)
{
    char path[PATH];
    for (int k = 0; o->kind->rows[k].name; k++) {
        if (o->kind->rows[k].kind != VALUE_OPTION)
            continue;
        tern_tensor *value =
            tern_tensor_scalar(tern_scalar_real(o->groups[i].values[k]), TERN_F64, "cpu");
        if (!value)
            return tern_last_status();
        snprintf(path, sizeof path, "param_groups.%d.%s", i, o->kind->rows[k].name);
        TERN_TRY(visit(path, value, user));
    }
    return TERN_OK;
}

tern_status tern_optim_each_state(tern_optimizer *o, tern_tensor_visit visit, void *user)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_each_state");
    if (!o || !visit)
        return tern_fail_argument_null("tern_optim_each_state", o ? "visit" : "optimizer");
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            const bool own = o->kind->parts && o->kind->parts->each_state;
            if (own)
                status = o->kind->parts->each_state(o, visit, user);
            for (int i = 0; i < o->n && status == TERN_OK && !own; i++)
                status = visit_slot(o, i, visit, user);
            for (int i = 0; i < o->n_groups && status == TERN_OK; i++)
                status = visit_group(o, i, visit, user);
        }
    return status;
}

/* Copies a value into a state, made if need be. A step count is broadcast over the chunks. */
static tern_status set_state(tern_optimizer *o, tern_optim_slot *s, const char *name,
                             const tern_tensor *value)
{
    TERN_TRY(tern_optim_regroup(o));
    if (strcmp(name, "step") == 0) {
        const uint64_t failures = tern_failures();
        tern_tensor *steps = steps_of(o, s);
        if (steps)
            tern_copy_(steps, value);
        return tern_failed_since(failures);
    }
    for (int k = 0; k < OPTIM_STATES; k++) {
        if (!(o->states >> k & 1) || strcmp(o->kind->state_names[k], name) != 0)
            continue;
        if (!tern_same_shape(value, s->x))
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_optim_set_state: %s does not have the shape of its parameter",
                             name);
        TERN_TRY(tern_optim_make_states(o, s));
        return tern_copy_(s->state[k], value) ? TERN_OK : tern_last_status();
    }
    return tern_fail(TERN_ERR_ARGUMENT, "tern_optim_set_state: %s has no state '%s'", o->kind->name,
                     name);
}

tern_status tern_optim_set_state(tern_optimizer *o, const char *path, const tern_tensor *value)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_set_state");
    if (!o || !path || !value)
        return tern_fail_argument_null("tern_optim_set_state", !o      ? "optimizer"
                                                               : !path ? "path"
                                                                       : "value");
    int i = -1, length = 0;
    tern_status status = TERN_OK;
    if (sscanf(path, "state.%d.%n", &i, &length) == 1 && length && i >= 0 && i < o->n) {
        TERN_SCOPE
            TERN_NO_GRAD
                status = set_state(o, &o->slots[i], path + length, value);
        return status;
    }
    length = 0;
    if (sscanf(path, "param_groups.%d.%n", &i, &length) == 1 && length) {
        const uint64_t failures = tern_failures();
        double number = tern_item(value);
        TERN_TRY(tern_failed_since(failures));
        return tern_optim_set_option(o, i, path + length, number);
    }
    return tern_fail(TERN_ERR_ARGUMENT, "tern_optim_set_state: %s has nothing at '%s'",
                     o->kind->name, path);
}
