/* models/generate.h -- text generation with language models, and their caches of keys and values.
 *
 *   tern_tensor *ids = tern_models_generate(
 *       model, prompt,
 *       &(tern_generate_options){.max_new_tokens = 40, .do_sample = true, .top_p = 0.95});
 *
 * Names and results are those of transformers' generate. */
#ifndef TERN_MODELS_GENERATE_H
#define TERN_MODELS_GENERATE_H
#include <tern/models/pretrained.h>

TERN_BEGIN_DECLS

/* ---- caches ---------------------------------------------------------------------------------- */

/* Makes a cache of the keys and values of a model's layers, with memory for `places` positions; it
 * grows when they are not enough. Calls that are given the cache (tern_model_inputs), with
 * gradients off, fill it. Layers with a sliding window keep only the positions of the window. The
 * caller frees it with tern_kv_cache_free; NULL after an error. */
TERN_API tern_kv_cache *tern_models_cache(tern_module *model, int64_t places);
/* Makes a cache that never grows, and that counts its positions on the device: calls of one length
 * launch the same commands each time, so that a step can be recorded (TERN_CAPTURE) and replayed.
 * The first call determines batch size and device. A call with more positions than are left is
 * TERN_ERR_STATE, unless it is a replay. */
TERN_API tern_kv_cache *tern_models_static_cache(tern_module *model, int64_t places);
/* Returns the number of positions in the cache; 0 for NULL. For a static cache the number is read
 * from its device. */
TERN_API int64_t tern_kv_cache_length(const tern_kv_cache *cache);
/* Replaces the rows of the cache by those that index (N) int64 names, as beam search does when it
 * continues from the best beams. */
TERN_API tern_status tern_kv_cache_reorder(tern_kv_cache *cache, tern_tensor *index);
/* Frees the cache; NULL is fine. */
TERN_API void tern_kv_cache_free(tern_kv_cache *cache);

/* ---- generation ------------------------------------------------------------------------------ */

typedef struct tern_generate_options {
    int64_t max_new_tokens, min_new_tokens; /* default 20, 0 */
    bool do_sample;                         /* sample; else take the most probable token */
    double temperature, top_p, min_p, repetition_penalty; /* default 1, 1, 0, 1 */
    int64_t top_k;     /* sample only from the k most probable tokens; default 50, as in
                    * transformers; -1: all */
    int64_t num_beams; /* default 1; more than 1 is beam search by the sum of log probabilities */
    double length_penalty; /* beams are compared by sum / length^penalty; default 1 */
    bool early_stopping;   /* stop when num_beams texts have ended; else when no beam can become
                            * better */
    tern_optional_int eos_token_id, pad_token_id; /* default: those of the model, which may have
                                                   * several ends; pad defaults to the first end */
    bool no_eos;                                  /* never stop before max_new_tokens */
    tern_tensor *attention_mask;        /* (N, T): 0 for the padding on the left of short prompts */
    tern_tensor *const *stop_sequences; /* n_stop tensors (T) int64: a row that ends in one of
                                         * them is complete */
    int n_stop;
    bool no_cache;
    tern_tensor
        *decoder_input_ids; /* (N or 1, T): for a model with an encoder, the first ids of the
                             * decoder, with its start token */
    /* Called with the tokens (N) of each step, except in beam search; returning false stops. */
    bool (*on_token)(tern_tensor *ids, void *user);
    void *user;
    uint64_t reserved[4];
} tern_generate_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_generate_options tern_generate_defaults(void);
/* Returns input_ids (N, T) followed by the new tokens, (N, T + new). For a model with an encoder,
 * whose input (ids or audio features) input_ids is, it returns only the decoder's ids, from
 * decoder_start_token_id or decoder_input_ids on. Rows that are complete are filled with pad.
 * Tokens that generation_config.json suppresses (suppress_tokens, and begin_suppress_tokens for the
 * first token) are not chosen. For a model with learned position embeddings (GPT-2, Whisper),
 * generation without beams ends at its last position. Gradients are off, and the model is in
 * evaluation mode, while this runs. NULL after an error. */
TERN_API tern_tensor *tern_models_generate(tern_module *model, tern_tensor *input_ids,
                                           const tern_generate_options *options);
/* Returns the logits (N, V) of the tokens after ids (N, T) as a sampling step modifies them: by
 * repetition_penalty, and with do_sample by temperature, top_k, top_p and min_p, in this order.
 * Tokens that are excluded have -infinity. */
TERN_API tern_tensor *tern_models_process_logits(tern_tensor *ids, tern_tensor *logits,
                                                 const tern_generate_options *options);

TERN_END_DECLS
#endif
