/* test_threads.c -- two threads train at once, each its own model on shared inputs, and get the
 * numbers that one alone gets. */
#include "support.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { STEPS = 20, THREADS = 2 };

typedef struct job {
    const char *device;
    tern_tensor *inputs; /* shared, read only */
    uint64_t seed;
    bool failed;
    double losses[STEPS];
} job;

static void *train(void *user)
{
    job *j = user;
    TERN_SCOPE {
        tern_tensor *w = test_uniform(j->device, TERN_F32, TERN_SHAPE(40), -1, 1, j->seed);
        tern_requires_grad_(w, true);
        for (int step = 0; step < STEPS; step++)
            TERN_SCOPE {
                tern_tensor *y = tern_tanh(tern_mul(j->inputs, w));
                tern_tensor *loss = tern_mean(tern_square(tern_sub_scalar(y, TERN_SCALAR(0.5))));
                tern_backward(loss);
                j->losses[step] = tern_item(loss);
                TERN_NO_GRAD
                    tern_sub_(w, tern_mul_scalar(tern_grad(w), TERN_SCALAR(2.0)));
                tern_set_grad(w, NULL);
            }
    }
    j->failed = tern_last_status() != TERN_OK;
    return NULL;
}

static void two_threads_train_as_one_would(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *inputs = test_uniform(device, TERN_F32, TERN_SHAPE(30, 40), -1, 1, 9);
        job alone[THREADS], together[THREADS];
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            alone[i] = together[i] = (job){.device = device, .inputs = inputs, .seed = (uint64_t)i};
            train(&alone[i]);
            assert_false(alone[i].failed);
            assert_true(alone[i].losses[STEPS - 1] < alone[i].losses[0]);
        }
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, train, &together[i]), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        for (int i = 0; i < THREADS; i++) {
            assert_false(together[i].failed);
            assert_memory_equal(alone[i].losses, together[i].losses, sizeof alone[i].losses);
        }
    }
}

/* ---- threads that share ------------------------------------------------------------------ */

enum { MANY = 8, ROUNDS = 40, LEAVES = 5 };

typedef struct sharer {
    tern_tensor *const *leaf; /* shared, and differentiated by all; gradients are whole numbers */
    tern_tensor *input;
    bool failed;
} sharer;

static void *differentiate(void *user)
{
    sharer *s = user;
    for (int round = 0; round < ROUNDS; round++)
        TERN_SCOPE {
            /* Each leaf twice, through a view too; the input gets its first history here. */
            tern_tensor *sum = tern_sum(tern_select(s->input, 0, 0));
            for (int i = 0; i < LEAVES; i++) {
                tern_tensor *once = tern_sum(tern_mul(s->leaf[i], s->input));
                sum = tern_add(sum, tern_add(once, tern_sum(tern_transpose(s->leaf[i], 0, 1))));
            }
            tern_backward(sum);
        }
    s->failed = tern_last_status() != TERN_OK;
    return NULL;
}

static atomic_int seen;
static tern_tensor *note_gradient(tern_tensor *grad, void *user)
{
    (void)grad;
    (void)user;
    atomic_fetch_add(&seen, 1);
    return NULL;
}

static void gradients_of_threads_add_up_in_a_shared_leaf(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *leaf[LEAVES],
            *three = tern_full(TERN_SHAPE(3, 4), TERN_SCALAR(3), TERN_F32, device);
        sharer jobs[MANY];
        pthread_t threads[MANY];
        atomic_store(&seen, 0);
        for (int i = 0; i < LEAVES; i++) {
            leaf[i] = test_uniform(device, TERN_F32, TERN_SHAPE(3, 4), -1, 1, 7);
            tern_requires_grad_(leaf[i], true);
        }
        tern_register_hook(leaf[0], note_gradient, NULL);
        for (int i = 0; i < MANY; i++) {
            jobs[i] = (sharer){.leaf = leaf, .input = three};
            assert_int_equal(pthread_create(&threads[i], NULL, differentiate, &jobs[i]), 0);
        }
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_false(jobs[i].failed);
        }
        assert_int_equal(atomic_load(&seen), MANY * ROUNDS); /* once for each backward pass */
        tern_tensor *expected =
            tern_full(TERN_SHAPE(3, 4), TERN_SCALAR(4 * MANY * ROUNDS), TERN_F32, device);
        for (int i = 0; i < LEAVES; i++)
            assert_same(tern_grad(leaf[i]), expected);
    }
}

/* A backward pass inside of another, through the same leaf, after which more comes to it. */
static tern_tensor *walk_inside(tern_tensor *grad, void *user)
{
    tern_tensor *const *leaf = user;
    (void)grad;
    TERN_ENABLE_GRAD
    {
        tern_tensor *first = tern_sum(leaf[1]), *last = tern_sum(leaf[0]), *unused[2];
        tern_tensor *loss = tern_add(first, last);
        assert_ok(tern_autograd_grad(&loss, 1, leaf, 2, unused, NULL));
    }
    return NULL;
}

static void a_walk_inside_of_another_leaves_it_its_leaves(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *leaf[2];
        for (int i = 0; i < 2; i++)
            leaf[i] = tern_requires_grad_(tern_ones(TERN_SHAPE(3), TERN_F32, "cpu"), true);
        tern_tensor *middle = tern_exp(leaf[0]);
        tern_register_hook(middle, walk_inside, leaf);
        tern_register_hook(leaf[0], note_gradient, NULL);
        tern_tensor *below = tern_mul(middle, leaf[1]); /* leaf[0] is reached before and after */
        tern_tensor *loss = tern_sum(below);
        loss = tern_add(loss, tern_sum(leaf[0]));
        loss = tern_add(loss, tern_sum(leaf[1]));
        atomic_store(&seen, 0);
        assert_ok(tern_backward(loss));
        assert_int_equal(atomic_load(&seen), 2); /* once in each backward pass */
    }
}

static void *leave_tensors_behind(void *unused)
{
    for (int i = 0; i < 10; i++)
        tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
    return unused;
}

static void the_end_of_a_thread_drains_its_scope(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, leave_tensors_behind, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(tern_live_tensors(), before);
}

static void *change_modes(void *ok)
{
    *(bool *)ok = tern_is_grad_enabled();
    tern_set_grad_enabled(false);
    tern_zeros(TERN_SHAPE(-1), TERN_F32, NULL);
    return NULL;
}

static void modes_and_errors_are_per_thread(void **state)
{
    (void)state;
    bool ok = false;
    pthread_t thread;
    TERN_NO_GRAD {
        assert_int_equal(pthread_create(&thread, NULL, change_modes, &ok), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_true(ok);
    assert_true(tern_is_grad_enabled());
    assert_no_error();
}

static const struct CMUnitTest tests[] = {
    TEST(two_threads_train_as_one_would),
    TEST(gradients_of_threads_add_up_in_a_shared_leaf),
    TEST(a_walk_inside_of_another_leaves_it_its_leaves),
    TEST(the_end_of_a_thread_drains_its_scope),
    TEST(modes_and_errors_are_per_thread),
};
TEST_MAIN(tests)
