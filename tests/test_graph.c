/* test_graph.c -- recorded steps: the same numbers as without a recording, memory of their own, and
 * what can't be recorded. */
#include "support.h"

enum { IN = 12, HIDDEN = 16, OUT = 5, BATCH = 8, STEPS = 7 };

/* ---- a step of training -------------------------------------------------------------------- */

typedef struct trainer {
    tern_module *model;
    tern_optimizer *optimizer;
    tern_lr_scheduler *scheduler;
    tern_scaler *scaler; /* NULL: none */
    tern_tensor *x, *y;
    tern_tensor *loss;
} trainer;

static void begin(trainer *t, const char *device, bool scaled)
{
    tern_manual_seed(3);
    *t = (trainer){.model = tern_nn_sequential(tern_nn_linear(IN, HIDDEN, NULL), tern_nn_gelu(NULL),
                                               tern_nn_dropout(&(tern_dropout_options){.p = 0.3}),
                                               tern_nn_layer_norm(TERN_SHAPE(HIDDEN), NULL),
                                               tern_nn_linear(HIDDEN, OUT, NULL))};
    tern_nn_to(t->model, device);
    t->optimizer = tern_optim_adamw(t->model, 1e-2, NULL);
    t->scheduler = tern_lr_scheduler_exponential_lr(t->optimizer, 0.8);
    if (scaled)
        t->scaler = tern_amp_grad_scaler(
            &(tern_grad_scaler_options){.init_scale = 1024, .growth_interval = 2});
    t->x = tern_keep(tern_zeros(TERN_SHAPE(BATCH, IN), TERN_F32, device));
    t->y = tern_keep(tern_zeros(TERN_SHAPE(BATCH), TERN_I64, device));
    assert_no_error();
}

static void end(trainer *t)
{
    tern_release(t->loss);
    tern_release(t->x);
    tern_release(t->y);
    tern_amp_free(t->scaler);
    tern_lr_scheduler_free(t->scheduler);
    tern_optim_free(t->optimizer);
    tern_nn_free(t->model);
}

static void next_data(trainer *t, uint64_t step)
{
    const char *device = tern_device(t->x);
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(BATCH, IN), -1, 1, step);
        tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(BATCH), 0, OUT, step + 50);
        tern_copy_(t->x, x);
        tern_copy_(t->y, tern_to_dtype(y, TERN_I64));
    }
    assert_no_error();
}

/* The loss of before the step, kept. */
static tern_tensor *step(trainer *t)
{
    tern_tensor *kept = NULL;
    TERN_SCOPE {
        tern_tensor *loss = NULL;
        assert_ok(tern_optim_zero_grad(t->optimizer));
        if (t->scaler) {
            TERN_AUTOCAST (tern_device(t->x), TERN_BF16)
                loss = tern_cross_entropy(tern_nn_forward(t->model, t->x), t->y, NULL);
        } else {
            loss = tern_cross_entropy(tern_nn_forward(t->model, t->x), t->y, NULL);
        }
        assert_ok(tern_backward(t->scaler ? tern_amp_scale(t->scaler, loss) : loss));
        if (t->scaler) {
            assert_ok(tern_amp_step(t->scaler, t->optimizer));
            assert_ok(tern_amp_update(t->scaler));
        } else {
            assert_ok(tern_optim_step(t->optimizer));
        }
        kept = tern_keep(tern_detach(loss));
    }
    return kept;
}

/* Losses of STEPS steps: `eager` of them before the step is recorded, and one
 * again in the middle. */
static void losses(const char *device, bool scaled, int eager, double *out)
{
    trainer t;
    begin(&t, device, scaled);
    tern_graph *graph = tern_graph_new(device);
    for (int i = 0; i < STEPS; i++) {
        next_data(&t, (uint64_t)i);
        tern_tensor *loss = NULL;
        if (i < eager || i == STEPS - 2) {
            loss = step(&t);
            out[i] = tern_item(loss);
            tern_release(loss);
        } else {
            if (tern_graph_size(graph) == 0) {
                TERN_CAPTURE (graph)
                    t.loss = step(&t);
                assert_no_error();
                assert_true(tern_graph_size(graph) > 10);
            }
            assert_ok(tern_graph_replay(graph));
            out[i] = tern_item(t.loss);
        }
        assert_ok(tern_lr_scheduler_step(t.scheduler));
    }
    end(&t);
    tern_graph_free(graph);
    assert_no_error();
}

static void replays_go_on_as_steps_would(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int scaled = 0; scaled < 1 + test_thorough(device); scaled++) {
        double expected[STEPS], got[STEPS];
        losses(device, scaled, STEPS, expected);
        assert_true(expected[STEPS - 1] != expected[0]);
        for (int eager = 0; eager < 3; eager += 2) {
            losses(device, scaled, eager, got);
            for (int i = 0; i < STEPS; i++)
                assert_true(got[i] == expected[i]);
        }
    }
}

/* ---- what a recording is ------------------------------------------------------------------- */

static void nothing_runs_before_the_replay(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 2, 3), *y = NULL, *z = NULL;
        tern_graph *graph = tern_graph_new(device);
        assert_int_equal(tern_graph_size(graph), 0);
        assert_false(tern_is_capturing());
        TERN_CAPTURE (graph) {
            assert_true(tern_is_capturing());
            tern_add_(x, tern_ones_like(x));
            y = tern_mul(x, TENSOR(device, TERN_F32, TERN_SHAPE(3), 2, 3, 4));
            z = tern_sum(y);
        }
        assert_false(tern_is_capturing());
        assert_values(x, 1, 2, 3);
        assert_ok(tern_graph_replay(graph));
        assert_values(x, 2, 3, 4);
        assert_values(y, 4, 9, 16);
        assert_values(z, 29);
        tern_fill_(x, TERN_SCALAR(0));
        assert_ok(tern_graph_replay(graph));
        assert_ok(tern_graph_replay(graph));
        assert_values(y, 4, 6, 8);
        tern_graph_free(graph);
        assert_values(y, 4, 6, 8);
        assert_values(z, 18);
    }
}

static tern_tensor *returns_in_the_middle(tern_graph *graph, tern_tensor *x)
{
    TERN_CAPTURE (graph)
        return tern_exp(x);
    return NULL;
}

static void leaving_the_block_ends_the_recording(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_graph *graph = tern_graph_new(device);
        tern_tensor *x = tern_zeros(TERN_SHAPE(2), TERN_F32, device);
        tern_tensor *y = returns_in_the_middle(graph, x);
        assert_false(tern_is_capturing());
        assert_ok(tern_graph_replay(graph));
        assert_values(y, 1, 1);
        assert_int_equal(tern_graph_size(graph), 1);
        assert_ok(tern_graph_reset(graph));
        assert_int_equal(tern_graph_size(graph), 0);
        for (;;) {
            TERN_CAPTURE_HERE(graph);
            y = tern_exp(y);
            break;
        }
        assert_ok(tern_graph_replay(graph));
        assert_int_equal(tern_graph_size(graph), 1);
        tern_graph_free(graph);
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t live(const char *device)
{
    tern_memory_stats s;
    assert_ok(tern_memory_get_stats(device, &s));
    return s.allocated;
}

static void tensors_from_outside_stay_valid_for_the_graph(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_graph *graph = tern_graph_new(device);
        tern_tensor *y = NULL;
        uint64_t before = live(device);
        TERN_SCOPE {
            tern_tensor *x = tern_full(TERN_SHAPE(1000), TERN_SCALAR(5), TERN_F32, device);
            TERN_CAPTURE (graph)
                y = tern_keep(tern_sum(tern_mul(x, x)));
        }
        /* memory of that size, written, is not x's */
        for (int i = 0; i < 3; i++)
            tern_full(TERN_SHAPE(1000), TERN_SCALAR(9), TERN_F32, device);
        assert_ok(tern_graph_replay(graph));
        assert_values(y, 25000);
        tern_graph_free(graph);
        assert_values(y, 25000);
        tern_release(y);
        assert_true(live(device) >= before);
    }
}

/* The same of what another graph made, which ends before. */
static void tensors_of_a_graph_that_ended_stay_valid_for_another(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const uint64_t before = live(device);
        tern_graph *first = tern_graph_new(device), *second = tern_graph_new(device);
        tern_tensor *x = tern_full(TERN_SHAPE(1000), TERN_SCALAR(5), TERN_F32, device);
        tern_tensor *y = NULL, *z = NULL;
        TERN_CAPTURE (first)
            TERN_SCOPE
                y = tern_keep(tern_neg(x));
        TERN_CAPTURE (second)
            TERN_SCOPE
                z = tern_keep(tern_sum(tern_add_(y, x)));
        assert_ok(tern_graph_replay(first));
        tern_release(y);
        tern_graph_free(first);
        for (int i = 0; i < 3; i++)
            tern_full(TERN_SHAPE(1000), TERN_SCALAR(9), TERN_F32, device);
        for (int i = 0; i < 3; i++) {
            assert_ok(tern_graph_replay(second));
            assert_values(z, 5000 * i);
        }
        tern_graph_free(second);
        tern_release(z);
        assert_true(live(device) >= before);
    }
}

/* The same of what a kernel finds by a table of addresses: parameters, gradients, moments, and casts of weights. */
static void what_an_optimizer_had_stays_valid_for_the_graph(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        enum { AFTERWARDS = 8 };
        tern_graph *graph = tern_graph_new(device);
        tern_tensor *others[AFTERWARDS];
        TERN_SCOPE {
            trainer t;
            begin(&t, device, true);
            for (int i = 0; i < 3; i++) {
                next_data(&t, (uint64_t)i);
                if (i == 2)
                    assert_ok(tern_graph_capture_begin(graph));
                t.loss = step(&t);
                if (i < 2)
                    tern_release(t.loss);
            }
            assert_ok(tern_graph_capture_end(graph));
            end(&t);
        }
        for (int i = 0; i < AFTERWARDS; i++)
            others[i] = tern_full(TERN_SHAPE(IN * HIDDEN), TERN_SCALAR(9), TERN_F32, device);
        for (int i = 0; i < 2; i++)
            assert_ok(tern_graph_replay(graph));
        for (int i = 0; i < AFTERWARDS; i++) {
            assert_values(tern_min(others[i]), 9);
            assert_values(tern_max(others[i]), 9);
        }
        tern_graph_free(graph);
    }
}

static void what_is_made_inside_is_the_graphs_own(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        uint64_t before = live(device);
        TERN_SCOPE {
            tern_graph *graph = tern_graph_new(device);
            tern_tensor *x = tern_ones(TERN_SHAPE(1000), TERN_F32, device), *y = NULL;
            TERN_CAPTURE (graph)
                TERN_SCOPE {
                    tern_tensor *a = tern_exp(x);
                    y = tern_keep(tern_add(a, tern_neg(x)));
                }
            assert_ok(tern_graph_replay(graph));
            tern_tensor *first = tern_clone(y);
            /* work outside has no part of the pool */
            for (int i = 0; i < 4; i++)
                tern_full(TERN_SHAPE(1000), TERN_SCALAR(i), TERN_F32, device);
            assert_same(y, first);
            assert_ok(tern_graph_replay(graph));
            assert_same(y, first);
            tern_release(y);
            tern_graph_free(graph);
        }
        assert_int_equal(live(device), before);
    }
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void host_item(tern_tensor *x)
{
    tern_item(tern_sum(x));
}

static void host_item_int(tern_tensor *x)
{
    tern_item_int(tern_sum(x));
}

static void host_copy(tern_tensor *x)
{
    float values[8];
    tern_copy_to_host(x, values, (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x)));
}

static void host_copy_of_a_view(tern_tensor *x)
{
    host_copy(tern_expand(tern_sum(x), TERN_SHAPE(3)));
}

static void host_nonzero(tern_tensor *x)
{
    tern_nonzero(x);
}

static void host_count(tern_tensor *x)
{
    tern_bincount(tern_to_dtype(x, TERN_I64), NULL, 0);
}

static void host_classes(tern_tensor *x)
{
    tern_one_hot(tern_to_dtype(x, TERN_I64), -1);
}

static void what_needs_the_host_is_refused_by_name(void **state)
{
    static const struct {
        void (*read)(tern_tensor *x);
        const char *name;
    } readers[] = {
        {host_item, "(in tern_item)"},         {host_item_int, "(in tern_item_int)"},
        {host_copy, "(in tern_copy_to_host)"}, {host_copy_of_a_view, "(in tern_copy_to_host)"},
        {host_nonzero, "(in tern_nonzero)"},   {host_count, "(in tern_bincount)"},
        {host_classes, "(in tern_one_hot)"},
    };
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
            tern_graph *empty = tern_graph_new(device);
            tern_tensor *read = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 0, 3);
            TERN_CAPTURE (empty)
                readers[i].read(read);
            assert_error(TERN_ERR_STATE, readers[i].name);
            tern_graph_free(empty);
        }
        tern_graph *graph = tern_graph_new(device);
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 0, 3);
        TERN_CAPTURE (graph)
            tern_item(tern_sum(x));
        assert_error(TERN_ERR_STATE, "reading values on the host can't be recorded");
        assert_int_equal(tern_graph_size(graph), 0);
        assert_int_equal(tern_graph_replay(graph), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_graph_replay: nothing was recorded");
        TERN_CAPTURE (graph)
            tern_nonzero(x);
        assert_error(TERN_ERR_STATE, "reading values on the host");
        TERN_CAPTURE (graph)
            tern_synchronize(device);
        assert_error(TERN_ERR_STATE, "waiting for the device can't be recorded");
        if (strcmp(device, "cpu") != 0) {
            TERN_CAPTURE (graph)
                tern_to(tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"), device);
            assert_error(TERN_ERR_STATE, "from one device to another");
        }
        TERN_CAPTURE (graph) {
            assert_int_equal(tern_graph_capture_begin(graph), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, "this thread already records a graph");
            assert_int_equal(tern_graph_replay(graph), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, "nothing was recorded");
            assert_int_equal(tern_graph_reset(graph), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, "is being recorded");
            tern_exp(x);
        }
        assert_ok(tern_graph_replay(graph));
        assert_int_equal(tern_graph_capture_begin(graph), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "the graph holds a recording of 1 launches");
        assert_int_equal(tern_graph_capture_end(graph), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "is not being recorded");
        assert_ok(tern_graph_replay(graph));
        assert_values(x, 1, 0, 3);
        tern_graph_free(graph);
    }
    assert_int_equal(tern_graph_replay(NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_graph_replay: graph");
    assert_null(tern_graph_new("nothing:0"));
    assert_error(TERN_ERR_DEVICE, "tern_graph_new");
    tern_graph_free(NULL);
}

static void mistakes_that_only_a_kernel_sees_are_reported(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_graph *graph = tern_graph_new(device);
        tern_tensor *table = tern_ones(TERN_SHAPE(4, 2), TERN_F32, device);
        tern_tensor *ids = tern_zeros(TERN_SHAPE(3), TERN_I64, device), *y = NULL;
        TERN_CAPTURE (graph)
            y = tern_sum(tern_embedding(ids, table, NULL));
        assert_ok(tern_graph_replay(graph));
        assert_values(y, 6);
        tern_fill_(ids, TERN_SCALAR(9));
        if (tern_graph_replay(graph) == TERN_OK)
            tern_synchronize(device);
        assert_error(TERN_ERR_ARGUMENT, "index out of range in self");
        tern_graph_free(graph);
    }
}

/* Its memory is whatever was there: going back from it must not follow that as places. */
static void what_never_ran_leads_nowhere(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_graph *graph = tern_graph_new(device);
        tern_tensor *x =
            tern_requires_grad_(tern_ones(TERN_SHAPE(1, 1, 8, 8), TERN_F32, device), true);
        TERN_SCOPE
            for (int i = 0; i < 8; i++)
                tern_full(TERN_SHAPE(1, 1, 4, 4), tern_scalar_int(INT64_C(1) << 44), TERN_I64,
                          device);
        tern_tensor *y = NULL;
        TERN_CAPTURE (graph)
            y = tern_keep(tern_max_pool2d(x, TERN_SHAPE(2, 2), NULL));
        assert_ok(tern_backward(tern_sum(y)));
        assert_ok(tern_synchronize(device));
        assert_int_equal(tern_numel(tern_grad(x)), 64);
        tern_release(y);
        tern_graph_free(graph);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(nothing_runs_before_the_replay),
    TEST(replays_go_on_as_steps_would),
    TEST(leaving_the_block_ends_the_recording),
    TEST(tensors_from_outside_stay_valid_for_the_graph),
    TEST(tensors_of_a_graph_that_ended_stay_valid_for_another),
    TEST(what_an_optimizer_had_stays_valid_for_the_graph),
    TEST(what_is_made_inside_is_the_graphs_own),
    TEST(what_needs_the_host_is_refused_by_name),
    TEST(mistakes_that_only_a_kernel_sees_are_reported),
    TEST(what_never_ran_leads_nowhere),
};
TEST_MAIN(tests)
