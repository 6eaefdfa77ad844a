/* cache.h -- the key/value cache. */
#ifndef TERN_SRC_MODELS_CACHE_H
#define TERN_SRC_MODELS_CACHE_H
#include "models/model.h"

/* Appends keys and values (N, heads, T, width) of the new tokens to a layer's cache, and sets
 * *key and *value to those of all tokens that a new query may attend to: with a window, the last
 * ones. */
tern_status models_cache_extend(tern_kv_cache *cache, int layer, int64_t window, tern_tensor **key,
                                tern_tensor **value);
/* Returns the number of cached tokens; for a static cache as counted on the host, without replays
 * of recordings. */
int64_t models_cache_length(const tern_kv_cache *cache);
/* Returns the capacity of a static cache; 0 for other caches and for NULL. */
int64_t models_cache_static(const tern_kv_cache *cache);
/* These are called before and after a model call of `places` tokens; cache may be NULL. */
tern_status models_cache_begin(tern_kv_cache *cache, int64_t places, const char *device);
tern_status models_cache_advance(tern_kv_cache *cache, int64_t places);
/* Static caches: the positions (T) of the running call, and the mask of keys that its queries
 * attend to. */
tern_tensor *models_cache_now(const tern_kv_cache *cache);
tern_tensor *models_cache_mask(const tern_kv_cache *cache, int64_t window);

#endif
