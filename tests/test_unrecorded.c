/* test_unrecorded.c -- steps that record themselves, of functions that can't be recorded: they run in every call, and it is no error. */
#include "heard.h"
#include "step_training.h"
#include <pthread.h>
#include <stdlib.h>

/* A gradient, a value on the host, a step. */
static tern_status peek(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    training *t = user;
    (void)n, (void)k;
    t->calls++;
    tern_optim_zero_grad(t->optimizer);
    out[0] = tern_mean(tern_square(tern_nn_forward(t->model, in[0])));
    tern_backward(out[0]);
    if (tern_item(out[0]) > 0)
        tern_optim_step(t->optimizer);
    return tern_last_status();
}

static void a_function_that_reads_values_runs_in_every_call(void **state)
{
    (void)state;
    heard h = {0};
    tern_on_warning(hear, &h);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        double *weights[2];
        for (int eager = 0; eager < 2; eager++) {
            training t;
            tern_tensor *in[2], *out = NULL;
            open_training(&t, device);
            tern_step *step =
                tern_step_new(peek, &t, &(tern_step_options){.eager = eager, .module = t.model});
            batch(device, 8, 0, in);
            for (int i = 0; i < 5; i++)
                assert_ok(tern_step_run(step, in, 1, &out, 1));
            const tern_step_stats stats = tern_step_get_stats(step);
            assert_int_equal(stats.ran, 5);
            assert_int_equal(stats.recordings, 0);
            if (!eager)
                assert_non_null(strstr(stats.reason, "can't be recorded"));
            weights[eager] = test_read(tern_nn_parameter(t.model, "0.weight"));
            tern_step_free(step);
            close_training(&t);
        }
        for (int i = 0; i < 6 * 16; i++)
            assert_true(weights[0][i] == weights[1][i]);
        free(weights[0]);
        free(weights[1]);
    }
    assert_true(h.count >= 1);
    assert_string_equal(h.kind, "step");
    tern_on_warning(NULL, NULL);
}

/* Half on the device, half on the cpu, which has a tensor of its own. */
static tern_status wander(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)n, (void)k;
    tern_tensor *own = *(tern_tensor **)user;
    out[0] = tern_mul(tern_to(tern_add(own, 1.0), tern_device(in[0])), in[0]);
    return TERN_OK;
}

static void work_on_another_device_is_not_recorded(void **state)
{
    (void)state;
    heard h = {0};
    tern_on_warning(hear, &h);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        if (strcmp(device, "cpu") == 0)
            continue;
        tern_tensor *own = tern_full(TERN_SHAPE(2), TERN_SCALAR(0), TERN_F32, "cpu");
        tern_step *step = tern_step_new(wander, &own, NULL);
        for (int i = 0; i < 5; i++) {
            tern_tensor *x = tern_full(TERN_SHAPE(2), TERN_SCALAR(3), TERN_F32, device), *out;
            tern_fill_(own, TERN_SCALAR(i));
            assert_ok(tern_step_run(step, &x, 1, &out, 1));
            assert_values(out, 3 * (i + 1), 3 * (i + 1));
        }
        assert_int_equal(tern_step_get_stats(step).recordings, 0);
        assert_non_null(tern_step_get_stats(step).reason);
        tern_step_free(step);
    }
    tern_on_warning(NULL, NULL);
}

/* A loader's worker, say: a thread that computes on the cpu while the function is recorded. */
static void *compute(void *unused)
{
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(4), TERN_SCALAR(2), TERN_F32, "cpu");
        assert_values(tern_add(x, 1.0), 3, 3, 3, 3);
    }
    return unused;
}

static tern_status with_a_thread(void *user, tern_tensor *const *in, int n, tern_tensor **out,
                                 int k)
{
    pthread_t thread;
    (void)user, (void)n, (void)k;
    if (pthread_create(&thread, NULL, compute, NULL) != 0)
        return TERN_ERR_STATE;
    out[0] = tern_mul(in[0], 2.0);
    pthread_join(thread, NULL);
    return tern_last_status();
}

static void work_of_another_thread_is_no_obstacle(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_step *step = tern_step_new(with_a_thread, NULL, NULL);
        for (int i = 0; i < 4; i++) {
            tern_tensor *x = tern_full(TERN_SHAPE(2), TERN_SCALAR(i), TERN_F32, device), *out;
            assert_ok(tern_step_run(step, &x, 1, &out, 1));
            assert_values(out, 2 * i, 2 * i);
        }
        assert_int_equal(tern_step_get_stats(step).recordings, 1);
        tern_step_free(step);
    }
}

static tern_status write_to_input(void *user, tern_tensor *const *in, int n, tern_tensor **out,
                                  int k)
{
    (void)user, (void)n, (void)k;
    out[0] = tern_mul(tern_add_(in[0], 1.0), 1.0);
    return tern_last_status();
}

/* What metric it is of depends on the host. */
static tern_status follow_a_metric(void *user, tern_tensor *const *in, int n, tern_tensor **out,
                                   int k)
{
    (void)n, (void)k;
    out[0] = tern_mul(in[0], 1.0);
    return tern_lr_scheduler_step_metric(*(tern_lr_scheduler **)user, 1);
}

static void count_failure(const tern_error_info *error, void *user)
{
    (void)error;
    ++*(int *)user;
}

/* Each function runs in every call, with what it does to its input, and nobody hears of an error. */
static void refusals_are_no_errors(void **state)
{
    (void)state;
    heard h = {0};
    int failures = 0;
    tern_on_warning(hear, &h);
    tern_set_error_policy(TERN_ERRORS_CALL, count_failure, &failures);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        training t;
        open_training(&t, device);
        tern_lr_scheduler *metric = tern_lr_scheduler_reduce_lr_on_plateau(t.optimizer, NULL);
        const struct {
            tern_step_function function;
            void *user;
            const char *reason;
            double result;
        } rows[] = {{write_to_input, NULL, "writes to input 0", 1},
                    {follow_a_metric, &metric, "a metric", 0},
                    {peek, &t, "reading values", -1}};
        for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
            tern_step *step = tern_step_new(rows[row].function, rows[row].user, NULL);
            for (int i = 0; i < 5; i++) {
                tern_tensor *x = tern_zeros(TERN_SHAPE(1, 6), TERN_F32, device), *out;
                assert_ok(tern_step_run(step, &x, 1, &out, 1));
                if (rows[row].result >= 0)
                    assert_true(tern_item(tern_max(out)) == rows[row].result);
                if (rows[row].function == write_to_input)
                    assert_same(x, out);
            }
            const tern_step_stats stats = tern_step_get_stats(step);
            assert_int_equal(stats.recordings, 0);
            assert_int_equal(stats.ran, 5);
            assert_non_null(strstr(stats.reason, rows[row].reason));
            tern_step_free(step);
        }
        assert_true(tern_lr_scheduler_last_epoch(metric) == 5);
        tern_lr_scheduler_free(metric);
        close_training(&t);
    }
    assert_int_equal(failures, 0);
    tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL);
    tern_on_warning(NULL, NULL);
}

static const struct CMUnitTest tests[] = {
    TEST(a_function_that_reads_values_runs_in_every_call),
    TEST(work_on_another_device_is_not_recorded),
    TEST(work_of_another_thread_is_no_obstacle),
    TEST(refusals_are_no_errors),
};
TEST_MAIN(tests)
