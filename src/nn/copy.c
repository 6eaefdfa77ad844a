/* copy.c -- deep copies of modules: parameters, buffers, children, hooks and data
 * (copy.deepcopy of an nn.Module). */
#include "base/memory.h"
#include "nn/module.h"
#include "tensor/ranks.h"
#include <string.h>

/* Copied tensors and their copies: a tensor with two names is copied once. */
typedef struct copies {
    tern_tensor **original, **copy;
    size_t count, capacity;
} copies;

static tern_status remember(copies *c, tern_tensor *original, tern_tensor *copy)
{
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 16;
        tern_tensor **originals = tern_grow(c->original, sizeof *originals * capacity);
        if (!originals)
            return TERN_ERR_MEMORY;
        c->original = originals;
        tern_tensor **copied = tern_grow(c->copy, sizeof *copied * capacity);
        if (!copied)
            return TERN_ERR_MEMORY;
        c->copy = copied;
        c->capacity = capacity;
    }
    c->original[c->count] = original;
    c->copy[c->count++] = copy;
    return TERN_OK;
}

/* Sets *copy to the copy of the member's tensor, owned by the scope, or to NULL. */
static tern_status copy_tensor(copies *c, const tern_member *member, tern_tensor **copy)
{
    tern_tensor *x = member->tensor;
    *copy = NULL;
    for (size_t i = 0; x && !*copy && i < c->count; i++)
        if (c->original[i] == x)
            *copy = c->copy[i];
    if (!x || *copy)
        return TERN_OK;
    if (member->kind != MEMBER_COMPUTED && !tern_is_leaf(x))
        return tern_fail(TERN_ERR_STATE,
                         "tern_nn_copy: '%s' was computed by recorded operations; only tensors "
                         "created explicitly (graph leaves) can be copied",
                         member->name);
    TERN_NO_GRAD
        *copy = tern_clone(tern_detach(x));
    if (!*copy ||
        (member->kind != MEMBER_COMPUTED && !tern_requires_grad_(*copy, tern_requires_grad(x))))
        return tern_last_status();
    TERN_TRY(tern_set_ranks(*copy, tern_ranks_of(x))); /* x may be a part of a tensor-parallel
                                                          layer */
    return remember(c, x, *copy);
}

static tern_status copy_hooks(tern_module *to, const tern_module *from)
{
    tern_module_hook_entry **end = &to->hooks;
    for (const tern_module_hook_entry *hook = from->hooks; hook; hook = hook->next) {
        tern_module_hook_entry *copy = tern_alloc(sizeof *copy);
        if (!copy)
            return TERN_ERR_MEMORY;
        *copy = *hook;
        copy->next = NULL;
        *end = copy;
        end = &copy->next;
    }
    to->last_hook = from->last_hook;
    return TERN_OK;
}

/* Data are set last: before that, free_data has nothing to free. */
static tern_status copy_data(tern_module *to, const tern_module *from)
{
    if (!from->data)
        return TERN_OK;
    if (from->copy_data)
        to->data = from->copy_data(from->data, to);
    else if (from->data_bytes && (to->data = tern_alloc(from->data_bytes)))
        memcpy(to->data, from->data, from->data_bytes);
    else if (!from->data_bytes)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_nn_copy: %s has data of its own; tern_nn_on_copy says how that is "
                         "copied",
                         from->name);
    if (!to->data)
        return tern_fail(TERN_ERR_MEMORY, "tern_nn_copy: the data of %s was not copied",
                         from->name);
    to->free_data = from->free_data;
    return TERN_OK;
}

static tern_module *copy_module(copies *c, const tern_module *from);

static tern_status copy_member(copies *c, tern_module *to, const tern_member *from)
{
    tern_tensor *x = NULL;
    TERN_TRY(copy_tensor(c, from, &x));
    tern_module *child = from->child ? copy_module(c, from->child) : NULL;
    if (from->child && !child)
        return tern_last_status();
    tern_member *member = tern_nn_new_member(to, from->name, from->kind);
    if (!member) {
        tern_nn_free(child);
        return TERN_ERR_MEMORY;
    }
    member->tensor = tern_keep(x);
    member->child = child;
    member->passing = from->passing;
    member->formula = from->formula;
    member->formula.next[0].x = member->formula.next[1].x = NULL;
    if (child) {
        child->parent = to;
        tern_nn_count_levels(to);
    }
    return TERN_OK;
}

static tern_status fill(copies *c, tern_module *to, const tern_module *from)
{
    if (from->extra && !(to->extra = tern_copy_text(from->extra)))
        return TERN_ERR_MEMORY;
    for (int i = 0; i < from->count; i++)
        TERN_TRY(copy_member(c, to, &from->members[i]));
    TERN_TRY(copy_hooks(to, from));
    return copy_data(to, from);
}

static tern_module *copy_module(copies *c, const tern_module *from)
{
    if (from->around)
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "tern_nn_copy: %s is sharded over ranks; tern_dist_full_state_dict "
                              "has its parameters whole",
                              from->name);
    tern_module *to = tern_nn_module(from->name, from->forward, NULL);
    if (!to)
        return NULL;
    to->call = from->call;
    to->copy_data = from->copy_data;
    to->data_bytes = from->data_bytes;
    to->training = from->training;
    to->numbered = from->numbered;
    to->shows_parameters = from->shows_parameters;
    to->computes = from->computes;
    to->takes_inplace = from->takes_inplace;
    to->hides_inplace = from->hides_inplace;
    to->inplace = from->inplace;
    if (fill(c, to, from) == TERN_OK)
        return to;
    tern_nn_free(to);
    return NULL;
}

tern_module *tern_nn_copy(const tern_module *m)
{
    TERN_MODULE_GIVEN(m, "tern_nn_copy");
    copies c = {.count = 0};
    tern_module *copy = NULL;
    if (!m) {
        tern_fail_argument_null("tern_nn_copy", "m");
        return NULL;
    }
    TERN_SCOPE
        copy = copy_module(&c, m);
    tern_free(c.original);
    tern_free(c.copy);
    return copy;
}

tern_status tern_nn_on_copy(tern_module *self,
                            void *(*copy_data_of)(const void *data, tern_module *copy))
{
    TERN_MODULE_GIVEN(self, "tern_nn_on_copy");
    if (!self)
        return tern_fail_argument_null("tern_nn_on_copy", "self");
    self->copy_data = copy_data_of;
    return TERN_OK;
}
