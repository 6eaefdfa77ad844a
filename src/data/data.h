/* data.h -- the insides of data sets, samplers and transforms. */
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
    int64_t length; /* -1: not known */
    int count;
    void *data;
    /* Of a transformed one: what is transformed, and how. */
    tern_dataset *inner;
    tern_transform *transform;
    int which;
    tern_names classes;   /* of its labels */
    int64_t n_classes;    /* where they have no names */
    atomic_bool iterated; /* a loop goes through an iterable one */
};

#define TERN_DATASET_GIVEN(d, function) TERN_GIVEN(d, "data set", function)

static inline bool tern_dataset_iterates(const tern_dataset *d)
{
    return d->type.next != NULL;
}
/* What a transformed one takes its items from. */
static inline tern_dataset *tern_dataset_root(tern_dataset *d)
{
    while (d->inner)
        d = d->inner;
    return d;
}
/* d with one reference more; NULL after an error that names function where d is NULL or gone. */
tern_dataset *tern_dataset_keep(tern_dataset *d, const char *function);
/* Item i into item[count]: of the innermost scope, none NULL. An error names the data set where its
 * code recorded none. */
tern_status tern_dataset_get(tern_dataset *d, int64_t i, tern_tensor **item);
/* The same of n items as a batch; the type has items. */
tern_status tern_dataset_get_items(tern_dataset *d, const int64_t *indices, int64_t n,
                                   tern_tensor **batch);
/* The next one before it is transformed, which tern_dataset_finish does. */
tern_status tern_dataset_get_next(tern_dataset *d, tern_tensor **item, bool *end);
tern_status tern_dataset_finish(tern_dataset *d, tern_tensor **item);

/* ---- batches (collate.c) ----------------------------------------------------------------- */

/* n items, of which `filled` are there, become a batch: those of the host are copied into their
 * rows one by one, others kept until all are there. */
typedef struct tern_stack_up {
    int count;
    int64_t n, filled;
    tern_tensor *rows[TERN_MAX_ITEM]; /* (n, ...) on the host */
    tern_tensor **kept;               /* of n * count; NULL: none is elsewhere */
} tern_stack_up;
/* Add an item; what fails leaves the others as they are. */
tern_status tern_stack_up_add(tern_stack_up *s, tern_tensor *const *item);
/* Into batch[count], which are the caller's; s is empty after it, also when this fails. */
tern_status tern_stack_up_end(tern_stack_up *s, tern_tensor **batch);
void tern_stack_up_drop(tern_stack_up *s);

/* ---- how an item is made (item_state.c) ----------------------------------------------------- */

/* The state of a worker: the default device is the cpu, nothing is recorded, nothing is cast, and
 * work is not shared with other threads. */
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

/* The seed of what depends on these three. */
uint64_t tern_data_seed(uint64_t seed, uint64_t epoch, uint64_t index);
/* Four words of 32 bits: group `at` of a seed (Philox). */
void tern_data_words(uint64_t seed, uint64_t at, uint32_t words[4]);
/* Of [0, 1), from words[0] and words[1]. */
double tern_data_real(const uint32_t words[2]);
/* Of 0..n - 1, from all four; n > 0. */
int64_t tern_data_below(const uint32_t words[4], int64_t n);
/* The next group of what random numbers an item has; the cpu's generator outside of items. */
tern_status tern_data_draw(uint32_t words[4]);

/* ---- samplers (sampler.c) ---------------------------------------------------------------- */

typedef struct tern_sampler_kind {
    const char *name;
    /* Prepare an epoch of a data set of `length` items: *samples are given, over all ranks. */
    tern_status (*begin)(tern_sampler *s, int64_t length, uint64_t seed, int64_t epoch,
                         int64_t *samples);
    int64_t (*at)(tern_sampler *s, int64_t position); /* of 0..samples - 1 */
    uint64_t (*fingerprint)(const tern_sampler *s);   /* NULL: the name says it all */
} tern_sampler_kind;

struct tern_sampler {
    tern_handle handle;
    const tern_sampler_kind *kind;
    tern_sampler *inner; /* of a batch sampler */
    int64_t batch_size;  /* of a batch sampler; 0 of others */
    bool drop_last;
    int world, rank; /* 1 and 0 unless distributed */
    bool uneven, cuts;
    /* The kind's own: numbers[n], what is drawn of them, and the epoch's order, where it is a
     * list. */
    double *weights;
    int64_t *indices, *order;
    int64_t n, samples, ordered;
    bool shuffles, replaces, has_seed;
    uint64_t own_seed, seed; /* of an epoch */
    int64_t epoch;
    tern_sampler_type type;
    void *data;
};

#define TERN_SAMPLER_GIVEN(s, function) TERN_GIVEN(s, "sampler", function)

/* ---- an order of 0..n-1 (order.c) -------------------------------------------------------- */

/* Above so many it is computed number by number, and takes no memory. */
enum { TERN_ORDER_LISTED = 1 << 22 };
/* Fill order[n]. */
void tern_data_shuffle(int64_t *order, int64_t n, uint64_t seed);
/* The number at a position of a random order of n. */
int64_t tern_data_permuted(int64_t position, int64_t n, uint64_t seed);
uint64_t tern_data_hash(uint64_t so_far, const void *bytes, size_t n);

/* ---- transforms (transform.c) ------------------------------------------------------------ */

typedef struct tern_transform_kind {
    const char *name; /* "RandomHorizontalFlip" */
    tern_tensor *(*apply)(tern_transform *t, tern_tensor *x);
    void (*free_data)(tern_transform *t); /* what data points to; NULL: nothing */
    bool pointwise; /* an element of the result is a function of that of x and its channel; nothing
                      is drawn */
} tern_transform_kind;

struct tern_transform {
    tern_handle handle;
    const tern_transform_kind *kind;
    void *data;
};

#define TERN_TRANSFORM_GIVEN(t, function) TERN_GIVEN(t, "transform", function)

/* A transform with a copy of data; NULL after TERN_ERR_MEMORY. */
tern_transform *tern_transform_new(const tern_transform_kind *kind, const void *data, size_t bytes);
/* x transformed. NULL always comes with an error. */
tern_tensor *tern_transform_run(tern_transform *t, tern_tensor *x);

#endif
