/* visit.c -- visits the modules, parameters, buffers and state of a module, depth first. */
#include "base/addresses.h"
#include "base/text.h"
#include "nn/module.h"
#include <string.h>

/* ---- modules ----------------------------------------------------------------------------- */

/* Visits children before their parent, as PyTorch's apply. */
static tern_status apply(tern_module *m, tern_module_visit visit, void *user)
{
    for (int i = 0; i < m->count; i++)
        if (m->members[i].child)
            TERN_TRY(apply(m->members[i].child, visit, user));
    return visit(m, user);
}

tern_status tern_nn_apply(tern_module *m, tern_module_visit visit, void *user)
{
    TERN_MODULE_GIVEN(m, "tern_nn_apply");
    if (!m || !visit)
        return tern_fail_argument_null("tern_nn_apply", m ? "visit" : "m");
    return apply(m, visit, user);
}

/* Visits a parent before its children, with paths; path is reused for all of them. */
static tern_status each_module(tern_module *m, tern_text *path, tern_named_module_visit visit,
                               void *user)
{
    size_t length = path->length;
    TERN_TRY(visit(length ? path->data : "", m, user));
    for (int i = 0; i < m->count; i++) {
        if (!m->members[i].child)
            continue;
        tern_text_add(path, "%s%s", length ? "." : "", m->members[i].name);
        if (path->failed)
            return TERN_ERR_MEMORY;
        TERN_TRY(each_module(m->members[i].child, path, visit, user));
        path->length = length;
        path->data[length] = '\0';
    }
    return TERN_OK;
}

tern_status tern_nn_each_module(tern_module *m, tern_named_module_visit visit, void *user)
{
    TERN_MODULE_GIVEN(m, "tern_nn_each_module");
    tern_text path = {0};
    if (!m || !visit)
        return tern_fail_argument_null("tern_nn_each_module", m ? "visit" : "m");
    tern_status status = each_module(m, &path, visit, user);
    tern_text_free(&path);
    return status;
}

/* ---- tensors ----------------------------------------------------------------------------- */

/* A traversal over tensors: which are wanted, the current path, and the tensors seen. */
typedef struct traversal {
    bool (*wanted)(const tern_member *member);
    tern_each_options options;
    tern_tensor_visit visit;
    void *user;
    tern_text path;
    tern_addresses seen;
} traversal;

/* Sets *first to whether x was not seen before: a shared tensor is visited at its first place
 * only. */
static tern_status visit_once(traversal *r, tern_tensor *x, bool *first)
{
    size_t place = r->seen.count, at = place;
    if (!r->options.keep_duplicates)
        TERN_TRY(tern_addresses_first(&r->seen, x, place, &at));
    *first = at == place;
    return TERN_OK;
}

/* Bytes are copied rather than formatted, as each training step that clips gradients visits
 * them. */
static void add_name(tern_text *path, const char *name)
{
    tern_text_add_bytes(path, name, strlen(name));
}

static tern_status visit_member(traversal *r, const tern_member *member)
{
    bool first = true;
    if (!member->tensor || !r->wanted(member))
        return TERN_OK;
    TERN_TRY(visit_once(r, member->tensor, &first));
    if (!first)
        return TERN_OK;
    size_t length = r->path.length;
    add_name(&r->path, member->name);
    if (r->path.failed)
        return TERN_ERR_MEMORY;
    tern_status status = r->visit(r->path.data, member->tensor, r->user);
    r->path.length = length;
    return status;
}

static tern_status visit_own(traversal *r, const tern_module *m, tern_member_kind kind)
{
    for (int i = 0; i < m->count; i++)
        if (m->members[i].kind == kind)
            TERN_TRY(visit_member(r, &m->members[i]));
    return TERN_OK;
}

/* Visits a module's own tensors first, then its children's, in the order of state_dict. */
static tern_status walk(traversal *r, const tern_module *m)
{
    TERN_TRY(visit_own(r, m, MEMBER_PARAMETER));
    TERN_TRY(visit_own(r, m, MEMBER_BUFFER));
    for (int i = 0; i < m->count && !r->options.not_recurse; i++) {
        if (!m->members[i].child)
            continue;
        size_t length = r->path.length;
        add_name(&r->path, m->members[i].name);
        tern_text_add_bytes(&r->path, ".", 1);
        if (r->path.failed)
            return TERN_ERR_MEMORY;
        TERN_TRY(walk(r, m->members[i].child));
        r->path.length = length;
    }
    return TERN_OK;
}

static tern_status each(tern_module *m, bool (*wanted)(const tern_member *member),
                        tern_tensor_visit visit, void *user, const tern_each_options *options,
                        const char *function)
{
    TERN_MODULE_GIVEN(m, function);
    if (!m || !visit)
        return tern_fail_argument_null(function, m ? "visit" : "m");
    traversal r = {.wanted = wanted, .visit = visit, .user = user};
    if (options)
        r.options = *options;
    if (r.options.prefix && *r.options.prefix)
        tern_text_add(&r.path, "%s.", r.options.prefix);
    tern_status status = r.path.failed ? TERN_ERR_MEMORY : walk(&r, m);
    tern_text_free(&r.path);
    tern_addresses_free(&r.seen);
    return status;
}

static bool is_parameter(const tern_member *member)
{
    return member->kind == MEMBER_PARAMETER;
}

static bool is_buffer(const tern_member *member)
{
    return member->kind == MEMBER_BUFFER;
}

static bool is_state(const tern_member *member)
{
    return !member->passing;
}

tern_status tern_nn_each_parameter_with(tern_module *m, tern_tensor_visit visit, void *user,
                                        const tern_each_options *options)
{
    return each(m, is_parameter, visit, user, options, "tern_nn_each_parameter_with");
}

tern_status tern_nn_each_parameter(tern_module *m, tern_tensor_visit visit, void *user)
{
    return each(m, is_parameter, visit, user, NULL, "tern_nn_each_parameter");
}

tern_status tern_nn_each_buffer_with(tern_module *m, tern_tensor_visit visit, void *user,
                                     const tern_each_options *options)
{
    return each(m, is_buffer, visit, user, options, "tern_nn_each_buffer_with");
}

tern_status tern_nn_each_buffer(tern_module *m, tern_tensor_visit visit, void *user)
{
    return each(m, is_buffer, visit, user, NULL, "tern_nn_each_buffer");
}

tern_status tern_nn_each_state(tern_module *m, tern_tensor_visit visit, void *user)
{
    tern_each_options all = {.keep_duplicates = true};
    return each(m, is_state, visit, user, &all, "tern_nn_each_state");
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
    TERN_NAMED_IN_ERRORS;
    int64_t counts[2] = {0};
    return tern_nn_each_parameter(m, add_to_counts, counts) == TERN_OK ? counts[0] : -1;
}

typedef struct list {
    tern_tensor **x;
    int64_t count, capacity;
} list;

static tern_status add_to_list(const char *path, tern_tensor *x, void *user)
{
    list *l = user;
    (void)path;
    if (l->count < l->capacity)
        l->x[l->count] = x;
    l->count++;
    return TERN_OK;
}

int64_t tern_nn_parameters(tern_module *m, tern_tensor **x, int64_t capacity)
{
    TERN_NAMED_IN_ERRORS;
    list l = {.x = x, .capacity = capacity};
    if (!x && capacity > 0) {
        tern_fail_argument_null(__func__, "list");
        return -1;
    }
    return tern_nn_each_parameter(m, add_to_list, &l) == TERN_OK ? l.count : -1;
}

int64_t tern_nn_numel(tern_module *m)
{
    TERN_NAMED_IN_ERRORS;
    int64_t counts[2] = {0};
    return tern_nn_each_parameter(m, add_to_counts, counts) == TERN_OK ? counts[1] : -1;
}
