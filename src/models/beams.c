/* beams.c -- beam search: the num_beams most probable prefixes are extended, and the best finished
 * text is returned, by its sum of log probabilities over length^length_penalty. */
#include "models/generate.h"
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_models_generate";

typedef struct text {
    int64_t *ids;
    int64_t n;
    double score;
} text;

/* The finished texts of a row, the best first; at most as many as there are beams. */
typedef struct finished {
    text *of;
    int n;
    bool done;
} finished;

typedef struct search {
    models_generation *g;
    int64_t rows, beams, candidates, prompt;
    int64_t *ids;       /* (rows beams, t) */
    double *sums;       /* (rows beams), sums of log probabilities */
    finished *finished; /* (rows), the finished texts of each row */
    float *values;      /* (rows, candidates), scores */
    int64_t *indices;   /* (rows, candidates), beam * vocab + token */
} search;

static double scored(const search *s, double sum, int64_t length)
{
    return sum / pow((double)length, s->g->o->length_penalty);
}

static tern_status finish(const search *s, finished *f, const int64_t *ids, int64_t n, double score)
{
    if (f->n == s->beams && score <= f->of[f->n - 1].score)
        return TERN_OK;
    int64_t *copy = malloc((size_t)n * sizeof *copy);
    if (!copy)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    memcpy(copy, ids, (size_t)n * sizeof *copy);
    if (f->n == s->beams)
        free(f->of[--f->n].ids);
    int at = f->n++;
    for (; at > 0 && f->of[at - 1].score < score; at--)
        f->of[at] = f->of[at - 1];
    f->of[at] = (text){copy, n, score};
    return TERN_OK;
}

/* ---- a step ------------------------------------------------------------------------------ */

/* Computes the most probable candidates of each row, over all its beams. */
static tern_status look(search *s, tern_tensor *ids, int64_t made)
{
    TERN_SCOPE_HERE;
    models_generation *g = s->g;
    tern_tensor *logits = models_next_logits(g, ids);
    tern_tensor *x = logits ? tern_log_softmax(logits, 1) : NULL;
    x = x ? models_next_scores(g, ids, x, made) : NULL;
    tern_tensor *sums = tern_from_data(s->sums, TERN_SHAPE(s->rows * s->beams, 1), TERN_F64, "cpu");
    sums = tern_to(tern_to_dtype(sums, TERN_F32), tern_device(ids));
    x = x && sums ? tern_add(x, sums) : NULL;
    tern_values_indices top;
    x = x ? tern_reshape(x, TERN_SHAPE(s->rows, -1)) : NULL;
    if (!x || tern_topk(x, s->candidates, 1, true, true, &top) != TERN_OK)
        return tern_last_status();
    size_t n = (size_t)(s->rows * s->candidates);
    TRY(tern_copy_to_host(top.values, s->values, n * sizeof *s->values));
    return tern_copy_to_host(top.indices, s->indices, n * sizeof *s->indices);
}

/* Row r: candidates that end are added to the finished texts if they are among the first `beams`;
 * the others are written to ids (t + 1), and the beams that they extend to from[]. */
static tern_status take_row(search *s, int64_t r, int64_t t, int64_t vocab, bool last, int64_t *ids,
                            int64_t *from)
{
    finished *f = &s->finished[r];
    int64_t kept = 0, *next = calloc((size_t)t + 1, sizeof *next);
    tern_status status = next ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    double *sums = s->sums + r * s->beams;
    for (int64_t i = 0; i < s->candidates && status == TERN_OK; i++) {
        int64_t index = s->indices[r * s->candidates + i], beam = index / vocab;
        double sum = s->values[r * s->candidates + i];
        memcpy(next, s->ids + (r * s->beams + beam) * t, (size_t)t * sizeof *next);
        next[t] = index % vocab;
        bool ends = models_ends(s->g, next, t + 1);
        if ((ends || last) && i < s->beams && !f->done)
            status = finish(s, f, next, t + 1, scored(s, sum, t + 1 - s->prompt));
        if (ends || kept == s->beams)
            continue;
        memcpy(ids + (r * s->beams + kept) * (t + 1), next, (size_t)(t + 1) * sizeof *next);
        from[r * s->beams + kept] = r * s->beams + beam;
        sums[kept++] = sum;
    }
    free(next);
    /* A row is done when no beam can become better than its worst finished text. */
    if (f->n == s->beams && !f->done)
        f->done = s->g->o->early_stopping ||
                  scored(s, sums[0], t + 1 - s->prompt) <= f->of[f->n - 1].score;
    return status;
}

/* Reorders the cache to the beams that are extended. The mask and the encoder's output are equal
 * for all beams of a row. */
static tern_status reorder(search *s, const int64_t *from)
{
    TERN_SCOPE_HERE;
    models_generation *g = s->g;
    tern_tensor *index = tern_from_data(from, TERN_SHAPE(s->rows * s->beams), TERN_I64, "cpu");
    return g->cache ? tern_kv_cache_reorder(g->cache, index) : TERN_OK;
}

static tern_status steps(search *s, const char *device, int64_t vocab)
{
    int64_t most = s->g->o->max_new_tokens, t = s->prompt, n = s->rows * s->beams;
    bool done = false;
    tern_status status = TERN_OK;
    for (int64_t made = 0; made < most && !done && status == TERN_OK; made++, t++) {
        TERN_SCOPE_HERE;
        tern_tensor *ids = tern_from_data(s->ids, TERN_SHAPE(n, t), TERN_I64, device);
        int64_t *next = calloc((size_t)(n * (t + 1)), sizeof *next);
        int64_t *from = calloc((size_t)n, sizeof *from);
        status = !ids           ? tern_last_status()
                 : next && from ? look(s, ids, made)
                                : tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
        done = true;
        for (int64_t r = 0; r < s->rows && status == TERN_OK; r++) {
            status = take_row(s, r, t, vocab, made + 1 == most, next, from);
            done = done && s->finished[r].done;
        }
        if (status == TERN_OK)
            status = reorder(s, from);
        if (status == TERN_OK)
            status = models_lengthen_mask(s->g);
        free(from);
        free(s->ids);
        s->ids = next;
    }
    return status;
}

/* ---- before and after ---------------------------------------------------------------------- */

/* Returns the best text of each row, padded. */
static tern_tensor *results(const search *s, const char *device)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < s->rows; r++)
        longest =
            s->finished[r].n && s->finished[r].of[0].n > longest ? s->finished[r].of[0].n : longest;
    int64_t *all = malloc((size_t)(s->rows * longest + 1) * sizeof *all);
    if (!all)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory", function);
    for (int64_t i = 0; i < s->rows * longest; i++)
        all[i] = s->g->pad;
    for (int64_t r = 0; r < s->rows; r++)
        if (s->finished[r].n)
            memcpy(all + r * longest, s->finished[r].of[0].ids,
                   (size_t)s->finished[r].of[0].n * sizeof *all);
    tern_tensor *x = tern_from_data(all, TERN_SHAPE(s->rows, longest), TERN_I64, device);
    free(all);
    return x;
}

static void free_search(search *s)
{
    for (int64_t r = 0; s->finished && r < s->rows; r++) {
        for (int i = 0; i < s->finished[r].n; i++)
            free(s->finished[r].of[i].ids);
        free(s->finished[r].of);
    }
    free(s->finished);
    free(s->ids);
    free(s->sums);
    free(s->values);
    free(s->indices);
}

/* Allocates the arrays of s. Beams of a row start equal, so all but the first start at -1e9. */
static tern_status prepare(search *s, tern_tensor *ids)
{
    size_t n = (size_t)(s->rows * s->beams), c = (size_t)(s->rows * s->candidates);
    s->ids = malloc(n * (size_t)s->prompt * sizeof *s->ids);
    s->sums = malloc(n * sizeof *s->sums);
    s->finished = calloc((size_t)s->rows, sizeof *s->finished);
    s->values = malloc(c * sizeof *s->values);
    s->indices = malloc(c * sizeof *s->indices);
    bool good = s->ids && s->sums && s->finished && s->values && s->indices;
    for (int64_t r = 0; r < s->rows && good; r++)
        good = (s->finished[r].of = calloc((size_t)s->beams + 1, sizeof(text))) != NULL;
    if (!good)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    for (size_t i = 0; i < n; i++)
        s->sums[i] = i % (size_t)s->beams ? -1e9 : 0;
    return tern_copy_to_host(ids, s->ids, n * (size_t)s->prompt * sizeof *s->ids);
}

static tern_tensor *repeated(tern_tensor *x, int64_t times)
{
    return tern_repeat_interleave(x, times, tern_some(0));
}

tern_tensor *models_beams(models_generation *g, tern_tensor *ids)
{
    int ends = g->n_ends;
    int64_t beams = g->o->num_beams, vocab = g->m->c.vocab;
    search s = {.g = g,
                .rows = tern_size(ids, 0),
                .beams = beams,
                .candidates = (ends > 0 ? 1 + ends : 2) * beams,
                .prompt = tern_size(ids, 1)};
    if (g->o->max_new_tokens < 1)
        return ids;
    if (s.candidates > beams * vocab)
        s.candidates = beams * vocab;
    tern_tensor **kept[] = {&g->mask, &g->encoded};
    for (int i = 0; i < 2; i++) {
        tern_tensor *wide = *kept[i] ? tern_keep(repeated(*kept[i], beams)) : NULL;
        if (*kept[i] && !wide)
            return NULL;
        tern_release(*kept[i]);
        *kept[i] = wide;
    }
    tern_tensor *x = repeated(tern_to_dtype(ids, TERN_I64), beams), *result = NULL;
    if (x && prepare(&s, x) == TERN_OK && steps(&s, tern_device(ids), vocab) == TERN_OK)
        result = results(&s, tern_device(ids));
    free_search(&s);
    return result;
}
