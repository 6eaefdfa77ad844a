/* data.h -- internals of data sets, samplers and transforms. */
#ifndef TERN_SRC_DATA_H
#define TERN_SRC_DATA_H
#include "base/callback.h"
#include "base/checked.h"
#include "base/handle.h"
#include "data/name_lists.h"
#include <tern/tern.h>

/* ---- data sets (dataset.c) --------------------------------------------------------------- */

struct tern_dataset {
    tern_handle handle;
    tern_dataset_type type;
    char *name;
    int64_t length; /* number of items, or -1 if unknown */
    int count;
    void *data;
    /* A transformed data set only: the data set, the transform, and the number of the tensor it
     * changes. */
    tern_dataset *inner;
    tern_transform *transform;
    int which;
    tern_names classes;   /* names of the classes of its labels */
    int64_t n_classes;    /* number of classes if they have no names */
    atomic_bool iterated; /* a loop iterates over this iterable data set */
};

#define TERN_DATASET_GIVEN(d, function) TERN_GIVEN(d, "data set", function)

static inline bool tern_dataset_iterates(const tern_dataset *d)
{
    return d->type.next != NULL;
}
/* Returns the data set below all transforms of d. */
static inline tern_dataset *tern_dataset_root(tern_dataset *d)
{
    while (d->inner)
        d = d->inner;
    return d;
}
/* Returns d with one more reference. If d is NULL or was freed, returns NULL after an error that
 * names the function. */
tern_dataset *tern_dataset_keep(tern_dataset *d, const char *function);
/* Loads item i into item[count]: tensors of the innermost scope, none NULL. If the data set's code
 * fails without an error, one that names the data set is recorded. */
tern_status tern_dataset_get(tern_dataset *d, int64_t i, tern_tensor **item);
/* Loads n items as a batch, which is owned as in tern_dataset_get. The data set has type.items. */
tern_status tern_dataset_get_items(tern_dataset *d, const int64_t *indices, int64_t n,
                                   tern_tensor **batch);
/* tern_dataset_get_next loads the next item of an iterable data set without its transforms, which
 * tern_dataset_finish applies. It sets *end if the data set has no more items. */
tern_status tern_dataset_get_next(tern_dataset *d, tern_tensor **item, bool *end);
tern_status tern_dataset_finish(tern_dataset *d, tern_tensor **item);

/* ---- batches (collate.c) ----------------------------------------------------------------- */

/* A batch of n items that is being assembled, with `filled` items so far. Items on the host are
 * copied to their rows at once, items on devices are kept until the batch is full. */
typedef struct tern_stack_up {
    int count;
    int64_t n, filled;
    tern_tensor *rows[TERN_MAX_ITEM]; /* rows of the batch, (n, ...) on the host */
    tern_tensor **kept;               /* n * count tensors of items on devices, or NULL */
} tern_stack_up;
/* Adds an item. After an error the earlier items are unchanged. */
tern_status tern_stack_up_add(tern_stack_up *s, tern_tensor *const *item);
/* Writes the batch to batch[count], owned by the caller, and empties s, also after an error. */
tern_status tern_stack_up_end(tern_stack_up *s, tern_tensor **batch);
void tern_stack_up_drop(tern_stack_up *s);

/* ---- the thread's state while items are made (item_state.c) ---------------------------------- */

/* A thread's saved state while it makes items: meanwhile the default device is the cpu, grad mode
 * and autocast are off, and operations use this thread alone. */
typedef struct tern_item_state {
    tern_device_block device;
    tern_thread_mode mode;
    tern_random_stream *random;
    tern_callback callback;
    bool alone;
} tern_item_state;
void tern_item_state_enter(tern_item_state *state);
void tern_item_state_leave(tern_item_state *state);

/* ---- random numbers on the host (item_state.c) ---------------------------------------------- */

/* Returns the random seed for a seed, an epoch and an index. */
uint64_t tern_data_seed(uint64_t seed, uint64_t epoch, uint64_t index);
/* Writes group number `at` of four 32-bit words of a seed's random stream (Philox). */
void tern_data_words(uint64_t seed, uint64_t at, uint32_t words[4]);
/* Returns a uniform number of [0, 1) from words[0] and words[1]. */
double tern_data_real(const uint32_t words[2]);
/* Returns a uniform number of 0..n - 1 from words[0] and words[1]; n > 0. */
int64_t tern_data_below(const uint32_t words[4], int64_t n);
/* Draws four words: the next group of the current item's stream, or the cpu's generator outside of
 * items. */
tern_status tern_data_draw(uint32_t words[4]);

/* ---- samplers (sampler.c) ---------------------------------------------------------------- */

typedef struct tern_sampler_kind {
    const char *name;
    /* Prepares an epoch of a data set of `length` items. Sets *samples to its number of samples, on
     * all ranks together. */
    tern_status (*begin)(tern_sampler *s, int64_t length, uint64_t seed, int64_t epoch,
                         int64_t *samples);
    int64_t (*at)(tern_sampler *s, int64_t position); /* Returns the item at a position of
                                                         0..samples - 1. */
    /* Returns a hash of the settings. NULL: the name suffices. */
    uint64_t (*fingerprint)(const tern_sampler *s);
} tern_sampler_kind;

struct tern_sampler {
    tern_handle handle;
    const tern_sampler_kind *kind;
    tern_sampler *inner; /* sampler of a batch sampler's items */
    int64_t batch_size;  /* batch size of a batch sampler, else 0 */
    bool drop_last;
    int world, rank; /* number of ranks and this rank, 1 and 0 unless distributed */
    bool uneven, cuts;
    /* Used by some kinds: weights[n] or indices[n], how many samples to draw, and the epoch's order
     * if it is a list of `ordered` indices. */
    double *weights;
    int64_t *indices, *order;
    int64_t n, samples, ordered;
    bool shuffles, replaces, has_seed;
    uint64_t own_seed, seed; /* seed is that of the epoch */
    int64_t epoch;
    tern_sampler_type type;
    void *data;
};

#define TERN_SAMPLER_GIVEN(s, function) TERN_GIVEN(s, "sampler", function)

/* ---- random orders of 0..n-1 (order.c) ------------------------------------------------------- */

/* Above this length no list is made: each number is computed from its position. */
enum { TERN_ORDER_LISTED = 1 << 22 };
/* Shuffles order[n]. */
void tern_data_shuffle(int64_t *order, int64_t n, uint64_t seed);
/* Returns the number at a position of a random order of 0..n - 1. */
int64_t tern_data_permuted(int64_t position, int64_t n, uint64_t seed);
uint64_t tern_data_hash(uint64_t so_far, const void *bytes, size_t n);

/* ---- transforms (transform.c) ------------------------------------------------------------ */

typedef struct tern_transform_kind {
    const char *name; /* such as "RandomHorizontalFlip" */
    tern_tensor *(*apply)(tern_transform *t, tern_tensor *x);
    void (*free_data)(tern_transform *t); /* frees what data points to, or NULL */
    /* pointwise: each element of the result depends only on that of x and its channel, without
     * randomness. */
    bool pointwise;
} tern_transform_kind;

struct tern_transform {
    tern_handle handle;
    const tern_transform_kind *kind;
    void *data;
};

#define TERN_TRANSFORM_GIVEN(t, function) TERN_GIVEN(t, "transform", function)

/* Returns a transform with a copy of data, or NULL after TERN_ERR_MEMORY. */
tern_transform *tern_transform_new(const tern_transform_kind *kind, const void *data, size_t bytes);
/* Returns t applied to x, or NULL after an error. */
tern_tensor *tern_transform_run(tern_transform *t, tern_tensor *x);

#endif
