/* transform.c -- functions of all transforms; compositions, and functions of the program. */
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

/* ---- composition ----------------------------------------------------------------------------- */

typedef struct list {
    tern_transform **of;
    int n;
} list;

/* Returns how many transforms from the i-th on are pointwise. */
static int pointwise(const list *l, int i)
{
    int n = 0;
    while (i + n < l->n && l->of[i + n]->kind->pointwise)
        n++;
    return n;
}

/* Returns whether x is a contiguous uint8 image (C, H, W) on the cpu, large enough for a table. */
static bool has_bytes(tern_tensor *x)
{
    return tern_dtype_of(x) == TERN_U8 && tern_dim(x) == 3 &&
           tern_numel(x) > 1024 * tern_size(x, 0) && tern_is_contiguous(x) &&
           strcmp(tern_device(x), "cpu") == 0;
}

/* Applies n pointwise transforms from l->of[i] on: their results on all 256 bytes of each channel
 * make a table, in which the image's bytes are looked up. Returns NULL if their result is not a
 * contiguous float32 tensor. */
static tern_tensor *look_up(const list *l, int i, int n, tern_tensor *x)
{
    uint8_t bytes[256];
    const int64_t channels = tern_size(x, 0), each = tern_numel(x) / channels;
    for (int v = 0; v < 256; v++)
        bytes[v] = (uint8_t)v;
    tern_tensor *table =
        tern_contiguous(tern_expand(tern_from_data(bytes, TERN_SHAPE(1, 16, 16), TERN_U8, "cpu"),
                                    TERN_SHAPE(channels, 16, 16)));
    for (int k = 0; k < n && table; k++)
        table = tern_transform_run(l->of[i + k], table);
    if (!table || tern_dtype_of(table) != TERN_F32 || !tern_is_contiguous(table))
        return NULL;
    tern_tensor *y = tern_empty(tern_shape_of(x), TERN_F32, "cpu");
    const uint8_t *from = tern_data(x);
    const float *row = tern_data(table);
    float *to = y ? tern_data(y) : NULL;
    for (int64_t c = 0; to && c < channels; c++, row += 256)
        for (const uint8_t *end = from + each; from < end;)
            *to++ = row[*from++];
    return y;
}

static tern_tensor *compose_apply(tern_transform *t, tern_tensor *x)
{
    const list *l = t->data;
    for (int i = 0; i < l->n && x; i++) {
        const int n = has_bytes(x) ? pointwise(l, i) : 0;
        uint64_t failures = tern_failures();
        tern_tensor *y = n > 1 ? look_up(l, i, n, x) : NULL;
        if (n > 1 && !y && tern_failed_since(failures) != TERN_OK)
            return NULL;
        i += y ? n - 1 : 0;
        x = y ? y : tern_transform_run(l->of[i], x);
    }
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
    static const tern_transform_kind kind = {"Compose", compose_apply, compose_free, false};
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

/* ---- functions of the program ---------------------------------------------------------------- */

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
    static const tern_transform_kind kind = {"Lambda", lambda_apply, NULL, false};
    if (!call)
        return tern_fail_argument_null("tern_transforms_lambda", "function"), NULL;
    return tern_transform_new(&kind, &(function){call, user}, sizeof(function));
}
