/* cache.c -- the key/value cache: its memory doubles as it grows, or it is static, with memory for
 * all tokens from the start and the number of tokens on the device. */
#include "models/cache.h"
#include <stdlib.h>
#include <tern/models/generate.h>

/* A layer's keys and values (N, heads, capacity, width), of which `used` positions are filled. */
typedef struct rows {
    tern_tensor *x[2];
    int64_t used;
} rows;

struct tern_kv_cache {
    rows *layers;
    int n_layers;
    int64_t length, places; /* number of cached tokens; initial capacity */
    bool is_static;
    tern_tensor *position; /* static cache: (1), the number of cached tokens */
    tern_tensor *now;      /* static cache: (T), the positions of the running call */
};

static tern_kv_cache *make(tern_module *model, int64_t places, bool is_static, const char *function)
{
    models_model *m = models_of(model, function);
    if (!m)
        return NULL;
    if (places < is_static || m->c.layers < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %lld places of %s", function,
                              (long long)places, m->kind->name);
    tern_kv_cache *cache = calloc(1, sizeof *cache);
    rows *layers = cache ? calloc((size_t)m->c.layers, sizeof *layers) : NULL;
    if (!layers) {
        free(cache);
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory", function);
    }
    *cache = (tern_kv_cache){
        .layers = layers, .n_layers = (int)m->c.layers, .places = places, .is_static = is_static};
    return cache;
}

tern_kv_cache *tern_models_cache(tern_module *model, int64_t places)
{
    return make(model, places, false, "tern_models_cache");
}

tern_kv_cache *tern_models_static_cache(tern_module *model, int64_t places)
{
    return make(model, places, true, "tern_models_static_cache");
}

void tern_kv_cache_free(tern_kv_cache *cache)
{
    for (int i = 0; cache && i < cache->n_layers; i++)
        for (int k = 0; k < 2; k++)
            tern_release(cache->layers[i].x[k]);
    if (cache) {
        tern_release(cache->position);
        tern_release(cache->now);
        free(cache->layers);
    }
    free(cache);
}

int64_t tern_kv_cache_length(const tern_kv_cache *cache)
{
    return !cache ? 0 : cache->position ? tern_item_int(cache->position) : cache->length;
}

tern_status tern_kv_cache_reorder(tern_kv_cache *cache, tern_tensor *index)
{
    if (!cache || !index)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_kv_cache_reorder: %s is NULL",
                         cache ? "index" : "cache");
    TERN_SCOPE_HERE;
    for (int i = 0; i < cache->n_layers; i++)
        for (int k = 0; k < 2; k++) {
            tern_tensor *x = cache->layers[i].x[k];
            if (!x)
                continue;
            tern_tensor *chosen =
                tern_keep(tern_index_select(x, 0, tern_to(index, tern_device(x))));
            if (!chosen)
                return tern_last_status();
            tern_release(x);
            cache->layers[i].x[k] = chosen;
        }
    return TERN_OK;
}

/* ---- a call ------------------------------------------------------------------------------- */

int64_t models_cache_length(const tern_kv_cache *cache)
{
    return cache->length;
}

int64_t models_cache_static(const tern_kv_cache *cache)
{
    return cache && cache->is_static ? cache->places : 0;
}

static tern_tensor *count_to(int64_t n, const char *device)
{
    return tern_arange_scalar(tern_scalar_int(0), tern_scalar_int(n), tern_scalar_int(1), TERN_I64,
                              device);
}

tern_status models_cache_begin(tern_kv_cache *cache, int64_t n, const char *device)
{
    if (!cache || !cache->is_static)
        return TERN_OK;
    if (cache->length + n > cache->places)
        return tern_fail(TERN_ERR_STATE,
                         "tern_models_call: a static cache of %lld places has %lld, and %lld come",
                         (long long)cache->places, (long long)cache->length, (long long)n);
    if (!cache->position)
        cache->position = tern_keep(tern_zeros(TERN_SHAPE(1), TERN_I64, device));
    tern_tensor *now = cache->position ? tern_add(count_to(n, device), cache->position) : NULL;
    tern_release(cache->now);
    cache->now = tern_keep(now);
    return now ? TERN_OK : tern_last_status();
}

tern_tensor *models_cache_now(const tern_kv_cache *cache)
{
    return cache->now;
}

/* Returns a mask (1, 1, T, places) of key s and query t: without a window s <= t, with a window
 * only s > t - window. */
tern_tensor *models_cache_mask(const tern_kv_cache *cache, int64_t window)
{
    int64_t n = tern_size(cache->now, 0);
    tern_tensor *t = tern_view(cache->now, TERN_SHAPE(1, 1, n, 1));
    tern_tensor *s =
        tern_view(count_to(cache->places, tern_device(t)), TERN_SHAPE(1, 1, 1, cache->places));
    return window ? tern_gt(s, tern_sub_scalar(t, tern_scalar_int(window))) : tern_le(s, t);
}

tern_status models_cache_advance(tern_kv_cache *cache, int64_t places)
{
    if (!cache)
        return TERN_OK;
    cache->length += places;
    if (!cache->is_static)
        return TERN_OK;
    tern_release(cache->now);
    cache->now = NULL;
    return tern_add_scalar_(cache->position, tern_scalar_int(places)) ? TERN_OK
                                                                      : tern_last_status();
}

/* ---- a layer ------------------------------------------------------------------------------ */

/* How a layer's cache grows: `kept` positions from `from` on are kept, and new ones are written at
 * `at`. If capacity is not 0, the kept positions are copied to new memory of that many positions.
 * With a window, at most window - 1 positions are kept. */
typedef struct plan {
    int64_t from, kept, at, capacity;
} plan;

static plan plan_of(const tern_kv_cache *cache, const rows *r, int64_t window, int64_t n)
{
    plan p = {.at = r->used, .kept = r->used};
    if (window && r->used >= window) {
        p.kept = window - 1;
        p.from = r->used - p.kept;
    }
    if (r->x[0] && r->used + n <= tern_size(r->x[0], 2))
        return p;
    p.at = p.kept;
    p.capacity = window                        ? p.kept + n + window
                 : p.kept + n <= cache->places ? cache->places
                                               : 2 * (p.kept + n);
    return p;
}

static tern_tensor *extend(rows *r, int which, const plan *p, tern_tensor *x)
{
    tern_tensor *old = r->x[which];
    int64_t n = tern_size(x, 2);
    if (p->capacity) {
        tern_shape shape = tern_shape_of(x);
        shape.dims[2] = p->capacity;
        tern_tensor *wide = tern_empty(shape, tern_dtype_of(x), tern_device(x));
        if (!wide || (p->kept && !tern_copy_(tern_narrow(wide, 2, 0, p->kept),
                                             tern_narrow(old, 2, p->from, p->kept))))
            return NULL;
        r->x[which] = tern_keep(wide);
        tern_release(old);
    }
    if (!tern_copy_(tern_narrow(r->x[which], 2, p->at, n), x))
        return NULL;
    return tern_narrow(r->x[which], 2, p->at - p->kept, p->kept + n);
}

/* Writes the call's positions and returns the whole buffer. */
static tern_tensor *write_static(const tern_kv_cache *cache, rows *r, int which, tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    shape.dims[2] = cache->places;
    if (!r->x[which])
        r->x[which] = tern_keep(tern_zeros(shape, tern_dtype_of(x), tern_device(x)));
    return r->x[which] ? tern_index_copy_(r->x[which], 2, cache->now, x) : NULL;
}

tern_status models_cache_extend(tern_kv_cache *cache, int layer, int64_t window, tern_tensor **key,
                                tern_tensor **value)
{
    rows *r = &cache->layers[layer];
    tern_tensor **x[] = {key, value}, *all[2];
    int64_t n = tern_size(*key, 2);
    if (tern_is_grad_enabled() && (tern_requires_grad(*key) || tern_requires_grad(*value)))
        return tern_fail(TERN_ERR_STATE,
                         "tern_models_call: a cache keeps no gradients; TERN_NO_GRAD around it");
    if (r->x[0] && tern_size(r->x[0], 0) != tern_size(*key, 0))
        return tern_fail(TERN_ERR_SHAPE, "tern_models_call: a cache of %lld rows and %lld of ids",
                         (long long)tern_size(r->x[0], 0), (long long)tern_size(*key, 0));
    const plan p = plan_of(cache, r, window, n);
    for (int i = 0; i < 2; i++)
        if (!(all[i] =
                  cache->is_static ? write_static(cache, r, i, *x[i]) : extend(r, i, &p, *x[i])))
            return tern_last_status();
    for (int i = 0; i < 2; i++)
        *x[i] = all[i];
    r->used = p.at + n;
    return TERN_OK;
}
