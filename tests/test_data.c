/* test_data.c -- data sets, samplers and the orders that they give. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>

/* Item i: (i, i + 1000). */
static tern_status counted(tern_dataset *self, int64_t i, tern_tensor **item)
{
    (void)self;
    item[0] = tern_tensor_scalar(TERN_SCALAR(i), TERN_I64, NULL);
    item[1] = tern_tensor_scalar(TERN_SCALAR(i + 1000), TERN_I64, NULL);
    return TERN_OK;
}

static tern_dataset *count_to(int64_t n)
{
    return tern_data_dataset("Count", n, 2, counted, NULL);
}

static int64_t number(tern_dataset *d, int64_t i, int k)
{
    TERN_SCOPE_HERE;
    tern_tensor *item[TERN_MAX_ITEM];
    assert_ok(tern_dataset_item(d, i, item));
    return tern_item_int(item[k]);
}

/* The items of a loop over a loader of numbers, into list; how many. */
static int64_t order_of(tern_loader *loader, int64_t *list)
{
    int64_t n = 0;
    TERN_EACH_BATCH(batch, loader)
    {
        for (int64_t i = 0; i < batch.size; i++) {
            list[n] = tern_item_int(tern_select(batch.tensors[0], 0, i));
            assert_int_equal(batch.indices[i], list[n]);
            n++;
        }
    }
    return n;
}

static int64_t sampled(tern_dataset *d, tern_sampler *sampler, int64_t *list)
{
    tern_loader *loader =
        tern_data_loader(d, &(tern_loader_options){.sampler = sampler, .seed = 3, .batch_size = 4});
    assert_non_null(loader);
    int64_t n = order_of(loader, list);
    tern_loader_free(loader);
    return n;
}

/* ---- data sets --------------------------------------------------------------------------- */

static void own_items_are_given(void **state)
{
    (void)state;
    tern_dataset *d = count_to(5);
    assert_int_equal(tern_dataset_length(d), 5);
    assert_int_equal(tern_dataset_count(d), 2);
    assert_string_equal(tern_dataset_name(d), "Count");
    assert_int_equal(number(d, 4, 1), 1004);
    tern_tensor *item[2];
    assert_int_equal(tern_dataset_item(d, 5, item), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "index 5 is out of range: Count has 5 items");
    assert_int_equal(tern_dataset_item(d, -1, item), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "index -1 is out of range");
    tern_dataset_free(d);
    assert_int_equal(tern_dataset_length(d), -1);
    assert_error(TERN_ERR_STATE, "is gone");
    assert_null(tern_data_dataset("Bad", -1, 1, counted, NULL));
    assert_error(TERN_ERR_ARGUMENT, "length -1 should be non-negative");
    assert_null(tern_data_dataset("Bad", 1, 0, counted, NULL));
    assert_error(TERN_ERR_ARGUMENT, "tensors an item, not 0");
    assert_null(tern_data_dataset("Bad", 1, 1, NULL, NULL));
    assert_error(TERN_ERR_ARGUMENT, "item is NULL");
}

static tern_status half_done(tern_dataset *self, int64_t i, tern_tensor **item)
{
    (void)self;
    if (i == 1)
        return TERN_ERR_IO;
    item[0] = i == 2
                  ? tern_add(tern_ones(TERN_SHAPE(2), 0, NULL), tern_ones(TERN_SHAPE(3), 0, NULL))
                  : NULL;
    return TERN_OK;
}

static void items_that_are_not_there_are_errors(void **state)
{
    (void)state;
    tern_tensor *item[2];
    tern_dataset *d = tern_data_dataset("Half", 3, 1, half_done, NULL);
    assert_int_equal(tern_dataset_item(d, 0, item), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "Half: item 0 failed, or gave no tensor");
    assert_int_equal(tern_dataset_item(d, 1, item), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "Half: item 1 failed");
    assert_int_equal(tern_dataset_item(d, 2, item), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "tern_add");
    tern_dataset_free(d);
}

static tern_status where_am_i(tern_dataset *self, int64_t i, tern_tensor **item)
{
    (void)i;
    tern_tensor *weight = tern_dataset_data(self);
    item[0] = tern_mul(tern_ones(TERN_SHAPE(1), 0, NULL), weight);
    return TERN_OK;
}

static void an_item_is_made_on_the_cpu_without_gradients(void **state)
{
    (void)state;
    TERN_SCOPE
        FOR_EACH_DEVICE(device)
        {
            tern_set_default_device(device);
            tern_tensor *item[1],
                *weight = tern_requires_grad_(tern_ones(TERN_SHAPE(1), TERN_F32, "cpu"), true);
            tern_dataset *d = tern_data_dataset("Here", 1, 1, where_am_i, weight);
            assert_ok(tern_dataset_item(d, 0, item));
            assert_string_equal(tern_device(item[0]), "cpu");
            assert_false(tern_requires_grad(item[0]));
            assert_string_equal(tern_default_device(), device);
            assert_true(tern_requires_grad(tern_mul(weight, weight)));
            tern_dataset_free(d);
            tern_set_default_device(NULL);
        }
}

static void rows_of_tensors_are_items(void **state)
{
    (void)state;
    TERN_SCOPE
        FOR_EACH_DEVICE(device)
        {
            tern_tensor *x =
                tern_reshape(tern_arange(0, 12, 1, TERN_F32, device), TERN_SHAPE(4, 3));
            tern_tensor *y = tern_arange(0, 4, 1, TERN_I64, "cpu"), *item[2];
            tern_dataset *d = tern_data_tensor_dataset(x, y);
            assert_ok(tern_dataset_item(d, 2, item));
            assert_values(item[0], 6, 7, 8);
            assert_values(item[1], 2);
            tern_loader *loader = tern_data_loader(d, &(tern_loader_options){.batch_size = 3});
            TERN_EACH_BATCH(batch, loader) if (batch.index == 0)
            {
                assert_shape(batch.tensors[0], 3, 3);
                assert_string_equal(tern_device(batch.tensors[0]), device);
                assert_values(batch.tensors[0], 0, 1, 2, 3, 4, 5, 6, 7, 8);
            }
            tern_loader_free(loader);
            tern_dataset_free(d);
            assert_null(tern_data_tensor_dataset(x, tern_arange(0, 3, 1, TERN_I64, NULL)));
            assert_error(TERN_ERR_SHAPE, "Size mismatch between tensors: 4 rows at 0 and 3 at 1");
        }
}

static void others_are_put_together(void **state)
{
    (void)state;
    tern_dataset *a = count_to(5), *b = count_to(3);
    tern_dataset *part = tern_data_subset(a, (int64_t[]){4, 0, 4}, 3);
    tern_dataset *both = tern_data_concat_dataset(part, b);
    tern_dataset *beside = tern_data_stack_dataset(part, b);
    assert_null(tern_data_subset(a, (int64_t[]){5}, 1));
    assert_error(TERN_ERR_ARGUMENT, "index 5 is out of range: Count has 5 items");
    assert_null(tern_data_stack_dataset(a, b));
    assert_error(TERN_ERR_ARGUMENT, "Size mismatch between datasets: 5 items at 0 and 3 at 1");
    tern_dataset_free(part);
    tern_dataset_free(a);
    tern_dataset_free(b);
    assert_int_equal(tern_dataset_length(both), 6);
    assert_int_equal(tern_dataset_len(both), 6); /* the other name */
    const int64_t expected[] = {4, 0, 4, 0, 1, 2};
    for (int i = 0; i < 6; i++)
        assert_int_equal(number(both, i, 0), expected[i]);
    assert_int_equal(tern_dataset_count(beside), 4);
    assert_int_equal(number(beside, 2, 0), 4);
    assert_int_equal(number(beside, 2, 3), 1002);
    tern_dataset_free(both);
    tern_dataset_free(beside);
}

static void a_split_shares_all_items(void **state)
{
    (void)state;
    tern_dataset *d = count_to(10), *part[3] = {NULL};
    assert_ok(tern_data_random_split(d, (double[]){0.75, 0.25}, 2, 1, part));
    assert_int_equal(tern_dataset_length(part[0]), 8);
    assert_int_equal(tern_dataset_length(part[1]), 2);
    int seen[10] = {0};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < (k ? 2 : 8); i++)
            seen[number(part[k], i, 0)]++;
    for (int i = 0; i < 10; i++)
        assert_int_equal(seen[i], 1);
    tern_dataset_free(part[0]);
    tern_dataset_free(part[1]);
    assert_ok(tern_data_random_split(d, (double[]){3, 0, 7}, 3, 1, part));
    assert_int_equal(tern_dataset_length(part[1]), 0);
    for (int i = 0; i < 3; i++)
        tern_dataset_free(part[i]);
    assert_int_equal(tern_data_random_split(d, (double[]){1, 0.8}, 2, 1, part), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "length 1 is 0.8, and the sum 1.8");
    assert_int_equal(tern_data_random_split(d, (double[]){3, 8}, 2, 1, part), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT,
                 "Sum of input lengths does not equal the length of the input dataset!");
    assert_null(part[0]);
    tern_dataset_free(d);
}

static tern_tensor *doubled(tern_tensor *x, void *user)
{
    ++*(int *)user;
    return tern_mul_scalar(x, TERN_SCALAR(2));
}

static void a_transform_changes_one_tensor(void **state)
{
    (void)state;
    int calls = 0;
    tern_dataset *d = count_to(3);
    tern_dataset *twice = tern_data_transformed(d, 1, tern_transforms_lambda(doubled, &calls));
    assert_int_equal(number(twice, 2, 1), 2004);
    assert_int_equal(number(twice, 2, 0), 2);
    assert_int_equal(calls, 2);
    assert_null(tern_data_transformed(d, 2, tern_transforms_lambda(doubled, &calls)));
    assert_error(TERN_ERR_ARGUMENT, "has 2 tensors, none with number 2");
    assert_null(tern_data_transformed(NULL, 0, tern_transforms_lambda(doubled, &calls)));
    assert_error(TERN_ERR_ARGUMENT, "dataset is NULL");
    tern_dataset_free(d);
    tern_dataset_free(twice);
}

/* ---- orders ------------------------------------------------------------------------------ */

static void is_permutation(const int64_t *list, int64_t n)
{
    char *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) {
        assert_in_range(list[i], 0, n - 1);
        assert_false(seen[list[i]]);
        seen[list[i]] = 1;
    }
    free(seen);
}

static void orders_are_those_of_their_samplers(void **state)
{
    (void)state;
    int64_t list[100];
    tern_dataset *d = count_to(20);
    assert_int_equal(sampled(d, tern_data_sequential_sampler(), list), 20);
    assert_int_equal(list[7], 7);
    assert_int_equal(sampled(d, tern_data_random_sampler(NULL), list), 20);
    is_permutation(list, 20);
    assert_true(memcmp(list, (int64_t[]){0, 1, 2, 3}, 4 * sizeof *list) != 0);
    const tern_random_sampler_options again = {.replacement = true, .num_samples = 100};
    assert_int_equal(sampled(d, tern_data_random_sampler(&again), list), 100);
    const tern_random_sampler_options longer = {.num_samples = 50};
    assert_int_equal(sampled(d, tern_data_random_sampler(&longer), list), 50);
    is_permutation(list, 20);
    is_permutation(list + 20, 20);
    const int64_t some[] = {3, 5, 7};
    assert_int_equal(sampled(d, tern_data_subset_random_sampler(some, 3), list), 3);
    assert_int_equal(list[0] + list[1] + list[2], 15);
    const double weights[] = {0, 1, 0, 3};
    assert_int_equal(sampled(d, tern_data_weighted_random_sampler(weights, 4, 100, NULL), list),
                     100);
    int three = 0;
    for (int i = 0; i < 100; i++) {
        assert_true(list[i] == 1 || list[i] == 3);
        three += list[i] == 3;
    }
    assert_in_range(three, 55, 95);
    const tern_weighted_random_sampler_options once = {.no_replacement = true};
    assert_int_equal(sampled(d, tern_data_weighted_random_sampler(weights, 4, 2, &once), list), 2);
    assert_int_equal(list[0] + list[1], 4);
    tern_dataset_free(d);
}

/* Beyond what is kept as a list an order is computed: it is one, too. */
static void large_orders_are_permutations(void **state)
{
    (void)state;
    const int64_t n = (1 << 22) + 3;
    int64_t *list = malloc((size_t)n * sizeof *list), at = 0, moved = 0;
    tern_tensor *x = tern_zeros(TERN_SHAPE(1), TERN_U8, "cpu");
    tern_dataset *all = tern_data_tensor_dataset(tern_expand(x, TERN_SHAPE(n)));
    tern_loader *loader = tern_data_loader(
        all, &(tern_loader_options){.shuffle = true, .batch_size = 1 << 20, .seed = 1});
    TERN_EACH_BATCH(batch, loader)
    {
        memcpy(list + at, batch.indices, (size_t)batch.size * sizeof *list);
        at += batch.size;
    }
    assert_int_equal(at, n);
    is_permutation(list, n);
    for (int64_t i = 1; i < n; i++)
        moved += list[i] != list[i - 1] + 1;
    assert_true(moved > n - 100);
    tern_loader_free(loader);
    tern_dataset_free(all);
    free(list);
}

static void ranks_share_an_order(void **state)
{
    (void)state;
    int64_t list[10];
    tern_dataset *d = count_to(5);
    const struct {
        tern_distributed_sampler_options options;
        int64_t n[2], first[3], second[3];
    } rows[] = {{{.no_shuffle = true}, {3, 3}, {0, 2, 4}, {1, 3, 0}},
                {{.no_shuffle = true, .drop_last = true}, {2, 2}, {0, 2}, {1, 3}},
                {{.no_shuffle = true, .uneven = true}, {3, 2}, {0, 2, 4}, {1, 3}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int rank = 0; rank < 2; rank++) {
            int64_t n = sampled(d, tern_data_distributed_sampler(2, rank, &rows[i].options), list);
            assert_int_equal(n, rows[i].n[rank]);
            assert_memory_equal(list, rank ? rows[i].second : rows[i].first,
                                (size_t)n * sizeof *list);
        }
    assert_null(tern_data_distributed_sampler(2, 2, NULL));
    assert_error(TERN_ERR_ARGUMENT, "Invalid rank 2, rank should be in the interval [0, 1]");
    tern_dataset_free(d);
}

static tern_status backwards(void *data, uint64_t seed, int64_t epoch, int64_t *order,
                             int64_t length)
{
    (void)data, (void)seed;
    for (int64_t i = 0; i < length; i++)
        order[i] = length - 1 - i + epoch;
    return TERN_OK;
}

static int64_t growing(void *data, int64_t epoch, const int64_t *order, int64_t length,
                       int64_t position)
{
    (void)data, (void)epoch, (void)order, (void)length;
    return position + 1;
}

static void own_samplers_choose_items_and_batches(void **state)
{
    (void)state;
    int64_t sizes[8], n = 0;
    const tern_sampler_type type = {.name = "Backwards", .order = backwards, .batch = growing};
    tern_dataset *d = count_to(10);
    tern_loader *loader = tern_data_loader(
        d, &(tern_loader_options){.batch_sampler = tern_data_sampler(&type, 10, NULL)});
    TERN_EACH_BATCH(batch, loader)
    {
        assert_int_equal(batch.indices[0], 9 - (n ? n == 1 ? 1 : n == 2 ? 3 : 7 : 0));
        sizes[n++] = batch.size;
    }
    assert_int_equal(n, 4);
    assert_memory_equal(sizes, ((int64_t[]){1, 2, 4, 3}), sizeof(int64_t[4]));
    TERN_EACH_BATCH(batch, loader) fail();
    assert_error(TERN_ERR_ARGUMENT, "Backwards: index 10 of 10 items");
    tern_loader_free(loader);
    loader =
        tern_data_loader(d, &(tern_loader_options){.batch_sampler = tern_data_batch_sampler(
                                                       tern_data_sequential_sampler(), 4, true)});
    assert_int_equal(tern_loader_length(loader), 2);
    assert_int_equal(tern_loader_len(loader), 2); /* the other name */
    tern_loader_free(loader);
    tern_dataset_free(d);
}

/* As many items as are left of a number, which may be none. */
static int64_t of_six(void *data, int64_t epoch, const int64_t *order, int64_t length,
                      int64_t position)
{
    (void)epoch, (void)order;
    assert_in_range(position, 0, length - 1);
    return position < 6 ? 3 : *(int64_t *)data;
}

static void a_batch_has_an_item_at_least(void **state)
{
    (void)state;
    int64_t wrong[] = {0, -1, INT64_MIN};
    tern_dataset *d = count_to(10);
    const tern_sampler_type type = {.name = "Sixes", .order = backwards, .batch = of_six};
    for (int workers = 0; workers < 3; workers++)
        for (int i = 0; i < 3; i++) {
            char text[96];
            int n = 0;
            tern_loader *loader = tern_data_loader(
                d,
                &(tern_loader_options){.num_workers = workers,
                                       .batch_sampler = tern_data_sampler(&type, 10, &wrong[i])});
            TERN_EACH_BATCH(batch, loader) n += batch.size == 3;
            assert_int_equal(n, 2); /* those before it are given */
            snprintf(text, sizeof text, "sampler Sixes must have at least 1 item, not %lld",
                     (long long)wrong[i]);
            assert_error(TERN_ERR_ARGUMENT, text);
            tern_loader_free(loader);
        }
    tern_dataset_free(d);
}

static void wrong_samplers_are_refused(void **state)
{
    (void)state;
    assert_null(tern_data_weighted_random_sampler((double[]){1, -1}, 2, 1, NULL));
    assert_error(TERN_ERR_ARGUMENT, "weight 1 is -1");
    assert_null(tern_data_weighted_random_sampler((double[]){0}, 1, 1, NULL));
    assert_error(TERN_ERR_ARGUMENT, "the sum of weights is 0");
    assert_null(tern_data_weighted_random_sampler((double[]){1}, 1, 0, NULL));
    assert_error(TERN_ERR_ARGUMENT, "num_samples=0");
    assert_null(tern_data_random_sampler(&(tern_random_sampler_options){.num_samples = -2}));
    assert_error(TERN_ERR_ARGUMENT, "num_samples should be a positive integer value");
    assert_null(tern_data_batch_sampler(tern_data_sequential_sampler(), 0, false));
    assert_error(TERN_ERR_ARGUMENT, "batch_size=0");
    assert_null(tern_data_batch_sampler(NULL, 1, false));
    assert_error(TERN_ERR_ARGUMENT, "sampler is NULL");
    tern_dataset *d = count_to(2);
    int64_t list[8];
    tern_loader *loader = tern_data_loader(
        d, &(tern_loader_options){.sampler = tern_data_subset_random_sampler((int64_t[]){2}, 1)});
    assert_int_equal(order_of(loader, list), 0);
    assert_error(TERN_ERR_ARGUMENT, "index 2 of 2 items");
    tern_loader_free(loader);
    tern_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(own_items_are_given),
        TEST(items_that_are_not_there_are_errors),
        TEST(an_item_is_made_on_the_cpu_without_gradients),
        TEST(rows_of_tensors_are_items),
        TEST(others_are_put_together),
        TEST(a_split_shares_all_items),
        TEST(a_transform_changes_one_tensor),
        TEST(orders_are_those_of_their_samplers),
        TEST(large_orders_are_permutations),
        TEST(ranks_share_an_order),
        TEST(own_samplers_choose_items_and_batches),
        TEST(a_batch_has_an_item_at_least),
        TEST(wrong_samplers_are_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
