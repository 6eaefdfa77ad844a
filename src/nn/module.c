/* module.c -- creates and frees modules, and adds children, parameters and buffers. */
#include "base/memory.h"
#include "nn/running_modules.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const tern_amp_functions *_Atomic tern_from_amp;

static tern_handles handles = TERN_HANDLES("module", tern_module);

static tern_module *new_module(const char *name, const char *function)
{
    if (!name) {
        tern_fail_argument_null(function, "name");
        return NULL;
    }
    tern_module *m = tern_object_new(&handles);
    if (!m)
        return NULL;
    m->training = true;
    m->name = tern_copy_text(name);
    if (!m->name) {
        tern_object_end(&handles, &m->handle);
        return NULL;
    }
    tern_nn_list(m);
    return m;
}

tern_module *tern_nn_module(const char *name, tern_module_forward forward, void *data)
{
    tern_module *m = new_module(name, "tern_nn_module");
    if (m) {
        m->forward = forward;
        m->data = data;
    }
    return m;
}

tern_module *tern_nn_module_with_call(const char *name, tern_module_call call, void *data)
{
    tern_module *m = new_module(name, "tern_nn_module_with_call");
    if (m) {
        m->call = call;
        m->data = data;
    }
    return m;
}

void *tern_nn_data(tern_module *self)
{
    TERN_MODULE_GIVEN(self, "tern_nn_data");
    return self ? self->data : NULL;
}

tern_status tern_nn_on_free(tern_module *self, void (*free_data)(void *data))
{
    TERN_MODULE_GIVEN(self, "tern_nn_on_free");
    if (!self)
        return tern_fail_argument_null("tern_nn_on_free", "self");
    self->free_data = free_data;
    return TERN_OK;
}

tern_status tern_nn_set_extra(tern_module *self, const char *format, ...)
{
    TERN_MODULE_GIVEN(self, "tern_nn_set_extra");
    va_list args, again;
    if (!self || !format)
        return tern_fail_argument_null("tern_nn_set_extra", self ? "format" : "self");
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = tern_alloc((size_t)(n > 0 ? n : 0) + 1);
    if (text) {
        vsnprintf(text, (size_t)(n > 0 ? n : 0) + 1, format, again);
        tern_free(self->extra);
        self->extra = text;
    }
    va_end(again);
    return text ? TERN_OK : tern_last_status();
}

/* ---- members ----------------------------------------------------------------------------- */

tern_status tern_nn_check_name(const tern_module *self, const char *name, const char *kind,
                               const char *function)
{
    TERN_MODULE_GIVEN(self, function);
    if (!self || !name)
        return tern_fail_argument_null(function, self ? "name" : "self");
    if (strchr(name, '.'))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s name can't contain \".\", got: %s", function,
                         kind, name);
    if (!*name)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s name can't be empty string \"\"", function,
                         kind);
    for (int i = 0; i < self->count; i++)
        if (strcmp(self->members[i].name, name) == 0)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: attribute '%s' already exists (in %s)",
                             function, name, self->name);
    return TERN_OK;
}

tern_member *tern_nn_new_member(tern_module *self, const char *name, tern_member_kind kind)
{
    if (self->count == self->capacity) {
        int capacity = self->capacity ? 2 * self->capacity : 4;
        tern_member *members = tern_grow(self->members, sizeof *members * (size_t)capacity);
        if (!members)
            return NULL;
        self->members = members;
        self->capacity = capacity;
    }
    char *copy = tern_copy_text(name);
    if (!copy)
        return NULL;
    tern_member *member = &self->members[self->count++];
    *member = (tern_member){.name = copy, .kind = kind};
    return member;
}

tern_status tern_nn_check_child(const tern_module *self, const tern_module *child,
                                const char *function)
{
    TERN_MODULE_GIVEN(self, function);
    TERN_MODULE_GIVEN(child, function);
    if (!child)
        return tern_fail_argument_null(function, "child");
    for (const tern_module *up = self; up; up = up->parent)
        if (up == child)
            return tern_fail(TERN_ERR_STATE, "%s: %s can't be its own child", function,
                             child->name);
    if (child->parent)
        return tern_fail(TERN_ERR_STATE, "%s: %s is a child of %s already; a module has one parent",
                         function, child->name, child->parent->name);
    return TERN_OK;
}

tern_status tern_nn_check_levels(const tern_module *self, const tern_module *child,
                                 const char *function)
{
    int levels = child->height + 2;
    for (const tern_module *up = self->parent; up; up = up->parent)
        levels++;
    if (levels <= TERN_NN_MOST_LEVELS)
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE,
                     "%s: %s in %s makes %d levels of modules in modules, of %d at most", function,
                     child->name, self->name, levels, TERN_NN_MOST_LEVELS);
}

void tern_nn_count_levels(tern_module *m)
{
    for (; m; m = m->parent) {
        int height = 0;
        for (int i = 0; i < m->count; i++)
            if (m->members[i].child && m->members[i].child->height >= height)
                height = m->members[i].child->height + 1;
        if (m->height == height)
            return;
        m->height = height;
    }
}

tern_module *tern_nn_add(tern_module *self, const char *name, tern_module *child)
{
    /* A child that has a parent, or that is above self, is not freed here. */
    if (tern_nn_check_child(self, child, "tern_nn_add") != TERN_OK)
        return NULL;
    tern_member *member = tern_nn_check_name(self, name, "module", "tern_nn_add") == TERN_OK &&
                                  tern_nn_check_levels(self, child, "tern_nn_add") == TERN_OK
                              ? tern_nn_new_member(self, name, MEMBER_CHILD)
                              : NULL;
    if (!member) {
        tern_nn_free(child);
        return NULL;
    }
    member->child = child;
    child->parent = self;
    int height = child->height + 1;
    for (tern_module *up = self; up && up->height < height; up = up->parent)
        up->height = height++;
    return child;
}

tern_status tern_nn_check_parameter(const tern_tensor *x, const char *name, const char *function)
{
    if (x && !tern_is_leaf(x))
        return tern_fail(TERN_ERR_STATE,
                         "%s: Cannot assign non-leaf Tensor to parameter '%s'. Model parameters "
                         "must be created explicitly. To express '%s' as a function of another "
                         "Tensor, compute the value in the forward() method.",
                         function, name, name);
    if (x && !tern_dtype_is_floating_point(tern_dtype_of(x)))
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Only Tensors of floating point dtype can require gradients ('%s' "
                         "is %s)",
                         function, name, tern_dtype_name(tern_dtype_of(x)));
    return TERN_OK;
}

tern_tensor *tern_nn_add_parameter(tern_module *self, const char *name, tern_tensor *x)
{
    const char *function = "tern_nn_add_parameter";
    if ((x && !tern_there(x, "tensor", function, "x")) ||
        tern_nn_check_name(self, name, "parameter", function) != TERN_OK ||
        tern_nn_check_parameter(x, name, function) != TERN_OK)
        return NULL;
    tern_member *member = tern_nn_new_member(self, name, MEMBER_PARAMETER);
    if (!member)
        return NULL;
    if (x)
        tern_requires_grad_(x, true);
    member->tensor = tern_keep(x);
    return x;
}

tern_tensor *tern_nn_add_buffer_with(tern_module *self, const char *name, tern_tensor *x,
                                     bool persistent)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if ((x && !tern_there(x, "tensor", function, "x")) ||
        tern_nn_check_name(self, name, "buffer", function) != TERN_OK)
        return NULL;
    tern_member *member = tern_nn_new_member(self, name, MEMBER_BUFFER);
    if (!member)
        return NULL;
    member->tensor = tern_keep(x);
    member->passing = !persistent;
    return x;
}

tern_tensor *tern_nn_add_buffer(tern_module *self, const char *name, tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_add_buffer_with(self, name, x, true);
}

/* ---- removing and freeing -------------------------------------------------------------------- */

void tern_nn_drop_member(tern_module *self, int i)
{
    /* in a Sequential each later child moves to the name before it */
    for (int k = i + 1; self->numbered && k < self->count; k++)
        if (self->members[k].child) {
            self->members[i].child = self->members[k].child;
            i = k;
        }
    tern_free(self->members[i].name);
    self->count--;
    memmove(&self->members[i], &self->members[i + 1],
            sizeof *self->members * (size_t)(self->count - i));
    tern_nn_count_levels(self);
}

static void remove_from_parent(tern_module *m)
{
    tern_module *parent = m->parent;
    for (int i = 0; parent && i < parent->count; i++)
        if (parent->members[i].child == m) {
            tern_nn_drop_member(parent, i);
            return;
        }
}

static void free_module(tern_module *m, const tern_module *parent)
{
    if (!m)
        return;
    tern_nn_unlist(m);
    remove_from_parent(m);
    tern_life_end(&m->life);
    for (int i = 0; i < m->count; i++) {
        tern_member *member = &m->members[i];
        if (member->child)
            member->child->parent = NULL; /* so that the child does not remove itself from this
                                             list */
        free_module(member->child, m);
        tern_release(member->tensor);
        tern_free(member->name);
    }
    if (m->around)
        m->around->end(m->around);
    if (m->free_data)
        m->free_data(m->data);
    tern_nn_free_hooks(m);
    if (m->casts)
        tern_from_amp->casts_free(m->casts);
    tern_handle_describe(&m->handle, "%s%s%s", m->name, parent ? ", freed with its parent " : "",
                         parent ? parent->name : "");
    tern_free(m->members);
    tern_free(m->extra);
    tern_free(m->name);
    tern_object_end(&handles, &m->handle);
}

void tern_nn_free(tern_module *m)
{
    TERN_MODULE_GIVEN(m, "tern_nn_free");
    free_module(m, NULL);
}
