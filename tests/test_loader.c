/* test_loader.c -- loops over batches: order, noise, states, devices, and ways out. */
#include "loaders.h"
#include <pthread.h>

/* ---- the same, whoever makes it ---------------------------------------------------------- */

static void workers_change_nothing(void **state)
{
    (void)state;
    tern_rng_state before, after;
    tern_dataset *d = noise(NULL);
    assert_ok(tern_get_rng_state("cpu", &before));
    double first[3];
    for (int workers = 0; workers < 4; workers++) {
        tern_loader *loader = with_workers(d, workers);
        for (int epoch = 0; epoch < 3; epoch++) {
            int64_t items;
            double sum = run(loader, -1, &items);
            assert_int_equal(items, ITEMS);
            if (workers == 0)
                first[epoch] = sum;
            assert_true(sum == first[epoch]);
        }
        tern_loader_free(loader);
    }
    assert_true(first[0] != first[1] && first[1] != first[2]);
    assert_ok(tern_get_rng_state("cpu", &after));
    assert_memory_equal(&before, &after, sizeof before);
    tern_dataset_free(d);
}

static void a_seed_is_drawn_where_none_is_given(void **state)
{
    (void)state;
    tern_dataset *d = noise(NULL);
    double sum[3];
    for (int i = 0; i < 3; i++) {
        tern_manual_seed(i < 2 ? 5 : 6);
        tern_loader *loader = tern_data_loader(d, &(tern_loader_options){.shuffle = true});
        sum[i] = run(loader, -1, NULL);
        tern_loader_free(loader);
    }
    assert_true(sum[0] == sum[1] && sum[1] != sum[2]);
    tern_dataset_free(d);
}

/* ---- states ------------------------------------------------------------------------------ */

static double resumed(tern_dataset *d, int at, int workers, int batch_size)
{
    tern_loader_state now;
    tern_loader *first = with_workers(d, 2);
    tern_loader *second = tern_data_loader(
        d, &(tern_loader_options){
               .batch_size = batch_size, .shuffle = true, .num_workers = workers, .seed = 1});
    int64_t items = 0, more = 0;
    double sum = 0;
    TERN_EACH_BATCH(batch, first)
    {
        for (int64_t i = 0; i < batch.size; i++)
            sum = 0.9 * sum + tern_item(tern_select(tern_select(batch.tensors[0], 0, i), 0, 0));
        items += batch.size;
        if (batch.index == at)
            break;
    }
    assert_ok(tern_loader_get_state(first, &now));
    assert_int_equal(now.samples, items);
    assert_int_equal(now.epoch, 0);
    tern_loader_free(first);
    assert_ok(tern_loader_set_state(second, &now));
    TERN_EACH_BATCH(batch, second)
    {
        for (int64_t i = 0; i < batch.size; i++)
            sum = 0.9 * sum + tern_item(tern_select(tern_select(batch.tensors[0], 0, i), 0, 0));
        more += batch.size;
    }
    assert_int_equal(items + more, ITEMS);
    assert_ok(tern_loader_get_state(second, &now));
    assert_true(now.epoch == 1 && now.samples == 0);
    tern_loader_free(second);
    return sum;
}

static void a_loop_goes_on_where_another_stood(void **state)
{
    (void)state;
    tern_dataset *d = noise(NULL);
    double whole = resumed(d, 0, 0, 4);
    for (int at = 1; at <= 12; at += 3)
        assert_true(resumed(d, at, at % 3, 1 + at) == whole);
    tern_dataset_free(d);
}

static void states_of_others_are_refused(void **state)
{
    (void)state;
    tern_loader_state now;
    settings none = {.broken = -1, .slow = -1};
    tern_dataset *d = noise(&none), *shorter = tern_data_subset(d, (int64_t[]){1, 2}, 2);
    tern_loader *a = with_workers(d, 0), *b = with_workers(shorter, 0);
    tern_loader *c = tern_data_loader(d, NULL);
    assert_ok(tern_loader_get_state(a, &now));
    assert_int_equal(tern_loader_set_state(b, &now), TERN_ERR_STATE);
    assert_error(TERN_ERR_STATE, "another data set or sampler");
    assert_int_equal(tern_loader_set_state(c, &now), TERN_ERR_STATE);
    assert_error(TERN_ERR_STATE, "another data set or sampler");
    TERN_EACH_BATCH(batch, a)
    {
        assert_int_equal(tern_loader_set_state(a, &now), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "a loop goes through the loader");
        TERN_EACH_BATCH(inner, a) fail();
        assert_error(TERN_ERR_STATE, "another loop goes through the loader");
        if (batch.index == 2)
            break;
    }
    now.epoch = -1;
    assert_int_equal(tern_loader_set_state(a, &now), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "epoch -1");
    tern_loader_free(a);
    tern_loader_free(b);
    tern_loader_free(c);
    tern_dataset_free(shorter);
    tern_dataset_free(d);
}

/* Two ranks stop, three go on: every item comes once. */
static void the_number_of_ranks_may_change(void **state)
{
    (void)state;
    tern_loader_state now = {0};
    settings none = {.broken = -1, .slow = -1};
    tern_dataset *d = noise(&none);
    const tern_distributed_sampler_options options = {.uneven = true};
    int seen[ITEMS] = {0};
    for (int rank = 0; rank < 5; rank++) {
        bool first = rank < 2;
        tern_loader *loader = tern_data_loader(
            d, &(tern_loader_options){.batch_size = 4,
                                      .sampler = tern_data_distributed_sampler(
                                          first ? 2 : 3, first ? rank : rank - 2, &options)});
        if (!first)
            assert_ok(tern_loader_set_state(loader, &now));
        TERN_EACH_BATCH(batch, loader)
        {
            for (int64_t i = 0; i < batch.size; i++)
                seen[batch.indices[i]]++;
            if (first && batch.index == 2)
                break;
        }
        if (first)
            assert_ok(tern_loader_get_state(loader, &now));
        tern_loader_free(loader);
    }
    assert_int_equal(now.samples, 24);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(seen[i], 1);
    tern_dataset_free(d);
}

/* ---- ways out ---------------------------------------------------------------------------- */

static int64_t leaves_by_return(tern_loader *loader)
{
    TERN_EACH_BATCH(batch, loader)
    {
        tern_ones(TERN_SHAPE(2), TERN_F32, NULL);
        if (batch.index == 2)
            return batch.size;
    }
    return -1;
}

static void every_way_out_leaves_nothing(void **state)
{
    (void)state;
    tern_dataset *d = noise(NULL);
    int64_t live = tern_live_tensors(), turns = 0;
    tern_loader_state now;
    TERN_SCOPE {
        tern_loader *loader = with_workers(d, 2);
        assert_int_equal(leaves_by_return(loader), 4);
        TERN_EACH_BATCH(batch, loader)
        {
            turns++;
            if (batch.index == 1)
                goto out;
        }
    out:
        TERN_EACH_BATCH(batch, loader)
        {
            if (batch.index % 2)
                continue;
            turns++;
        }
        assert_int_equal(turns, 2 + 7);
        assert_ok(tern_loader_get_state(loader, &now));
        assert_int_equal(now.epoch, 3);
        TERN_EACH_BATCH(batch, loader) break;
        tern_loader_free(loader);
    }
    assert_int_equal(tern_live_tensors(), live);
    TERN_EACH_BATCH(batch, NULL) fail();
    assert_error(TERN_ERR_ARGUMENT, "loader is NULL");
    tern_dataset_free(d);
}

static void a_turn_is_a_scope(void **state)
{
    (void)state;
    tern_dataset *d = noise(NULL);
    tern_loader *loader = with_workers(d, 0);
    tern_tensor *kept = NULL;
    int64_t in_body = -1;
    TERN_EACH_BATCH(batch, loader)
    {
        tern_tensor *sum = tern_sum(batch.tensors[1]);
        if (batch.index == 3)
            kept = tern_keep(batch.tensors[1]);
        if (in_body < 0)
            in_body = tern_live_tensors();
        if (batch.index <= 3)
            assert_int_equal(tern_live_tensors(), in_body);
        (void)sum;
    }
    assert_shape(kept, 4);
    tern_release(kept);
    tern_loader_free(loader);
    tern_dataset_free(d);
}

/* ---- iterable data sets ------------------------------------------------------------------ */

typedef struct stream {
    int64_t at, epoch;
    int inside;
} stream;

static tern_status rewound(tern_dataset *self, int64_t epoch)
{
    stream *s = tern_dataset_data(self);
    s->at = 0;
    s->epoch = epoch;
    return TERN_OK;
}

static tern_status next(tern_dataset *self, tern_tensor **item, bool *end)
{
    stream *s = tern_dataset_data(self);
    assert_int_equal(s->inside++, 0);
    *end = s->at == 23;
    if (!*end)
        item[0] = tern_tensor_scalar(TERN_SCALAR(s->at++ + 100 * s->epoch), TERN_I64, NULL);
    s->inside--;
    return TERN_OK;
}

static tern_tensor *with_noise(tern_tensor *x, void *user)
{
    (void)user;
    return tern_add(tern_to_dtype(x, TERN_F32), tern_rand(TERN_SHAPE_SCALAR, TERN_F32, NULL));
}

static void streams_are_read_in_order(void **state)
{
    (void)state;
    stream s = {0};
    double first[2] = {0};
    tern_dataset *d = tern_data_iterable_dataset("Stream", 1, rewound, next, &s);
    tern_dataset *noisy_stream =
        tern_data_transformed(d, 0, tern_transforms_lambda(with_noise, NULL));
    for (int workers = 0; workers < 4; workers++) {
        tern_loader_state now;
        tern_loader *loader = tern_data_loader(
            noisy_stream,
            &(tern_loader_options){.batch_size = 5, .num_workers = workers, .seed = 2});
        assert_int_equal(tern_loader_length(loader), -1);
        for (int epoch = 0; epoch < 2; epoch++) {
            int64_t items;
            double sum = run(loader, -1, &items);
            assert_int_equal(items, 23);
            if (!workers)
                first[epoch] = sum;
            assert_true(sum == first[epoch]);
        }
        TERN_EACH_BATCH(batch, loader) if (batch.index == 1) break;
        assert_ok(tern_loader_get_state(loader, &now));
        assert_int_equal(now.samples, 10);
        assert_ok(tern_loader_set_state(loader, &now));
        TERN_EACH_BATCH(batch, loader)
        if (batch.index == 0)
            assert_in_range((int)tern_item(tern_select(batch.tensors[0], 0, 0)), 210, 211);
        tern_loader_free(loader);
    }
    assert_null(tern_data_loader(d, &(tern_loader_options){.shuffle = true}));
    assert_error(TERN_ERR_ARGUMENT, "DataLoader with IterableDataset");
    tern_dataset_free(noisy_stream);
    tern_dataset_free(d);
}

/* ---- on devices -------------------------------------------------------------------------- */

static tern_tensor *halved(tern_tensor *x, void *user)
{
    assert_string_equal(tern_device(x), user);
    return tern_mul_scalar(x, TERN_SCALAR(0.5));
}

static void batches_come_to_the_device(void **state)
{
    (void)state;
    tern_dataset *d = noise(NULL);
    TERN_SCOPE
        FOR_EACH_DEVICE(device)
        {
            double sum[3];
            for (int workers = 0; workers < 3; workers++) {
                double all = 0;
                tern_loader *loader = tern_data_loader(
                    d, &(tern_loader_options){
                           .batch_size = 8,
                           .num_workers = workers,
                           .seed = 4,
                           .pin_memory = true,
                           .device = device,
                           .device_transform = tern_transforms_compose(
                               tern_transforms_lambda(halved, (void *)(uintptr_t)device),
                               tern_transforms_random_horizontal_flip(0.5))});
                TERN_EACH_BATCH(batch, loader)
                {
                    assert_string_equal(tern_device(batch.tensors[1]), device);
                    all = 0.5 * all +
                          tern_item(tern_select(tern_select(batch.tensors[0], 0, 0), 0, 0));
                }
                sum[workers] = all;
                tern_loader_free(loader);
            }
            assert_true(sum[0] == sum[1] && sum[1] == sum[2]);
        }
    tern_dataset_free(d);
}

static void progress(const tern_loader_progress *p, void *user)
{
    tern_loader_progress *last = user;
    assert_true(p->batch >= last->batch && p->samples <= p->total && p->waited <= p->seconds);
    assert_int_equal(p->batches, 13);
    *last = *p;
}

static void progress_is_told(void **state)
{
    (void)state;
    tern_dataset *d = noise(NULL);
    tern_loader_progress last = {0};
    tern_loader *loader = tern_data_loader(
        d, &(tern_loader_options){
               .batch_size = 4, .num_workers = 1, .progress = progress, .progress_user = &last});
    assert_int_equal(tern_loader_length(loader), 13);
    TERN_EACH_BATCH(batch, loader) assert_int_equal(last.batch, batch.index + 1);
    assert_int_equal(last.batch, 13);
    assert_int_equal(last.samples, ITEMS);
    tern_loader_free(loader);
    tern_dataset_free(d);
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Items that outlive their batch, given back by another thread than the one that made them. */
typedef struct hoard {
    pthread_mutex_t lock;
    tern_tensor *item[ITEMS];
    int n;
} hoard;

static tern_status hoarded(tern_dataset *self, int64_t i, tern_tensor **item)
{
    hoard *h = tern_dataset_data(self);
    /* Of two sizes in one size class, and of one that is too large to be kept by the thread. */
    item[0] = tern_full(TERN_SHAPE(4), TERN_SCALAR(i), TERN_F32, NULL);
    item[0] = tern_index_select(item[0], 0, tern_arange(0, 3, 1, TERN_I64, NULL));
    tern_tensor *kept = tern_full(TERN_SHAPE(i % 2 ? 3 : 5000), TERN_SCALAR(i), TERN_F32, NULL);
    pthread_mutex_lock(&h->lock);
    h->item[h->n++] = tern_keep(kept);
    pthread_mutex_unlock(&h->lock);
    return TERN_OK;
}

static uint64_t allocated(void)
{
    tern_memory_stats stats;
    assert_ok(tern_memory_get_stats("cpu", &stats));
    assert_true(stats.allocated <= stats.allocated_peak);
    return stats.allocated;
}

static void memory_is_counted_to_the_byte(void **state)
{
    (void)state;
    for (int workers = 0; workers < 4; workers++) {
        hoard h = {.lock = PTHREAD_MUTEX_INITIALIZER};
        tern_dataset *d = tern_data_dataset("Hoard", ITEMS, 1, hoarded, &h);
        tern_loader *loader = with_workers(d, workers);
        /* the cpu's place for faults of indices is there */
        tern_index_select(tern_zeros(TERN_SHAPE(1), TERN_F32, NULL), 0,
                          tern_zeros(TERN_SHAPE(1), TERN_I64, NULL));
        tern_scope_clear();
        uint64_t before = allocated(), bytes = 0;
        TERN_EACH_BATCH(batch, loader) assert_int_equal(tern_size(batch.tensors[0], 1), 3);
        assert_int_equal(h.n, ITEMS);
        for (int i = 0; i < h.n; i++) {
            assert_true(tern_item(tern_select(h.item[i], 0, 0)) ==
                        tern_item(tern_select(h.item[i], 0, -1)));
            bytes += (uint64_t)tern_numel(h.item[i]) * sizeof(float);
        }
        tern_scope_clear();
        assert_int_equal(allocated() - before, bytes);
        for (int i = 0; i < h.n; i++)
            tern_release(h.item[i]);
        assert_int_equal(allocated(), before);
        tern_loader_free(loader);
        tern_dataset_free(d);
    }
}

/* ---- what is refused --------------------------------------------------------------------- */

static void wrong_options_are_refused(void **state)
{
    (void)state;
    tern_dataset *d = noise(NULL);
    const struct {
        tern_loader_options options;
        const char *words;
    } rows[] = {
        {{.batch_size = -1},
         "batch_size should be a positive integer value, but got batch_size=-1"},
        {{.num_workers = -1}, "num_workers option should be non-negative"},
        {{.prefetch_factor = -1}, "prefetch_factor"},
        {{.timeout = -1, .num_workers = 1}, "timeout option should be non-negative"},
        {{.timeout = 1}, "takes workers"},
        {{.device_transform_which = 2,
          .device_transform = tern_transforms_to_dtype(TERN_F32, true)},
         "none with number 2"},
        {{.shuffle = true, .sampler = tern_data_sequential_sampler()},
         "sampler option is mutually exclusive with shuffle"},
        {{.batch_size = 3, .batch_sampler = tern_data_sequential_sampler()},
         "batch_sampler option is mutually exclusive"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(tern_data_loader(d, &rows[i].options));
        assert_error(TERN_ERR_ARGUMENT, rows[i].words);
    }
    assert_null(tern_data_loader(d, &(tern_loader_options){.device = "nowhere:3"}));
    assert_error(TERN_ERR_DEVICE, "nowhere");
    assert_null(
        tern_data_loader(NULL, &(tern_loader_options){.sampler = tern_data_sequential_sampler()}));
    assert_error(TERN_ERR_ARGUMENT, "dataset is NULL");
    tern_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(workers_change_nothing),
        TEST(a_seed_is_drawn_where_none_is_given),
        TEST(a_loop_goes_on_where_another_stood),
        TEST(states_of_others_are_refused),
        TEST(the_number_of_ranks_may_change),
        TEST(every_way_out_leaves_nothing),
        TEST(a_turn_is_a_scope),
        TEST(streams_are_read_in_order),
        TEST(batches_come_to_the_device),
        TEST(progress_is_told),
        TEST(memory_is_counted_to_the_byte),
        TEST(wrong_options_are_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
