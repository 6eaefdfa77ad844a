/* metric.c -- updates, computes, saves and merges the states of metrics. */
#include "metrics/metric.h"
#include "base/memory.h"
#include <string.h>

/* ---- construction ---------------------------------------------------------------------------- */

tern_metric *tern_metric_new(const tern_metric_kind *kind)
{
    tern_metric *m = tern_alloc(sizeof *m);
    if (m)
        m->kind = kind;
    return m;
}

static void drop_pieces(tern_metric_state *s)
{
    for (int64_t i = 0; i < s->count; i++)
        tern_release(s->pieces[i]);
    s->count = 0;
}

void tern_metric_free(tern_metric *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_states; i++) {
        tern_release(m->states[i].value);
        drop_pieces(&m->states[i]);
        tern_free(m->states[i].pieces);
    }
    tern_free(m);
}

static tern_metric *with(tern_metric *m, tern_metric_state state, tern_shape shape,
                         tern_dtype dtype)
{
    if (!m)
        return NULL;
    if (state.reduction != TERN_METRIC_CAT) {
        TERN_SCOPE
            state.value = tern_keep(
                tern_full(shape, TERN_SCALAR(state.initial), dtype, state.on_host ? "cpu" : NULL));
        if (!state.value) {
            tern_metric_free(m);
            return NULL;
        }
    }
    m->states[m->n_states++] = state;
    return m;
}

tern_metric *tern_metric_with(tern_metric *m, const char *name, tern_metric_reduction reduction,
                              tern_shape shape, tern_dtype dtype, double initial)
{
    tern_metric_state state = {.name = name, .reduction = reduction, .initial = initial};
    return with(m, state, shape, dtype);
}

tern_metric *tern_metric_with_host(tern_metric *m, const char *name, tern_shape shape)
{
    tern_metric_state state = {.name = name, .reduction = TERN_METRIC_SUM, .on_host = true};
    return with(m, state, shape, TERN_F64);
}

tern_metric *tern_metric_with_list(tern_metric *m, const char *name)
{
    tern_metric_state state = {.name = name, .reduction = TERN_METRIC_CAT};
    return with(m, state, TERN_SHAPE(0), TERN_F32);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Grows the list of pieces for one more. */
static tern_status reserve(tern_metric_state *s)
{
    if (s->count < s->capacity)
        return TERN_OK;
    int64_t capacity = s->capacity ? 2 * s->capacity : 16;
    tern_tensor **pieces = tern_grow(s->pieces, sizeof *pieces * (size_t)capacity);
    if (!pieces)
        return TERN_ERR_MEMORY;
    s->pieces = pieces;
    s->capacity = capacity;
    return TERN_OK;
}

/* Replaces the value of the state by x. */
static void put(tern_metric_state *s, tern_tensor *x)
{
    tern_release(s->value);
    s->value = tern_keep(x);
}

/* Sets *out to the state as one tensor, owned by the metric, after concatenating the pieces of a
 * list, or to NULL for an empty list. */
static tern_status whole(tern_metric_state *s, tern_tensor **out)
{
    *out = s->value;
    if (s->reduction != TERN_METRIC_CAT || s->count == 0)
        return TERN_OK;
    if (s->count > 1) {
        uint64_t failures = tern_failures();
        tern_tensor *all = NULL;
        TERN_SCOPE
            TERN_NO_GRAD
                all = tern_keep(tern_cat(s->pieces, (int)s->count, 0));
        if (!all)
            return tern_failed_since(failures);
        drop_pieces(s);
        s->pieces[s->count++] = all;
    }
    *out = s->pieces[0];
    return TERN_OK;
}

/* Moves all states to a device; if one cannot be moved, none is. */
static tern_status move(tern_metric *m, const char *device)
{
    tern_tensor *moved[METRIC_STATES] = {NULL};
    uint64_t failures = tern_failures();
    for (int i = 0; i < m->n_states; i++) {
        tern_metric_state *s = &m->states[i];
        tern_tensor *x;
        TERN_TRY(whole(s, &x));
        if (s->on_host || !x || tern_device(x) == device)
            continue;
        if (!(moved[i] = tern_to(x, device)))
            return tern_failed_since(failures);
    }
    for (int i = 0; i < m->n_states; i++)
        if (moved[i] && m->states[i].reduction == TERN_METRIC_CAT) {
            drop_pieces(&m->states[i]);
            m->states[i].pieces[m->states[i].count++] = tern_keep(moved[i]);
        } else if (moved[i])
            put(&m->states[i], moved[i]);
    return TERN_OK;
}

/* Returns whether a state is on another device; devices are compared by their unique names. */
static bool is_elsewhere(const tern_metric *m, const char *device)
{
    for (int i = 0; i < m->n_states; i++) {
        const tern_metric_state *s = &m->states[i];
        const tern_tensor *x = s->value ? s->value : s->count ? s->pieces[0] : NULL;
        if (x && !s->on_host && tern_device(x) != device)
            return true;
    }
    return false;
}

tern_status tern_metric_to(tern_metric *m, const char *device)
{
    if (!m)
        return tern_fail_argument_null("tern_metric_to", "metric");
    uint64_t failures = tern_failures();
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *there = tern_zeros(TERN_SHAPE(0), TERN_F32, device);
            status = there ? move(m, tern_device(there)) : tern_failed_since(failures);
        }
    return status;
}

tern_status tern_metric_reset(tern_metric *m)
{
    if (!m)
        return tern_fail_argument_null("tern_metric_reset", "metric");
    uint64_t failures = tern_failures();
    for (int i = 0; i < m->n_states; i++) {
        tern_metric_state *s = &m->states[i];
        if (s->value && !tern_fill_(s->value, TERN_SCALAR(s->initial)))
            return tern_failed_since(failures);
        drop_pieces(s);
    }
    return TERN_OK;
}

/* ---- updates --------------------------------------------------------------------------------- */

/* Returns an increment in the dtype of the state, which the first float64 input makes float64. */
static tern_tensor *fit(tern_metric_state *s, tern_tensor *x)
{
    tern_dtype dtype = tern_dtype_of(s->value);
    if (tern_dtype_of(x) == TERN_F64 && dtype == TERN_F32) {
        tern_tensor *wide = tern_to_dtype(s->value, TERN_F64);
        if (!wide)
            return NULL;
        put(s, wide);
        return x;
    }
    return tern_to_dtype(x, dtype);
}

static tern_tensor *join(tern_metric_state *s, tern_tensor *x)
{
    switch (s->reduction) {
    case TERN_METRIC_MAX:
        return tern_maximum_(s->value, x);
    case TERN_METRIC_MIN:
        return tern_minimum_(s->value, x);
    case TERN_METRIC_CAT:
        return s->pieces[s->count++] = tern_keep(x);
    case TERN_METRIC_LAST:
        return tern_copy_(s->value, x);
    case TERN_METRIC_SUM:
        break;
    }
    return tern_add_(s->value, x);
}

/* Adds the increments to the states; NULL leaves a state unchanged. */
static tern_status gather(tern_metric *m, tern_tensor *increments[METRIC_STATES])
{
    uint64_t failures = tern_failures();
    for (int i = 0; i < m->n_states; i++) {
        tern_metric_state *s = &m->states[i];
        if (!increments[i])
            continue;
        if (s->reduction == TERN_METRIC_CAT)
            TERN_TRY(reserve(s));
        else if (!(increments[i] = fit(s, increments[i])))
            return tern_failed_since(failures);
    }
    for (int i = 0; i < m->n_states; i++)
        if (increments[i] && !join(&m->states[i], increments[i]))
            return tern_failed_since(failures);
    return TERN_OK;
}

static tern_status update(tern_metric *m, tern_tensor *preds, tern_tensor *target)
{
    tern_tensor *increments[METRIC_STATES] = {NULL};
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            uint64_t failures = tern_failures();
            const char *device = tern_device(preds);
            if (is_elsewhere(m, device))
                status = move(m, device);
            if (status == TERN_OK)
                status = m->kind->update(m, preds, target, increments);
            if (status == TERN_OK)
                status = tern_failed_since(failures);
            if (status == TERN_OK)
                status = gather(m, increments);
        }
    return status;
}

tern_status tern_metric_update(tern_metric *m, tern_tensor *preds, tern_tensor *target)
{
    if (!m)
        return tern_fail_argument_null("tern_metric_update", "metric");
    if (m->kind->takes_text)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_metric_update: %s takes texts, by tern_metric_update_text",
                         m->kind->name);
    if (!preds)
        return tern_fail_argument_null("tern_metric_update", "preds");
    if (!target && !m->kind->takes_numbers)
        return tern_fail_argument_null("tern_metric_update", "target");
    return update(m, preds, target);
}

tern_status tern_metric_update_number(tern_metric *m, double value, double weight)
{
    if (!m)
        return tern_fail_argument_null("tern_metric_update_number", "metric");
    if (!m->kind->takes_numbers)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_metric_update_number: %s takes tensors, by tern_metric_update",
                         m->kind->name);
    uint64_t failures = tern_failures();
    tern_status status = TERN_OK;
    TERN_SCOPE {
        const char *device = tern_device(m->states[0].value);
        tern_tensor *x = tern_tensor_scalar(TERN_SCALAR(value), TERN_F32, device);
        tern_tensor *w =
            weight == 1 ? NULL : tern_tensor_scalar(TERN_SCALAR(weight), TERN_F32, device);
        status = tern_failed_since(failures);
        if (status == TERN_OK)
            status = update(m, x, w);
    }
    return status;
}

tern_tensor *tern_metric_compute(tern_metric *m)
{
    if (!m) {
        tern_fail_argument_null("tern_metric_compute", "metric");
        return NULL;
    }
    tern_tensor *states[METRIC_STATES] = {NULL}, *y = NULL;
    for (int i = 0; i < m->n_states; i++) {
        if (whole(&m->states[i], &states[i]) != TERN_OK)
            return NULL;
        if (!states[i])
            return tern_fail_null(TERN_ERR_STATE,
                                  "tern_metric_compute: %s keeps predictions, of which there are "
                                  "none before the first tern_metric_update",
                                  m->kind->name);
    }
    TERN_SCOPE
        TERN_NO_GRAD {
            y = m->kind->compute(m, states);
            if (y && tern_numel(y) == 1)
                y = tern_reshape(y, TERN_SHAPE_SCALAR);
            for (int i = 0; y && i < m->n_states; i++)
                if (y == states[i])
                    y = tern_clone(y);
            y = tern_escape(y);
        }
    return y;
}

/* ---- states by name -------------------------------------------------------------------------- */

tern_status tern_metric_each_state(tern_metric *m, tern_tensor_visit visit, void *user)
{
    if (!m || !visit)
        return tern_fail_argument_null("tern_metric_each_state", m ? "visit" : "metric");
    for (int i = 0; i < m->n_states; i++) {
        tern_tensor *x;
        TERN_TRY(whole(&m->states[i], &x));
        if (x)
            TERN_TRY(visit(m->states[i].name, x, user));
    }
    return TERN_OK;
}

static tern_metric_state *find(const char *function, tern_metric *m, const char *name)
{
    if (!m || !name) {
        tern_fail_argument_null(function, m ? "name" : "metric");
        return NULL;
    }
    for (int i = 0; i < m->n_states; i++)
        if (!strcmp(m->states[i].name, name))
            return &m->states[i];
    return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %s has no state '%.80s'", function, m->kind->name,
                          name);
}

tern_metric_reduction tern_metric_state_reduction(const tern_metric *m, const char *name)
{
    const tern_metric_state *s = find("tern_metric_state_reduction", (tern_metric *)m, name);
    return s ? s->reduction : TERN_METRIC_LAST;
}

tern_status tern_metric_set_state(tern_metric *m, const char *name, tern_tensor *x)
{
    uint64_t failures = tern_failures();
    tern_metric_state *s = find("tern_metric_set_state", m, name);
    if (!s)
        return tern_failed_since(failures);
    if (!x)
        return tern_fail_argument_null("tern_metric_set_state", "x");
    bool list = s->reduction == TERN_METRIC_CAT;
    if (list ? tern_dim(x) == 0 : !tern_same_shape(x, s->value))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_metric_set_state: state '%s' of %s has another shape", name,
                         m->kind->name);
    if (!list && tern_dtype_is_floating_point(tern_dtype_of(x)) !=
                     tern_dtype_is_floating_point(tern_dtype_of(s->value)))
        return tern_fail(TERN_ERR_DTYPE, "tern_metric_set_state: state '%s' of %s is %s, not %s",
                         name, m->kind->name, tern_dtype_name(tern_dtype_of(s->value)),
                         tern_dtype_name(tern_dtype_of(x)));
    tern_status status = list ? reserve(s) : TERN_OK;
    if (status != TERN_OK)
        return status;
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *copy = tern_clone(tern_detach(x));
            copy = list ? copy : tern_to(copy, tern_device(s->value));
            if (!copy)
                status = tern_failed_since(failures);
            else if (list) {
                drop_pieces(s);
                s->pieces[s->count++] = tern_keep(copy);
            } else
                put(s, copy);
        }
    return status;
}

tern_status tern_metric_merge(tern_metric *m, tern_metric *other)
{
    if (!m || !other)
        return tern_fail_argument_null("tern_metric_merge", m ? "other" : "metric");
    bool alike = m->kind == other->kind && m->n_states == other->n_states && m != other;
    for (int i = 0; alike && i < m->n_states; i++)
        alike =
            m->states[i].reduction == other->states[i].reduction &&
            m->states[i].reduction != TERN_METRIC_LAST &&
            (!m->states[i].value || tern_same_shape(m->states[i].value, other->states[i].value));
    if (!alike)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_metric_merge: %s and %s don't gather the same states", m->kind->name,
                         m == other ? "itself" : other->kind->name);
    tern_tensor *increments[METRIC_STATES] = {NULL};
    uint64_t failures = tern_failures();
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            for (int i = 0; status == TERN_OK && i < m->n_states; i++) {
                tern_tensor *mine, *theirs;
                status = whole(&other->states[i], &theirs);
                if (status == TERN_OK)
                    status = whole(&m->states[i], &mine);
                if (status != TERN_OK || !theirs)
                    continue;
                increments[i] = mine ? tern_to(theirs, tern_device(mine)) : tern_clone(theirs);
                status = tern_failed_since(failures);
            }
            if (status == TERN_OK)
                status = gather(m, increments);
        }
    return status;
}
