/* tree.c -- finding what is in a module, and going through all of it. */
#include "base/memory.h"
#include "base/text.h"
#include "nn/module.h"
#include <string.h>

/* ---- paths ------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [MEMBER_CHILD] = "children", [MEMBER_PARAMETER] = "parameters", [MEMBER_BUFFER] = "buffers"};

static const tern_member *find(const tern_module *m, const char *name, size_t length,
                               tern_member_kind kind)
{
    for (int i = 0; i < m->count; i++) {
        const tern_member *member = &m->members[i];
        if (member->kind == kind && strncmp(member->name, name, length) == 0 &&
            member->name[length] == '\0')
            return member;
    }
    return NULL;
}

static void fail_not_there(const tern_module *m, const char *name, size_t length,
                           tern_member_kind kind, const char *function)
{
    tern_text names = {0};
    for (int i = 0; i < m->count; i++)
        if (m->members[i].kind == kind)
            tern_text_add(&names, "%s%s", names.length ? ", " : "", m->members[i].name);
    tern_fail(TERN_ERR_ARGUMENT, "%s: %s has no attribute `%.*s` (its %s: %s)", function, m->name,
              (int)length, name, kind_names[kind], names.length ? names.data : "none");
    tern_text_free(&names);
}

const tern_member *tern_nn_member(const tern_module *m, const char *path, tern_member_kind kind,
                                  const char *function)
{
    if (!m || !path) {
        tern_fail_argument_null(function, m ? "path" : "m");
        return NULL;
    }
    for (;;) {
        size_t length = strcspn(path, ".");
        bool last = path[length] == '\0';
        tern_member_kind wanted = last ? kind : MEMBER_CHILD;
        const tern_member *member = find(m, path, length, wanted);
        if (!member)
            fail_not_there(m, path, length, wanted, function);
        if (!member || last)
            return member;
        m = member->child;
        path += length + 1;
    }
}

tern_module *tern_nn_child(tern_module *m, const char *path)
{
    const tern_member *member = tern_nn_member(m, path, MEMBER_CHILD, "tern_nn_child");
    return member ? member->child : NULL;
}

tern_tensor *tern_nn_parameter(tern_module *m, const char *path)
{
    const tern_member *member = tern_nn_member(m, path, MEMBER_PARAMETER, "tern_nn_parameter");
    return member ? member->tensor : NULL;
}

tern_tensor *tern_nn_buffer(tern_module *m, const char *path)
{
    const tern_member *member = tern_nn_member(m, path, MEMBER_BUFFER, "tern_nn_buffer");
    return member ? member->tensor : NULL;
}

const char *tern_nn_name(const tern_module *m)
{
    return m ? m->name : NULL;
}

int tern_nn_children_count(const tern_module *m)
{
    int n = 0;
    for (int i = 0; m && i < m->count; i++)
        n += m->members[i].kind == MEMBER_CHILD;
    return n;
}

tern_module *tern_nn_child_at(tern_module *m, int i)
{
    if (!m) {
        tern_fail_argument_null("tern_nn_child_at", "m");
        return NULL;
    }
    int at = 0;
    for (int k = 0; k < m->count; k++)
        if (m->members[k].kind == MEMBER_CHILD && at++ == i)
            return m->members[k].child;
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "tern_nn_child_at: index %d is out of range (%s has %d children)", i,
                          m->name, at);
}

/* ---- visits ------------------------------------------------------------------------------ */

static tern_status apply(tern_module *m, tern_module_visit visit, void *user)
{
    for (int i = 0; i < m->count; i++)
        if (m->members[i].child)
            TERN_TRY(apply(m->members[i].child, visit, user));
    return visit(m, user);
}

tern_status tern_nn_apply(tern_module *m, tern_module_visit visit, void *user)
{
    if (!m || !visit)
        return tern_fail_argument_null("tern_nn_apply", m ? "visit" : "m");
    return apply(m, visit, user);
}

/* A round over all tensors of one kind: where it is, and what it has met. */
typedef struct round {
    tern_member_kind kind;
    tern_tensor_visit visit;
    void *user;
    tern_text path;
    tern_tensor **seen;
    size_t count, capacity;
} round;

static tern_status meet(round *r, tern_tensor *x, bool *first)
{
    *first = false;
    for (size_t i = 0; i < r->count; i++)
        if (r->seen[i] == x)
            return TERN_OK;
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 16;
        tern_tensor **seen = tern_grow(r->seen, sizeof *seen * capacity);
        if (!seen)
            return TERN_ERR_MEMORY;
        r->seen = seen;
        r->capacity = capacity;
    }
    r->seen[r->count++] = x;
    *first = true;
    return TERN_OK;
}

static tern_status visit_member(round *r, const tern_member *member)
{
    bool first = true;
    if (member->kind != r->kind || !member->tensor)
        return TERN_OK;
    TERN_TRY(meet(r, member->tensor, &first));
    if (!first)
        return TERN_OK;
    size_t length = r->path.length;
    tern_text_add(&r->path, "%s", member->name);
    if (r->path.failed)
        return TERN_ERR_MEMORY;
    tern_status status = r->visit(r->path.data, member->tensor, r->user);
    r->path.length = length;
    return status;
}

/* A module's own tensors first, then its children's, as state_dict orders them. */
static tern_status go_round(round *r, tern_module *m)
{
    for (int i = 0; i < m->count; i++)
        TERN_TRY(visit_member(r, &m->members[i]));
    for (int i = 0; i < m->count; i++) {
        if (!m->members[i].child)
            continue;
        size_t length = r->path.length;
        tern_text_add(&r->path, "%s.", m->members[i].name);
        if (r->path.failed)
            return TERN_ERR_MEMORY;
        TERN_TRY(go_round(r, m->members[i].child));
        r->path.length = length;
    }
    return TERN_OK;
}

static tern_status each(tern_module *m, tern_member_kind kind, tern_tensor_visit visit, void *user,
                        const char *function)
{
    if (!m || !visit)
        return tern_fail_argument_null(function, m ? "visit" : "m");
    round r = {.kind = kind, .visit = visit, .user = user};
    tern_status status = go_round(&r, m);
    tern_text_free(&r.path);
    tern_free(r.seen);
    return status;
}

tern_status tern_nn_each_parameter(tern_module *m, tern_tensor_visit visit, void *user)
{
    return each(m, MEMBER_PARAMETER, visit, user, "tern_nn_each_parameter");
}

tern_status tern_nn_each_buffer(tern_module *m, tern_tensor_visit visit, void *user)
{
    return each(m, MEMBER_BUFFER, visit, user, "tern_nn_each_buffer");
}

static tern_status add_to_counts(const char *path, tern_tensor *x, void *user)
{
    int64_t *counts = user;
    (void)path;
    counts[0]++;
    counts[1] += tern_numel(x);
    return TERN_OK;
}

int64_t tern_nn_parameter_count(tern_module *m)
{
    int64_t counts[2] = {0};
    return tern_nn_each_parameter(m, add_to_counts, counts) == TERN_OK ? counts[0] : -1;
}

int64_t tern_nn_numel(tern_module *m)
{
    int64_t counts[2] = {0};
    return tern_nn_each_parameter(m, add_to_counts, counts) == TERN_OK ? counts[1] : -1;
}
