/* load_state_dict.c -- an optimizer's state dict: saving, and loading all of it or nothing. */
#include "base/memory.h"
#include "tensor/storage.h"
#include "optim/optimizer.h"
#include <stdio.h>
#include <string.h>

enum { PATH = 96 };

static tern_status keep_one(const char *path, tern_tensor *x, void *user)
{
    return tern_state_dict_set(user, path, x);
}

/* Returns whether the kind has its own states instead of those of slots. */
static bool has_own(const tern_optimizer *o)
{
    return o->kind->parts && o->kind->parts->load_state;
}

tern_state_dict *tern_optim_state_dict(tern_optimizer *o)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_state_dict");
    if (!o) {
        tern_fail_argument_null("tern_optim_state_dict", "optimizer");
        return NULL;
    }
    tern_state_dict *dict = tern_state_dict_new();
    if (!dict || tern_optim_each_state(o, keep_one, dict) == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

/* Fails unless the group has that option and allows the value. */
static tern_status check_option(const tern_optimizer *o, int group, const char *name,
                                const tern_tensor *value)
{
    const uint64_t failures = tern_failures();
    if (group < 0 || group >= o->n_groups)
        return tern_fail(TERN_ERR_STATE,
                         "tern_optim_load_state_dict: loaded state dict has a "
                         "different number of parameter groups: number %d",
                         group);
    for (int k = 0; o->kind->rows[k].name; k++) {
        if (o->kind->rows[k].kind != VALUE_OPTION || strcmp(o->kind->rows[k].name, name) != 0)
            continue;
        double number = tern_item(value);
        TERN_TRY(tern_failed_since(failures));
        return tern_optim_check_group(o->kind, k, number, "tern_optim_load_state_dict");
    }
    return tern_fail(TERN_ERR_STATE, "tern_optim_load_state_dict: %s has no option '%s'",
                     o->kind->name, name);
}

static tern_status check_state(const tern_optimizer *o, int i, const char *name,
                               const tern_tensor *value)
{
    if (i < 0 || i >= o->n)
        return tern_fail(TERN_ERR_STATE,
                         "tern_optim_load_state_dict: there is no parameter %d, of %d", i, o->n);
    if (strcmp(name, "step") == 0)
        return tern_numel(value) == 1 ? TERN_OK
                                      : tern_fail(TERN_ERR_STATE,
                                                  "tern_optim_load_state_dict: state.%d.step is no "
                                                  "number",
                                                  i);
    for (int k = 0; k < OPTIM_STATES; k++)
        if (o->states >> k & 1 && strcmp(o->kind->state_names[k], name) == 0)
            return tern_same_shape(value, o->slots[i].x)
                       ? TERN_OK
                       : tern_fail(
                             TERN_ERR_STATE,
                             "tern_optim_load_state_dict: state.%d.%s does not have the shape "
                             "of its parameter",
                             i, name);
    return tern_fail(TERN_ERR_STATE, "tern_optim_load_state_dict: %s has no state '%s'",
                     o->kind->name, name);
}

tern_status tern_optim_check_state_dict(tern_optimizer *o, const tern_state_dict *dict)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_check_state_dict");
    if (!o || !dict)
        return tern_fail_argument_null("tern_optim_check_state_dict", o ? "dict" : "optimizer");
    if (has_own(o))
        TERN_TRY(o->kind->parts->load_state(o, dict, false));
    for (int k = 0; k < tern_state_dict_count(dict); k++) {
        const char *path = tern_state_dict_key_at(dict, k);
        const tern_tensor *value = tern_state_dict_at(dict, k);
        int i = -1, length = 0;
        if (has_own(o) && path[0] == 's')
            continue;
        if (sscanf(path, "state.%d.%n", &i, &length) == 1 && length)
            TERN_TRY(check_state(o, i, path + length, value));
        else if (sscanf(path, "param_groups.%d.%n", &i, &length) == 1 && length)
            TERN_TRY(check_option(o, i, path + length, value));
        else
            return tern_fail(TERN_ERR_STATE, "tern_optim_load_state_dict: %s has nothing at '%s'",
                             o->kind->name, path);
    }
    for (int i = 0; i < o->n_groups; i++) {
        char path[PATH];
        snprintf(path, sizeof path, "param_groups.%d.lr", i);
        if (!tern_state_dict_get(dict, path))
            return tern_fail(TERN_ERR_STATE,
                             "tern_optim_load_state_dict: loaded state dict has a "
                             "different number of parameter groups: no number %d",
                             i);
    }
    return TERN_OK;
}

/* ---- loading: everything is made before anything changes ------------------------------------- */

typedef struct load {
    tern_optimizer *o;
    tern_tensor **states; /* states of each slot, or NULL */
    tern_tensor **steps;  /* steps of each batch */
} load;

static tern_status take_state(load *l, int i, const char *name, tern_tensor *value)
{
    tern_optimizer *o = l->o;
    const tern_optim_slot *s = &o->slots[i];
    tern_dtype dtype = s->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    if (strcmp(name, "step") == 0) {
        if (s->batch < 0)
            return TERN_OK;
        const tern_foreach *table = o->batches[s->batch].table;
        int64_t first = tern_foreach_first_chunk(table, s->row),
                n = tern_foreach_first_chunk(table, s->row + 1) - first;
        return n <= 0 || tern_copy_(tern_narrow(l->steps[s->batch], 0, first, n), value)
                   ? TERN_OK
                   : tern_last_status();
    }
    for (int k = 0; k < OPTIM_STATES; k++) {
        tern_tensor **state = &l->states[i * OPTIM_STATES + k];
        if (!(o->states >> k & 1))
            continue;
        if (!*state) /* states that dict lacks are zero if it has others of the slot */
            *state =
                tern_optim_in_format(tern_zeros(tern_shape_of(s->x), dtype, s->device), s->format);
        if (!*state || (strcmp(o->kind->state_names[k], name) == 0 && !tern_copy_(*state, value)))
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_status take_all(load *l, const tern_state_dict *dict)
{
    for (int i = 0; i < l->o->n_batches; i++) {
        l->steps[i] = tern_zeros_like(l->o->batches[i].steps);
        if (!l->steps[i])
            return tern_last_status();
    }
    for (int k = 0; k < tern_state_dict_count(dict); k++) {
        const char *path = tern_state_dict_key_at(dict, k);
        int i = -1, length = 0;
        if (sscanf(path, "state.%d.%n", &i, &length) == 1 && length)
            TERN_TRY(take_state(l, i, path + length, tern_state_dict_at(dict, k)));
    }
    return TERN_OK;
}

/* Replaces a state. A recording uses its memory, so that is written instead. */
static tern_status put_state(tern_tensor **state, tern_tensor *new)
{
    if (*state && tern_storage_is_held(*state))
        return (new ? tern_copy_(*state, new) : tern_zero_(*state)) ? TERN_OK : tern_last_status();
    tern_keep(new);
    tern_release(*state);
    *state = new;
    return TERN_OK;
}

static tern_status apply(load *l, const tern_state_dict *dict)
{
    tern_optimizer *o = l->o;
    for (int i = 0; i < o->n_batches && !has_own(o); i++)
        if (!tern_copy_(o->batches[i].steps, l->steps[i]))
            return tern_last_status();
    for (int i = 0; i < o->n && !has_own(o); i++) {
        o->slots[i].made = 0;
        for (int k = 0; k < OPTIM_STATES; k++) {
            tern_tensor **state = &o->slots[i].state[k];
            TERN_TRY(put_state(state, l->states[i * OPTIM_STATES + k]));
            o->stepped = o->stepped || *state;
        }
    }
    for (int k = 0; k < tern_state_dict_count(dict); k++) {
        const char *path = tern_state_dict_key_at(dict, k);
        if (path[0] == 'p')
            TERN_TRY(tern_optim_set_state(o, path, tern_state_dict_at(dict, k)));
    }
    return TERN_OK;
}

tern_status tern_optim_load_state_dict(tern_optimizer *o, const tern_state_dict *dict)
{
    TERN_NAMED_IN_ERRORS;
    TERN_TRY(tern_optim_check_state_dict(o, dict));
    TERN_TRY(tern_optim_regroup(o));
    load l = {.o = o};
    l.states = tern_alloc(sizeof *l.states * OPTIM_STATES * ((size_t)o->n + 1));
    l.steps = tern_alloc(sizeof *l.steps * ((size_t)o->n_batches + 1));
    tern_status status = l.states && l.steps ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD {
                status =
                    has_own(o) ? o->kind->parts->load_state(o, dict, true) : take_all(&l, dict);
                if (status == TERN_OK)
                    status = apply(&l, dict);
            }
    tern_free(l.states);
    tern_free(l.steps);
    return status;
}
