/* test_bucket_view.c -- places of their own for gradients: views of a bucket, where products make them. */
#include "support.h"
#include "tensor/fuse/chain.h"
#include "tensor/leaf.h"
#include "tensor/storage.h"
#include <pthread.h>

#define SHAPE TERN_SHAPE

static tern_tensor *leaf(const char *device, double a, double b)
{
    return tern_requires_grad_(TENSOR(device, TERN_F32, SHAPE(2), a, b), true);
}

static void a_gradient_lies_where_it_is_told(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *bucket = tern_zeros(SHAPE(5), TERN_F32, device);
        tern_tensor *m = tern_requires_grad_(tern_ones(SHAPE(1, 3), TERN_F32, device), true);
        tern_tensor *a = leaf(device, 1, 2);
        tern_tensor *view = tern_storage_view(bucket, SHAPE(2), NULL, 3);
        assert_ok(tern_set_grad_bucket_view(m, tern_storage_view(bucket, SHAPE(1, 3), NULL, 0)));
        assert_ok(tern_set_grad_bucket_view(a, view));
        assert_ptr_equal(tern_grad_bucket_view(a), view);
        for (int time = 0; time < 3; time++) {
            tern_tensor *y = tern_add(tern_sum(tern_mul(a, a)), tern_sum(m));
            assert_ok(tern_backward(y));
            assert_ptr_equal(tern_grad(a), view);
            assert_values(bucket, 1, 1, 1, 2, 4);
            assert_ok(tern_backward(tern_sum(tern_mul(a, a))));
            assert_values(bucket, 1, 1, 1, 4, 8);
            if (time == 0) { /* set to none: the bucket is written over by the next */
                assert_ok(tern_set_grad(a, NULL));
                assert_ok(tern_set_grad(m, NULL));
            } else { /* or zeroed, which leaves them there */
                tern_zero_(tern_grad(a));
                tern_zero_(tern_grad(m));
                assert_values(bucket, 0, 0, 0, 0, 0);
            }
        }
        assert_ok(tern_set_grad(a, tern_ones(SHAPE(2), TERN_F32, device)));
        assert_ok(tern_backward(tern_sum(tern_mul(a, a))));
        assert_ptr_equal(tern_grad(a), view);
        assert_values(view, 3, 5);
        assert_int_equal(tern_set_grad_bucket_view(a, m), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "a bucket view of [1, 3]");
        assert_ok(tern_set_grad_bucket_view(a, NULL));
        assert_ok(tern_set_grad(a, NULL));
        assert_ok(tern_backward(tern_sum(tern_mul(a, a))));
        assert_ptr_not_equal(tern_grad(a), view);
    }
}

/* Functions of a weight that make its gradient by a product. */
static tern_tensor *by_linear(tern_tensor *x, tern_tensor *w)
{
    return tern_linear(x, w, NULL);
}

static tern_tensor *by_matmul(tern_tensor *x, tern_tensor *w)
{
    return tern_matmul(x, w);
}

static tern_tensor *by_conv(tern_tensor *x, tern_tensor *w)
{
    return tern_conv2d(tern_view(x, SHAPE(4, 1, 8, 8)), w, NULL, NULL);
}

static tern_tensor *by_view(tern_tensor *x, tern_tensor *w)
{
    return by_conv(x, tern_view(w, SHAPE(8, 1, 1, 8)));
}

static tern_tensor *by_conv_transpose(tern_tensor *x, tern_tensor *w)
{
    return tern_conv_transpose2d(tern_view(x, SHAPE(4, 1, 8, 8)), w, NULL, NULL);
}

static tern_tensor *by_two(tern_tensor *x, tern_tensor *w)
{
    return tern_linear(tern_linear(x, w, NULL), w, NULL);
}

/* Leaves beside the weight. Gradients with a graph and their leaves hold each other, until one lets go. */
static tern_tensor *others[4];

static tern_tensor *another(tern_tensor *x)
{
    int i = 0;
    while (others[i])
        i++;
    return others[i] = tern_requires_grad_(x, true);
}

static void let_go_of_others(void)
{
    for (int i = 0; others[i]; i++) {
        assert_ok(tern_set_grad(others[i], NULL));
        others[i] = NULL;
    }
}

static void none(tern_stage *stage)
{
    (void)stage; /* they are there */
}

/* In one operation where the device has that. */
static tern_tensor *three(tern_tensor *x, tern_tensor *w1, tern_tensor *w2)
{
    tern_tensor *b = another(tern_ones(SHAPE(8), TERN_F32, tern_device(x)));
    tern_stage stages[] = {
        {.kind = &tern_stage_linear, .parameters = none, .weight = w1, .bias = b},
        {.kind = &tern_stage_relu},
        {.kind = &tern_stage_linear, .parameters = none, .weight = w2, .bias = b}};
    tern_tensor *y = NULL;
    return tern_fuse_chain(stages, 3, &x, &y)
               ? y
               : tern_linear(tern_relu(tern_linear(x, w1, b)), w2, b);
}

static tern_tensor *by_three(tern_tensor *x, tern_tensor *w)
{
    tern_tensor *other = tern_full(SHAPE(8, 8), TERN_SCALAR(0.1), TERN_F32, tern_device(x));
    return three(x, w, another(other));
}

static tern_tensor *by_tied_three(tern_tensor *x, tern_tensor *w)
{
    return three(x, w, w);
}

static tern_tensor *by_square(tern_tensor *x, tern_tensor *w)
{
    return tern_matmul(tern_matmul(x, w), tern_matmul(w, w));
}

static tern_tensor *twice(tern_tensor *grad, void *user)
{
    (void)user;
    return tern_mul_scalar(grad, TERN_SCALAR(2));
}

/* How many blocks of memory a backward pass asks for. */
static uint64_t blocks_of_walk(const char *device, tern_tensor *loss)
{
    tern_counters before, after;
    assert_ok(tern_get_counters(device, &before));
    assert_ok(tern_backward_with(loss, &(tern_backward_options){.retain_graph = true}));
    assert_ok(tern_get_counters(device, &after));
    return after.allocations - before.allocations;
}

/* A product writes the gradient where it is to lie: a block less than without a place for it, the same bits. Not where others
 * see it first, or something is there. */
static void products_make_gradients_in_place(void **state)
{
    (void)state;
    static const struct {
        tern_tensor *(*call)(tern_tensor *x, tern_tensor *w);
        bool whole;
        tern_shape shape;
    } ways[] = {{by_linear, true, {2, {8, 8}}},
                {by_matmul, true, {2, {8, 8}}},
                {by_conv_transpose, true, {4, {1, 2, 4, 8}}},
                {by_conv, true, {4, {8, 1, 1, 8}}},
                {by_view, false, {2, {8, 8}}},
                {by_three, true, {2, {8, 8}}},
                {by_tied_three, false, {2, {8, 8}}},
                {by_square, false, {2, {8, 8}}},
                {by_two, false, {2, {8, 8}}}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        TERN_SCOPE {
            tern_manual_seed(5);
            tern_tensor *x = tern_randn(SHAPE(32, 8), TERN_F32, device);
            tern_tensor *w = tern_requires_grad_(tern_randn(ways[i].shape, TERN_F32, device), true);
            tern_tensor *bucket = tern_zeros(SHAPE(100), TERN_F32, device);
            tern_tensor *view = tern_storage_view(bucket, ways[i].shape, NULL, 16);
            tern_tensor *loss =
                tern_sum(tern_exp(tern_mul_scalar(ways[i].call(x, w), TERN_SCALAR(0.1))));
            const tern_backward_options again = {.retain_graph = true};
            blocks_of_walk(device, loss);
            assert_ok(tern_set_grad(w, NULL));
            const uint64_t without = blocks_of_walk(device, loss);
            tern_tensor *wanted = tern_clone(tern_grad(w));
            assert_ok(tern_set_grad(w, NULL));
            assert_ok(tern_set_grad_bucket_view(w, view));
            const uint64_t within = blocks_of_walk(device, loss);
            if (ways[i].whole)
                assert_int_equal(without - within, 1);
            assert_ptr_equal(tern_grad(w), view);
            assert_true(tern_equal(view, wanted));
            assert_ok(tern_backward_with(loss, &again)); /* added to it */
            assert_true(tern_equal(view, tern_mul_scalar(wanted, TERN_SCALAR(2))));
            tern_tensor *caught = NULL, *kept = tern_clone(view);
            const tern_autograd_grad_options retain = {.retain_graph = true};
            assert_ok(tern_set_grad(w, NULL));
            assert_ok(tern_autograd_grad(&loss, 1, &w, 1, &caught, &retain));
            assert_true(tern_equal(caught, wanted) && tern_equal(view, kept));
            const int hook = tern_register_hook(w, twice, NULL);
            assert_ok(tern_backward_with(loss, &again));
            assert_ptr_equal(tern_grad(w), view);
            assert_true(tern_equal(view, kept));
            assert_ok(tern_remove_hook(w, hook));
            assert_ok(tern_set_grad(w, NULL));
            assert_ok(tern_backward_with(loss, &(tern_backward_options){.create_graph = true}));
            assert_true(tern_allclose(tern_grad(w), wanted, 1e-5, 1e-5, false));
            assert_true(tern_equal(view, kept));
            assert_values(tern_narrow(bucket, 0, 80, 1), 0); /* and nothing around it */
            assert_values(tern_narrow(bucket, 0, 15, 1), 0);
            assert_ok(tern_set_grad_bucket_view(w, NULL));
            assert_ok(tern_set_grad(w, NULL));
            let_go_of_others();
        }
}

typedef struct placed {
    tern_tensor *x, *w, *bucket, *view;
} placed;

/* A weight whose gradient lies in the middle of a bucket of sevens. */
static placed place(const char *device, int64_t rows)
{
    placed p = {tern_ones(SHAPE(rows, 8), TERN_F32, device),
                tern_requires_grad_(tern_ones(SHAPE(8, 8), TERN_F32, device), true),
                tern_full(SHAPE(100), TERN_SCALAR(7), TERN_F32, device), NULL};
    p.view = tern_storage_view(p.bucket, SHAPE(8, 8), NULL, 16);
    assert_ok(tern_set_grad_bucket_view(p.w, p.view));
    return p;
}

static bool all_are(tern_tensor *x, double value)
{
    return tern_item_int(tern_all(tern_eq_scalar(x, TERN_SCALAR(value))));
}

static void unplace(const placed *p)
{
    assert_true(all_are(tern_narrow(p->bucket, 0, 0, 16), 7)); /* nothing else was written */
    assert_true(all_are(tern_narrow(p->bucket, 0, 80, 20), 7));
    assert_ok(tern_set_grad_bucket_view(p->w, NULL));
    assert_ok(tern_set_grad(p->w, NULL));
}

static void no_rows_are_zeros_in_place(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int way = 0; way < 3; way++)
        TERN_SCOPE {
            placed p = place(device, 0);
            tern_tensor *y = way == 0   ? tern_linear(p.x, p.w, NULL)
                             : way == 1 ? tern_matmul(p.x, p.w)
                                        : tern_conv1d(tern_view(p.x, SHAPE(0, 8, 1)),
                                                      tern_unsqueeze(p.w, 2), NULL, NULL);
            assert_ok(tern_backward(tern_sum(y)));
            assert_ptr_equal(tern_grad(p.w), p.view);
            assert_true(all_are(p.view, 0));
            unplace(&p);
        }
}

/* The gradient of the step before, which the next backward pass writes over, while that one runs. */
static void what_was_there_may_be_an_operand(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        placed p = place(device, 8);
        assert_ok(tern_backward(tern_sum(tern_linear(p.x, p.w, NULL))));
        assert_true(all_are(p.view, 8));
        assert_ok(tern_set_grad(p.w, NULL));
        tern_tensor *y = tern_linear(p.x, p.w, NULL);
        assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = p.view}));
        assert_true(all_are(p.view, 64));
        assert_ok(tern_set_grad(p.w, NULL));
        assert_ok(tern_backward(tern_sum(tern_linear(p.view, p.w, NULL))));
        assert_true(all_are(p.view, 512));
        /* Of another node it is gone when its turn comes. */
        assert_ok(tern_set_grad(p.w, NULL));
        tern_tensor *older = tern_sum(tern_mul(p.w, p.view));
        tern_tensor *loss = tern_add(older, tern_sum(tern_linear(p.x, p.w, NULL)));
        assert_int_equal(tern_backward(loss), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "modified by an inplace operation");
        tern_clear_error();
        assert_null(tern_grad(p.w));
        unplace(&p);
    }
}

static tern_tensor *walk_again(tern_tensor *grad, void *user)
{
    const placed *p = user;
    (void)grad;
    TERN_ENABLE_GRAD
    assert_ok(tern_backward(tern_sum(tern_linear(p->x, p->w, NULL))));
    return NULL;
}

/* A backward pass within one that has written its gradient and waits for another. */
static void walks_within_walks_add_up(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        placed p = place(device, 8);
        tern_tensor *a = leaf(device, 1, 2);
        for (int time = 1; time <= 2; time++) {
            tern_tensor *first = tern_sum(tern_linear(p.x, p.w, NULL)), *between = tern_exp(a);
            tern_tensor *last = tern_sum(tern_linear(p.x, p.w, NULL));
            assert_true(tern_register_hook(between, walk_again, &p) > 0);
            assert_ok(tern_backward(tern_add(tern_add(first, last), tern_sum(between))));
            assert_ptr_equal(tern_grad(p.w), p.view);
            assert_true(all_are(p.view, 24 * time));
        }
        unplace(&p);
    }
}

static void *walk_on_thread(void *user)
{
    const placed *p = user;
    for (int i = 0; i < 100; i++)
        TERN_SCOPE
            tern_backward(tern_sum(tern_linear(p->x, p->w, NULL)));
    return NULL;
}

static void threads_add_up(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int time = 0; time < 5; time++)
        TERN_SCOPE {
            placed p = place(device, 8);
            pthread_t thread[3];
            for (int i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, walk_on_thread, &p), 0);
            for (int i = 0; i < 3; i++)
                pthread_join(thread[i], NULL);
            assert_true(all_are(tern_grad(p.w), 8 * 300));
            unplace(&p);
        }
}

/* Views of the user's, put there with tern_set_grad, are zeroed in place too. */
static void zero_grad_takes_views_of_a_bucket(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_linear(2, 1, &(tern_linear_options){.device = device});
        tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
        tern_tensor *bucket = tern_ones(SHAPE(3), TERN_F32, device);
        tern_tensor *part = tern_view(tern_narrow(bucket, 0, 0, 2), SHAPE(1, 2));
        assert_ok(tern_set_grad(tern_nn_parameter(m, "weight"), part));
        assert_ok(tern_optim_zero_grad_with(o, false));
        assert_values(bucket, 0, 0, 1);
        assert_ptr_equal(tern_grad(tern_nn_parameter(m, "weight")), part);
        tern_optim_free(o);
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_gradient_lies_where_it_is_told),  TEST(products_make_gradients_in_place),
    TEST(no_rows_are_zeros_in_place),        TEST(what_was_there_may_be_an_operand),
    TEST(walks_within_walks_add_up),         TEST(threads_add_up),
    TEST(zero_grad_takes_views_of_a_bucket),
};

TEST_MAIN(tests)
