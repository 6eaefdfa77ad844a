/* edit.c -- changing what is in a module: other tensors and children under the names that are
 * there.
 */
#include "nn/module.h"

static tern_tensor *set_tensor(tern_module *m, const char *path, tern_tensor *x,
                               tern_member_kind kind, const char *function)
{
    tern_member *member = tern_nn_member(m, path, kind, function);
    if (!member)
        return NULL;
    tern_keep(x);
    tern_release(member->tensor);
    member->tensor = x;
    return x;
}

tern_tensor *tern_nn_set_parameter(tern_module *m, const char *path, tern_tensor *x)
{
    const char *function = "tern_nn_set_parameter";
    if (!tern_nn_member(m, path, MEMBER_PARAMETER, function) ||
        tern_nn_check_parameter(x, path, function) != TERN_OK)
        return NULL;
    if (x)
        tern_requires_grad_(x, true);
    return set_tensor(m, path, x, MEMBER_PARAMETER, function);
}

tern_tensor *tern_nn_set_buffer(tern_module *m, const char *path, tern_tensor *x)
{
    return set_tensor(m, path, x, MEMBER_BUFFER, "tern_nn_set_buffer");
}

tern_module *tern_nn_set_child(tern_module *m, const char *path, tern_module *child)
{
    const char *function = "tern_nn_set_child";
    /* One that belongs to another, or is above m, is not m's to free. */
    if (tern_nn_check_child(m, child, function) != TERN_OK)
        return NULL;
    tern_member *member = tern_nn_member(m, path, MEMBER_CHILD, function);
    if (!member) {
        tern_nn_free(child);
        return NULL;
    }
    tern_module *old = member->child;
    child->parent = old->parent;
    member->child = child;
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
