/* test_loader_errors.c -- items that fail, that hang, that do not fit, and options that do not. */
#include "loaders.h"
#include "base/memory.h"
#include <stdlib.h>

/* ---- errors ------------------------------------------------------------------------------ */

static atomic_int heard;
static void hear(const tern_error_info *error, void *user)
{
    (void)user;
    assert_non_null(strstr(error->message, "item 13 is broken"));
    atomic_fetch_add(&heard, 1);
}

static void an_error_comes_with_its_batch(void **state)
{
    (void)state;
    settings s = {.broken = 13, .slow = -1};
    tern_dataset *d = noise(&s);
    for (int workers = 0; workers < 3; workers++) {
        int64_t live = tern_live_tensors(), items;
        heard = 0;
        assert_ok(tern_set_error_policy(TERN_ERRORS_CALL, hear, NULL));
        tern_loader *loader =
            tern_data_loader(d, &(tern_loader_options){.batch_size = 3, .num_workers = workers});
        TERN_SCOPE
            run(loader, -1, &items);
        assert_int_equal(items, 12);
        assert_int_equal(heard, 1);
        assert_ok(tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL));
        assert_error(TERN_ERR_IO, "item 13 of Noise");
        tern_loader_free(loader);
        assert_int_equal(tern_live_tensors(), live);
    }
    tern_dataset_free(d);
}

static void items_that_fail_are_left_out(void **state)
{
    (void)state;
    settings s = {.broken = 13, .slow = -1};
    tern_dataset *d = noise(&s);
    tern_fail(TERN_ERR_DEVICE, "an error that was there before");
    for (int workers = 0; workers < 3; workers++)
        for (int size = 1; size < 4; size++) {
            int64_t items;
            tern_loader *loader = tern_data_loader(d, &(tern_loader_options){.batch_size = size,
                                                                             .num_workers = workers,
                                                                             .skip_errors = true});
            TERN_SCOPE
                run(loader, -1, &items);
            assert_int_equal(items, ITEMS - 1);
            assert_int_equal(tern_loader_skipped(loader), 1);
            tern_loader_free(loader);
        }
    assert_error(TERN_ERR_DEVICE, "an error that was there before");
    tern_dataset_free(d);
}

/* ---- batches are filled up ----------------------------------------------------------------------- */

enum { HALF = 23 };

/* Item i is i; those of which a bit is set in *user fail. */
static tern_status numbered(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const uint32_t *fails = tern_dataset_data(self);
    if (*fails >> i & 1)
        return tern_fail(TERN_ERR_IO, "no item %d", (int)i);
    item[0] = tern_tensor_scalar(TERN_SCALAR(i), TERN_I64, NULL);
    return TERN_OK;
}

static int64_t next_of_stream;

static tern_status from_the_beginning(tern_dataset *self, int64_t epoch)
{
    (void)self;
    (void)epoch;
    next_of_stream = 0;
    return TERN_OK;
}

static tern_status next_number(tern_dataset *self, tern_tensor **item, bool *end)
{
    (void)self;
    *end = next_of_stream == HALF;
    item[0] = *end ? NULL : tern_tensor_scalar(TERN_SCALAR(next_of_stream), TERN_I64, NULL);
    next_of_stream += !*end;
    return TERN_OK;
}

static tern_status twice(tern_tensor *const *items, int64_t n, int count, tern_tensor **batch,
                         void *user)
{
    (void)user;
    TERN_SCOPE {
        tern_data_default_collate(items, n, count, batch, NULL);
        batch[0] = tern_escape(tern_mul(batch[0], 2));
    }
    return batch[0] ? TERN_OK : tern_last_status();
}

/* Every batch but the last is full; the items are those that do not fail, in order. */
static void expect_full(tern_loader *loader, uint32_t fails, int64_t size, bool drops, int times)
{
    int64_t next = 0, good = 0, batches = 0, given = 0;
    for (int64_t i = 0; i < HALF; i++)
        good += !(fails >> i & 1);
    TERN_EACH_BATCH(batch, loader)
    {
        const int64_t wanted = good - given < size ? good - given : size;
        assert_int_equal(batch.size, wanted);
        assert_int_equal(tern_size(batch.tensors[0], 0), wanted);
        double *x = test_read(batch.tensors[0]);
        for (int64_t i = 0; i < batch.size; i++, next++) {
            while (fails >> next & 1)
                next++;
            assert_int_equal(batch.indices[i], next);
            assert_true(x[i] == times * (double)next);
        }
        free(x);
        given += batch.size;
        batches++;
    }
    assert_no_error();
    assert_int_equal(batches, drops ? good / size : (good + size - 1) / size);
}

static void batches_are_filled_up(void **state)
{
    (void)state;
    static const uint32_t patterns[] = {0, 1, 0x12, 0xf, 0x7ff0, 0x400000, 0x555555, 0x7fffff};
    const int64_t live = tern_live_tensors();
    FOR_EACH_DEVICE(device)
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
        for (int workers = 0; workers < 3; workers++)
            for (int64_t size = 1; size < 9; size += 3)
                for (int drops = 0; drops < 2; drops++)
                    for (int own = 0; own < 2; own++) {
                        uint32_t fails = patterns[p];
                        tern_dataset *d = tern_data_dataset("Numbers", HALF, 1, numbered, &fails);
                        tern_loader *loader = tern_data_loader(
                            d, &(tern_loader_options){.batch_size = size,
                                                      .num_workers = workers,
                                                      .drop_last = drops,
                                                      .device = own ? device : NULL,
                                                      .collate = own ? twice : NULL,
                                                      .skip_errors = true});
                        for (int epoch = 0; epoch < 2; epoch++)
                            TERN_SCOPE
                                expect_full(loader, fails, size, drops, own + 1);
                        tern_loader_free(loader);
                        tern_dataset_free(d);
                    }
    assert_int_equal(tern_live_tensors(), live);
}

static void streams_are_given_whole(void **state)
{
    (void)state;
    for (int64_t size = 1; size < 9; size += 3)
        for (int drops = 0; drops < 2; drops++) {
            tern_dataset *d =
                tern_data_iterable_dataset("Numbers", 1, from_the_beginning, next_number, NULL);
            tern_loader *loader = tern_data_loader(d, &(tern_loader_options){.batch_size = size,
                                                                             .drop_last = drops,
                                                                             .skip_errors = true});
            TERN_SCOPE
                expect_full(loader, 0, size, drops, 1);
            tern_loader_free(loader);
            tern_dataset_free(d);
        }
}

/* A state that was taken after batch k, the last and short one too, goes on with the items behind it. */
static void expect_to_go_on(uint32_t fails)
{
    tern_dataset *d = tern_data_dataset("Numbers", HALF, 1, numbered, &fails);
    for (int stop = 0; stop < HALF; stop++) {
        tern_loader_options o = {.batch_size = 4, .skip_errors = true, .seed = 3};
        tern_loader *first = tern_data_loader(d, &o), *second = tern_data_loader(d, &o);
        tern_loader_state where = {0};
        int64_t last = -1, next = -1;
        TERN_EACH_BATCH(batch, first)
        {
            last = batch.indices[batch.size - 1];
            if (batch.index == stop) {
                assert_ok(tern_loader_get_state(first, &where));
                break;
            }
        }
        if (where.samples == 0) { /* the epoch has fewer batches */
            tern_loader_free(first);
            tern_loader_free(second);
            break;
        }
        assert_ok(tern_loader_set_state(second, &where));
        TERN_EACH_BATCH(batch, second)
        {
            next = batch.indices[0];
            break;
        }
        do
            last++;
        while (fails >> last & 1);
        assert_int_equal(next, last < HALF ? last : -1);
        tern_loader_free(first);
        tern_loader_free(second);
    }
    tern_dataset_free(d);
}

static void an_epoch_goes_on_behind_what_was_given(void **state)
{
    (void)state;
    static const uint32_t patterns[] = {0, 2, 0x12, 0x112, 0x1112, 0x8001, 0xfff0};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        expect_to_go_on(patterns[i]);
}

/* ---- workers that cannot begin ------------------------------------------------------------- */

typedef struct beginning {
    int first;         /* workers from this one on fail */
    bool silent;       /* with a status alone */
    atomic_int begun;  /* how many were called */
    atomic_bool ready; /* the last of them was */
    int workers;
} beginning;

static tern_status begins(int worker, void *user)
{
    beginning *b = user;
    if (atomic_fetch_add(&b->begun, 1) + 1 == b->workers)
        atomic_store(&b->ready, true);
    if (worker < b->first)
        return TERN_OK;
    return b->silent ? TERN_ERR_IO : tern_fail(TERN_ERR_IO, "begins: no place %d", worker);
}

/* Item i, slowly, once all workers have begun. */
static tern_status after_all(tern_dataset *self, int64_t i, tern_tensor **item)
{
    beginning *b = tern_dataset_data(self);
    while (b->workers && !atomic_load(&b->ready))
        nap(1);
    nap(2);
    item[0] = tern_tensor_scalar(TERN_SCALAR(i), TERN_I64, NULL);
    return TERN_OK;
}

static tern_status next_after_all(tern_dataset *self, tern_tensor **item, bool *end)
{
    *end = false;
    return after_all(self, 0, item);
}

/* A loop with such workers, twice, as its workers stay: an error each time, which names a worker that failed. */
static void expect_no_beginning(tern_dataset *d, beginning *b)
{
    tern_loader *loader = tern_data_loader(d, &(tern_loader_options){.batch_size = 2,
                                                                     .num_workers = b->workers,
                                                                     .skip_errors = true,
                                                                     .worker_init = begins,
                                                                     .worker_init_user = b});
    for (int loop = 0; loop < 2; loop++) {
        TERN_EACH_BATCH(batch, loader) assert_true(batch.index < 1000);
        const char *text = tern_last_error();
        assert_non_null(strstr(text, "tern_data_loader: worker_init of worker "));
        assert_non_null(strstr(text, b->silent ? ": IO" : "begins: no place "));
        assert_int_equal(tern_last_status(), TERN_ERR_IO);
        tern_clear_error();
    }
    assert_in_range(atomic_load(&b->begun), 1, b->workers); /* others may be late */
    tern_loader_free(loader);
}

static void workers_that_cannot_begin_end_the_loop(void **state)
{
    (void)state;
    int64_t live = tern_live_tensors();
    for (int workers = 1; workers <= 3; workers++)
        for (int first = 0; first < workers; first++)
            for (int silent = 0; silent < 2; silent++) {
                beginning b = {.first = first, .silent = silent, .workers = workers};
                tern_dataset *d = tern_data_dataset("Slow", 200, 1, after_all, &b);
                expect_no_beginning(d, &b);
                tern_dataset_free(d);
                b = (beginning){.first = first, .silent = silent, .workers = workers};
                d = tern_data_iterable_dataset("Stream", 1, NULL, next_after_all, &b);
                expect_no_beginning(d, &b);
                tern_dataset_free(d);
            }
    beginning none = {.first = 0}; /* no worker, no call */
    tern_dataset *d = tern_data_dataset("Slow", 8, 1, after_all, &none);
    tern_loader *loader = tern_data_loader(
        d, &(tern_loader_options){.worker_init = begins, .worker_init_user = &none});
    int64_t items;
    TERN_SCOPE
        run(loader, -1, &items);
    assert_int_equal(items, 8);
    assert_int_equal(atomic_load(&none.begun), 0);
    tern_loader_free(loader);
    tern_dataset_free(d);
    assert_int_equal(tern_live_tensors(), live);
}

static void a_hanging_item_is_named(void **state)
{
    (void)state;
    settings s = {.broken = -1, .slow = 21};
    tern_dataset *d = noise(&s);
    int64_t items, live = tern_live_tensors();
    tern_loader *loader = tern_data_loader(
        d, &(tern_loader_options){.batch_size = 5, .num_workers = 2, .timeout = 3});
    TERN_SCOPE
        run(loader, -1, &items);
    assert_int_equal(items, 20);
    assert_error(TERN_ERR_STATE, "timed out after 3 seconds with Noise: worker");
    tern_loader_free(loader); /* does not wait for it */
    atomic_store(&s.release, true);
    for (int i = 0; i < 100000 && tern_live_tensors() > live; i++) /* it frees what is left */
        nap(1);
    assert_int_equal(tern_live_tensors(), live);
    tern_dataset_free(d);
}

static tern_status uneven_items(tern_dataset *self, int64_t i, tern_tensor **item)
{
    (void)self;
    item[0] = tern_ones(TERN_SHAPE(i), TERN_F32, NULL);
    return TERN_OK;
}

static tern_status lengths_and_all(tern_tensor *const *items, int64_t n, int count,
                                   tern_tensor **batch, void *user)
{
    (void)count, (void)user;
    int64_t lengths[64];
    for (int64_t i = 0; i < n; i++)
        lengths[i] = tern_numel(items[i]);
    batch[0] = tern_cat(items, (int)n, 0);
    batch[1] = tern_from_data(lengths, TERN_SHAPE(n), TERN_I64, "cpu");
    return TERN_OK;
}

static void batches_are_collated(void **state)
{
    (void)state;
    tern_dataset *d = tern_data_dataset("Uneven", 6, 1, uneven_items, NULL);
    for (int workers = 0; workers < 2; workers++) {
        tern_loader *loader =
            tern_data_loader(d, &(tern_loader_options){.batch_size = 2, .num_workers = workers});
        TERN_EACH_BATCH(batch, loader) fail();
        assert_error(TERN_ERR_SHAPE, "stack expects each tensor to be equal size, but got [0] at "
                                     "entry 0 and [1] at entry 1");
        tern_loader_free(loader);
        loader = tern_data_loader(d, &(tern_loader_options){.batch_size = 4,
                                                            .num_workers = workers,
                                                            .collate = lengths_and_all,
                                                            .collate_count = 2});
        TERN_EACH_BATCH(batch, loader)
        {
            assert_int_equal(batch.count, 2);
            assert_int_equal(tern_numel(batch.tensors[0]), batch.index ? 9 : 6);
            assert_int_equal(tern_numel(batch.tensors[1]), batch.size);
        }
        tern_loader_free(loader);
    }
    tern_dataset_free(d);
}

static void the_default_collate_stacks(void **state)
{
    (void)state;
    TERN_SCOPE
        FOR_EACH_DEVICE(device)
        {
            tern_tensor *items[] = {tern_ones(TERN_SHAPE(2), TERN_F32, device),
                                    tern_tensor_scalar(TERN_SCALAR(1), TERN_I64, "cpu"),
                                    tern_zeros(TERN_SHAPE(2), TERN_F32, device),
                                    tern_tensor_scalar(TERN_SCALAR(2.5), TERN_F32, "cpu")};
            tern_tensor *batch[2];
            assert_ok(tern_data_default_collate(items, 2, 2, batch, NULL));
            assert_shape(batch[0], 2, 2);
            assert_values(batch[0], 1, 1, 0, 0);
            assert_string_equal(tern_device(batch[0]), device);
            assert_values(batch[1], 1, 2.5);
        }
}

/* ---- no memory ----------------------------------------------------------------------------- */

/* A loader of parts that are transformed, weighted and of several data sets, with an epoch: true if
 * all went well. */
static bool whole_run(int workers)
{
    settings none = {.broken = -1, .slow = -1};
    const double weights[] = {1, 2, 3, 4};
    int64_t items = 0;
    tern_dataset *d = noise(&none), *part[2] = {NULL};
    tern_data_random_split(d, (double[]){8, ITEMS - 8}, 2, 3, part);
    tern_dataset *all = tern_data_concat_dataset(part[0], part[0]);
    tern_dataset *flipped =
        tern_data_transformed(all, 0,
                              tern_transforms_compose(tern_transforms_random_horizontal_flip(0.5),
                                                      tern_transforms_to_dtype(TERN_F64, false)));
    tern_loader *loader = tern_data_loader(
        flipped,
        &(tern_loader_options){.batch_size = 3,
                               .num_workers = workers,
                               .seed = 2,
                               .sampler = tern_data_weighted_random_sampler(weights, 4, 7, NULL)});
    TERN_EACH_BATCH(batch, loader) items += batch.size;
    tern_loader_free(loader);
    tern_dataset_free(flipped);
    tern_dataset_free(all);
    tern_dataset_free(part[0]);
    tern_dataset_free(part[1]);
    tern_dataset_free(d);
    return items == 7;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int workers = 0; workers < 2; workers++) {
        int64_t live = tern_live_tensors();
        assert_true(whole_run(workers));
        tern_memory_fail_at(UINT64_MAX);
        assert_true(whole_run(workers));
        uint64_t calls = tern_memory_fail_at(0), failed = 0;
        assert_true(calls > 50);
        for (uint64_t n = 1; n <= calls; n++) {
            tern_memory_fail_at(n);
            bool whole = whole_run(workers);
            tern_memory_fail_at(0);
            /* what is kept for the next time may do without */
            if (whole != (tern_last_status() == TERN_OK))
                fail_msg("allocation %llu: %d, %s", (unsigned long long)n, whole,
                         tern_last_error());
            failed += !whole;
            tern_clear_error();
            assert_int_equal(tern_live_tensors(), live);
        }
        assert_true(failed > 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_error_comes_with_its_batch),
        TEST(items_that_fail_are_left_out),
        TEST(batches_are_filled_up),
        TEST(streams_are_given_whole),
        TEST(an_epoch_goes_on_behind_what_was_given),
        TEST(a_hanging_item_is_named),
        TEST(batches_are_collated),
        TEST(the_default_collate_stacks),
        TEST(every_allocation_may_fail),
        TEST(workers_that_cannot_begin_end_the_loop),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
