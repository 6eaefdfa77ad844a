/* replace.c -- changing what is in a module: other tensors and children under its names. */
#include "nn/module.h"

/* The member at path, unless it is computed. */
static tern_member *changeable(tern_module *m, const char *path, tern_member_kind kind,
                               const char *function)
{
    tern_member *member = tern_nn_member(m, path, kind, function);
    if (member && member->kind == MEMBER_COMPUTED)
        return tern_fail_null(TERN_ERR_STATE, "%s: %s is computed from other parameters", function,
                              path);
    return member;
}

static tern_tensor *set_tensor(tern_member *member, tern_tensor *x)
{
    tern_keep(x);
    tern_release(member->tensor);
    member->tensor = x;
    return x;
}

tern_tensor *tern_nn_set_parameter(tern_module *m, const char *path, tern_tensor *x)
{
    const char *function = "tern_nn_set_parameter";
    tern_member *member = changeable(m, path, MEMBER_PARAMETER, function);
    if (!member || (x && !tern_there(x, "tensor", function, "x")) ||
        tern_nn_check_parameter(x, path, function) != TERN_OK)
        return NULL;
    return set_tensor(member, x ? tern_requires_grad_(x, true) : NULL);
}

tern_tensor *tern_nn_set_buffer(tern_module *m, const char *path, tern_tensor *x)
{
    const char *function = "tern_nn_set_buffer";
    tern_member *member = changeable(m, path, MEMBER_BUFFER, function);
    return member && (!x || tern_there(x, "tensor", function, "x")) ? set_tensor(member, x) : NULL;
}

tern_module *tern_nn_set_child(tern_module *m, const char *path, tern_module *child)
{
    const char *function = "tern_nn_set_child";
    /* One that belongs to another, or is above m, is not m's to free. */
    if (tern_nn_check_child(m, child, function) != TERN_OK)
        return NULL;
    tern_member *member = tern_nn_member(m, path, MEMBER_CHILD, function);
    if (!member || tern_nn_check_levels(member->child->parent, child, function) != TERN_OK) {
        tern_nn_free(child);
        return NULL;
    }
    tern_module *old = member->child;
    child->parent = old->parent;
    member->child = child;
    tern_nn_count_levels(child->parent);
    old->parent = NULL;
    tern_nn_free(old);
    return child;
}

tern_module *tern_nn_take(tern_module *m, const char *path)
{
    tern_member *member = tern_nn_member(m, path, MEMBER_CHILD, "tern_nn_take");
    if (!member)
        return NULL;
    tern_module *child = member->child;
    tern_nn_drop_member(child->parent, (int)(member - child->parent->members));
    child->parent = NULL;
    return child;
}
