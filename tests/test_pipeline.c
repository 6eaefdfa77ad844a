/* test_pipeline.c -- stages on devices of one process learn what one device learns. Those of several ranks are in
 * tests/dist/pipeline.c. */
#include "support.h"
#include <math.h>
#include <stdio.h>

enum { WIDTH = 24, LAYERS = 6 };

static tern_module *net(const char *device)
{
    tern_linear_options o = {.device = device};
    tern_module *m = tern_nn_sequential(tern_nn_tanh());
    tern_manual_seed(5);
    for (int i = 0; i < LAYERS; i++)
        tern_nn_append(m, tern_nn_sequential(tern_nn_linear(WIDTH, WIDTH, &o), tern_nn_tanh()));
    return m;
}

static tern_tensor *numbers(int64_t rows, int k)
{
    tern_tensor *x = tern_arange(0, rows * WIDTH, 1, TERN_F32, "cpu");
    return tern_reshape(tern_sin(tern_mul_scalar(x, TERN_SCALAR(0.37 * k))),
                        TERN_SHAPE(rows, WIDTH));
}

/* The pipeline's loss and gradients are those of the whole, to some units of float32. */
static void check_like(tern_module *piped, tern_tensor *loss, tern_module *whole, tern_tensor *want)
{
    assert_non_null(loss);
    assert_null(tern_grad_fn(loss));
    assert_true(fabs(tern_item(loss) - tern_item(want)) < 1e-5 * (1 + fabs(tern_item(want))));
    for (int i = 0; i < LAYERS; i++) {
        char path[32];
        snprintf(path, sizeof path, "%d.0.weight", i + 1);
        tern_tensor *a = tern_grad(tern_nn_parameter(piped, path)),
                    *b = tern_grad(tern_nn_parameter(whole, path));
        assert_non_null(a);
        const double apart =
            tern_item(tern_max(tern_abs(tern_sub(tern_to(a, "cpu"), tern_to(b, "cpu")))));
        const double size = tern_item(tern_max(tern_abs(b)));
        if (!(apart <= 1e-5 * size))
            fail_msg("%s: gradients of %g are %g apart", path, size, apart);
    }
}

static void compare(const char *const *devices, int n, const tern_pipeline_options *o, int64_t rows,
                    bool sums)
{
    TERN_SCOPE {
        tern_loss_options reduction = {.reduction =
                                           sums ? TERN_REDUCTION_SUM : TERN_REDUCTION_MEAN};
        tern_module *whole = net("cpu"), *piped = net("cpu"),
                    *criterion = tern_nn_mse_loss(&reduction);
        tern_pipeline *p = tern_dist_pipeline(piped, devices, n, o);
        assert_non_null(p);
        for (int k = 1; k <= 2; k++) { /* gradients add up */
            tern_tensor *x = numbers(rows, k), *y = numbers(rows, k + 3);
            tern_tensor *want = tern_nn_loss(criterion, tern_nn_forward(whole, x), y);
            tern_backward(want);
            check_like(piped, tern_dist_pipeline_step(p, x, y, criterion), whole, want);
        }
        assert_no_error();
        tern_dist_pipeline_free(p);
        tern_nn_free(whole);
        tern_nn_free(piped);
        tern_nn_free(criterion);
    }
}

static void stages_learn_what_one_device_learns(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(d)
    {
        const char *places[][4] = {{d}, {d, d}, {"cpu", d, d}, {d, "cpu", d, "cpu"}};
        for (int schedule = 0; schedule < 2; schedule++)
            for (int n = 1; n <= 4; n++) {
                const tern_pipeline_options o = {.micro_batches = 2 * n - 1,
                                                 .schedule = (tern_pipeline_schedule)schedule};
                compare(places[n - 1], n, &o, 13, false);
            }
        compare(places[1], 2, NULL, 8, false);
        compare(places[1], 2, &(tern_pipeline_options){.micro_batches = 9}, 5,
                false); /* not all have rows */
        compare(places[2], 3, &(tern_pipeline_options){.micro_batches = 4, .no_scale_grads = true},
                16, true);
        compare(places[2], 3, &(tern_pipeline_options){.split = (const int[]){1, 5}}, 6, false);
    }
}

/* A stage of n keeps n - s micro-batches, not all of them. */
static void one_forward_one_backward_keeps_less(void **state)
{
    (void)state;
    uint64_t peak[2];
    const char *devices[] = {"cpu", "cpu"};
    for (int schedule = 0; schedule < 2; schedule++)
        TERN_SCOPE {
            tern_memory_stats stats;
            tern_module *m = net("cpu"), *criterion = tern_nn_mse_loss(NULL);
            const tern_pipeline_options o = {.micro_batches = 16,
                                             .schedule = (tern_pipeline_schedule)schedule};
            tern_pipeline *p = tern_dist_pipeline(m, devices, 2, &o);
            tern_tensor *x = numbers(1024, 1), *y = numbers(1024, 2);
            tern_memory_get_stats("cpu", &stats);
            const uint64_t before = stats.allocated;
            tern_reset_peak_memory_stats("cpu");
            assert_non_null(tern_dist_pipeline_step(p, x, y, criterion));
            tern_memory_get_stats("cpu", &stats);
            peak[schedule] = stats.allocated_peak - before;
            tern_dist_pipeline_free(p);
            tern_nn_free(m);
            tern_nn_free(criterion);
        }
    assert_true((double)peak[0] < 0.4 * (double)peak[1]);
}

static void children_are_shared_out_by_their_bytes(void **state)
{
    (void)state;
    const char *devices[] = {"cpu", "cpu", "cpu"};
    tern_module *m = net("cpu");
    tern_pipeline *p = tern_dist_pipeline(m, devices, 3, NULL);
    static const int want[] = {0, 0, 0, 1, 1, 2, 2};
    for (int i = 0; i <= LAYERS; i++)
        assert_int_equal(tern_dist_pipeline_stage(p, i), want[i]);
    assert_int_equal(tern_dist_pipeline_stage(p, 7), -1);
    assert_error(TERN_ERR_ARGUMENT, "no child 7");
    tern_clear_error();
    tern_dist_pipeline_free(p);
    const char *many[LAYERS + 1];
    for (int i = 0; i <= LAYERS; i++)
        many[i] = "cpu";
    p = tern_dist_pipeline(m, many, LAYERS + 1, NULL);
    for (int i = 0; i <= LAYERS; i++)
        assert_int_equal(tern_dist_pipeline_stage(p, i), i);
    tern_dist_pipeline_free(p);
    tern_nn_free(m);
}

static void what_can_not_be_a_pipeline_is_refused(void **state)
{
    (void)state;
    const char *devices[] = {"cpu", "cpu", "abacus", "cpu", "cpu", "cpu", "cpu", "cpu"};
    tern_module *m = net("cpu"), *criterion = tern_nn_mse_loss(NULL);
    const struct {
        int n;
        tern_pipeline_options o;
        tern_status status;
        const char *text;
    } cases[] = {
        {8, {0}, TERN_ERR_ARGUMENT, "8 stages out of 7 children"},
        {3, {0}, TERN_ERR_DEVICE, "abacus"},
        {2, {.split = (const int[]){0}}, TERN_ERR_ARGUMENT, "begins with child 0"},
        {2, {.split = (const int[]){7}}, TERN_ERR_ARGUMENT, "begins with child 7"},
        {2, {.ranks = (const int[]){0, 1}}, TERN_ERR_ARGUMENT, "rank 1"},
        {2, {.micro_batches = -1}, TERN_ERR_ARGUMENT, "micro-batches"},
        {0, {0}, TERN_ERR_ARGUMENT, "0 stages"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(tern_dist_pipeline(m, devices, cases[i].n, &cases[i].o));
        assert_error(cases[i].status, cases[i].text);
        tern_clear_error();
    }
    tern_pipeline *p = tern_dist_pipeline(m, devices, 2, NULL);
    tern_tensor *x = numbers(4, 1), *narrow = tern_narrow(x, 1, 0, 3);
    assert_null(tern_dist_pipeline_step(p, x, NULL, criterion));
    assert_error(TERN_ERR_ARGUMENT, "y");
    tern_clear_error();
    assert_null(tern_dist_pipeline_step(p, x, numbers(5, 1), criterion));
    assert_error(TERN_ERR_SHAPE, "rows");
    tern_clear_error();
    assert_null(tern_dist_pipeline_step(p, narrow, x, criterion));
    assert_error(TERN_ERR_SHAPE, "");
    tern_clear_error();
    assert_non_null(tern_dist_pipeline_step(p, x, x, criterion)); /* goes on after an error */
    tern_dist_pipeline_free(p);
    tern_dist_pipeline_free(NULL);
    tern_nn_free(m);
    tern_nn_free(criterion);
}

static const struct CMUnitTest tests[] = {
    TEST(stages_learn_what_one_device_learns),
    TEST(one_forward_one_backward_keeps_less),
    TEST(children_are_shared_out_by_their_bytes),
    TEST(what_can_not_be_a_pipeline_is_refused),
};
TEST_MAIN(tests)
