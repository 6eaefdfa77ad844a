/* test_cudnn_convolution.c -- convolutions through cuDNN's graphs, on the stand-in for it (tests/standin/cudnn_plan.c): which it is
 * given, what comes of them, which engine is taken, its failures. Nothing here is a result of a GPU. */
#include "cudnn_runs.h"
#include "environment.h"

/* As the stand-in counts: engines of graphs behind the algorithms of the functions; engine 0 makes no plan. */
enum { GRAPH = 8, RUNS = 16 };

static void use_graphs(const char *wanted)
{
    if (wanted)
        set_variable("TERN_CUDNN_CONVOLUTION", wanted);
    else
        set_variable("TERN_CUDNN_CONVOLUTION", NULL);
}

static long sum_of_runs(int pass, int from, int end)
{
    long n = 0;
    for (int i = from; i < end; i++)
        n += runs(pass, i);
    return n;
}

static unsigned long commands(void)
{
    static unsigned long (*count)(void);
    if (!count)
        find("standin_commands", &count, sizeof count);
    return count();
}

typedef struct problem {
    tern_shape x, w;
    int64_t groups, stride, padding, dilation;
    bool bias, last;
} problem;

static const problem problems[] = {
    {{4, {2, 8, 9, 7}}, {4, {16, 8, 3, 3}}, 1, 1, 1, 1, true, true},
    {{4, {2, 8, 9, 7}}, {4, {16, 8, 3, 3}}, 1, 2, 1, 1, false, true},
    {{4, {1, 3, 8, 10}}, {4, {5, 3, 3, 2}}, 1, 1, 0, 2, true, true},
    {{4, {2, 6, 8, 7}}, {4, {4, 3, 2, 3}}, 2, 2, 1, 1, true, true},
    {{4, {2, 4, 6, 6}}, {4, {4, 1, 3, 3}}, 4, 1, 1, 1, true, false},
    {{4, {3, 8, 5, 5}}, {4, {4, 8, 1, 1}}, 1, 1, 0, 1, true, false},
    {{3, {2, 4, 11}}, {3, {6, 2, 3}}, 2, 2, 1, 1, true, false},
    {{5, {1, 2, 5, 4, 6}}, {5, {3, 2, 2, 3, 3}}, 1, 2, 1, 1, true, true},
    {{5, {1, 2, 5, 4, 6}}, {5, {3, 2, 2, 3, 3}}, 1, 1, 1, 1, false, false},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static tern_tensor *leaf(const char *device, tern_dtype dtype, tern_shape shape, bool last,
                         uint64_t seed)
{
    tern_tensor *x = test_uniform(device, dtype, shape, -1, 1, seed);
    if (last)
        x = tern_to_memory_format(x, shape.ndim == 4 ? TERN_CHANNELS_LAST : TERN_CHANNELS_LAST_3D);
    tern_requires_grad_(x, true);
    return x;
}

static result convolve(const problem *p, const char *device, tern_dtype dtype)
{
    tern_tensor *x = leaf(device, dtype, p->x, p->last, 1);
    tern_tensor *w = leaf(device, dtype, p->w, p->last, 2);
    tern_tensor *b = p->bias ? leaf(device, dtype, TERN_SHAPE(p->w.dims[0]), false, 3) : NULL;
    tern_conv_function_options o = {.stride = TERN_SHAPE(p->stride),
                                    .padding = TERN_SHAPE(p->padding),
                                    .dilation = TERN_SHAPE(p->dilation),
                                    .groups = p->groups};
    tern_tensor *y = p->x.ndim == 3   ? tern_conv1d(x, w, b, &o)
                     : p->x.ndim == 4 ? tern_conv2d(x, w, b, &o)
                                      : tern_conv3d(x, w, b, &o);
    assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
    return (result){y, tern_grad(x), tern_grad(w), b ? tern_grad(b) : NULL};
}

static void compare(const result *a, const result *b, double tolerance, int row)
{
    tern_tensor *const got[] = {a->y, a->dx, a->dw, a->db}, *const of[] = {b->y, b->dx, b->dw,
                                                                           b->db};
    for (int i = 0; i < 4; i++)
        if (of[i])
            test_close(got[i], of[i], (test_tolerance){.abs = tolerance, .rel = tolerance},
                       i == 0   ? "y"
                       : i == 1 ? "dx"
                       : i == 2 ? "dw"
                                : "db",
                       __FILE__, row);
}

/* A pass each, by the graph's first engine that makes a plan, and no other. */
static void all_of_them_are_as_on_the_cpu(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F16, TERN_BF16, TERN_F32};
    static const double tolerances[] = {3e-2, 2.5e-1, 2e-2}; /* the last of TensorFloat-32 */
    (void)state;
    use_graphs("1");
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < PROBLEMS; i++)
            TERN_SCOPE {
                long graph[3], others[3];
                for (int pass = 0; pass < 3; pass++) {
                    graph[pass] = runs(pass, GRAPH + 1);
                    others[pass] = sum_of_runs(pass, 0, RUNS) - graph[pass];
                }
                result on_cuda = convolve(&problems[i], "cuda:0", dtypes[d]);
                assert_ok(tern_synchronize("cuda:0"));
                for (int pass = 0; pass < 3; pass++) {
                    assert_int_equal(runs(pass, GRAPH + 1) - graph[pass], 1);
                    assert_int_equal(sum_of_runs(pass, 0, RUNS) - runs(pass, GRAPH + 1),
                                     others[pass]);
                }
                result on_cpu = convolve(&problems[i], "cpu", dtypes[d]);
                compare(&on_cuda, &on_cpu, tolerances[d], i);
            }
}

/* The graph's bias is no command of its own, that of the functions is. */
static void a_bias_is_added_on_the_way(void **state)
{
    unsigned long spent[2];
    (void)state;
    for (int graphs = 0; graphs < 2; graphs++)
        TERN_SCOPE {
            tern_tensor *x = leaf("cuda:0", TERN_BF16, TERN_SHAPE(2, 8, 6, 5), true, 1);
            tern_tensor *w = leaf("cuda:0", TERN_BF16, TERN_SHAPE(16, 8, 3, 3), true, 2);
            tern_tensor *b = leaf("cuda:0", TERN_BF16, TERN_SHAPE(16), false, 3);
            use_graphs(graphs ? "1" : "0");
            unsigned long before = commands();
            tern_conv2d(x, w, b, NULL);
            spent[graphs] = commands() - before;
        }
    assert_int_equal(spent[1], 1);
    assert_true(spent[0] > 1);
}

/* Whether y was computed by the graphs; it is once. */
static bool is_given(const problem *p, tern_dtype dtype)
{
    long before = sum_of_runs(Y, GRAPH, RUNS), all = sum_of_runs(Y, 0, RUNS), graph;
    TERN_SCOPE
        convolve(p, "cuda:0", dtype);
    graph = sum_of_runs(Y, GRAPH, RUNS) - before;
    assert_int_equal(sum_of_runs(Y, 0, RUNS) - all, 1);
    return graph == 1;
}

static void what_is_given(void **state)
{
    static const problem last = {{4, {2, 8, 6, 6}}, {4, {8, 8, 3, 3}}, 1, 1, 1, 1, true, true},
                         rows = {{4, {2, 8, 6, 6}}, {4, {8, 8, 3, 3}}, 1, 1, 1, 1, true, false},
                         grouped = {{4, {2, 8, 6, 6}}, {4, {8, 4, 3, 3}}, 2, 1, 1, 1, true, true};
    const bool new = strcmp(getenv("TERN_STANDIN_COMPUTE"), "90") == 0;
    (void)state;
    use_graphs(NULL);
    assert_int_equal(is_given(&last, TERN_F16), new);
    assert_int_equal(is_given(&last, TERN_BF16), new);
    assert_false(is_given(&last, TERN_F32));
    assert_false(is_given(&rows, TERN_F16));
    assert_false(is_given(&grouped, TERN_F16));
    for (int i = 0; i < 2; i++) { /* off and on again: answers are kept apart */
        tern_use_deterministic(true);
        assert_false(is_given(&last, TERN_F16));
        tern_use_deterministic(false);
        assert_int_equal(is_given(&last, TERN_F16), new);
        use_graphs("0");
        assert_false(is_given(&last, TERN_F16));
        use_graphs("1");
        assert_true(is_given(&last, TERN_F16));
        assert_true(is_given(&rows, TERN_F16));
        assert_true(is_given(&grouped, TERN_F16));
        assert_true(is_given(&last, TERN_F32));
        assert_false(is_given(&last, TERN_F64));
        tern_backends_cudnn_set_allow_tf32(false);
        assert_false(is_given(&last, TERN_F32));
        tern_backends_cudnn_set_allow_tf32(true);
        use_graphs(NULL);
    }
}

static void new_gpus_get_half_precision_with_channels_last(void **state)
{
    (void)state;
    again("what_is_given", "TERN_STANDIN_COMPUTE", "90");
    again("what_is_given", "TERN_STANDIN_COMPUTE", "80");
}

static void old(void **state)
{
    (void)state;
    use_graphs("1");
    assert_false(is_given(&problems[0], TERN_F16));
}

static void an_older_cudnn_is_asked_without_graphs(void **state)
{
    (void)state;
    again("old", "TERN_STANDIN_CUDNN", "8907");
    again("old", "TERN_STANDIN_CUDNN", "90500");
}

/* A gradient on top of what came to x by another way is not the graph's. */
static void sums_of_gradients_are_left_to_the_functions(void **state)
{
    (void)state;
    use_graphs("1");
    TERN_SCOPE {
        tern_tensor *of[2];
        long functions = sum_of_runs(X, 0, GRAPH), graph = sum_of_runs(X, GRAPH, RUNS);
        for (int i = 0; i < 2; i++) {
            const char *device = i ? "cpu" : "cuda:0";
            tern_tensor *x = leaf(device, TERN_F32, TERN_SHAPE(1, 3, 9, 6), false, 1);
            tern_tensor *w = leaf(device, TERN_F32, TERN_SHAPE(4, 3, 3, 3), false, 2);
            tern_tensor *y = tern_conv2d(x, w, NULL, NULL), *z = tern_conv2d(x, w, NULL, NULL);
            assert_ok(tern_backward(tern_sum(tern_mul(y, z))));
            of[i] = tern_grad(x);
        }
        assert_close(of[0], of[1], .abs = 5e-2, .rel = 1e-2);
        assert_int_equal(sum_of_runs(X, 0, GRAPH) - functions, 1);
        assert_int_equal(sum_of_runs(X, GRAPH, RUNS) - graph, 1);
    }
}

/* A plan is made once a shape, and goes with the device. */
static void plans_are_kept(void **state)
{
    unsigned long (*descriptors)(void), first = 0;
    (void)state;
    find("standin_descriptors", &descriptors, sizeof descriptors);
    use_graphs("1");
    for (int i = 0; i < 4; i++) {
        TERN_SCOPE
            convolve(&problems[1], "cuda:0", TERN_F16);
        assert_ok(tern_synchronize("cuda:0"));
        first = i == 0 ? descriptors() : first;
        assert_int_equal(descriptors(), first);
    }
}

/* A replay convolves what is there then. */
static void a_recorded_convolution_is_of_every_replay(void **state)
{
    (void)state;
    use_graphs("1");
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cuda:0", TERN_F16, TERN_SHAPE(1, 8, 5, 5), -1, 1, 1);
        tern_tensor *w = test_uniform("cuda:0", TERN_F16, TERN_SHAPE(8, 8, 3, 3), -1, 1, 2);
        tern_tensor *b = test_uniform("cuda:0", TERN_F16, TERN_SHAPE(8), -1, 1, 3), *y = NULL;
        tern_graph *graph = tern_graph_new("cuda:0");
        TERN_CAPTURE (graph)
            y = tern_keep(tern_conv2d(x, w, b, NULL));
        for (int i = 0; i < 3; i++) {
            assert_non_null(tern_add_scalar_(x, tern_scalar_real(1)));
            assert_ok(tern_graph_replay(graph));
            assert_close(y,
                         tern_conv2d(tern_to(x, "cpu"), tern_to(w, "cpu"), tern_to(b, "cpu"), NULL),
                         .abs = 5e-2, .rel = 1e-2);
        }
        tern_release(y);
        tern_graph_free(graph);
    }
}

/* Its CUDA graph has a kernel of its plan, which ends with that; more shapes than there are places come after it. */
static void a_recordings_plan_outlives_newer_shapes(void **state)
{
    (void)state;
    use_graphs("1");
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cuda:0", TERN_F16, TERN_SHAPE(1, 2, 7), -1, 1, 1);
        tern_tensor *w = test_uniform("cuda:0", TERN_F16, TERN_SHAPE(2, 2, 3), -1, 1, 2), *y = NULL;
        tern_graph *graph = tern_graph_new("cuda:0");
        TERN_CAPTURE (graph)
            y = tern_keep(tern_conv1d(x, w, NULL, NULL));
        for (int i = 0; i < 600; i++)
            TERN_SCOPE
                assert_non_null(
                    tern_conv1d(test_uniform("cuda:0", TERN_F16, TERN_SHAPE(1, 2, 8 + i), -1, 1, 3),
                                w, NULL, NULL));
        assert_non_null(tern_add_scalar_(x, tern_scalar_real(1)));
        tern_tensor *expected = tern_conv1d(tern_to(x, "cpu"), tern_to(w, "cpu"), NULL, NULL);
        assert_ok(tern_graph_replay(graph));
        assert_close(y, expected, .abs = 2e-2, .rel = 1e-2);
        tern_release(y);
        tern_graph_free(graph);
    }
}

/* ---- failures ---------------------------------------------------------------------------------- */

/* What is refused the functions do; another failure is an error, after which the next step works. */
static void steps(void **state)
{
    const problem *p = &problems[0];
    const bool refused = strstr(getenv("TERN_STANDIN_FAIL"), ":3000") != NULL;
    (void)state;
    use_graphs("1");
    for (int step = 0; step < 2; step++)
        TERN_SCOPE {
            tern_tensor *x = leaf("cuda:0", TERN_F16, p->x, true, 1);
            tern_tensor *w = leaf("cuda:0", TERN_F16, p->w, true, 2);
            tern_tensor *b = leaf("cuda:0", TERN_F16, TERN_SHAPE(16), false, 3);
            tern_tensor *y = tern_conv2d(x, w, b, NULL);
            bool ok = y && tern_backward(tern_sum(y)) == TERN_OK;
            assert_true(ok || (step == 0 && !refused));
            if (!ok)
                assert_error(TERN_ERR_DEVICE, "CUDNN status of the stand-in (4000)");
            else
                assert_close(y,
                             tern_conv2d(tern_to(tern_detach(x), "cpu"),
                                         tern_to(tern_detach(w), "cpu"),
                                         tern_to(tern_detach(b), "cpu"), NULL),
                             .abs = 2e-2, .rel = 1e-2);
        }
    long functions = 0;
    for (int pass = 0; pass < 3; pass++)
        functions += sum_of_runs(pass, 0, GRAPH);
    assert_true(functions <= 2); /* of the first step alone */
}

static void any_call_may_fail_or_refuse(void **state)
{
    static const char *const calls[] = {"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                                        "cudnnBackendFinalize", "cudnnBackendGetAttribute",
                                        "cudnnBackendExecute"};
    static const int nth[] = {1, 9, 40};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t n = 0; n < sizeof nth / sizeof *nth; n++)
            for (int code = 3000; code <= 4000; code += 1000) {
                char plan[96];
                snprintf(plan, sizeof plan, "%s:%d:%d", calls[i], nth[n], code);
                again("steps", "TERN_STANDIN_FAIL", plan);
            }
}

/* ---- benchmark mode ---------------------------------------------------------------------------- */

/* An engine of the graph, the other one, and a function are the fastest; in the process after that all are slow but others. */
static void kept_on_disk(void **state)
{
    static const int fastest[] = {GRAPH + 2, GRAPH + 1, 1};
    static const problem p = {{4, {1, 8, 2, 2}}, {4, {8, 8, 1, 1}}, 1, 1, 0, 1, false, true};
    const bool known = strcmp(getenv("TERN_TEST_KNOWN"), "1") == 0;
    void (*slow)(int, int, int);
    (void)state;
    find("standin_slow_convolution", &slow, sizeof slow);
    use_graphs(NULL);
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < RUNS; i++)
            slow(pass, i, (i == fastest[pass]) == known ? 50 : 0);
    tern_backends_cudnn_set_benchmark(true);
    TERN_SCOPE {
        result on_cuda = convolve(&p, "cuda:0", TERN_F16), on_cpu = convolve(&p, "cpu", TERN_F16);
        compare(&on_cuda, &on_cpu, 3e-2, __LINE__);
        for (int pass = 0; pass < 3; pass++) {
            /* 4 of each of the two engines and of the three functions that run */
            assert_int_equal(runs(pass, fastest[pass]), known ? 1 : 5);
            assert_int_equal(sum_of_runs(pass, 0, RUNS), known ? 1 : 21);
        }
    }
}

static void the_fastest_is_taken_and_the_next_process_knows_it(void **state)
{
    char folder[] = "tern_cudnn_XXXXXX", command[64];
    const char *old_folder = getenv("TERN_CACHE_DIR");
    char *before = old_folder ? strdup(old_folder) : NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    set_variable("TERN_CACHE_DIR", folder);
    again("kept_on_disk", "TERN_TEST_KNOWN", "0");
    again("kept_on_disk", "TERN_TEST_KNOWN", "1");
    if (before)
        set_variable("TERN_CACHE_DIR", before);
    else
        set_variable("TERN_CACHE_DIR", NULL);
    free(before);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest scenarios[] = {TEST(what_is_given), TEST(old), TEST(steps),
                                                  TEST(kept_on_disk)};
    const struct CMUnitTest tests[] = {
        TEST(all_of_them_are_as_on_the_cpu),
        TEST(a_bias_is_added_on_the_way),
        TEST(new_gpus_get_half_precision_with_channels_last),
        TEST(an_older_cudnn_is_asked_without_graphs),
        TEST(sums_of_gradients_are_left_to_the_functions),
        TEST(plans_are_kept),
        TEST(a_recorded_convolution_is_of_every_replay),
        TEST(a_recordings_plan_outlives_newer_shapes),
        TEST(any_call_may_fail_or_refuse),
        TEST(the_fastest_is_taken_and_the_next_process_knows_it),
    };
    return again_main(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios, tests,
                      sizeof tests / sizeof *tests);
}
