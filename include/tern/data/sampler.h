/* data/sampler.h -- in which order a loader takes the items of a data set (torch.utils.data).
 *
 * An order is a function of a seed and an epoch, both the loader's. A sampler belongs to the loader
 * or the sampler that it is given to, also when that fails; one that is given to none is freed with
 * tern_sampler_free. NULL after an error. */
#ifndef TERN_DATA_SAMPLER_H
#define TERN_DATA_SAMPLER_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_sampler tern_sampler;

typedef struct tern_random_sampler_options {
    bool replacement;    /* each index is drawn from all */
    int64_t num_samples; /* default: as many as there are items */
    uint64_t reserved[4];
} tern_random_sampler_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_random_sampler_options tern_random_sampler_defaults(void);

typedef struct tern_weighted_random_sampler_options {
    bool no_replacement; /* no index twice */
    uint64_t reserved[4];
} tern_weighted_random_sampler_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_weighted_random_sampler_options tern_weighted_random_sampler_defaults(void);

typedef struct tern_distributed_sampler_options {
    bool no_shuffle;
    uint64_t seed;  /* default 0: the same for all ranks, whatever the loader's */
    bool drop_last; /* cut what does not divide, instead of repeating from the front */
    bool uneven;    /* neither: the first ranks have one item more */
    uint64_t reserved[4];
} tern_distributed_sampler_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_distributed_sampler_options tern_distributed_sampler_defaults(void);

/* 0, 1, 2, ... */
TERN_API tern_sampler *tern_data_sequential_sampler(void);
/* A random order. */
TERN_API tern_sampler *tern_data_random_sampler(const tern_random_sampler_options *options);
/* num_samples indices below n, index i with a probability as weights[i]; weights are copied. */
TERN_API tern_sampler *tern_data_weighted_random_sampler(
    const double *weights, int64_t n, int64_t num_samples,
    const tern_weighted_random_sampler_options *options);
/* A random order of indices[n], which are copied. */
TERN_API tern_sampler *tern_data_subset_random_sampler(const int64_t *indices, int64_t n);
/* Of a random order those that come to rank of num_replicas: every num_replicas-th. */
TERN_API tern_sampler *tern_data_distributed_sampler(
    int num_replicas, int rank, const tern_distributed_sampler_options *options);
/* What sampler gives, in batches: a loader's batch_sampler. Owns sampler. */
TERN_API tern_sampler *tern_data_batch_sampler(tern_sampler *sampler, int64_t batch_size,
                                               bool drop_last);

/* One's own. */
typedef struct tern_sampler_type {
    const char *name;
    /* Fill order[length] for an epoch; depends on nothing but its arguments and data. */
    tern_status (*order)(void *data, uint64_t seed, int64_t epoch, int64_t *order, int64_t length);
    /* The size of the batch that begins at order[position], so that batches are of unequal sizes (a
     * loader's batch_sampler), at least 1; NULL: the loader's batch_size. */
    int64_t (*batch)(void *data, int64_t epoch, const int64_t *order, int64_t length,
                     int64_t position);
    void (*free_data)(void *data); /* NULL: data stays the program's */
    uint64_t reserved[4];
} tern_sampler_type;
/* length indices an epoch, by type, which is copied. */
TERN_API tern_sampler *tern_data_sampler(const tern_sampler_type *type, int64_t length, void *data);

/* Frees one that belongs to nobody; NULL is fine. */
TERN_API void tern_sampler_free(tern_sampler *sampler);

TERN_END_DECLS
#endif
