/* lookup.c -- finds children, parameters and buffers of a module by path and by index. */
#include "base/text.h"
#include "nn/module.h"
#include <string.h>

/* ---- paths ------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [MEMBER_CHILD] = "children", [MEMBER_PARAMETER] = "parameters", [MEMBER_BUFFER] = "buffers"};

/* A computed member counts as a parameter, such as a weight under weight norm. */
static bool is_a(const tern_member *member, tern_member_kind kind)
{
    return member->kind == kind || (kind == MEMBER_PARAMETER && member->kind == MEMBER_COMPUTED);
}

/* Returns the member whose name is the first `length` characters of name, or NULL. */
static tern_member *find(const tern_module *m, const char *name, size_t length,
                         tern_member_kind kind)
{
    for (int i = 0; i < m->count; i++) {
        tern_member *member = &m->members[i];
        if (is_a(member, kind) && strncmp(member->name, name, length) == 0 &&
            member->name[length] == '\0')
            return member;
    }
    return NULL;
}

/* Records an error that lists the existing names. */
static void fail_not_found(const tern_module *m, const char *name, size_t length,
                           tern_member_kind kind, const char *function)
{
    tern_text names = {0};
    for (int i = 0; i < m->count; i++)
        if (is_a(&m->members[i], kind))
            tern_text_add(&names, "%s%s", names.length ? ", " : "", m->members[i].name);
    tern_fail(TERN_ERR_ARGUMENT, "%s: %s has no attribute `%.*s` (its %s: %s)", function, m->name,
              (int)length, name, kind_names[kind], names.length ? names.data : "none");
    tern_text_free(&names);
}

/* Follows children along the path; the last name is a member of the wanted kind. */
tern_member *tern_nn_member(const tern_module *m, const char *path, tern_member_kind kind,
                            const char *function)
{
    TERN_MODULE_GIVEN(m, function);
    if (!m || !path) {
        tern_fail_argument_null(function, m ? "path" : "m");
        return NULL;
    }
    for (;;) {
        size_t length = strcspn(path, ".");
        bool last = path[length] == '\0';
        tern_member_kind wanted = last ? kind : MEMBER_CHILD;
        tern_member *member = find(m, path, length, wanted);
        if (!member)
            fail_not_found(m, path, length, wanted, function);
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
    TERN_MODULE_GIVEN(m, "tern_nn_name");
    return m ? m->name : NULL;
}

int tern_nn_children_count(const tern_module *m)
{
    TERN_MODULE_GIVEN(m, "tern_nn_children_count");
    int n = 0;
    for (int i = 0; m && i < m->count; i++)
        n += m->members[i].kind == MEMBER_CHILD;
    return n;
}

/* Returns the i-th member of a kind, or NULL after an error; a negative i counts from the end. */
static const tern_member *member_at(const tern_module *m, int i, tern_member_kind kind,
                                    const char *function)
{
    TERN_MODULE_GIVEN(m, function);
    if (!m) {
        tern_fail_argument_null(function, "m");
        return NULL;
    }
    int count = 0;
    for (int k = 0; k < m->count; k++)
        count += m->members[k].kind == kind;
    for (int k = 0, at = i < 0 ? -count : 0; k < m->count; k++)
        if (m->members[k].kind == kind && at++ == i)
            return &m->members[k];
    return tern_fail_null(TERN_ERR_ARGUMENT, "%s: index %d is out of range (%s has %d %s)",
                          function, i, m->name, count, kind_names[kind]);
}

tern_module *tern_nn_child_at(tern_module *m, int i)
{
    const tern_member *member = member_at(m, i, MEMBER_CHILD, "tern_nn_child_at");
    return member ? member->child : NULL;
}

const char *tern_nn_child_name_at(const tern_module *m, int i)
{
    const tern_member *member = member_at(m, i, MEMBER_CHILD, "tern_nn_child_name_at");
    return member ? member->name : NULL;
}

tern_tensor *tern_nn_parameter_at(const tern_module *m, int i)
{
    const tern_member *member = member_at(m, i, MEMBER_PARAMETER, "tern_nn_parameter_at");
    return member ? member->tensor : NULL;
}
