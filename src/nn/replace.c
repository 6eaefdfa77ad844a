/* replace.c -- replaces tensors and children of a module. */
#include "nn/module.h"

/* Returns the member at path; NULL after an error, also for a computed member. */
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
    /* A child that has a parent, or that is above m, is not freed here. */
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

tern_module *tern_nn_wrap(tern_module *m, const char *path, tern_module *wrapper, const char *name)
{
    const char *function = "tern_nn_wrap";
    if (tern_nn_check_child(m, wrapper, function) != TERN_OK)
        return NULL;
    tern_member *place = tern_nn_member(m, path, MEMBER_CHILD, function);
    tern_module *parent = place ? place->child->parent : NULL;
    wrapper->parent = parent; /* for the count of levels */
    bool fits = place && tern_nn_check_levels(wrapper, place->child, function) == TERN_OK;
    wrapper->parent = NULL;
    tern_member *member = fits && tern_nn_check_name(wrapper, name, "module", function) == TERN_OK
                              ? tern_nn_new_member(wrapper, name, MEMBER_CHILD)
                              : NULL;
    if (!member) {
        tern_nn_free(wrapper);
        return NULL;
    }
    member->child = place->child;
    member->child->parent = wrapper;
    place->child = wrapper;
    wrapper->parent = parent;
    tern_nn_count_levels(wrapper);
    tern_nn_count_levels(parent);
    return wrapper;
}

tern_module *tern_nn_unwrap(tern_module *m, const char *path, const char *name)
{
    tern_member *place = tern_nn_member(m, path, MEMBER_CHILD, "tern_nn_unwrap");
    tern_module *wrapper = place ? place->child : NULL;
    tern_module *child = wrapper ? tern_nn_take(wrapper, name) : NULL;
    if (!child)
        return NULL;
    place->child = child;
    child->parent = wrapper->parent;
    wrapper->parent = NULL;
    tern_nn_count_levels(child->parent);
    tern_nn_free(wrapper);
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
