/* models/generate.h -- what a language model writes, and the keys and values that it keeps
 * meanwhile.
 *
 *   tern_tensor *ids = tern_models_generate(
 *       model, prompt, &(tern_generate_options){.max_new_tokens = 40, .do_sample = true, .top_p =
 *           0.95});
 *
 * Names and results are those of transformers' generate. */
#ifndef TERN_MODELS_GENERATE_H
#define TERN_MODELS_GENERATE_H
#include <tern/models/pretrained.h>

TERN_BEGIN_DECLS

/* ---- caches ---------------------------------------------------------------------------------- */

/* Makes a cache of the keys and values of a model's layers. Calls that are given it
 * (tern_model_inputs), and no gradients, fill it. It has memory for that many places from the start
 * on, and grows where they are not enough; layers with a sliding window keep no more than the
 * window's. The caller frees it with tern_kv_cache_free; NULL after an error. */
TERN_API tern_kv_cache *tern_models_cache(tern_module *model, int64_t places);
/* Makes a cache that never grows, and counts its places on the device: calls of one length launch
 * the same work each time, so that a step may be recorded (TERN_CAPTURE) and replayed. The first
 * call takes batch and device from its input. A call of more places than are left is
 * TERN_ERR_STATE, unless it is a replay. */
TERN_API tern_kv_cache *tern_models_static_cache(tern_module *model, int64_t places);
/* Returns how many places the cache holds the keys of; 0 for NULL. Of a static cache the number is
 * read from its device. */
TERN_API int64_t tern_kv_cache_length(const tern_kv_cache *cache);
/* Puts the rows of index (N) int64 in the place of the rows, as beams go on from the best of
 * them. */
TERN_API tern_status tern_kv_cache_reorder(tern_kv_cache *cache, tern_tensor *index);
/* Frees the cache; NULL is fine. */
TERN_API void tern_kv_cache_free(tern_kv_cache *cache);

/* ---- generation ------------------------------------------------------------------------------ */

typedef struct tern_generate_options {
    int64_t max_new_tokens, min_new_tokens;               /* default 20, 0 */
    bool do_sample;                                       /* else the likeliest */
    double temperature, top_p, min_p, repetition_penalty; /* default 1, 1, 0, 1 */
    int64_t top_k;         /* of the likeliest alone; default 50, as transformers'; -1: all */
    int64_t num_beams;     /* default 1; sums of log probabilities, of which the best is given */
    double length_penalty; /* beams are compared by their sum / length^penalty; default 1 */
    bool
        early_stopping; /* once there are num_beams texts with an end; else when none gets better */
    tern_optional_int eos_token_id, pad_token_id; /* default: the model's own, of which there may be
                                                     * several; pad: the first end */
    bool no_eos;                                  /* never stop before max_new_tokens */
    tern_tensor *attention_mask;                  /* (N, T): 0 on the left of short prompts */
    tern_tensor *const *stop_sequences; /* n_stop of (T) int64: a row that ends in one is done */
    int n_stop;
    bool no_cache;
    tern_tensor *
        decoder_input_ids; /* (N or 1, T): what the decoder beside an encoder begins with, its start
                              too */
    /* Called with the tokens (N) of each step, not of beams; false: stop. */
    bool (*on_token)(tern_tensor *ids, void *user);
    void *user;
    uint64_t reserved[4];
} tern_generate_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_generate_options tern_generate_defaults(void);
/* Returns input_ids (N, T) and the tokens that follow, (N, T + new); for a model with an encoder,
 * whose input (ids or audio features) input_ids is, the decoder's ids alone, from
 * decoder_start_token_id or decoder_input_ids on. Rows that are done go on with pad. Tokens that
 * generation_config.json suppresses (suppress_tokens, begin_suppress_tokens of the first) are not
 * chosen. Without beams the text ends with the last place of a model that learned its places
 * (GPT-2, Whisper). Gradients are off, and the model is in evaluation mode, while it runs. NULL
 * after an error. */
TERN_API tern_tensor *tern_models_generate(tern_module *model, tern_tensor *input_ids,
                                           const tern_generate_options *options);
/* Returns the logits (N, V) of the tokens after ids (N, T) as a sampling step changes them: by
 * repetition_penalty, and with do_sample by temperature, top_k, top_p and min_p, in this order;
 * tokens that are out have -infinity. */
TERN_API tern_tensor *tern_models_process_logits(tern_tensor *ids, tern_tensor *logits,
                                                 const tern_generate_options *options);

TERN_END_DECLS
#endif
