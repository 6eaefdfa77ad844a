/* test_cudnn_benchmark.c -- cuDNN's algorithms measured (tern_backends_cudnn_set_benchmark), on the stand-in, where the test says
 * which of them take long. Nothing here is a result of a GPU. */
#include "cudnn_runs.h"
#include "environment.h"

/* All algorithms of a pass but one take long. */
static void slow_down(int pass, int all_but)
{
    void (*slow)(int, int, int);
    find("standin_slow_convolution", &slow, sizeof slow);
    for (int algorithm = 0; algorithm < 8; algorithm++)
        slow(pass, algorithm, algorithm == all_but ? 0 : 30);
}

static const tern_shape images = {4, {2, 3, 8, 7}}, filters = {4, {4, 3, 3, 3}};

/* How often a step on those runs an algorithm; its results are right. */
static void step_runs(long counts[3][4])
{
    tern_backends_cudnn_set_allow_tf32(false);
    for (int pass = 0; pass < 3; pass++)
        for (int algorithm = 0; algorithm < 4; algorithm++)
            counts[pass][algorithm] = -runs(pass, algorithm);
    result on_cuda = run("cuda:0", TERN_F32, images, filters, 1, 1);
    assert_ok(tern_synchronize("cuda:0"));
    for (int pass = 0; pass < 3; pass++)
        for (int algorithm = 0; algorithm < 4; algorithm++)
            counts[pass][algorithm] += runs(pass, algorithm);
    result on_cpu = run("cpu", TERN_F32, images, filters, 1, 1);
    assert_close(on_cuda.y, on_cpu.y, .abs = 1e-5);
    assert_close(on_cuda.dx, on_cpu.dx, .abs = 1e-5);
    assert_close(on_cuda.dw, on_cpu.dw, .abs = 1e-4);
}

/* The stand-in's heuristics name algorithm 1 of y, 0 of x and 3 of the weight first; 2, 3 and 1 are the fastest here. */
static void fastest_of_all(void **state)
{
    static const int fastest[] = {2, 3, 1};
    static const int tried[3][4] = {{1, 1, 1, 0}, {1, 1, 0, 1}, {1, 1, 0, 1}};
    long counts[3][4];
    (void)state;
    for (int pass = 0; pass < 3; pass++)
        slow_down(pass, fastest[pass]);
    tern_backends_cudnn_set_benchmark(true);
    assert_true(tern_backends_cudnn_benchmarks());
    TERN_SCOPE {
        step_runs(counts);
        for (int pass = 0; pass < 3; pass++)
            for (int a = 0; a < 4; a++)
                assert_int_equal(counts[pass][a], 4 * tried[pass][a] + (a == fastest[pass]));
        step_runs(counts);
        for (int pass = 0; pass < 3; pass++)
            for (int a = 0; a < 4; a++)
                assert_int_equal(counts[pass][a], a == fastest[pass]);
        tern_backends_cudnn_set_benchmark(false); /* an answer of its own */
        step_runs(counts);
        assert_true(counts[Y][1] == 1 && counts[X][0] == 1 && counts[WEIGHT][3] == 1);
    }
}

/* A cache folder of a test's own; NULL: as it was before. */
static void use_cache(const char *folder)
{
    static char *before;
    if (folder) {
        before = getenv("TERN_CACHE_DIR") ? strdup(getenv("TERN_CACHE_DIR")) : NULL;
        set_variable("TERN_CACHE_DIR", folder);
    } else if (before) {
        set_variable("TERN_CACHE_DIR", before);
        free(before);
    } else
        set_variable("TERN_CACHE_DIR", NULL);
}

static void the_fastest_is_taken_and_kept(void **state)
{
    (void)state;
    again("fastest_of_all", "TERN_CACHE_DIR", "/dev/null");
}

/* What another process left in the cache is not measured again. */
static void kept_on_disk(void **state)
{
    static const int fastest[] = {2, 3, 1};
    const bool known = strcmp(getenv("TERN_TEST_KNOWN"), "1") == 0;
    long counts[3][4];
    (void)state;
    for (int pass = 0; pass < 3; pass++)
        slow_down(pass, known ? 0 : fastest[pass]);
    tern_backends_cudnn_set_benchmark(true);
    TERN_SCOPE {
        step_runs(counts);
        for (int pass = 0; pass < 3; pass++)
            assert_int_equal(counts[pass][fastest[pass]], known ? 1 : 5);
    }
}

static void the_next_process_knows_it(void **state)
{
    char folder[] = "tern_cudnn_XXXXXX", command[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    use_cache(folder);
    again("kept_on_disk", "TERN_TEST_KNOWN", "0");
    again("kept_on_disk", "TERN_TEST_KNOWN", "1");
    use_cache(NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* Sums that are added to what is there are measured beside it. */
static void nothing_is_seen(void **state)
{
    (void)state;
    tern_backends_cudnn_set_allow_tf32(false);
    tern_backends_cudnn_set_benchmark(true);
    for (int twice = 0; twice < 2; twice++)
        TERN_SCOPE {
            tern_tensor *of[2];
            for (int i = 0; i < 2; i++) { /* dx comes on top of what the sum of squares gave */
                const char *device = i ? "cpu" : "cuda:0";
                tern_tensor *x = uniform(device, TERN_F32, TERN_SHAPE(1, 3, 9, 6), 1);
                tern_tensor *w = uniform(device, TERN_F32, filters, 2);
                tern_tensor *y = tern_conv2d(x, w, NULL, NULL);
                tern_tensor *z = tern_conv2d(x, w, NULL, NULL);
                assert_ok(
                    tern_backward(tern_sum(tern_add(tern_mul(y, z), tern_sum(tern_square(x))))));
                of[i] = tern_grad(x);
            }
            assert_close(of[0], of[1], .abs = 1e-4, .rel = 1e-5);
        }
    tern_backends_cudnn_set_benchmark(false);
}

static void measuring_changes_nothing_that_is_seen(void **state)
{
    (void)state;
    again("nothing_is_seen", "TERN_CACHE_DIR", "/dev/null");
}

static void measuring_fails(void **state)
{
    long counts[3][4];
    (void)state;
    tern_backends_cudnn_set_benchmark(true);
    TERN_SCOPE
        step_runs(counts);
}

static void hear(const char *kind, const char *message, void *user)
{
    if (strcmp(kind, "slow") == 0 && strstr(message, "could be measured"))
        ++*(int *)user;
}

/* Then cuDNN's heuristics choose, which is told. */
static void none_measured(void **state)
{
    long counts[3][4];
    int told = 0;
    (void)state;
    tern_backends_cudnn_set_benchmark(true);
    tern_on_warning(hear, &told);
    TERN_SCOPE
        step_runs(counts);
    tern_on_warning(NULL, NULL);
    assert_int_equal(told, 1);
    assert_int_equal(counts[Y][2], 4); /* tried */
    assert_int_equal(counts[Y][1], 5); /* and taken */
}

static void what_fails_while_measuring_is_no_error(void **state)
{
    static const char *const calls[] = {"cudaEventCreateWithFlags", "cudaEventRecord",
                                        "cudaEventSynchronize", "cudaEventElapsedTime"};
    (void)state;
    char folder[] = "tern_cudnn_XXXXXX", command[64], all[20 * 32];
    int n = 0;
    assert_non_null(mkdtemp(folder));
    use_cache(folder);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char plan[96];
        snprintf(plan, sizeof plan, "%s:1:2", calls[i]);
        again("measuring_fails", "TERN_STANDIN_FAIL", plan);
    }
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    assert_int_equal(system(command), 0);
    for (int call = 1; call < 20; call++)
        n += snprintf(all + n, sizeof all - (size_t)n, "cudaEventElapsedTime:%d:2,", call);
    again("none_measured", "TERN_STANDIN_FAIL", all);
    again("kept_on_disk", "TERN_TEST_KNOWN", "0"); /* of that nothing was kept */
    use_cache(NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest scenarios[] = {TEST(fastest_of_all), TEST(kept_on_disk),
                                                  TEST(nothing_is_seen), TEST(measuring_fails),
                                                  TEST(none_measured)};
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_is_taken_and_kept),
        TEST(the_next_process_knows_it),
        TEST(measuring_changes_nothing_that_is_seen),
        TEST(what_fails_while_measuring_is_no_error),
    };
    return again_main(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios, tests,
                      sizeof tests / sizeof *tests);
}
