/* parametrization.c -- parameters that are computed from others before each forward pass, such as a
 * weight from its norm and direction. The originals are members with the name and a suffix
 * (weight_g, weight_v), and the optimizer updates these. */
#include "base/text.h"
#include "nn/module.h"
#include <string.h>

/* Returns the member with that name and suffix, or NULL. */
static tern_member *member_of(tern_module *m, const char *name, const char *suffix)
{
    size_t n = strlen(name);
    for (int i = 0; i < m->count; i++)
        if (strncmp(m->members[i].name, name, n) == 0 &&
            strcmp(m->members[i].name + n, suffix) == 0)
            return &m->members[i];
    return NULL;
}

tern_tensor *tern_nn_part(tern_module *m, const tern_member *member, const char *suffix)
{
    return member_of(m, member->name, suffix)->tensor;
}

tern_status tern_nn_add_part(tern_module *m, const char *name, const char *suffix,
                             tern_member_kind kind, tern_tensor *x)
{
    tern_text text = {0};
    tern_text_add(&text, "%s%s", name, suffix);
    tern_status status = x && !text.failed ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK && kind == MEMBER_PARAMETER)
        status = tern_nn_add_parameter(m, text.data, x) ? TERN_OK : tern_last_status();
    else if (status == TERN_OK)
        status = tern_nn_add_buffer(m, text.data, x) ? TERN_OK : tern_last_status();
    tern_text_free(&text);
    return status;
}

/* Replaces the computed tensor by a new one with its graph, for this forward pass. */
static tern_status compute(tern_module *m, tern_member *member)
{
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *x = member->formula.compute(m, member);
        if (x) {
            tern_release(member->tensor);
            member->tensor = tern_keep(x);
        } else {
            status = tern_last_status();
        }
    }
    return status;
}

tern_status tern_nn_compute_members(tern_module *m)
{
    for (int i = 0; i < m->count; i++)
        if (m->members[i].kind == MEMBER_COMPUTED)
            TERN_TRY(compute(m, &m->members[i]));
    return TERN_OK;
}

static tern_status settle(tern_module *m, tern_member *member, tern_status status)
{
    for (int i = 0; i < 2; i++) {
        struct tern_next_part *next = &member->formula.next[i];
        if (status == TERN_OK && next->x)
            TERN_NO_GRAD
                if (!tern_copy_(tern_nn_part(m, member, next->suffix), next->x))
                    status = tern_last_status();
        tern_release(next->x);
        next->x = NULL;
    }
    return status;
}

tern_status tern_nn_settle_members(tern_module *m, tern_status status)
{
    for (int i = 0; i < m->count; i++)
        if (m->members[i].kind == MEMBER_COMPUTED)
            status = settle(m, &m->members[i], status);
    return status;
}

tern_tensor *tern_nn_to_compute(tern_module *m, const char *name, int dim, const char *function)
{
    TERN_MODULE_GIVEN(m, function);
    if (!m) {
        tern_fail_argument_null(function, "m");
        return NULL;
    }
    const tern_member *member = tern_nn_member(m, name, MEMBER_PARAMETER, function);
    if (!member)
        return NULL;
    if (member->kind == MEMBER_COMPUTED || strchr(name, '.'))
        return tern_fail_null(TERN_ERR_STATE,
                              "%s: Cannot register two hooks on the same parameter %s, and not on "
                              "one of a child",
                              function, name);
    if (!member->tensor || dim < -1 || dim >= tern_dim(member->tensor))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Dimension out of range: dim %d of parameter '%s' with %d dims",
                              function, dim, name, member->tensor ? tern_dim(member->tensor) : 0);
    return member->tensor;
}

tern_module *tern_nn_set_formula(tern_module *m, const char *name, tern_formula formula)
{
    tern_member *member = member_of(m, name, "");
    member->formula = formula;
    if (settle(m, member, compute(m, member)) != TERN_OK)
        return NULL;
    member->kind = MEMBER_COMPUTED;
    m->computes = true;
    return m;
}

static void drop(tern_module *m, tern_member *member)
{
    tern_release(member->tensor);
    tern_nn_drop_member(m, (int)(member - m->members));
}

/* Returns a detached copy of the computed value, as in evaluation, where spectral norm makes no
 * power iteration. */
static tern_tensor *value_now(tern_module *m, tern_member *member)
{
    tern_tensor *x = NULL;
    bool training = m->training;
    m->training = false;
    TERN_NO_GRAD
        x = tern_requires_grad_(tern_clone(member->formula.compute(m, member)), true);
    m->training = training;
    return x;
}

tern_module *tern_nn_remove_formula(tern_module *m, const char *name, tern_compute compute_one,
                                    const char *const *suffixes, const char *function)
{
    TERN_MODULE_GIVEN(m, function);
    if (!m) {
        tern_fail_argument_null(function, "m");
        return NULL;
    }
    tern_member *member = member_of(m, name, "");
    if (!member || member->kind != MEMBER_COMPUTED || member->formula.compute != compute_one)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: there is none of '%s' in %s", function, name,
                              m->name);
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *x = value_now(m, member);
        if (x) {
            tern_release(member->tensor);
            member->tensor = tern_keep(x);
            member->kind = MEMBER_PARAMETER;
            member->formula.compute = NULL;
        } else {
            status = tern_last_status();
        }
    }
    for (int i = 0; status == TERN_OK && suffixes[i]; i++)
        drop(m, member_of(m, name, suffixes[i]));
    return status == TERN_OK ? m : NULL;
}
