/* generate.h -- what greedy search, sampling and beam search share. */
#ifndef TERN_SRC_MODELS_GENERATE_H
#define TERN_SRC_MODELS_GENERATE_H
#include "models/cache.h"
#include "models/option.h"

enum { MODELS_MOST_ENDS = 16 };

/* The state of one call of generate. */
typedef struct models_generation {
    models_model *m;
    const tern_generate_options *o;
    tern_kv_cache *cache; /* NULL: generation without a cache */
    tern_tensor *encoded; /* the encoder's output; a reference of its own */
    tern_tensor *mask;    /* attention mask (N, tokens so far), a reference of its own; or NULL */
    int64_t ends[MODELS_MOST_ENDS], pad;
    int n_ends;
} models_generation;

/* Returns the logits (N, V) of the token after ids (N, T), in float32. */
tern_tensor *models_next_logits(models_generation *g, tern_tensor *ids);
/* Returns logits after the options' changes to them; `made` is the number of tokens generated so
 * far. */
tern_tensor *models_next_scores(const models_generation *g, tern_tensor *ids, tern_tensor *logits,
                                int64_t made);
/* Appends a column of ones to g->mask. */
tern_status models_lengthen_mask(models_generation *g);
/* Whether a row of n ids, in host memory, ends with an end token or a stop sequence. */
bool models_ends(const models_generation *g, const int64_t *ids, int64_t n);
/* Returns the rows (N, T + new) that beam search generates. */
tern_tensor *models_beams(models_generation *g, tern_tensor *ids);

tern_tensor *models_scores(tern_tensor *ids, tern_tensor *logits, const tern_generate_options *o);
tern_status models_check_generate(const tern_generate_options *o, const char *function);

#endif
