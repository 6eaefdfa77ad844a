/* data/loader.h -- batches of a data set, made ahead of the loop by workers
 * (torch.utils.data.DataLoader).
 *
 *   tern_loader *loader = tern_data_loader(
 *       data, &(tern_loader_options){.batch_size = 32, .shuffle = true, .num_workers = 2});
 *   for (int epoch = 0; epoch < 10; epoch++)
 *       TERN_EACH_BATCH(batch, loader) {
 *           train(batch.tensors[0], batch.tensors[1]);
 *       }
 *   tern_loader_free(loader);
 *
 * Workers are threads. The order of an epoch depends on (seed, epoch), the random numbers of an
 * item on (seed, epoch, index): tern_rand and its like draw from that in an item, and no generator
 * moves. So the number of workers changes nothing. */
#ifndef TERN_DATA_LOADER_H
#define TERN_DATA_LOADER_H
#include <tern/data/dataset.h>
#include <tern/data/sampler.h>

TERN_BEGIN_DECLS

typedef struct tern_loader tern_loader;

/* Make a batch, batch[count], of n items: tensor k of item i is items[i * count + k]. */
typedef tern_status (*tern_collate)(tern_tensor *const *items, int64_t n, int count,
                                    tern_tensor **batch, void *user);

/* How far an epoch is. */
typedef struct tern_loader_progress {
    int64_t epoch;
    int64_t batch, batches; /* given so far; of how many, -1 if that is not known */
    int64_t samples, total; /* items likewise, of this loader */
    int64_t skipped;        /* items left out for their errors */
    double seconds, waited; /* since the loop began; of these, how long it waited for batches */
    uint64_t reserved[4];
} tern_loader_progress;

typedef struct tern_loader_options {
    int64_t batch_size; /* default 1 */
    bool shuffle;       /* a random order each epoch */
    bool drop_last;     /* leave out a last batch that is not full */
    int num_workers;    /* threads; 0: items are made in the loop */
    /* Batches that are made ahead, for each worker; of these, so many are on the device. Default
     * 2, and up to 32 where 2 MiB hold as many. */
    int prefetch_factor;
    uint64_t seed;               /* default: drawn from the cpu's generator */
    tern_sampler *sampler;       /* instead of shuffle; owned */
    tern_sampler *batch_sampler; /* instead of batch_size, shuffle, sampler and drop_last; owned */
    tern_collate collate;        /* default: tern_data_default_collate */
    void *collate_user;
    int collate_count;  /* tensors that collate makes; default: those of an item */
    bool pin_memory;    /* batches on the host are in pinned memory, where there is such */
    const char *device; /* where batches come to, copied ahead; NULL: where collate made them */
    /* Applied to tensor device_transform_which of a batch, there; owned. Its random numbers are
     * those of the batch's first item. */
    tern_transform *device_transform;
    int device_transform_which;
    /* Leave out items that fail, and count them. The items that come next fill the batch up, so
     * that only the last one may be short (not with a batch_sampler of one's own). A collate
     * function of one's own is called again for a batch that is made of others' items, on the
     * loop's thread. */
    bool skip_errors;
    double timeout; /* seconds that the loop waits for workers; 0: for ever */
    /* Called on each worker's thread when it starts. What it fails with ends the loop that takes a
     * batch of that worker. */
    tern_status (*worker_init)(int worker, void *user);
    void *worker_init_user;
    /* Called for each batch, before it is given, and at the epoch's end. */
    void (*progress)(const tern_loader_progress *progress, void *user);
    void *progress_user;
    uint64_t reserved[4];
} tern_loader_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_loader_options tern_loader_defaults(void);

/* Batches of dataset, which is kept; to be freed with tern_loader_free. Owns the samplers and the
 * transform in options, also when it fails. */
TERN_API tern_loader *tern_data_loader(tern_dataset *dataset, const tern_loader_options *options);
/* Frees it; NULL is fine. Waits for the items that workers have in hand. */
TERN_API void tern_loader_free(tern_loader *loader);

/* Stack n items: the default collate. TERN_ERR_SHAPE "stack expects each tensor to be equal size,
 * but got [0] at entry 0 and [1] at entry 1". */
TERN_API tern_status tern_data_default_collate(tern_tensor *const *items, int64_t n, int count,
                                               tern_tensor **batch, void *user);

/* A batch, in the turn of the loop that it belongs to: tern_keep is for longer. */
typedef struct tern_batch {
    tern_tensor **tensors; /* of count, each (size, ...) */
    int count;
    int64_t size;           /* items */
    int64_t index;          /* of the batch, in its epoch */
    const int64_t *indices; /* of the items, in the data set; of an iterable one, in its order */
    tern_loader *from_;     /* the rest is the loop's */
    tern_scope_block scope_;
    uint64_t reserved[8];
} tern_batch;

/* TERN_EACH_BATCH(batch, loader) { ... } runs through an epoch. Each turn is a scope: what is made
 * in it is released at its end. `break`, `continue`, `return` and `goto` mean what they say. The
 * loop ends with an error that is recorded where a batch could not be made: batches before it are
 * given. A loop that was left ended its epoch: the next one begins another. */
#define TERN_EACH_BATCH(batch, loader)                                                             \
    for (tern_batch batch __attribute__((cleanup(tern_batch_end))) = TERN_BATCH_OF_(loader);       \
         tern_batch_next(&batch);)
#define TERN_BATCH_OF_(loader)                                                                     \
    {                                                                                              \
        0, 0, 0, 0, 0, (loader), {0, 0, 0},                                                        \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
/* For other languages: a batch whose from_ is the loader and the rest 0 is the next one from now
 * on; false at the end of the epoch, and after an error. */
TERN_API bool tern_batch_next(tern_batch *batch);
/* Ends the loop that it stands in, wherever that is. */
TERN_API void tern_batch_end(tern_batch *batch);

/* Batches of an epoch; -1 where that is not known, or after an error. */
TERN_API int64_t tern_loader_length(const tern_loader *loader);
/* Items that were left out so far (skip_errors); -1 after an error. */
TERN_API int64_t tern_loader_skipped(const tern_loader *loader);

/* Where a loader stands. */
typedef struct tern_loader_state {
    uint64_t seed;
    int64_t epoch;        /* from 0 on */
    int64_t samples;      /* positions in its order that were given, by all ranks */
    uint64_t fingerprint; /* of the data set's length and the sampler */
    uint64_t reserved[4];
} tern_loader_state;
/* In the loop's body the batch in hand counts as given. After a whole epoch the state is that of
 * the next one's beginning. */
TERN_API tern_status tern_loader_get_state(const tern_loader *loader, tern_loader_state *state);
/* The next loop goes on there, at once: what was given is not read again (but of an iterable data
 * set). The number of workers, of ranks and the batch size may be others. TERN_ERR_STATE for
 * another data set or sampler, and within a loop. */
TERN_API tern_status tern_loader_set_state(tern_loader *loader, const tern_loader_state *state);

TERN_END_DECLS
#endif
