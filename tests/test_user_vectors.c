/* test_user_vectors.c -- kernels of the program's own on the cpu: the loop over work-items, of which the
 * compiler is to make vectors, and its ids. */
#include "environment.h"
#include "support.h"
#include "temporary.h"
#include "user_compiles.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A compiler that writes to a log which loops it made vectors of; false: the machine's is not GCC. */
static bool log_vectors(const char *folder, char *script, size_t bytes)
{
    if (system("c++ --version 2> /dev/null | grep -q 'Free Software'") != 0) {
        print_message("SKIP: c++ is not GCC, which says what it vectorized\n");
        return false;
    }
    snprintf(script, bytes, "%s/c++", folder);
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nexec %s \"$@\" -fopt-info-vec-optimized=%s/log\n",
            getenv("TERN_CXX") ? getenv("TERN_CXX") : "c++", folder);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(script, 0700), 0);
    return true;
}

static void items_of_the_cpu_run_as_vectors(void **state)
{
    static const char *const bodies[] = {
        "int i = get_global_id(0); if (i < n) y[i] = a * x[i] + y[i];",
        "int i = (int)get_global_id(0); if (i < n) y[i] = a * x[i] + y[i];",
        "size_t i = get_global_id(0); if (i >= n) return; y[i] = fmax(rint(x[i] * a), 0.0f);",
        "uint i = get_global_id(0); if (i < n) y[i] = x[i] > 0 ? sqrt(x[i]) : a;",
        "int i = get_global_id(0), w = get_global_size(0); y[get_global_id(1) * w + i] = x[i] * a;",
        "int i = get_group_id(0) * get_local_size(0) + get_local_id(0); y[i] = a * x[i];",
        "int i = get_global_id(0); vstore8(fmax(rint(vload8(i, x) * a), (float8)(0.0f)), i, y);",
    };
    char folder[TEMPORARY_BYTES], script[2 * TEMPORARY_BYTES], text[512];
    char command[4 * TEMPORARY_BYTES];
    (void)state;
    if (strcmp(test_device(0), "cpu") != 0 || !compiles("cpu"))
        skip();
    assert_non_null(mkdtemp(temporary(folder, "tern-vectors-XXXXXX")));
    bool there = log_vectors(folder, script, sizeof script);
    set_variable("TERN_CXX", script);
    set_variable("TERN_CACHE_DIR", folder);
    for (size_t i = 0; there && i < sizeof bodies / sizeof *bodies; i++) {
        snprintf(text, sizeof text,
                 "__kernel void f(__global const float *x, __global float *y, float a, int n)\n"
                 "{ %s }\n",
                 bodies[i]);
        tern_kernel *k = tern_kernel_compile("cpu", text, "f");
        assert_non_null(k);
        tern_kernel_free(k);
        snprintf(command, sizeof command, "grep -qs 'loop vectorized' %s/log && rm %s/log", folder,
                 folder);
        if (system(command) != 0)
            fail_msg("no loop of vectors for: %s", bodies[i]);
    }
    set_variable("TERN_CXX", NULL);
    set_variable("TERN_CACHE_DIR", NULL);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void ids_of_the_cpu_go_beyond_int(void **state)
{
    static const char text[] = "__kernel void f(__global int *y, long from)\n"
                               "{ long i = get_global_id(0) - from; if (i >= 0) y[i] = (int)i; }\n";
    (void)state;
    if (strcmp(test_device(0), "cpu") != 0 || !compiles("cpu"))
        skip();
    TERN_SCOPE {
        const int64_t from = ((int64_t)1 << 31) - 50;
        tern_tensor *y = tern_zeros(TERN_SHAPE(100), TERN_I32, "cpu");
        tern_kernel *k = tern_kernel_compile("cpu", text, "f");
        assert_ok(tern_kernel_launch(k, TERN_GRID_GROUP(from + 100, 50), TERN_ARG_TENSOR(y),
                                     TERN_ARG_LONG(from)));
        assert_true(tern_item(tern_all(tern_eq(y, tern_arange(0, 100, 1, TERN_I32, "cpu")))) == 1);
        tern_kernel_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(items_of_the_cpu_run_as_vectors),
        TEST(ids_of_the_cpu_go_beyond_int),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
