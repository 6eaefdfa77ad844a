/* test_threads.c -- two threads train at once, each its own model on shared inputs, and get the
 * numbers that one alone gets. */
#include "support.h"
#include <pthread.h>
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
    TEST(the_end_of_a_thread_drains_its_scope),
    TEST(modes_and_errors_are_per_thread),
};
TEST_MAIN(tests)
