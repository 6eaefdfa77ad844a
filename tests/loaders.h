/* loaders.h -- what the tests of loaders share: noisy items, and loops over them. */
#ifndef TERN_TESTS_LOADERS_H
#define TERN_TESTS_LOADERS_H
#include "support.h"
#include <stdatomic.h>
#include <time.h>

enum { ITEMS = 50 };

typedef struct settings {
    int64_t broken;      /* the item that fails */
    int64_t slow;        /* the one that takes for ever */
    atomic_bool release; /* it does no longer */
} settings;

static inline void nap(long milliseconds)
{
    nanosleep(&(struct timespec){0, milliseconds * 1000000}, NULL);
}

/* Item i: noise around i (3), and i. */
static inline tern_status noisy(tern_dataset *self, int64_t i, tern_tensor **item)
{
    settings *s = tern_dataset_data(self);
    if (s && i == s->broken)
        return tern_fail(TERN_ERR_IO, "noisy: item %d is broken", (int)i);
    while (s && i == s->slow && !atomic_load(&s->release))
        nap(1);
    item[0] = tern_add_scalar(tern_rand(TERN_SHAPE(3), TERN_F32, NULL), TERN_SCALAR(i));
    item[1] = tern_tensor_scalar(TERN_SCALAR(i), TERN_I64, NULL);
    return TERN_OK;
}

static inline tern_dataset *noise(settings *s)
{
    return tern_data_dataset("Noise", ITEMS, 2, noisy, s);
}

/* At most n batches: a sum that depends on all and on their order. */
static inline double run(tern_loader *loader, int n, int64_t *items)
{
    double sum = 0;
    int64_t count = 0;
    TERN_EACH_BATCH(batch, loader)
    {
        count += batch.size;
        for (int k = 0; k < batch.count; k++)
            sum = 0.9 * sum + tern_item(tern_sum(batch.tensors[k]));
        if (--n == 0)
            break;
    }
    if (items)
        *items = count;
    return sum;
}

static inline tern_loader *with_workers(tern_dataset *d, int workers)
{
    return tern_data_loader(
        d, &(tern_loader_options){
               .batch_size = 4, .shuffle = true, .num_workers = workers, .seed = 9});
}

#endif
