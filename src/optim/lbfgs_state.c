/* lbfgs_state.c -- saves and loads the state of L-BFGS by PyTorch's names. */
#include "base/memory.h"
#include "optim/lbfgs.h"
#include <stdio.h>
#include <string.h>

enum { PATH = 64 };

static const char *path_of(char path[PATH], const char *name, int i)
{
    if (i < 0)
        snprintf(path, PATH, "state.0.%s", name);
    else
        snprintf(path, PATH, "state.0.%s.%d", name, i);
    return path;
}

/* ---- visiting ------------------------------------------------------------------------------ */

static tern_status visit_number(const char *name, int i, double value, tern_tensor_visit visit,
                                void *user)
{
    char path[PATH];
    tern_tensor *x = tern_tensor_scalar(tern_scalar_real(value), TERN_F64, "cpu");
    return x ? visit(path_of(path, name, i), x, user) : tern_last_status();
}

tern_status tern_lbfgs_each_state(tern_optimizer *o, tern_tensor_visit visit, void *user)
{
    const tern_lbfgs_memory *m = o->data;
    char path[PATH];
    if (!m->iterations || !m->d || !m->grad)
        return TERN_OK;
    TERN_TRY(visit_number("n_iter", -1, (double)m->iterations, visit, user));
    TERN_TRY(visit_number("t", -1, m->t, visit, user));
    TERN_TRY(visit_number("H_diag", -1, m->scale, visit, user));
    TERN_TRY(visit(path_of(path, "d", -1), m->d, user));
    TERN_TRY(visit(path_of(path, "prev_flat_grad", -1), m->grad, user));
    for (int i = 0; i < m->count; i++) {
        TERN_TRY(visit(path_of(path, "old_dirs", i), m->change[i], user));
        TERN_TRY(visit(path_of(path, "old_stps", i), m->step[i], user));
        TERN_TRY(visit_number("ro", i, m->ro[i], visit, user));
    }
    return TERN_OK;
}

/* ---- loading ------------------------------------------------------------------------------- */

static tern_status refuse(const char *name, int i)
{
    char path[PATH];
    return tern_fail(TERN_ERR_STATE,
                     "tern_optim_load_state_dict: %s is missing, or not as long as all parameters",
                     path_of(path, name, i));
}

/* Reads a number; *value is NaN after an error. */
static tern_status take_number(const tern_state_dict *dict, const char *name, int i, double *value)
{
    char path[PATH];
    const uint64_t failures = tern_failures();
    const tern_tensor *x = tern_state_dict_get(dict, path_of(path, name, i));
    if (!x || tern_numel(x) != 1)
        return refuse(name, i);
    *value = tern_item(x);
    return tern_failed_since(failures);
}

/* Checks a vector's length; if apply, sets *vector to a copy on the parameters' device, which the
 * caller owns. */
static tern_status take_vector(const tern_optimizer *o, const tern_state_dict *dict,
                               const char *name, int i, bool apply, tern_tensor **vector)
{
    char path[PATH];
    int64_t n = 0;
    for (int k = 0; k < o->n; k++)
        n += tern_numel(o->slots[k].x);
    tern_tensor *x = tern_state_dict_get(dict, path_of(path, name, i));
    if (!x || tern_dim(x) != 1 || tern_numel(x) != n)
        return refuse(name, i);
    if (!apply)
        return TERN_OK;
    tern_tensor *like = o->slots[0].x;
    x = tern_to_dtype(tern_to(x, tern_device(like)), tern_dtype_of(like));
    *vector = tern_keep(tern_clone(x));
    return *vector ? TERN_OK : tern_last_status();
}

static int count_pairs(const tern_state_dict *dict)
{
    char path[PATH];
    int n = 0;
    while (tern_state_dict_get(dict, path_of(path, "old_dirs", n)))
        n++;
    return n;
}

/* Reads all states of dict into m, whose lists have history_size entries. */
static tern_status take_all(const tern_optimizer *o, const tern_state_dict *dict, bool apply,
                            tern_lbfgs_memory *m)
{
    enum { ALONE = 5, EACH = 3 };
    int pairs = count_pairs(dict), states = 0;
    double iterations = 0, ro;
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        states += strncmp(tern_state_dict_key_at(dict, i), "state.", 6) == 0;
    if (!states)
        return TERN_OK;
    TERN_TRY(take_number(dict, "n_iter", -1, &iterations));
    TERN_TRY(take_number(dict, "t", -1, &m->t));
    TERN_TRY(take_number(dict, "H_diag", -1, &m->scale));
    TERN_TRY(take_vector(o, dict, "d", -1, apply, &m->d));
    TERN_TRY(take_vector(o, dict, "prev_flat_grad", -1, apply, &m->grad));
    if (pairs > m->values.history_size || states != ALONE + EACH * pairs)
        return tern_fail(TERN_ERR_STATE,
                         "tern_optim_load_state_dict: %s has %d other states, or more than its "
                         "history of %lld steps",
                         o->kind->name, states - ALONE - EACH * pairs,
                         (long long)m->values.history_size);
    for (int i = 0; i < pairs; i++) {
        tern_tensor *change = NULL, *step = NULL;
        TERN_TRY(take_number(dict, "ro", i, &ro));
        TERN_TRY(take_vector(o, dict, "old_dirs", i, apply, &change));
        tern_status status = take_vector(o, dict, "old_stps", i, apply, &step);
        if (status != TERN_OK)
            tern_release(change);
        TERN_TRY(status);
        if (apply) {
            m->change[m->count] = change;
            m->step[m->count] = step;
            m->ro[m->count++] = ro;
        }
    }
    m->iterations = (int64_t)iterations;
    return TERN_OK;
}

static void free_lists(tern_lbfgs_memory *m)
{
    for (int i = 0; i < m->count; i++) {
        tern_release(m->change[i]);
        tern_release(m->step[i]);
    }
    tern_release(m->d);
    tern_release(m->grad);
    tern_free(m->change);
    tern_free(m->step);
    tern_free(m->ro);
}

tern_status tern_lbfgs_load_state(tern_optimizer *o, const tern_state_dict *dict, bool apply)
{
    tern_lbfgs_memory *own = o->data, m = {.values = own->values};
    size_t n = (size_t)m.values.history_size;
    m.change = tern_alloc(sizeof *m.change * n);
    m.step = tern_alloc(sizeof *m.step * n);
    m.ro = tern_alloc(sizeof *m.ro * n);
    tern_status status = m.change && m.step && m.ro ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD
                status = take_all(o, dict, apply, &m);
    if (status == TERN_OK && apply) {
        tern_lbfgs_memory old = *own;
        *own = m;
        m = old;
    }
    free_lists(&m);
    return status;
}
