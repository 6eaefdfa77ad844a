/* sampler.c -- the samplers: each computes the order of items in an epoch. */
#include "data/data.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tern_handles handles = TERN_HANDLES("sampler", tern_sampler);

static tern_sampler *sampler_new(const tern_sampler_kind *kind)
{
    tern_sampler *s = tern_object_new(&handles);
    if (!s)
        return NULL;
    s->handle.about = kind->name;
    s->kind = kind;
    s->world = 1;
    return s;
}

void tern_sampler_free(tern_sampler *s)
{
    TERN_SAMPLER_GIVEN(s, "tern_sampler_free");
    if (!s)
        return;
    if (s->type.free_data)
        s->type.free_data(s->data);
    tern_sampler_free(s->inner);
    tern_free(s->weights);
    tern_free(s->indices);
    tern_free(s->order);
    tern_object_end(&handles, &s->handle);
}

/* Makes s->order hold at least n indices. */
static tern_status reserve(tern_sampler *s, int64_t n)
{
    if (n <= s->ordered)
        return TERN_OK;
    int64_t *order = tern_grow(s->order, tern_size_bytes(n, sizeof *order));
    if (!order)
        return TERN_ERR_MEMORY;
    s->order = order;
    s->ordered = n;
    return TERN_OK;
}

static tern_status shuffled(tern_sampler *s, int64_t n)
{
    TERN_TRY(reserve(s, n));
    for (int64_t i = 0; i < n; i++)
        s->order[i] = i;
    tern_data_shuffle(s->order, n, s->seed);
    return TERN_OK;
}

/* ---- sequential, random ---------------------------------------------------------------------- */

static tern_status sequential_begin(tern_sampler *s, int64_t length, uint64_t seed, int64_t epoch,
                                    int64_t *samples)
{
    (void)s, (void)seed, (void)epoch;
    *samples = length;
    return TERN_OK;
}

static int64_t sequential_at(tern_sampler *s, int64_t position)
{
    (void)s;
    return position;
}

tern_sampler *tern_data_sequential_sampler(void)
{
    static const tern_sampler_kind kind = {
        .name = "SequentialSampler", .begin = sequential_begin, .at = sequential_at};
    return sampler_new(&kind);
}

static tern_status random_begin(tern_sampler *s, int64_t length, uint64_t seed, int64_t epoch,
                                int64_t *samples)
{
    s->seed = tern_data_seed(s->has_seed ? s->own_seed : seed, (uint64_t)epoch, 0);
    s->n = length;
    *samples = s->samples && length ? s->samples : length;
    return s->shuffles && !s->replaces && length <= TERN_ORDER_LISTED ? shuffled(s, length)
                                                                      : TERN_OK;
}

static int64_t random_at(tern_sampler *s, int64_t position)
{
    uint32_t words[4];
    if (!s->shuffles)
        return position;
    if (s->replaces) {
        tern_data_words(s->seed, (uint64_t)position, words);
        return tern_data_below(words, s->n);
    }
    /* if num_samples exceeds the items, each further round has another order */
    int64_t turn = position / s->n, at = position % s->n;
    if (s->n <= TERN_ORDER_LISTED && turn == 0)
        return s->order[at];
    return tern_data_permuted(at, s->n, tern_data_seed(s->seed, (uint64_t)turn, 1));
}

static uint64_t random_fingerprint(const tern_sampler *s)
{
    const int64_t facts[] = {s->replaces, s->samples, s->shuffles, s->has_seed,
                             (int64_t)s->own_seed};
    return tern_data_hash(0, facts, sizeof facts);
}

tern_sampler *tern_data_random_sampler(const tern_random_sampler_options *options)
{
    static const tern_sampler_kind kind = {"RandomSampler", random_begin, random_at,
                                           random_fingerprint};
    int64_t samples = options ? options->num_samples : 0;
    if (samples < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_data_random_sampler: num_samples should be a positive integer "
                              "value, but got num_samples=%" PRId64,
                              samples);
    tern_sampler *s = sampler_new(&kind);
    if (s) {
        s->shuffles = true;
        s->replaces = options && options->replacement;
        s->samples = samples;
    }
    return s;
}

tern_sampler *tern_data_distributed_sampler(int world, int rank,
                                            const tern_distributed_sampler_options *options)
{
    static const tern_sampler_kind kind = {"DistributedSampler", random_begin, random_at,
                                           random_fingerprint};
    const char *function = "tern_data_distributed_sampler";
    if (world < 1 || rank < 0 || rank >= world)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Invalid rank %d, rank should be in the interval [0, %lld]",
                              function, rank, (long long)world - 1);
    tern_sampler *s = sampler_new(&kind);
    if (s) {
        s->world = world;
        s->rank = rank;
        s->shuffles = !options || !options->no_shuffle;
        s->own_seed = options ? options->seed : 0;
        s->has_seed = true;
        s->cuts = options && options->drop_last;
        s->uneven = options && options->uneven;
    }
    return s;
}

/* ---- random order of a list ------------------------------------------------------------------ */

static tern_status listed_begin(tern_sampler *s, int64_t length, uint64_t seed, int64_t epoch,
                                int64_t *samples)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->indices[i] >= length)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: index %" PRId64 " of %" PRId64 " items",
                             s->kind->name, s->indices[i], length);
    s->seed = tern_data_seed(seed, (uint64_t)epoch, 0);
    *samples = s->n;
    return shuffled(s, s->n);
}

static int64_t listed_at(tern_sampler *s, int64_t position)
{
    return s->indices[s->order[position]];
}

static uint64_t listed_fingerprint(const tern_sampler *s)
{
    return tern_data_hash(0, s->indices, (size_t)s->n * sizeof *s->indices);
}

tern_sampler *tern_data_subset_random_sampler(const int64_t *indices, int64_t n)
{
    static const tern_sampler_kind kind = {"SubsetRandomSampler", listed_begin, listed_at,
                                           listed_fingerprint};
    const char *function = "tern_data_subset_random_sampler";
    if (n < 0 || (n && !indices))
        return tern_fail_argument_null(function, "indices"), NULL;
    for (int64_t i = 0; i < n; i++)
        if (indices[i] < 0)
            return tern_fail_null(TERN_ERR_ARGUMENT, "%s: index %" PRId64, function, indices[i]);
    tern_sampler *s = sampler_new(&kind);
    int64_t *copy = s ? tern_alloc(tern_size_bytes(n, sizeof *copy)) : NULL;
    if (!copy) {
        tern_sampler_free(s);
        return NULL;
    }
    if (n)
        memcpy(copy, indices, (size_t)n * sizeof *copy);
    s->indices = copy;
    s->n = n;
    return s;
}

/* ---- weighted -------------------------------------------------------------------------------- */

/* Returns the first i for which the sum of weights 0..i exceeds u times the sum of all. */
static int64_t drawn(const tern_sampler *s, double u)
{
    double want = u * s->weights[s->n - 1];
    int64_t low = 0, high = s->n - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->weights[middle] > want)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

typedef struct keyed {
    double key;
    int64_t index;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1)
                            : (x->index > y->index) - (x->index < y->index);
}

/* Draws without replacement: the items with the smallest -log(u) / weight, in that order
 * (Efraimidis and Spirakis 2006). */
static tern_status smallest(tern_sampler *s)
{
    keyed *keys = tern_alloc(tern_size_bytes(s->n, sizeof *keys));
    if (!keys)
        return TERN_ERR_MEMORY;
    for (int64_t i = 0; i < s->n; i++) {
        uint32_t words[4];
        tern_data_words(s->seed, (uint64_t)i, words);
        double weight = s->weights[i] - (i ? s->weights[i - 1] : 0);
        keys[i] = (keyed){weight > 0 ? -log1p(-tern_data_real(words)) / weight : INFINITY, i};
    }
    qsort(keys, (size_t)s->n, sizeof *keys, by_key);
    for (int64_t i = 0; i < s->samples; i++)
        s->order[i] = keys[i].index;
    tern_free(keys);
    return TERN_OK;
}

static tern_status weighted_begin(tern_sampler *s, int64_t length, uint64_t seed, int64_t epoch,
                                  int64_t *samples)
{
    if (s->n > length)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %" PRId64 " weights of %" PRId64 " items",
                         s->kind->name, s->n, length);
    s->seed = tern_data_seed(seed, (uint64_t)epoch, 0);
    *samples = s->samples;
    if (s->replaces)
        return TERN_OK;
    TERN_TRY(reserve(s, s->samples));
    return smallest(s);
}

static int64_t weighted_at(tern_sampler *s, int64_t position)
{
    uint32_t words[4];
    if (!s->replaces)
        return s->order[position];
    tern_data_words(s->seed, (uint64_t)position, words);
    return drawn(s, tern_data_real(words));
}

static uint64_t weighted_fingerprint(const tern_sampler *s)
{
    const int64_t facts[] = {s->replaces, s->samples};
    return tern_data_hash(tern_data_hash(0, facts, sizeof facts), s->weights,
                          (size_t)s->n * sizeof *s->weights);
}

/* Sets *positive to the number of weights above 0. */
static tern_status check_weights(const double *weights, int64_t n, int64_t samples,
                                 int64_t *positive)
{
    const char *function = "tern_data_weighted_random_sampler";
    double sum = 0;
    if (samples < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: num_samples should be a positive integer value, but got "
                         "num_samples=%" PRId64,
                         function, samples);
    if (n < 1 || !weights)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: weights should be a 1d sequence, of one or more",
                         function);
    *positive = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: weights should be finite and not negative; weight %" PRId64
                             " is %g",
                             function, i, weights[i]);
        *positive += weights[i] > 0;
        sum += weights[i];
    }
    if (!(sum > 0) || isinf(sum))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: the sum of weights is %g", function, sum);
    return TERN_OK;
}

tern_sampler *tern_data_weighted_random_sampler(const double *weights, int64_t n, int64_t samples,
                                                const tern_weighted_random_sampler_options *options)
{
    static const tern_sampler_kind kind = {"WeightedRandomSampler", weighted_begin, weighted_at,
                                           weighted_fingerprint};
    int64_t positive = 0;
    if (check_weights(weights, n, samples, &positive) != TERN_OK)
        return NULL;
    bool replaces = !options || !options->no_replacement;
    if (!replaces && samples > positive)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_data_weighted_random_sampler: %" PRId64
                              " samples without replacement of %" PRId64 " weights above 0",
                              samples, positive);
    tern_sampler *s = sampler_new(&kind);
    double *sums = s ? tern_alloc(tern_size_bytes(n, sizeof *sums)) : NULL;
    if (!sums) {
        tern_sampler_free(s);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        sums[i] = weights[i] + (i ? sums[i - 1] : 0);
    s->weights = sums;
    s->n = n;
    s->samples = samples;
    s->replaces = replaces;
    return s;
}

/* ---- batch samplers, and samplers of the program --------------------------------------------- */

tern_sampler *tern_data_batch_sampler(tern_sampler *inner, int64_t batch_size, bool drop_last)
{
    static const tern_sampler_kind kind = {.name = "BatchSampler"};
    const char *function = "tern_data_batch_sampler";
    TERN_SAMPLER_GIVEN(inner, function);
    tern_sampler *s = NULL;
    if (!inner)
        tern_fail_argument_null(function, "sampler");
    else if (batch_size < 1)
        tern_fail(TERN_ERR_ARGUMENT,
                  "%s: batch_size should be a positive integer value, but got batch_size=%" PRId64,
                  function, batch_size);
    else
        s = sampler_new(&kind);
    if (!s) {
        tern_sampler_free(inner);
        return NULL;
    }
    s->inner = inner;
    s->batch_size = batch_size;
    s->drop_last = drop_last;
    s->type.batch = inner->type.batch;
    return s;
}

static tern_status own_begin(tern_sampler *s, int64_t length, uint64_t seed, int64_t epoch,
                             int64_t *samples)
{
    uint64_t failures = tern_failures();
    TERN_TRY(reserve(s, s->n));
    tern_status status = s->type.order(s->data, seed, epoch, s->order, s->n);
    if (status != TERN_OK && tern_failed_since(failures) == TERN_OK)
        tern_fail(status, "%s: the sampler failed", s->type.name);
    for (int64_t i = 0; status == TERN_OK && i < s->n; i++)
        if (s->order[i] < 0 || s->order[i] >= length)
            status = tern_fail(TERN_ERR_ARGUMENT, "%s: index %" PRId64 " of %" PRId64 " items",
                               s->type.name, s->order[i], length);
    *samples = s->n;
    return status;
}

static int64_t own_at(tern_sampler *s, int64_t position)
{
    return s->order[position];
}

static uint64_t own_fingerprint(const tern_sampler *s)
{
    return tern_data_hash((uint64_t)s->n, s->type.name, strlen(s->type.name));
}

tern_sampler *tern_data_sampler(const tern_sampler_type *type, int64_t length, void *data)
{
    static const tern_sampler_kind kind = {"Sampler", own_begin, own_at, own_fingerprint};
    const char *function = "tern_data_sampler";
    if (!type || !type->name || !type->order)
        return tern_fail_argument_null(function, !type        ? "type"
                                                 : type->name ? "order"
                                                              : "name"),
               NULL;
    if (length < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %s: length %" PRId64, function, type->name,
                              length);
    tern_sampler *s = sampler_new(&kind);
    if (s) {
        s->type = *type;
        s->n = length;
        s->data = data;
    }
    return s;
}
