/* generate.h -- what the ways of generating share. */
#ifndef TERN_SRC_MODELS_GENERATE_H
#define TERN_SRC_MODELS_GENERATE_H
#include "models/cache.h"
#include "models/option.h"

enum { MODELS_MOST_ENDS = 16 };

/* A generation that runs. */
typedef struct models_generation {
    models_model *m;
    const tern_generate_options *o;
    tern_kv_cache *cache; /* NULL: none */
    tern_tensor *encoded; /* what the encoder gave; kept */
    tern_tensor *mask;    /* (N, places so far), kept; or NULL */
    int64_t ends[MODELS_MOST_ENDS], pad;
    int n_ends;
} models_generation;

/* The logits (N, V) of what follows ids (N, T), in float32. */
tern_tensor *models_next_logits(models_generation *g, tern_tensor *ids);
/* The same as the options change them, when so many tokens were made. */
tern_tensor *models_next_scores(const models_generation *g, tern_tensor *ids, tern_tensor *logits,
                                int64_t made);
/* One more column of ones. */
tern_status models_lengthen_mask(models_generation *g);
/* Whether a row of ids (T), on the host, is done: it ends in an end or a stop sequence. */
bool models_ends(const models_generation *g, const int64_t *ids, int64_t n);
/* Rows (N, T + new) by beams. */
tern_tensor *models_beams(models_generation *g, tern_tensor *ids);

tern_tensor *models_scores(tern_tensor *ids, tern_tensor *logits, const tern_generate_options *o);
tern_status models_check_generate(const tern_generate_options *o, const char *function);

#endif
