/* test_profiler.c -- profilers, TERN_STRICT and the counters, on every device. */
#include "base/profile.h"
#include "support.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

/* Layers that are operations of their own on every device. */
static tern_module *network(const char *device)
{
    tern_linear_options o = {.device = device};
    return tern_nn_sequential(tern_nn_linear(16, 32, &o), tern_nn_tanh(),
                              tern_nn_linear(32, 1, &o));
}

typedef struct task {
    tern_module *model;
    tern_optimizer *optimizer;
    tern_tensor *x;
} task;

static void step(const task *t)
{
    tern_optim_zero_grad(t->optimizer);
    tern_tensor *loss = NULL;
    TERN_PROFILER_LABEL("forward")
    loss = tern_mean(tern_square(tern_nn_forward(t->model, t->x)));
    tern_backward(loss);
    tern_optim_step(t->optimizer);
}

static task begin(const char *device)
{
    tern_manual_seed(0);
    task t = {.model = network(device)};
    t.optimizer = tern_optim_sgd(t.model, 0.1, &(tern_sgd_options){.momentum = 0.9});
    t.x = tern_keep(tern_randn(TERN_SHAPE(8, 16), TERN_F32, device));
    TERN_SCOPE
        step(&t);
    return t;
}

static void end(task *t)
{
    tern_release(t->x);
    tern_optim_free(t->optimizer);
    tern_nn_free(t->model);
}

static void rows_count_calls_by_name_and_module(void **state)
{
    enum { STEPS = 5 };
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        task t = begin(device);
        tern_profiler_row row, inner;
        tern_profiler *p = tern_profiler_new(&(tern_profiler_options){.memory = true});
        assert_int_equal(tern_profiler_start(p), TERN_OK);
        for (int i = 0; i < STEPS; i++)
            TERN_SCOPE
                step(&t);
        assert_int_equal(tern_profiler_stop(p), TERN_OK);
        assert_true(tern_profiler_find(p, "linear", NULL, &row));
        assert_int_equal(row.calls, 2 * STEPS);
        assert_true(row.host_ns > 0 && row.device_ns > 0 && row.launches >= 2 * STEPS);
        assert_true(row.self_host_ns <= row.host_ns && row.self_device_ns <= row.device_ns);
        assert_true(row.allocated > 0);
        assert_true(tern_profiler_find(p, "linear", "0", &row));
        assert_int_equal(row.calls, STEPS);
        assert_true(row.flops == 2.0 * 8 * 16 * 32 * STEPS);
        assert_true(tern_profiler_find(p, "forward", NULL, &row));
        assert_int_equal(row.calls, STEPS);
        assert_true(tern_profiler_find(p, "linear", NULL, &inner) && row.host_ns >= inner.host_ns);
        assert_true(row.flops == inner.flops);
        assert_true(tern_profiler_find(p, "LinearBackward", "2", &row));
        assert_int_equal(row.calls, STEPS);
        assert_false(tern_profiler_find(p, "no such", NULL, &row));
        assert_int_equal(row.calls, 0);
        tern_profiler_free(p);
        end(&t);
    }
}

static void replays_have_the_time_of_the_device(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_profiler_row row;
        tern_tensor *x = tern_ones(TERN_SHAPE(300, 300), TERN_F32, device);
        tern_graph *graph = tern_graph_new(device);
        tern_profiler *p = tern_profiler_new(NULL);
        tern_matmul(x, x); /* so that nothing is compiled within the capture */
        TERN_CAPTURE (graph)
            tern_matmul(x, x);
        assert_int_equal(tern_profiler_start(p), TERN_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(tern_graph_replay(graph), TERN_OK);
        assert_int_equal(tern_profiler_stop(p), TERN_OK);
        assert_true(tern_profiler_find(p, "graph_replay", NULL, &row));
        assert_int_equal(row.calls, 3);
        assert_true(row.device_ns > 0 && row.host_ns > 0);
        tern_profiler_free(p);
        tern_graph_free(graph);
    }
}

static void tables_are_sorted_by_a_field(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_profiler *p = tern_profiler_new(NULL);
        assert_int_equal(tern_profiler_start(p), TERN_OK);
        tern_tensor *x = tern_randn(TERN_SHAPE(64, 64), TERN_F32, "cpu");
        tern_matmul(x, tern_exp(x));
        assert_int_equal(tern_profiler_stop(p), TERN_OK);
        char *table = tern_profiler_table(p, &(tern_profiler_table_options){.sort_by = "flops"});
        assert_non_null(table);
        assert_true(strstr(table, "matmul") < strstr(table, "exp"));
        assert_non_null(
            strstr(table, " Self host    Self host   Host total Self dev  Self device "));
        tern_free_text(table);
        assert_null(tern_profiler_table(p, &(tern_profiler_table_options){.sort_by = "color"}));
        assert_error(TERN_ERR_ARGUMENT, "color");
        tern_profiler_free(p);
    }
}

static void one_runs_at_a_time(void **state)
{
    (void)state;
    tern_profiler *a = tern_profiler_new(NULL), *b = tern_profiler_new(NULL);
    assert_int_equal(tern_profiler_start(a), TERN_OK);
    assert_int_equal(tern_profiler_start(b), TERN_ERR_STATE);
    assert_error(TERN_ERR_STATE, "runs already");
    assert_int_equal(tern_profiler_stop(b), TERN_ERR_STATE);
    assert_error(TERN_ERR_STATE, "does not run");
    tern_profiler_free(a); /* stops it */
    assert_int_equal(tern_profiler_start(b), TERN_OK);
    assert_int_equal(tern_profiler_stop(b), TERN_OK);
    tern_profiler_free(b);
}

/* ---- traces ---- */

/* Events of a thread lie within each other or apart; those of a device follow each other. */
static void check_nesting(json_t *events)
{
    double ends[8][256];
    int depth[8] = {0}, tid[8] = {0}, pid[8] = {0}, n = 0;
    size_t i;
    json_t *e;
    json_array_foreach(events, i, e)
    {
        if (strcmp(json_string_value(json_object_get(e, "ph")), "X") != 0)
            continue;
        int a = (int)json_integer_value(json_object_get(e, "pid"));
        int b = (int)json_integer_value(json_object_get(e, "tid")), k = 0;
        double from = json_number_value(json_object_get(e, "ts"));
        double to = from + json_number_value(json_object_get(e, "dur"));
        while (k < n && (pid[k] != a || tid[k] != b))
            k++;
        assert_true(k < 8);
        n = k == n ? n + 1 : n;
        pid[k] = a, tid[k] = b;
        while (depth[k] > 0 && ends[k][depth[k] - 1] <= from + 1e-6)
            depth[k]--;
        assert_true(depth[k] == 0 || (a == 1 && to <= ends[k][depth[k] - 1] + 1e-6));
        assert_true(depth[k] < 256);
        ends[k][depth[k]++] = to;
    }
}

static void check_arrows(json_t *events)
{
    size_t i, begun = 0, ended = 0;
    double launched = 0;
    json_t *e;
    json_array_foreach(events, i, e)
    {
        const char *ph = json_string_value(json_object_get(e, "ph"));
        double at = json_number_value(json_object_get(e, "ts"));
        begun += strcmp(ph, "s") == 0;
        ended += strcmp(ph, "f") == 0;
        launched = strcmp(ph, "s") == 0 ? at : launched;
        assert_true(strcmp(ph, "f") != 0 ||
                    at >= launched - 1e-3); /* no arrow leads back in time */
    }
    assert_true(begun > 0);
    assert_int_equal(begun, ended);
}

static void traces_are_json_that_nests(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/trace.json", folder);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        task t = begin(device);
        TERN_PROFILE(path)
        TERN_PROFILER_LABEL("a \"quoted\" \\ name")
        TERN_SCOPE
            step(&t);
        json_error_t error;
        json_t *trace = json_load_file(path, 0, &error);
        assert_non_null(trace);
        json_t *events = json_object_get(trace, "traceEvents");
        assert_true(json_array_size(events) > 20);
        check_nesting(events);
        check_arrows(events);
        json_decref(trace);
        unlink(path);
        end(&t);
    }
}

/* What modules hold of a device adds up to what it has, after each change; and their results are theirs. */
static void memory_is_told_by_module(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/memory.json", folder);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        enum { MOST = 32 };
        char names[MOST][64];
        json_int_t held[MOST] = {0}, most[MOST] = {0}, sum = 0, total = 0;
        size_t n = 0, i, k, length = strlen(device), changes = 0;
        task t = begin(device);
        TERN_PROFILE(path)
        TERN_SCOPE
            step(&t);
        json_t *trace = json_load_file(path, 0, NULL), *e;
        json_array_foreach(json_object_get(trace, "traceEvents"), i, e)
        {
            const char *name = json_string_value(json_object_get(e, "name"));
            if (strcmp(json_string_value(json_object_get(e, "ph")), "C") != 0 ||
                strncmp(name, device, length) != 0)
                continue;
            json_int_t bytes =
                json_integer_value(json_object_get(json_object_get(e, "args"), "allocated"));
            if (!name[length]) {
                assert_int_equal(sum, total);
                total = bytes;
                changes++;
                continue;
            }
            for (k = 0; k < n && strcmp(names[k], name + length + 1) != 0; k++)
                ;
            assert_true(k < MOST);
            n = k == n ? n + 1 : n;
            snprintf(names[k], sizeof names[k], "%s", name + length + 1);
            sum += bytes - held[k];
            held[k] = bytes;
            most[k] = bytes > most[k] ? bytes : most[k];
        }
        assert_int_equal(sum, total);
        assert_true(changes > 4);
        for (k = 0; k < n && strcmp(names[k], "0") != 0; k++)
            ;
        assert_true(k < n && most[k] >= 4 * 8 * 32);   /* the first layer's result, (8, 32) */
        assert_int_equal(held[k], 4 * (16 * 32 + 32)); /* the scope took it; gradients stay */
        json_decref(trace);
        unlink(path);
        end(&t);
    }
}

/* A block tells who took it; one that no event told is nobody's, also where it was somebody's before. */
static void blocks_of_events_that_are_lost_are_nobodys(void **state)
{
    (void)state;
    tern_profiler *p = tern_profiler_new(&(tern_profiler_options){.memory = true, .most = 2});
    int64_t first = 0, second = 0;
    assert_ok(tern_profiler_start(p));
    tern_from_profiler->memory("cpu", 64, 64, &first);
    tern_from_profiler->memory("cpu", 128, 64, &second);
    assert_true(first != 0 && second != 0 && first != second);
    tern_from_profiler->memory("cpu", 64, -64, &first); /* lost, as there are two */
    tern_from_profiler->memory("cpu", 128, 64, &second);
    assert_int_equal(first, 0);
    assert_int_equal(second, 0);
    assert_ok(tern_profiler_stop(p));
    tern_profiler_free(p);
}

static void a_file_that_cannot_be_written(void **state)
{
    (void)state;
    tern_profiler *p = tern_profiler_new(NULL);
    assert_int_equal(tern_profiler_write_trace(p, "no/such/folder/trace.json"), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "no/such/folder");
    tern_profiler_free(p);
}

/* ---- strict ---- */

static void what_waits_unasked_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 4, 1, TERN_I64, device);
        tern_tensor *one = tern_ones(((tern_shape){0}), TERN_F32, device);
        int64_t values[4];
        TERN_STRICT
        {
            assert_true(tern_is_strict());
            tern_item(one);
            assert_error(TERN_ERR_STATE, "tern_item");
            assert_null(tern_nonzero(x));
            assert_error(TERN_ERR_STATE, "nonzero");
            tern_unique(x, &(tern_unique_result){0});
            assert_error(TERN_ERR_STATE, "tern_unique");
            assert_null(tern_one_hot(x, -1));
            assert_error(TERN_ERR_STATE, "tern_one_hot");
            assert_null(tern_bincount(x, NULL, 0));
            assert_error(TERN_ERR_STATE, "tern_bincount");
            if (strcmp(device, "cpu") != 0) {
                assert_null(tern_add(x, tern_ones(((tern_shape){0}), TERN_I64, "cpu")));
                assert_error(TERN_ERR_STATE, "tern_add");
            }
            tern_tensor *q = tern_ones(TERN_SHAPE(1, 1, 1, 1024, 2), TERN_F32, device);
            assert_null(tern_scaled_dot_product_attention(q, q, q, NULL)); /* keeps all scores */
            assert_error(TERN_ERR_STATE, "tern_scaled_dot_product_attention");
            assert_non_null(tern_one_hot(x, 5));
            assert_int_equal(tern_copy_to_host(x, values, sizeof values), TERN_OK);
            assert_non_null(tern_to(x, "cpu"));
            assert_int_equal(tern_synchronize(device), TERN_OK);
        }
        assert_false(tern_is_strict());
        assert_true(tern_item(one) == 1);
    }
}

static void counters_tell_what_a_step_does(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        task t = begin(device);
        tern_counters before, after;
        assert_int_equal(tern_get_counters(device, &before), TERN_OK);
        TERN_STRICT
        for (int i = 0; i < 3; i++)
            TERN_SCOPE
                step(&t);
        assert_int_equal(tern_last_status(), TERN_OK);
        assert_int_equal(tern_get_counters(device, &after), TERN_OK);
        assert_int_equal(after.waits, before.waits);
        assert_int_equal(after.to_host, before.to_host);
        assert_int_equal(after.fallbacks, before.fallbacks);
        assert_int_equal(after.programs_built, before.programs_built);
        assert_true(after.launches > before.launches && after.operations > before.operations);
        tern_synchronize(device);
        assert_int_equal(tern_get_counters(device, &after), TERN_OK);
        assert_int_equal(after.waits, before.waits + 1);
        end(&t);
    }
    assert_int_equal(tern_get_counters("nowhere:0", &(tern_counters){0}), TERN_ERR_DEVICE);
    tern_clear_error();
}

/* What a step of layers that may be one operation does, and a number that may need no kernel. */
static tern_counters work_of_a_step(const char *device, tern_profiler *p)
{
    tern_linear_options o = {.device = device};
    tern_module *m =
        tern_nn_sequential(tern_nn_linear(16, 32, &o), tern_nn_relu(), tern_nn_linear(32, 8, &o));
    tern_counters before, after;
    TERN_SCOPE {
        tern_tensor *x = tern_randn(TERN_SHAPE(8, 16), TERN_F32, device);
        if (p)
            assert_ok(tern_profiler_start(p));
        assert_ok(tern_get_counters(device, &before));
        tern_tensor *y = NULL;
        TERN_PROFILER_LABEL("forward")
        y = tern_nn_forward(m, x);
        y = tern_mul(y, tern_ones(TERN_SHAPE(1), TERN_F32, device));
        assert_ok(tern_backward(tern_sum(y)));
        assert_ok(tern_get_counters(device, &after));
        if (p)
            assert_ok(tern_profiler_stop(p));
    }
    tern_nn_free(m);
    return (tern_counters){.operations = after.operations - before.operations,
                           .launches = after.launches - before.launches};
}

static void a_profiler_changes_nothing_that_runs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_profiler *p = tern_profiler_new(NULL);
        work_of_a_step(device, NULL); /* the first one makes what is kept */
        const tern_counters alone = work_of_a_step(device, NULL), seen = work_of_a_step(device, p);
        assert_int_equal(seen.operations, alone.operations);
        assert_int_equal(seen.launches, alone.launches);
        tern_profiler_row row;
        assert_true(tern_profiler_find(p, "forward", NULL, &row));
        assert_true(row.flops == 2.0 * 8 * 32 * (16 + 8));
        tern_profiler_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(rows_count_calls_by_name_and_module),
                                       TEST(replays_have_the_time_of_the_device),
                                       TEST(tables_are_sorted_by_a_field),
                                       TEST(one_runs_at_a_time),
                                       TEST(traces_are_json_that_nests),
                                       TEST(memory_is_told_by_module),
                                       TEST(blocks_of_events_that_are_lost_are_nobodys),
                                       TEST(a_file_that_cannot_be_written),
                                       TEST(what_waits_unasked_is_refused),
                                       TEST(counters_tell_what_a_step_does),
                                       TEST(a_profiler_changes_nothing_that_runs)};
    snprintf(folder, sizeof folder, "profiler-test-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int failures = test_main(tests, sizeof tests / sizeof *tests);
    rmdir(folder);
    return failures;
}
