/* test_nvtx.c -- ranges of NVTX while a profiler runs, seen by a tool of the tests' own. */
#include "support.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <tern/profiler.h>

static void work(void)
{
    TERN_PROFILER_LABEL("forward")
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(4, 4), TERN_F32, "cpu");
        tern_requires_grad_(x, true);
        tern_backward(tern_sum(tern_matmul(x, x)));
    }
}

static void spans_are_ranges(void **state)
{
    (void)state;
    void *tool = dlopen(TERN_NVTX_TOOL, RTLD_NOW);
    assert_non_null(tool);
    const char *log = dlsym(tool, "nvtx_log");
    const int *depth = dlsym(tool, "nvtx_depth"), *lowest = dlsym(tool, "nvtx_lowest");
    work();
    assert_string_equal(log, ""); /* no profiler runs */
    tern_profiler *p = tern_profiler_new(NULL);
    assert_int_equal(tern_profiler_start(p), TERN_OK);
    work();
    assert_int_equal(*depth, 0);
    assert_non_null(strstr(log, "0 forward\n"));
    assert_non_null(strstr(log, "1 matmul\n"));
    assert_non_null(strstr(log, "MatmulBackward\n"));
    /* A profiler that stops in the middle leaves no range open. */
    TERN_PROFILER_LABEL("stopped")
    assert_int_equal(tern_profiler_stop(p), TERN_OK);
    assert_int_equal(*depth, 0);
    assert_int_equal(*lowest, 0);
    size_t length = strlen(log);
    work();
    assert_int_equal(strlen(log), length);
    tern_profiler_free(p);
    dlclose(tool);
}

int main(void)
{
    setenv("NVTX_INJECTION64_PATH", TERN_NVTX_TOOL, 1);
    const struct CMUnitTest tests[] = {TEST(spans_are_ranges)};
    return test_main(tests, sizeof tests / sizeof *tests);
}
