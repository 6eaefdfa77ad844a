/* models/generate.h -- what a language model writes: caches of keys and values. */
#ifndef TERN_MODELS_GENERATE_H
#define TERN_MODELS_GENERATE_H
#include <tern/models/pretrained.h>

TERN_BEGIN_DECLS

/* Room for the keys and values of a model's layers, filled by calls that are given it
 * (tern_model_inputs) and no gradients. It grows where places, which are there from the start on,
 * are not enough; layers with a sliding window keep that many. NULL after an error. */
TERN_API tern_kv_cache *tern_models_cache(tern_module *model, int64_t places);
/* How many places it holds the keys of; 0 of NULL. */
TERN_API int64_t tern_kv_cache_length(const tern_kv_cache *cache);
/* NULL is fine. */
TERN_API void tern_kv_cache_free(tern_kv_cache *cache);

TERN_END_DECLS
#endif
