/* test_threads_models.c -- eight threads at once: with models of their own, with one model that they
 * share to infer, and with one whose gradients they add up. */
#include "support.h"
#include "faults/models.h"
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 8, STEPS = 3, MOST_MODELS = 8 };

static void run_threads(void *(*body)(void *), void *user, size_t bytes)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, (char *)user + (size_t)i * bytes),
                         0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* ---- models of their own --------------------------------------------------------------------- */

typedef struct trainer {
    test_training t[MOST_MODELS];
    double loss[MOST_MODELS];
    bool failed;
} trainer;

static void *train(void *user)
{
    trainer *w = user;
    for (int i = 0; i < test_models_count; i++)
        for (int step = 0; step < STEPS; step++)
            test_training_step(&w->t[i], &w->loss[i]);
    w->failed = tern_last_status() != TERN_OK;
    return NULL;
}

/* Random numbers are the device's, which all threads draw from: models with dropout go with them. */
static bool is_random(const test_model *model)
{
    return strncmp(model->name, "mlp", 3) == 0;
}

static void threads_train_as_one_does(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        trainer *w = calloc(THREADS + 1, sizeof *w);
        assert_non_null(w);
        for (int i = 0; i <= THREADS; i++)
            for (int k = 0; k < test_models_count; k++) {
                assert_ok(test_training_start(&w[i].t[k], &test_models[k], device));
                assert_ok(test_training_begin(&w[i].t[k]));
            }
        train(&w[THREADS]); /* alone */
        run_threads(train, w, sizeof *w);
        for (int i = 0; i <= THREADS; i++) {
            assert_false(w[i].failed);
            for (int k = 0; k < test_models_count; k++) {
                if (!is_random(&test_models[k]) && w[i].loss[k] != w[THREADS].loss[k])
                    fail_msg("%s: %g, and %g alone", test_models[k].name, w[i].loss[k],
                             w[THREADS].loss[k]);
                test_training_end(&w[i].t[k]);
            }
        }
        free(w);
    }
}

/* ---- one model ------------------------------------------------------------------------------- */

typedef struct reader {
    tern_module *m;
    tern_tensor *x, *expected;
    bool backward, failed, differs;
} reader;

static bool same_values(const tern_tensor *a, const tern_tensor *b)
{
    float x[64], y[64];
    size_t bytes = (size_t)tern_numel(a) * sizeof *x;
    return bytes <= sizeof x && tern_numel(a) == tern_numel(b) &&
           tern_copy_to_host(a, x, bytes) == TERN_OK && tern_copy_to_host(b, y, bytes) == TERN_OK &&
           memcmp(x, y, bytes) == 0;
}

static void *use(void *user)
{
    reader *r = user;
    for (int round = 0; round < 2 * STEPS; round++)
        TERN_SCOPE {
            tern_tensor *y = NULL;
            tern_set_grad_enabled(r->backward);
            y = tern_nn_forward(r->m, r->x);
            r->differs = r->differs || !y || !same_values(y, r->expected);
            if (r->backward)
                tern_backward(tern_sum(y));
        }
    r->failed = tern_last_status() != TERN_OK;
    return NULL;
}

static tern_status check_gradient(const char *path, tern_tensor *x, void *user)
{
    tern_tensor *const *once = user; /* a tensor of as many runs' gradient of "0.weight" */
    if (strcmp(path, "0.weight") == 0)
        assert_close(tern_grad(x), *once, .rel = 1e-5, .abs = 1e-5);
    return TERN_OK;
}

static void one_model_serves_all(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int backward = 0; backward < 2; backward++)
        TERN_SCOPE {
            test_training t;
            assert_ok(test_training_start(&t, &test_models[1], device));
            tern_nn_eval(t.m);
            tern_tensor *y = tern_nn_forward(t.m, t.x);
            assert_ok(tern_backward(tern_sum(y)));
            tern_tensor *once = tern_mul_scalar(tern_grad(tern_nn_parameter(t.m, "0.weight")),
                                                TERN_SCALAR(2.0 * STEPS * THREADS));
            tern_nn_zero_grad(t.m);
            reader r[THREADS];
            for (int i = 0; i < THREADS; i++)
                r[i] =
                    (reader){.m = t.m, .x = t.x, .expected = tern_detach(y), .backward = backward};
            run_threads(use, r, sizeof *r);
            for (int i = 0; i < THREADS; i++) {
                assert_false(r[i].failed);
                assert_false(r[i].differs);
            }
            if (backward)
                assert_ok(tern_nn_each_parameter(t.m, check_gradient, &once));
            else
                assert_null(tern_grad(tern_nn_parameter(t.m, "0.weight")));
            test_training_end(&t);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(threads_train_as_one_does),
    TEST(one_model_serves_all),
};
TEST_MAIN(tests)
