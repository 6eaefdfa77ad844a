/* cache.c -- keys and values of the places so far, in room that grows by doubling. */
#include "models/cache.h"
#include <tern/models/generate.h>
#include <stdlib.h>

/* A layer's keys and values (N, heads, room, width), of which `used` places are filled. */
typedef struct rows {
    tern_tensor *x[2];
    int64_t used;
} rows;

struct tern_kv_cache {
    rows *layers;
    int n_layers;
    int64_t length, places; /* so far; room from the start on */
};

tern_kv_cache *tern_models_cache(tern_module *model, int64_t places)
{
    static const char function[] = "tern_models_cache";
    models_model *m = models_of(model, function);
    if (!m)
        return NULL;
    if (places < 0 || m->c.layers < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %lld places of %s", function,
                              (long long)places, m->kind->name);
    tern_kv_cache *cache = calloc(1, sizeof *cache);
    rows *layers = cache ? calloc((size_t)m->c.layers, sizeof *layers) : NULL;
    if (!layers) {
        free(cache);
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory", function);
    }
    *cache = (tern_kv_cache){layers, (int)m->c.layers, 0, places};
    return cache;
}

void tern_kv_cache_free(tern_kv_cache *cache)
{
    for (int i = 0; cache && i < cache->n_layers; i++)
        for (int k = 0; k < 2; k++)
            tern_release(cache->layers[i].x[k]);
    if (cache)
        free(cache->layers);
    free(cache);
}

int64_t tern_kv_cache_length(const tern_kv_cache *cache)
{
    return cache ? cache->length : 0;
}

int64_t models_cache_length(const tern_kv_cache *cache)
{
    return cache->length;
}

void models_cache_advance(tern_kv_cache *cache, int64_t places)
{
    cache->length += places;
}

/* x with the places [from, from + n) of old in front, in a tensor of room places. */
static tern_tensor *with_room(tern_tensor *old, int64_t from, int64_t n, const tern_tensor *x,
                              int64_t room)
{
    tern_shape shape = tern_shape_of(x);
    shape.dims[2] = room;
    tern_tensor *wide = tern_empty(shape, tern_dtype_of(x), tern_device(x));
    if (wide && n && !tern_copy_(tern_narrow(wide, 2, 0, n), tern_narrow(old, 2, from, n)))
        return NULL;
    return wide;
}

/* Places behind the `used` ones of r become those of x; with a window only so many stay in front. */
static tern_tensor *extend(const tern_kv_cache *cache, rows *r, int which, int64_t window,
                           tern_tensor *x)
{
    int64_t n = tern_size(x, 2), used = r->used, from = 0;
    tern_tensor *old = r->x[which];
    if (window && used >= window) {
        from = used - (window - 1);
        used = window - 1;
    }
    if (!old || from + used + n > tern_size(old, 2)) {
        int64_t room = used + n < cache->places ? cache->places : 2 * (used + n);
        tern_tensor *wide = with_room(old, from, used, x, window ? used + n + window : room);
        if (!wide)
            return NULL;
        r->x[which] = tern_keep(wide);
        tern_release(old);
        from = 0;
    }
    if (!tern_copy_(tern_narrow(r->x[which], 2, from + used, n), x))
        return NULL;
    return tern_narrow(r->x[which], 2, from, used + n);
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
    for (int i = 0; i < 2; i++)
        if (!(all[i] = extend(cache, r, i, window, *x[i])))
            return tern_last_status();
    for (int i = 0; i < 2; i++)
        *x[i] = all[i];
    r->used += n;
    return TERN_OK;
}
