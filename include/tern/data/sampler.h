/* data/sampler.h -- in which order a loader takes the items of a data set (torch.utils.data).
 *
 * An order is a function of a seed and an epoch, which the loader has. A sampler belongs to the
 * loader or to the sampler that it is given to, also when that call fails; tern_sampler_free frees
 * one that belongs to none. Functions that make a sampler return NULL after an error. */
#ifndef TERN_DATA_SAMPLER_H
#define TERN_DATA_SAMPLER_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_sampler tern_sampler;

typedef struct tern_random_sampler_options {
    bool replacement;    /* an index may be drawn again */
    int64_t num_samples; /* default: as many as there are items */
    uint64_t reserved[4];
} tern_random_sampler_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_random_sampler_options tern_random_sampler_defaults(void);

typedef struct tern_weighted_random_sampler_options {
    bool no_replacement; /* no index is drawn twice */
    uint64_t reserved[4];
} tern_weighted_random_sampler_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_weighted_random_sampler_options tern_weighted_random_sampler_defaults(void);

typedef struct tern_distributed_sampler_options {
    bool no_shuffle;
    uint64_t seed;  /* default 0; the same for all ranks, whatever the loader's seed is */
    bool drop_last; /* items that can't be divided evenly are left out; else the first ones come
                       again */
    bool uneven;    /* neither of these: the first ranks have one item more */
    uint64_t reserved[4];
} tern_distributed_sampler_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_distributed_sampler_options tern_distributed_sampler_defaults(void);

/* Makes a sampler that takes the items in order: 0, 1, 2, ... */
TERN_API tern_sampler *tern_data_sequential_sampler(void);
/* Makes a sampler that takes the items in a random order. */
TERN_API tern_sampler *tern_data_random_sampler(const tern_random_sampler_options *options);
/* Makes a sampler of num_samples indices below n, which draws index i with a probability in
 * proportion to weights[i]. weights is copied. */
TERN_API tern_sampler *tern_data_weighted_random_sampler(
    const double *weights, int64_t n, int64_t num_samples,
    const tern_weighted_random_sampler_options *options);
/* Makes a sampler that takes indices[n] in a random order. indices is copied. */
TERN_API tern_sampler *tern_data_subset_random_sampler(const int64_t *indices, int64_t n);
/* Makes the sampler of a rank of num_replicas: it takes every num_replicas-th index of a random
 * order. */
TERN_API tern_sampler *tern_data_distributed_sampler(
    int num_replicas, int rank, const tern_distributed_sampler_options *options);
/* Makes a sampler that gives the indices of sampler, which it owns, in batches: a loader's
 * batch_sampler. */
TERN_API tern_sampler *tern_data_batch_sampler(tern_sampler *sampler, int64_t batch_size,
                                               bool drop_last);

/* The functions of a sampler of the program's own. */
typedef struct tern_sampler_type {
    const char *name;
    /* Fills order[length] for an epoch; it depends on its arguments and data alone. */
    tern_status (*order)(void *data, uint64_t seed, int64_t epoch, int64_t *order, int64_t length);
    /* Returns the size, at least 1, of the batch that begins at order[position], for batches of
     * unequal sizes (a loader's batch_sampler); NULL: the loader's batch_size. */
    int64_t (*batch)(void *data, int64_t epoch, const int64_t *order, int64_t length,
                     int64_t position);
    void (*free_data)(void *data); /* NULL: data stays the program's */
    uint64_t reserved[4];
} tern_sampler_type;
/* Makes a sampler of the program's own, of length indices an epoch. type is copied. */
TERN_API tern_sampler *tern_data_sampler(const tern_sampler_type *type, int64_t length, void *data);

/* Frees a sampler that was not given to a loader or sampler; NULL is fine. */
TERN_API void tern_sampler_free(tern_sampler *sampler);

TERN_END_DECLS
#endif
