/* consistency.c -- checks that all ranks have the same model, and broadcasts rank 0's values to
 * them. */
#include "base/memory.h"
#include "base/text.h"
#include "dist/ddp.h"
#include <string.h>

/* ---- parameters ------------------------------------------------------------------------------ */

/* Adds a line "0.weight: float32 [3, 4], not trained" for x to the text `user`. */
static tern_status describe(const char *path, tern_tensor *x, void *user)
{
    tern_text *text = user;
    const tern_shape shape = tern_shape_of(x);
    tern_text_add(text, "%s: %s [", path, tern_dtype_name(tern_dtype_of(x)));
    for (int i = 0; i < shape.ndim; i++)
        tern_text_add(text, "%s%lld", i ? ", " : "", (long long)shape.dims[i]);
    tern_text_add(text, "]%s\n", tern_requires_grad(x) ? "" : ", not trained");
    return text->failed ? TERN_ERR_MEMORY : TERN_OK;
}

static int64_t hash(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (int64_t)(h >> 2);
}

/* Records an error with the first line in which rank r's description differs from rank 0's. */
static tern_status name_first(const char *function, const char *zero, const char *other, int r)
{
    while (*zero && strcspn(zero, "\n") == strcspn(other, "\n") &&
           strncmp(zero, other, strcspn(zero, "\n")) == 0) {
        other += strcspn(other, "\n") + 1;
        zero += strcspn(zero, "\n") + 1;
    }
    return tern_fail(TERN_ERR_PEER,
                     "%s: rank %d has another model than rank 0: "
                     "there it has '%.*s' where rank 0 has '%.*s'",
                     function, r, (int)strcspn(other, "\n"), *other ? other : "nothing more",
                     (int)strcspn(zero, "\n"), *zero ? zero : "nothing more");
}

static tern_status name_difference(const char *function, const tern_text *text,
                                   tern_dist_group *group)
{
    const int ranks = tern_dist_get_world_size(group);
    const tern_dist_options o = {.group = group, .label = "parameters"};
    size_t *sizes = tern_alloc(sizeof *sizes * (size_t)ranks);
    if (!sizes)
        return TERN_ERR_MEMORY;
    const uint64_t failures = tern_failures();
    char *all = tern_dist_all_gather_object(text->data, text->length + 1, sizes, &o), *at = all;
    tern_status status = all ? TERN_OK : tern_failed_since(failures);
    for (int r = 0; r < ranks && status == TERN_OK; at += sizes[r++])
        if (strcmp(at, all) != 0)
            status = name_first(function, all, at, r);
    tern_free_text(all);
    tern_free(sizes);
    return status;
}

typedef struct checked {
    const char *function;
    const tern_dist_group *group;
} checked;

static tern_status check_cut(const char *path, tern_tensor *x, void *user)
{
    const checked *c = user;
    return tern_dist_check_cut(c->function, path, x, c->group);
}

tern_status tern_ddp_compare(const char *function, tern_module *module, tern_ddp_each parameters,
                             tern_ddp_each buffers, tern_dist_group *group)
{
    tern_text text = {0};
    checked c = {function, group};
    TERN_TRY(parameters(module, check_cut, &c));
    tern_text_add(&text, "%s", "");
    tern_status status = parameters(module, describe, &text);
    if (status == TERN_OK)
        status = buffers(module, describe, &text);
    bool same = true;
    TERN_SCOPE {
        const int64_t mine[2] = {hash(text.data), -hash(text.data)};
        tern_tensor *x = tern_from_data(mine, TERN_SHAPE(2), TERN_I64, "cpu");
        const tern_dist_options o = {.op = TERN_DIST_MAX, .group = group, .label = "model"};
        if (status == TERN_OK)
            status = x ? tern_dist_all_reduce(x, &o) : TERN_ERR_MEMORY;
        const int64_t *most = status == TERN_OK ? tern_data(x) : mine;
        same = most[0] == -most[1];
    }
    if (status == TERN_OK && !same)
        status = name_difference(function, &text, group);
    tern_text_free(&text);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum { AT_ONCE = 25 << 20 };

typedef struct sending {
    tern_tensor **x;
    int n, capacity;
} sending;

static tern_status collect(const char *path, tern_tensor *x, void *user)
{
    sending *s = user;
    (void)path;
    if (s->n == s->capacity) {
        int capacity = s->capacity ? 2 * s->capacity : 64;
        tern_tensor **grown = tern_grow(s->x, sizeof(tern_tensor *) * (size_t)capacity);
        if (!grown)
            return TERN_ERR_MEMORY;
        s->x = grown;
        s->capacity = capacity;
    }
    s->x[s->n++] = x;
    return TERN_OK;
}

/* Broadcasts n tensors of one dtype and device in one message. */
static tern_status send(tern_tensor **x, int n, tern_dist_group *group, int from, const char *label)
{
    const uint64_t failures = tern_failures();
    const tern_dist_options o = {.group = group, .label = label};
    tern_tensor *flat[n];
    for (int i = 0; i < n; i++)
        if (!(flat[i] = tern_reshape(tern_detach(x[i]), TERN_SHAPE(-1))))
            return tern_failed_since(failures);
    tern_tensor *all = tern_cat(flat, n, 0);
    TERN_TRY(tern_failed_since(failures));
    TERN_TRY(tern_dist_broadcast(all, group ? group->members[from] : from, &o));
    int64_t at = 0;
    for (int i = 0; i < n && tern_dist_get_rank(group) != from; i++) {
        tern_tensor *part = tern_narrow(all, 0, at, tern_numel(x[i]));
        if (!tern_copy_(x[i], tern_reshape(part, tern_shape_of(x[i]))))
            return tern_failed_since(failures);
        at += tern_numel(x[i]);
    }
    return TERN_OK;
}

static size_t bytes_of(const tern_tensor *x)
{
    return (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
}

tern_status tern_ddp_broadcast_from(int from, tern_module *module, tern_ddp_each each,
                                    tern_dist_group *group, const char *label)
{
    sending s = {NULL, 0, 0};
    tern_status status = each(module, collect, &s);
    if (tern_dist_get_world_size(group) == 1)
        s.n = 0;
    for (int first = 0, end; first < s.n && status == TERN_OK; first = end) {
        size_t bytes = bytes_of(s.x[first]);
        for (end = first + 1; end < s.n && bytes < AT_ONCE; end++) {
            if (tern_dtype_of(s.x[end]) != tern_dtype_of(s.x[first]) ||
                tern_device(s.x[end]) != tern_device(s.x[first]))
                break;
            bytes += bytes_of(s.x[end]);
        }
        TERN_SCOPE
            TERN_NO_GRAD
                status = send(s.x + first, end - first, group, from, label);
    }
    tern_free(s.x);
    return status;
}

tern_status tern_ddp_broadcast(tern_module *module, tern_ddp_each each, tern_dist_group *group,
                               const char *label)
{
    return tern_ddp_broadcast_from(0, module, each, group, label);
}
