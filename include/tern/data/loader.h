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
 * Workers are threads. The order of an epoch depends on (seed, epoch), and the random numbers of an
 * item depend on (seed, epoch, index): functions such as tern_rand draw these in an item, and no
 * device's generator moves. So the number of workers does not change results. */
#ifndef TERN_DATA_LOADER_H
#define TERN_DATA_LOADER_H
#include <tern/data/dataset.h>
#include <tern/data/sampler.h>

TERN_BEGIN_DECLS

typedef struct tern_loader tern_loader;

/* Makes a batch, batch[count], of n items: tensor k of item i is items[i * count + k]. */
typedef tern_status (*tern_collate)(tern_tensor *const *items, int64_t n, int count,
                                    tern_tensor **batch, void *user);

/* How far an epoch is. */
typedef struct tern_loader_progress {
    int64_t epoch;
    int64_t batch, batches; /* how many were given so far, and how many there are; -1: not known */
    int64_t samples, total; /* the same in items, of this loader */
    int64_t skipped;        /* items that were left out because they failed */
    double seconds, waited; /* since the loop began; how long of that it waited for batches */
    uint64_t reserved[4];
} tern_loader_progress;

typedef struct tern_loader_options {
    int64_t batch_size; /* default 1 */
    bool shuffle;       /* a random order each epoch */
    bool drop_last;     /* a last batch that is not full is left out */
    int num_workers;    /* threads; 0: items are made in the loop */
    /* How many batches each worker makes ahead; as many are on the device. Default 2, and up to
     * 32 where 2 MiB hold as many. */
    int prefetch_factor;
    uint64_t seed;               /* default: drawn from the cpu's generator */
    tern_sampler *sampler;       /* instead of shuffle; owned */
    tern_sampler *batch_sampler; /* instead of batch_size, shuffle, sampler and drop_last; owned */
    tern_collate collate;        /* default: tern_data_default_collate */
    void *collate_user;
    int collate_count;  /* tensors that collate makes; default: those of an item */
    bool pin_memory;    /* batches on the host are in pinned memory, where there is such */
    const char *device; /* batches are copied there ahead; NULL: they stay where they were made */
    /* This transform, which the loader owns, is applied there to tensor device_transform_which of
     * a batch. Its random numbers are those of the batch's first item. */
    tern_transform *device_transform;
    int device_transform_which;
    /* Items that fail are left out and counted. The items behind them fill the batch up, so only
     * the last batch may be short (not with a batch_sampler of the program's own). A collate
     * function of the program's own is called again, on the loop's thread, for a batch that items
     * of others filled up. */
    bool skip_errors;
    double timeout; /* seconds that the loop waits for workers; 0: for ever */
    /* It is called on each worker's thread when the thread starts. An error of it ends the loop
     * that takes a batch of that worker. */
    tern_status (*worker_init)(int worker, void *user);
    void *worker_init_user;
    /* It is called for each batch, before the batch is given, and at the end of the epoch. */
    void (*progress)(const tern_loader_progress *progress, void *user);
    void *progress_user;
    uint64_t reserved[4];
} tern_loader_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_loader_options tern_loader_defaults(void);

/* Makes a loader of batches of dataset, which it keeps. The loader owns the samplers and the
 * transform in options, also when this fails. The caller frees it with tern_loader_free; NULL after
 * an error. */
TERN_API tern_loader *tern_data_loader(tern_dataset *dataset, const tern_loader_options *options);
/* Frees the loader, and waits for the items that workers are making; NULL is fine. */
TERN_API void tern_loader_free(tern_loader *loader);

/* Stacks n items, as a loader without a collate function does. Errors: TERN_ERR_SHAPE "stack
 * expects each tensor to be equal size, but got [0] at entry 0 and [1] at entry 1". */
TERN_API tern_status tern_data_default_collate(tern_tensor *const *items, int64_t n, int count,
                                               tern_tensor **batch, void *user);

/* A batch. Its tensors live for one turn of the loop; tern_keep keeps them longer. */
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

/* Ends the loop of the batch, wherever that loop is. */
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
/* Gives the next batch, for other languages: from_ is the loader, and the rest of *batch is 0 at
 * first. Returns false at the end of the epoch, and after an error. */
TERN_API bool tern_batch_next(tern_batch *batch);
/* Ends the loop that it stands in, wherever that is. */
TERN_API void tern_batch_end(tern_batch *batch);

/* Returns the number of batches of an epoch; -1 where that is not known, or after an error. */
TERN_API int64_t tern_loader_length(const tern_loader *loader);
/* len(loader) in PyTorch: another name of tern_loader_length. */
#define tern_loader_len tern_loader_length
/* Returns how many items were left out so far (skip_errors); -1 after an error. */
TERN_API int64_t tern_loader_skipped(const tern_loader *loader);

/* Where a loader stands. */
typedef struct tern_loader_state {
    uint64_t seed;
    int64_t epoch;        /* from 0 on */
    int64_t samples;      /* positions in its order that were given, by all ranks */
    uint64_t fingerprint; /* of the data set's length and the sampler */
    uint64_t reserved[4];
} tern_loader_state;
/* Writes the loader's state to *state. In the loop's body the present batch counts as given. After
 * a whole epoch the state is that of the beginning of the next. */
TERN_API tern_status tern_loader_get_state(const tern_loader *loader, tern_loader_state *state);
/* Has the next loop go on from a state, at once: items that were given are not read again (but
 * those of an iterable data set are). The numbers of workers and of ranks and the batch size may
 * differ. Errors: TERN_ERR_STATE for another data set or sampler, and within a loop. */
TERN_API tern_status tern_loader_set_state(tern_loader *loader, const tern_loader_state *state);

TERN_END_DECLS
#endif
