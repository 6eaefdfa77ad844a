/* test_self_recording.c -- steps that record themselves: the same bits as without recordings, whatever a training step has in it. */
#include "heard.h"
#include "step_training.h"
#include <stdlib.h>

/* Two micro-batches, a scaled loss, clipping, an optimizer, a schedule. */
static tern_status train(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    training *t = user;
    (void)n, (void)k;
    t->calls++;
    tern_optim_zero_grad(t->optimizer);
    const int64_t half = tern_size(in[0], 0) / 2;
    for (int i = 0; i < 2; i++) {
        tern_tensor *x = tern_narrow(in[0], 0, i * half, half),
                    *y = tern_narrow(in[1], 0, i * half, half);
        tern_tensor *loss = tern_cross_entropy(tern_nn_forward(t->model, x), y, NULL);
        tern_backward(tern_amp_scale(t->scaler, loss));
        out[0] = i ? tern_add(out[0], loss) : loss;
    }
    if (t->schedule && t->early)
        tern_lr_scheduler_step(t->schedule);
    if (t->variant == 1)
        tern_nn_clip_grad_norm_(t->model, 0.1);
    tern_amp_step(t->scaler, t->optimizer);
    tern_amp_update(t->scaler);
    if (t->schedule && !t->early)
        tern_lr_scheduler_step(t->schedule);
    return tern_last_status();
}

static const tern_step_options plain;

/* ---- the same bits ----------------------------------------------------------------------- */

enum { CALLS = 14 };

static double *losses_of(const char *device, bool eager, bool early, double **weights,
                         tern_step_stats *stats)
{
    static double losses[2][CALLS];
    training t;
    open_training(&t, device);
    t.early = early;
    tern_step *step = tern_step_new(
        train, &t, &(tern_step_options){.eager = eager, .module = t.model, .variant = &t.variant});
    assert_non_null(step);
    for (int i = 0; i < CALLS; i++)
        TERN_SCOPE {
            tern_tensor *in[2], *out = NULL;
            t.variant = i > 6;
            batch(device, i % 5 == 4 ? 6 : 8, i, in); /* another shape now and then */
            assert_ok(tern_step_run(step, in, 2, &out, 1));
            assert_false(tern_requires_grad(out));
            losses[eager][i] = tern_item(out);
        }
    assert_true(tern_lr_scheduler_last_epoch(t.schedule) == CALLS);
    *stats = tern_step_get_stats(step);
    *weights = test_read(tern_nn_parameter(t.model, "0.weight"));
    tern_step_free(step);
    close_training(&t);
    return losses[eager];
}

static void recorded_steps_have_the_bits_of_eager_ones(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int early = 0; early < 2; early++)
        TERN_SCOPE {
            double *weights[2];
            tern_step_stats stats[2];
            const double *eager = losses_of(device, true, early, &weights[1], &stats[1]);
            const double *recorded = losses_of(device, false, early, &weights[0], &stats[0]);
            assert_int_equal(stats[1].replayed, 0);
            assert_int_equal(stats[1].ran, CALLS);
            assert_string_equal(stats[1].reason, "options.eager is set");
            assert_true(stats[0].replayed >= 5);
            assert_int_equal(stats[0].replayed + stats[0].ran, CALLS);
            assert_true(stats[0].launches > 3);
            for (int i = 0; i < CALLS; i++)
                assert_true(eager[i] == recorded[i]);
            for (int i = 0; i < 6 * 16; i++)
                assert_true(weights[0][i] == weights[1][i]);
            free(weights[0]);
            free(weights[1]);
        }
}

/* ---- what has a recording of its own ----------------------------------------------------- */

static tern_status predict(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    training *t = user;
    (void)n, (void)k;
    t->calls++;
    out[0] = tern_nn_forward(t->model, in[0]);
    return TERN_OK;
}

static void modes_shapes_and_variants_have_their_own(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        training t;
        tern_tensor *out = NULL, *in[2];
        open_training(&t, device);
        tern_step *step =
            tern_step_new(predict, &t, &(tern_step_options){.warmup = 1, .module = t.model});
        batch(device, 4, 0, in);
        tern_nn_eval(t.model);
        for (int i = 0; i < 4; i++)
            assert_ok(tern_step_run(step, in, 1, &out, 1));
        assert_int_equal(tern_step_get_stats(step).recordings, 1);
        assert_int_equal(t.calls, 2); /* one that runs, one that records */
        tern_tensor *expected = tern_nn_forward(t.model, in[0]);
        assert_same(out, tern_detach(expected));
        tern_nn_train(t.model, true);
        assert_ok(tern_step_run(step, in, 1, &out, 1));
        assert_int_equal(t.calls, 3);
        tern_nn_eval(t.model);
        assert_ok(tern_step_run(step, in, 1, &out, 1));
        assert_int_equal(t.calls, 3);
        assert_same(out, tern_detach(expected));
        TERN_NO_GRAD
            assert_ok(tern_step_run(step, in, 1, &out, 1));
        assert_int_equal(t.calls, 4);
        /* Parameters are looked at by each replay. */
        TERN_NO_GRAD
            tern_fill_(tern_nn_parameter(t.model, "3.bias"), TERN_SCALAR(5));
        assert_ok(tern_step_run(step, in, 1, &out, 1));
        assert_int_equal(t.calls, 4);
        assert_same(out, tern_detach(tern_nn_forward(t.model, in[0])));
        assert_ok(tern_step_reset(step));
        assert_int_equal(tern_step_get_stats(step).recordings, 0);
        assert_ok(tern_step_run(step, in, 1, &out, 1));
        assert_int_equal(t.calls, 5);
        tern_step_free(step);
        close_training(&t);
    }
}

static tern_status reset_itself(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    tern_step *const *step = user;
    assert_int_equal(n + k, 2);
    assert_int_equal(tern_step_reset(*step), TERN_ERR_STATE);
    assert_non_null(strstr(tern_last_error(), "tern_step_reset: the step's function is running"));
    tern_clear_error();
    out[0] = tern_mul(in[0], TERN_SCALAR(2));
    return tern_last_status();
}

static void a_reset_in_the_function_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_step *step = NULL;
        tern_tensor *x = tern_ones(TERN_SHAPE(3), TERN_F32, device), *out = NULL;
        step = tern_step_new(reset_itself, &step, NULL);
        for (int i = 0; i < 5; i++) {
            assert_ok(tern_step_run(step, &x, 1, &out, 1));
            assert_float_equal(tern_item(tern_sum(out)), 6, 0);
        }
        assert_int_equal(tern_step_get_stats(step).replayed, 3);
        assert_ok(tern_step_reset(step));
        tern_step_free(step);
    }
}

static tern_status convolve(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)n, (void)k;
    out[0] = tern_nn_forward(user, in[0]);
    return tern_last_status();
}

/* Images that lie by channels do so in the recording, which is not that of images that lie in rows. */
static void formats_of_images_have_their_own(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = NULL;
        TERN_DEVICE (device)
            m = tern_nn_conv2d(3, 8, TERN_SHAPE(3), NULL);
        tern_step *step = tern_step_new(convolve, m, NULL);
        for (int i = 0; i < 8; i++) {
            const tern_memory_format format = i % 2 ? TERN_CHANNELS_LAST : TERN_CONTIGUOUS_FORMAT;
            tern_tensor *x = tern_to_memory_format(
                test_uniform(device, TERN_F32, TERN_SHAPE(2, 3, 9, 7), -1, 1, (uint64_t)i), format);
            tern_tensor *out = NULL;
            assert_ok(tern_step_run(step, &x, 1, &out, 1));
            tern_tensor *expected = tern_detach(tern_nn_forward(m, x));
            assert_same(out, expected);
            assert_true(tern_is_contiguous_format(out, format));
        }
        assert_int_equal(tern_step_get_stats(step).recordings, 2);
        tern_step_free(step);
        tern_nn_free(m);
    }
}

static void more_kinds_than_there_is_room_for_run(void **state)
{
    (void)state;
    heard h = {0};
    tern_on_warning(hear, &h);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        training t;
        open_training(&t, device);
        h.count = 0;
        tern_step *step =
            tern_step_new(predict, &t, &(tern_step_options){.warmup = 1, .max_recordings = 2});
        for (int turn = 0; turn < 3; turn++)
            for (int64_t rows = 1; rows <= 4; rows++) {
                tern_tensor *in[2], *out = NULL;
                batch(device, rows, 0, in);
                assert_ok(tern_step_run(step, in, 1, &out, 1));
                assert_shape(out, rows, 3);
            }
        assert_int_equal(tern_step_get_stats(step).recordings, 2);
        assert_non_null(strstr(tern_step_get_stats(step).reason, "more kinds of inputs"));
        assert_true(h.count <= 1);
        tern_step_free(step);
        close_training(&t);
    }
    tern_on_warning(NULL, NULL);
}
/* ---- errors ------------------------------------------------------------------------------ */

static tern_status misbehave(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)n, (void)k;
    out[0] = *(int *)user == 1   ? tern_add(in[0], tern_ones(TERN_SHAPE(7), TERN_F32, NULL))
             : *(int *)user == 2 ? NULL
                                 : in[0];
    return *(int *)user == 3 ? TERN_ERR_STATE : TERN_OK;
}

static void errors_are_the_functions(void **state)
{
    (void)state;
    TERN_SCOPE {
        static const struct {
            tern_status status;
            const char *text;
        } expected[] = {{TERN_OK, ""},
                        {TERN_ERR_SHAPE, "tern_add"},
                        {TERN_ERR_ARGUMENT, "output 0 of 1 is NULL"},
                        {TERN_ERR_STATE, "tern_step_run: the function failed"}};
        tern_tensor *x = tern_ones(TERN_SHAPE(3), TERN_F32, NULL), *out = x;
        const int64_t before = tern_live_tensors();
        for (int kind = 1; kind < 4; kind++) {
            tern_step *step = tern_step_new(misbehave, &kind, NULL);
            for (int i = 0; i < 4; i++) {
                assert_int_equal(tern_step_run(step, &x, 1, &out, 1), expected[kind].status);
                assert_null(out);
                assert_error(expected[kind].status, expected[kind].text);
            }
            tern_step_free(step);
        }
        assert_true(tern_live_tensors() == before);
        int kind = 0;
        assert_null(tern_step_new(NULL, NULL, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_step_new");
        assert_null(tern_step_new(misbehave, &kind, &(tern_step_options){.warmup = -1}));
        assert_error(TERN_ERR_ARGUMENT, "warmup must not be negative, got -1");
        assert_int_equal(tern_step_run(NULL, &x, 1, &out, 1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "step");
        tern_step *step = tern_step_new(misbehave, &kind, &plain);
        assert_int_equal(tern_step_run(step, &x, 65, &out, 1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "from 0 to 64");
        tern_step_free(step);
        tern_step_free(NULL);
    }
}

/* ---- results ----------------------------------------------------------------------------- */

static void results_are_copies_unless_asked_for(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int shared = 0; shared < 2; shared++)
        TERN_SCOPE {
            int kind = 0;
            tern_tensor *x = tern_full(TERN_SHAPE(2), TERN_SCALAR(1), TERN_F32, device);
            tern_tensor *y = tern_full(TERN_SHAPE(2), TERN_SCALAR(2), TERN_F32, device), *a, *b;
            tern_step *step = tern_step_new(
                misbehave, &kind,
                &(tern_step_options){.warmup = 1, .static_results = shared, .device = device});
            assert_ok(tern_step_run(step, &x, 1, &a, 1));
            assert_ok(tern_step_run(step, &x, 1, &a, 1));
            assert_values(a, 1, 1);
            assert_ok(tern_step_run(step, &y, 1, &b, 1));
            assert_values(b, 2, 2);
            assert_values(a, shared ? 2 : 1, shared ? 2 : 1);
            tern_step_free(step);
            assert_values(b, 2, 2); /* results outlive the step */
        }
}

/* A recording holds no scheduler: a replay says that it is gone. */
static void a_schedule_that_was_freed_is_an_error(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        training t;
        tern_tensor *in[2], *out = NULL;
        open_training(&t, device);
        tern_step *step = tern_step_new(train, &t, &(tern_step_options){.warmup = 1});
        batch(device, 8, 0, in);
        for (int i = 0; i < 3; i++)
            assert_ok(tern_step_run(step, in, 2, &out, 1));
        tern_lr_scheduler_free(t.schedule);
        t.schedule = NULL;
        assert_int_equal(tern_step_run(step, in, 2, &out, 1), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "the scheduler that the recording steps was freed");
        assert_null(out);
        tern_step_free(step);
        close_training(&t);
    }
}

/* Programs that are compiled ahead take no step of the schedule. */
static void compiling_ahead_steps_no_schedule(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        training t;
        if (strcmp(device, "cpu") == 0)
            continue; /* where what is compiled ahead runs */
        open_training(&t, device);
        assert_ok(tern_compile_begin(device));
        assert_ok(tern_lr_scheduler_step(t.schedule));
        assert_ok(tern_compile_end());
        assert_true(tern_lr_scheduler_last_epoch(t.schedule) == 0);
        close_training(&t);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(recorded_steps_have_the_bits_of_eager_ones),
    TEST(modes_shapes_and_variants_have_their_own),
    TEST(a_reset_in_the_function_is_refused),
    TEST(formats_of_images_have_their_own),
    TEST(more_kinds_than_there_is_room_for_run),
    TEST(errors_are_the_functions),
    TEST(results_are_copies_unless_asked_for),
    TEST(a_schedule_that_was_freed_is_an_error),
    TEST(compiling_ahead_steps_no_schedule),
};
TEST_MAIN(tests)
