/* cache.h -- keys and values of the places so far. */
#ifndef TERN_SRC_MODELS_CACHE_H
#define TERN_SRC_MODELS_CACHE_H
#include "models/model.h"

/* Keys and values (N, heads, T, width) of a layer's new places become those of all places that a query
 * of them may look at, with a window the last ones. */
tern_status models_cache_extend(tern_kv_cache *cache, int layer, int64_t window, tern_tensor **key,
                                tern_tensor **value);
/* Places so far, and after a call that many more. */
int64_t models_cache_length(const tern_kv_cache *cache);
void models_cache_advance(tern_kv_cache *cache, int64_t places);

#endif
