/* test_late_chains.c -- recordings whose chains are compiled by another thread, as no cache has them: replays do what was
 * recorded until the kernels are there, and have the same bits and no more memory afterwards. */
#include "device/plan.h"
#include "fused.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <tern/compile.h>
#include <tern/graph.h>

enum { CHAINS = 4, ROWS = 64, COLUMNS = 65 };

/* Chains of other rows each, apart by products; which they are depends on `first`, so that recordings have none in common. */
static tern_tensor *programs(tern_tensor *x, int first)
{
    for (int i = first; i < first + CHAINS; i++) {
        tern_tensor *y = tern_neg(tern_matmul(x, x));
        y = i & 1 ? tern_tanh(y) : tern_abs(y);
        y = i & 2 ? tern_square(y) : tern_relu(y);
        y = i & 4 ? tern_add(y, x) : tern_mul(y, x);
        y = i & 32 ? tern_sigmoid(y) : y;
        x = i & 8 ? tern_sub(x, y) : i & 16 ? tern_minimum(y, x) : tern_maximum(y, x);
    }
    return x;
}

static tern_graph *record(tern_tensor *x, int first, tern_tensor **y)
{
    tern_graph *graph = tern_graph_new(tern_device(x));
    TERN_CAPTURE (graph)
        TERN_SCOPE
            *y = tern_keep(programs(x, first));
    assert_no_error();
    return graph;
}

/* A second device finds the texts of the first. */
static bool is_second(const char *device)
{
    return strcmp(device, test_device(0)) != 0;
}

static uint64_t reserved(const char *device)
{
    tern_memory_stats stats;
    assert_ok(tern_memory_get_stats(device, &stats));
    return stats.reserved;
}

/* The first text shows that compilers take their time here; the others are left to the thread. */
static void replays_begin_before_kernels_are_there(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
            tern_tensor *expected = programs(x, 0), *y;
            tern_graph *graph = record(x, 0, &y);
            if (strcmp(device, "cpu") == 0)
                assert_int_equal(graph->n_waits, 0);
            else if (!is_second(device))
                assert_in_range(graph->n_waits, 1, CHAINS - 1);
            for (int i = 0; i < 20; i++) { /* in some of them they come */
                assert_ok(tern_graph_replay(graph));
                assert_same(y, expected);
            }
            assert_int_equal(tern_graph_size(graph), 2 * CHAINS); /* products and chains */
            assert_int_equal(graph->n_waits, 0);
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            tern_graph_free(graph);
            tern_release(y);
        }
}

/* What is asked of a recording is what replays will do. */
static void a_text_waits_for_the_kernels(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
            tern_tensor *expected = programs(x, CHAINS), *y;
            tern_graph *graph = record(x, CHAINS, &y);
            char *text = tern_graph_text(graph);
            int fused = 0;
            for (const char *at = text; (at = strstr(at, "  fused: ")); at++)
                fused++;
            assert_int_equal(fused, CHAINS);
            tern_free_text(text);
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            tern_graph_free(graph);
            tern_release(y);
        }
}

/* A recording ends while its kernels are made, and the next one finds them. */
static void kernels_outlive_a_recording(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
            tern_tensor *expected = programs(x, 2 * CHAINS), *y;
            tern_graph *graph = record(x, 2 * CHAINS, &y);
            tern_release(y);
            tern_graph_free(graph);
            graph = record(x, 2 * CHAINS, &y);
            assert_int_equal(tern_graph_size(graph), 2 * CHAINS);
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            tern_graph_free(graph);
            tern_release(y);
            graph = record(x, 2 * CHAINS, &y);
            assert_int_equal(graph->n_waits, 0);
            tern_graph_free(graph);
            tern_release(y);
        }
}

/* Without compilers commands stay apart, but those whose kernel is there; what was not compiled then is compiled later. */
static void a_capture_needs_no_compiler(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
            tern_tensor *expected = programs(x, 3 * CHAINS), *y, *z;
            tern_graph *graph = record(x, 2 * CHAINS, &z); /* has its kernels */
            assert_int_equal(tern_graph_size(graph), 2 * CHAINS);
            tern_graph_free(graph);
            tern_release(z);
            graph = tern_graph_new(device);
            assert_ok(tern_graph_capture_begin(graph));
            TERN_SCOPE {
                y = tern_keep(programs(x, 3 * CHAINS));
                z = tern_keep(programs(x, 2 * CHAINS));
            }
            tern_compile_stop(true);
            const tern_status status = tern_graph_capture_end(graph);
            tern_compile_stop(false);
            assert_ok(status);
            const bool is_apart = strcmp(device, "cpu") != 0 && !is_second(device);
            assert_int_equal(tells(graph, "compilers are stopped"), is_apart);
            assert_int_equal(tern_graph_size(graph) == 4 * CHAINS, !is_apart);
            assert_true(tells(graph, "  fused: ")); /* those of z */
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            tern_release(y);
            tern_release(z);
            tern_graph_free(graph);
            graph = record(x, 3 * CHAINS, &y);
            assert_int_equal(tern_graph_size(graph), 2 * CHAINS);
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            tern_graph_free(graph);
            tern_release(y);
        }
}

/* As replays go on, and as the kernels are asked for. */
static void a_stop_leaves_apart_what_is_not_compiled_yet(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
            tern_tensor *expected = programs(x, 10 * CHAINS), *y;
            tern_graph *graph = record(x, 10 * CHAINS, &y);
            tern_compile_stop(true);
            const bool late = graph->n_waits > 1; /* a thread may have one of them */
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            const bool stopped = tells(graph, "compilers are stopped");
            const int64_t size = tern_graph_size(graph);
            tern_compile_stop(false);
            assert_no_error();
            assert_true(size == 2 * CHAINS || (late && stopped));
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            tern_graph_free(graph);
            tern_release(y);
        }
}

/* Tensors that the program gives back after the capture: results of rows inside of chains, and what chains read. The chains are
 * those whose kernels are made. */
static void tensors_may_end_while_kernels_are_made(void **state)
{
    (void)state;
    enum { FEW = 2 };
    FOR_EACH_DEVICE(device)
    for (int no_plan = 0; no_plan < 2; no_plan++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *x =
                    test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
                tern_tensor *kept[2 * FEW], *y = NULL, *expected = NULL;
                tern_graph *graph =
                    tern_graph_new_with(device, &(tern_graph_options){.no_plan = no_plan});
                for (int recorded = 0; recorded < 2; recorded++) {
                    if (recorded)
                        assert_ok(tern_graph_capture_begin(graph));
                    TERN_SCOPE {
                        y = x;
                        for (int i = 0; i < FEW; i++) {
                            tern_tensor *first = tern_matmul(y, x), *row = tern_neg(first);
                            y = i & 1 ? tern_sigmoid(row) : tern_exp(row);
                            y = no_plan ? tern_sub(row, y) : tern_mul(row, y);
                            kept[2 * i] = recorded ? tern_keep(first) : first;
                            kept[2 * i + 1] = recorded ? tern_keep(row) : row;
                        }
                        *(recorded ? &y : &expected) = tern_keep(y);
                    }
                }
                assert_ok(tern_graph_capture_end(graph));
                const bool late = graph->n_waits > 0;
                assert_true(late == (strcmp(device, "cpu") != 0) || is_second(device));
                for (int i = 0; i < 2 * FEW; i++)
                    tern_release(kept[i]);
                char *text = tern_graph_text(graph);
                if (tern_graph_size(graph) != 2 * FEW)
                    fail_msg("%s", text);
                tern_free_text(text);
                if (late)
                    assert_int_equal(graph->n_texts, FEW); /* and no others */
                assert_ok(tern_graph_replay(graph));
                assert_same(y, expected);
                tern_graph_free(graph);
                tern_release(y);
                tern_release(expected);
            }
}

/* Nobody makes kernels in a child, which is not to wait for them. */
static void a_forked_child_does_not_wait(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
            tern_tensor *y;
            tern_graph *graph = record(x, 4 * CHAINS, &y);
            IN_CHILD
            {
                test_limit(1); /* 20 seconds of the clock */
                assert_true(tern_graph_size(graph) > 0);
            }
            assert_int_equal(tern_graph_size(graph), 2 * CHAINS);
            tern_graph_free(graph);
            tern_release(y);
        }
}

/* Two devices want the same texts, of which a thread compiles one at a time: who waits for one
 * does others meanwhile. */
static void two_devices_want_the_same_kernels(void **state)
{
    (void)state;
    if (!test_device(1))
        skip();
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_graph *graph[2];
            tern_tensor *y[2];
            for (int i = 0; i < 2; i++) {
                tern_tensor *x =
                    test_uniform(test_device(i), TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
                graph[i] = record(x, 5 * CHAINS, &y[i]);
            }
            for (int i = 1; i >= 0; i--) {
                assert_int_equal(tern_graph_size(graph[i]), 2 * CHAINS);
                tern_graph_free(graph[i]);
                tern_release(y[i]);
            }
        }
}

static _Atomic(tern_graph *) asked;
static atomic_int answers;

static void ask(const tern_compile_progress *progress, void *user)
{
    tern_graph *graph = atomic_load(&asked);
    char *text = graph ? tern_graph_text(graph) : NULL;
    (void)progress;
    (void)user;
    atomic_fetch_add(&answers, text != NULL);
    tern_free_text(text);
}

/* The kernels that the text would wait for may wait for the handler that asks for it. */
static void a_handler_may_ask_for_the_text(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS, ROWS), -0.1, 0.1, 1);
            tern_tensor *y;
            tern_on_compile(ask, NULL);
            tern_graph *graph = record(x, 8 * CHAINS, &y);
            const bool late = graph->n_waits > 1;
            atomic_store(&asked, graph);
            char *text = tern_graph_text(graph);
            atomic_store(&asked, NULL);
            tern_on_compile(NULL, NULL);
            assert_non_null(text);
            assert_true(!late || atomic_load(&answers) > 0);
            tern_free_text(text);
            assert_int_equal(tern_graph_size(graph), 2 * CHAINS);
            tern_graph_free(graph);
            tern_release(y);
        }
}

enum { WIDE = 1 << 19 };

/* Two results of a chain and what both are made of, a's neighbors, over which none of them can be written. Row by row a ends
 * before there is a second result. */
static tern_tensor *of_neighbors(tern_tensor *x)
{
    tern_tensor *a = tern_softmax(x, 0);
    tern_tensor *d = tern_sub(tern_narrow(a, 0, 1, WIDE - 1), tern_narrow(a, 0, 0, WIDE - 1));
    return tern_dot(tern_neg(d), tern_abs(d));
}

/* The commands of them, until the end of the capture. */
static tern_graph *begin_neighbors(tern_tensor *x, bool apart, tern_tensor **y)
{
    tern_graph *graph =
        tern_graph_new_with(tern_device(x), &(tern_graph_options){.no_fusion = apart});
    assert_ok(tern_empty_cache(tern_device(x)));
    assert_ok(tern_graph_capture_begin(graph));
    TERN_SCOPE {
        tern_tensor *first = tern_sum(tern_sign(tern_neg(x)));
        *y = tern_keep(of_neighbors(x));
        tern_escape(first);
    }
    return graph;
}

/* A chain reads its operands until its end. These need more memory than their rows, of which there is none: when the
 * kernels come, or as the capture ends where they are there. */
static void without_memory_for_a_chain_its_rows_stay(void **state)
{
    (void)state;
    enum { APART, LATE, AT_ONCE, WAYS };
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(WIDE), -1, 1, 1), *y[WAYS];
            uint64_t most = 0; /* that the rows need */
            for (int way = APART; way < WAYS; way++) {
                tern_graph *graph = begin_neighbors(x, way == APART, &y[way]);
                if (way == AT_ONCE)
                    assert_ok(tern_set_memory_limit(device, most));
                assert_ok(tern_graph_capture_end(graph));
                const size_t before = graph->reserved;
                const bool late = graph->n_waits > 0, tight = late || way == AT_ONCE;
                assert_true(late == (way == LATE && strcmp(device, "cpu")) || is_second(device));
                assert_true(before >= WIDE * sizeof(float));
                most = most ? most : reserved(device) + 4096;
                if (late)
                    assert_ok(tern_set_memory_limit(device, most));
                assert_true(tells(graph, "there is no memory for it") == tight ||
                            is_second(device));
                assert_no_error();
                assert_true((graph->before == NULL) == (tight || way == APART) ||
                            is_second(device)); /* no chain is among the commands */
                assert_int_equal(graph->reserved, before);
                assert_ok(tern_graph_replay(graph));
                assert_same(y[way], y[0]);
                assert_ok(tern_set_memory_limit(device, 0));
                tern_graph_free(graph);
            }
            for (int way = APART; way < WAYS; way++)
                tern_release(y[way]);
        }
}

/* A recording that is taken in place of one that found no memory for its chains is fused. */
static void another_recording_of_the_graph_is_fused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(WIDE), -1, 1, 1), *y = NULL;
            tern_graph *graph = begin_neighbors(x, true, &y);
            assert_ok(tern_graph_capture_end(graph));
            const uint64_t most = reserved(device) + 4096;
            tern_graph_free(graph);
            tern_release(y);
            graph = begin_neighbors(x, false, &y);
            assert_ok(tern_set_memory_limit(device, most));
            assert_ok(tern_graph_capture_end(graph));
            assert_false(tells(graph, "  fused: "));
            assert_ok(tern_set_memory_limit(device, 0));
            assert_ok(tern_graph_reset(graph));
            tern_release(y);
            TERN_CAPTURE (graph)
                TERN_SCOPE
                    y = tern_keep(tern_abs(tern_neg(x)));
            assert_true(tells(graph, "fused: neg+abs"));
            tern_graph_free(graph);
            tern_release(y);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(replays_begin_before_kernels_are_there),
                                       TEST(a_text_waits_for_the_kernels),
                                       TEST(kernels_outlive_a_recording),
                                       TEST(a_capture_needs_no_compiler),
                                       TEST(a_stop_leaves_apart_what_is_not_compiled_yet),
                                       TEST(tensors_may_end_while_kernels_are_made),
                                       TEST(a_forked_child_does_not_wait),
                                       TEST(two_devices_want_the_same_kernels),
                                       TEST(a_handler_may_ask_for_the_text),
                                       TEST(without_memory_for_a_chain_its_rows_stay),
                                       TEST(another_recording_of_the_graph_is_fused)};
    setenv("TERN_CACHE_DIR", "/dev/null/none", 1);
    setenv("POCL_KERNEL_CACHE", "0", 1);
    setenv("TERN_COMPILE_THREADS", "1", 1);
    setenv("TERN_GRAPH_CHECK", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
