/* text.c -- metrics of language models: perplexity, BLEU. */
#include "metrics/metric.h"
#include "base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- perplexity ------------------------------------------------------------------------------ */

static tern_status update_perplexity(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                                     tern_tensor *out[METRIC_STATES])
{
    if (tern_dim(preds) != 3 || tern_dim(target) != 2 ||
        tern_size(preds, 0) != tern_size(target, 0) || tern_size(preds, 1) != tern_size(target, 1))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: expected `preds` of shape [batch_size, seq_len, vocab_size] and "
                         "`target` of shape [batch_size, seq_len]",
                         self->kind->name);
    if (!tern_dtype_is_floating_point(tern_dtype_of(preds)) || tern_dtype_of(target) != TERN_I64)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Input tensor `preds` is expected to be of floating point type and "
                         "`target` of int64, but got %s and %s",
                         self->kind->name, tern_dtype_name(tern_dtype_of(preds)),
                         tern_dtype_name(tern_dtype_of(target)));
    preds = tern_reshape(tern_metric_real(preds), TERN_SHAPE(-1, tern_size(preds, 2)));
    target = tern_flatten(target, 0, -1);
    tern_tensor *counted = tern_metric_counts(self, target);
    target = tern_metric_without_ignored(self, target, 0);
    tern_tensor *likelihood =
        tern_squeeze_dim(tern_gather(tern_log_softmax(preds, 1), 1, tern_unsqueeze(target, 1)), 1);
    likelihood =
        tern_masked_fill(likelihood, tern_eq_scalar(counted, TERN_SCALAR(0)), TERN_SCALAR(0));
    out[0] = tern_neg(tern_sum(likelihood));
    out[1] = tern_sum(counted);
    return TERN_OK;
}

static tern_tensor *compute_perplexity(const tern_metric *self,
                                       tern_tensor *const states[METRIC_STATES])
{
    (void)self;
    return tern_exp(tern_div(states[0], tern_to_dtype(states[1], tern_dtype_of(states[0]))));
}

tern_metric *tern_metrics_perplexity(tern_optional_int ignore_index)
{
    static const tern_metric_kind kind = {"tern_metrics_perplexity", update_perplexity,
                                          compute_perplexity, false, false};
    tern_metric *m = tern_metric_new(&kind);
    if (!m)
        return NULL;
    m->ignore_index = ignore_index;
    m = tern_metric_with(m, "total_log_probs", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_F32, 0);
    return tern_metric_with(m, "count", TERN_METRIC_SUM, TERN_SHAPE_SCALAR, TERN_I64, 0);
}

/* ---- BLEU ------------------------------------------------------------------------------------ */

enum { PREDS_LEN, TARGET_LEN, NUMERATOR, DENOMINATOR, MOST_N_GRAM = 8 };

typedef struct word {
    const char *text;
    size_t length;
} word;

/* The words of a text, and its n-grams: pointers to their first words, sorted. */
typedef struct words {
    word *words;
    const word **grams;
    int64_t count;
} words;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static tern_status split(const char *text, words *out)
{
    size_t most = strlen(text) / 2 + 1;
    *out = (words){.words = tern_alloc(sizeof(word) * most),
                   .grams = tern_alloc(sizeof(word *) * most)};
    if (!out->words || !out->grams)
        return TERN_ERR_MEMORY;
    for (const char *at = text; *at;) {
        while (*at && is_space(*at))
            at++;
        const char *start = at;
        while (*at && !is_space(*at))
            at++;
        if (at > start)
            out->words[out->count++] = (word){start, (size_t)(at - start)};
    }
    return TERN_OK;
}

static void free_words(words *w)
{
    tern_free(w->words);
    tern_free(w->grams);
}

static int compare_words(const word *a, const word *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        size_t least = a[i].length < b[i].length ? a[i].length : b[i].length;
        int order = memcmp(a[i].text, b[i].text, least);
        if (order)
            return order;
        if (a[i].length != b[i].length)
            return a[i].length < b[i].length ? -1 : 1;
    }
    return 0;
}

/* qsort's comparison has no argument for n: one function for each n. */
#define COMPARE(n)                                                                                 \
    static int compare_##n(const void *a, const void *b)                                           \
    {                                                                                              \
        return compare_words(*(const word *const *)a, *(const word *const *)b, n);                 \
    }
/* clang-format off */
COMPARE(1) COMPARE(2) COMPARE(3) COMPARE(4) COMPARE(5) COMPARE(6) COMPARE(7) COMPARE(8)
    /* clang-format on */
    static int (*const comparisons[MOST_N_GRAM])(const void *, const void *) = {
        compare_1, compare_2, compare_3, compare_4, compare_5, compare_6, compare_7, compare_8};

/* Returns the number of n-grams of w, after sorting them. */
static int64_t sort_grams(words *w, int64_t n)
{
    int64_t count = w->count >= n ? w->count - n + 1 : 0;
    for (int64_t i = 0; i < count; i++)
        w->grams[i] = &w->words[i];
    if (count)
        qsort(w->grams, (size_t)count, sizeof *w->grams, comparisons[n - 1]);
    return count;
}

/* Returns the number of sorted n-grams from *at on that equal `gram`, and moves *at past them. */
static int64_t count_equal(const words *w, int64_t count, int64_t n, const word *gram, int64_t *at)
{
    int64_t found = 0;
    while (*at < count && compare_words(w->grams[*at], gram, n) < 0)
        ++*at;
    while (*at < count && compare_words(w->grams[*at], gram, n) == 0)
        ++*at, found++;
    return found;
}

/* Adds the n-grams that pred shares with its references, each as often as in the reference that has
 * most of it. */
static void add_matches(words *pred, words *targets, int64_t n_targets, int64_t n, int64_t *at,
                        double *numerator, double *denominator)
{
    int64_t count = sort_grams(pred, n);
    for (int64_t t = 0; t < n_targets; t++)
        at[2 * t] = sort_grams(&targets[t], n), at[2 * t + 1] = 0;
    for (int64_t i = 0; i < count;) {
        const word *gram = pred->grams[i];
        int64_t mine = count_equal(pred, count, n, gram, &i), best = 0;
        for (int64_t t = 0; t < n_targets; t++) {
            int64_t theirs = count_equal(&targets[t], at[2 * t], n, gram, &at[2 * t + 1]);
            best = theirs > best ? theirs : best;
        }
        *numerator += (double)(mine < best ? mine : best);
        *denominator += (double)mine;
    }
}

/* Returns the reference length nearest to that of pred, the first of equally near ones. */
static int64_t nearest_length(const words *pred, const words *targets, int64_t n_targets)
{
    int64_t nearest = targets[0].count;
    for (int64_t t = 1; t < n_targets; t++)
        if (llabs(pred->count - targets[t].count) < llabs(pred->count - nearest))
            nearest = targets[t].count;
    return nearest;
}

static tern_status add_text(const tern_metric *m, const char *pred, const char *const *targets,
                            int64_t n_targets, double *sums[METRIC_STATES])
{
    words p = {0}, *of_targets = tern_alloc(sizeof *of_targets * (size_t)n_targets);
    int64_t *at = tern_alloc(sizeof *at * 2 * (size_t)n_targets);
    tern_status status = of_targets && at ? split(pred, &p) : TERN_ERR_MEMORY;
    for (int64_t t = 0; status == TERN_OK && t < n_targets; t++)
        status = split(targets[t], &of_targets[t]);
    if (status == TERN_OK) {
        *sums[PREDS_LEN] += (double)p.count;
        *sums[TARGET_LEN] += (double)nearest_length(&p, of_targets, n_targets);
        for (int64_t n = 1; n <= m->size; n++)
            add_matches(&p, of_targets, n_targets, n, at, &sums[NUMERATOR][n - 1],
                        &sums[DENOMINATOR][n - 1]);
    }
    for (int64_t t = 0; of_targets && t < n_targets; t++)
        free_words(&of_targets[t]);
    free_words(&p);
    tern_free(of_targets);
    tern_free(at);
    return status;
}

tern_status tern_metric_update_text(tern_metric *m, const char *const *preds,
                                    const char *const *const *targets, int n)
{
    if (!m || !preds || !targets)
        return tern_fail_argument_null("tern_metric_update_text", !m       ? "metric"
                                                                  : !preds ? "preds"
                                                                           : "targets");
    if (!m->kind->takes_text)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_metric_update_text: %s takes tensors, by tern_metric_update",
                         m->kind->name);
    /* Separate sums first, so that a text that cannot be read changes nothing. */
    double gathered[2 + 2 * MOST_N_GRAM] = {0};
    double *sums[METRIC_STATES] = {gathered, gathered + 1, gathered + 2,
                                   gathered + 2 + MOST_N_GRAM};
    for (int i = 0; i < n; i++) {
        int64_t n_targets = 0;
        while (preds[i] && targets[i] && targets[i][n_targets])
            n_targets++;
        if (!n_targets)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_metric_update_text: text %d is NULL or has no reference", i);
        TERN_TRY(add_text(m, preds[i], targets[i], n_targets, sums));
    }
    for (int k = 0; k < METRIC_STATES; k++) {
        double *state = tern_data(m->states[k].value);
        if (!state)
            return TERN_ERR_STATE;
        for (int64_t i = 0; i < tern_numel(m->states[k].value); i++)
            state[i] += sums[k][i];
    }
    return TERN_OK;
}

static tern_tensor *compute_bleu(const tern_metric *self, tern_tensor *const states[METRIC_STATES])
{
    const double *state[METRIC_STATES];
    for (int k = 0; k < METRIC_STATES; k++)
        if (!(state[k] = tern_data(states[k])))
            return NULL;
    double sum = 0;
    bool none = false;
    for (int64_t n = 0; n < self->size; n++) {
        double num = state[NUMERATOR][n], den = state[DENOMINATOR][n];
        none = none || num == 0;
        if (self->mode && n > 0)
            num++, den++;
        sum += self->numbers[n] * log(num / den);
    }
    double shorter = state[TARGET_LEN][0] / state[PREDS_LEN][0];
    double penalty = shorter < 1 ? 1 : exp(1 - shorter);
    return tern_tensor_scalar(TERN_SCALAR(none ? 0 : penalty * exp(sum)), TERN_F32, "cpu");
}

static tern_status no_update(tern_metric *self, tern_tensor *preds, tern_tensor *target,
                             tern_tensor *out[METRIC_STATES])
{
    (void)preds, (void)target, (void)out;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: takes texts", self->kind->name);
}

tern_metric *tern_metrics_bleu_score(const tern_bleu_score_options *options)
{
    static const tern_metric_kind kind = {"tern_metrics_bleu_score", no_update, compute_bleu, false,
                                          true};
    tern_bleu_score_options o = tern_read_bleu_score(options);
    if (o.n_gram < 1 || o.n_gram > MOST_N_GRAM)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: n_gram is from 1 to %d, but got %lld",
                              kind.name, MOST_N_GRAM, (long long)o.n_gram);
    tern_metric *m = tern_metric_new(&kind);
    if (!m)
        return NULL;
    m->size = o.n_gram;
    m->mode = o.smooth;
    for (int64_t n = 0; n < o.n_gram; n++)
        m->numbers[n] = o.weights ? o.weights[n] : 1.0 / (double)o.n_gram;
    m = tern_metric_with_host(m, "preds_len", TERN_SHAPE_SCALAR);
    m = tern_metric_with_host(m, "target_len", TERN_SHAPE_SCALAR);
    m = tern_metric_with_host(m, "numerator", TERN_SHAPE(o.n_gram));
    return tern_metric_with_host(m, "denominator", TERN_SHAPE(o.n_gram));
}
