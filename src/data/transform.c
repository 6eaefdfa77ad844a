/* transform.c -- what all transforms share; compositions, and functions of the program's own. */
#include "data/data.h"
#include <string.h>

static tern_handles handles = TERN_HANDLES("transform", tern_transform);

tern_transform *tern_transform_new(const tern_transform_kind *kind, const void *data, size_t bytes)
{
    tern_transform *t = tern_object_new(&handles);
    if (!t)
        return NULL;
    t->kind = kind;
    t->handle.about = kind->name;
    if (bytes)
        t->data = tern_alloc(bytes);
    if (bytes && !t->data) {
        tern_object_end(&handles, &t->handle);
        return NULL;
    }
    if (bytes)
        memcpy(t->data, data, bytes);
    return t;
}

void tern_transform_free(tern_transform *t)
{
    TERN_TRANSFORM_GIVEN(t, "tern_transform_free");
    if (!t)
        return;
    if (t->kind->free_data)
        t->kind->free_data(t);
    tern_free(t->data);
    tern_object_end(&handles, &t->handle);
}

tern_tensor *tern_transform_run(tern_transform *t, tern_tensor *x)
{
    uint64_t failures = tern_failures();
    tern_tensor *y = t->kind->apply(t, x);
    if (!y && tern_failed_since(failures) == TERN_OK)
        tern_fail(TERN_ERR_ARGUMENT, "%s: the transform gave no tensor", t->kind->name);
    return y;
}

tern_tensor *tern_transform_apply(tern_transform *t, tern_tensor *x)
{
    TERN_TRANSFORM_GIVEN(t, "tern_transform_apply");
    if (!t || !x)
        return tern_fail_argument_null("tern_transform_apply", t ? "x" : "transform"), NULL;
    return tern_transform_run(t, x);
}

/* ---- one after the other ----------------------------------------------------------------- */

typedef struct list {
    tern_transform **of;
    int n;
} list;

static tern_tensor *compose_apply(tern_transform *t, tern_tensor *x)
{
    const list *l = t->data;
    for (int i = 0; i < l->n && x; i++)
        x = tern_transform_run(l->of[i], x);
    return x;
}

static void compose_free(tern_transform *t)
{
    const list *l = t->data;
    for (int i = 0; i < l->n; i++)
        tern_transform_free(l->of[i]);
    tern_free(l->of);
}

tern_transform *tern_transforms_compose_of(tern_transform *const *transforms, int n)
{
    static const tern_transform_kind kind = {"Compose", compose_apply, compose_free};
    if (n < 0 || (n && !transforms))
        return tern_fail_argument_null("tern_transforms_compose", "transforms"), NULL;
    list l = {.n = n, .of = tern_alloc(sizeof *l.of * (size_t)n)};
    bool whole = l.of != NULL;
    for (int i = 0; i < n; i++)
        if (!transforms[i]) {
            tern_fail_argument_null("tern_transforms_compose", "a transform");
            whole = false;
        } else if (l.of) {
            l.of[i] = transforms[i];
        }
    tern_transform *t = whole ? tern_transform_new(&kind, &l, sizeof l) : NULL;
    for (int i = 0; i < n && !t; i++)
        tern_transform_free(transforms[i]);
    if (!t)
        tern_free(l.of);
    return t;
}

/* ---- the program's own ------------------------------------------------------------------- */

typedef struct function {
    tern_tensor *(*call)(tern_tensor *x, void *user);
    void *user;
} function;

static tern_tensor *lambda_apply(tern_transform *t, tern_tensor *x)
{
    const function *f = t->data;
    return f->call(x, f->user);
}

tern_transform *tern_transforms_lambda(tern_tensor *(*call)(tern_tensor *x, void *user), void *user)
{
    static const tern_transform_kind kind = {"Lambda", lambda_apply, NULL};
    if (!call)
        return tern_fail_argument_null("tern_transforms_lambda", "function"), NULL;
    return tern_transform_new(&kind, &(function){call, user}, sizeof(function));
}
