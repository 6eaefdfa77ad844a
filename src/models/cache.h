/* cache.h -- keys and values of the places so far. */
#ifndef TERN_SRC_MODELS_CACHE_H
#define TERN_SRC_MODELS_CACHE_H
#include "models/model.h"

/* Keys and values (N, heads, T, width) of a layer's new places become those of all places that a
 * query of them may look at, with a window the last ones. */
tern_status models_cache_extend(tern_kv_cache *cache, int layer, int64_t window, tern_tensor **key,
                                tern_tensor **value);
/* Places so far; of a static one as far as the host has counted, without replays. */
int64_t models_cache_length(const tern_kv_cache *cache);
/* The places of a static one; 0 of others and of NULL. */
int64_t models_cache_static(const tern_kv_cache *cache);
/* Before and after a call of so many places; NULL is fine. */
tern_status models_cache_begin(tern_kv_cache *cache, int64_t places, const char *device);
tern_status models_cache_advance(tern_kv_cache *cache, int64_t places);
/* Of a static one: the places (T) of the call that runs, and which keys its queries see. */
tern_tensor *models_cache_now(const tern_kv_cache *cache);
tern_tensor *models_cache_mask(const tern_kv_cache *cache, int64_t window);

#endif
