/* test_libraries.c -- libraries that are opened at run time: another one of the same names came first, or theirs are
 * broken, or not there. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "rerun.h"
#include <dlfcn.h>

/* ---- scenarios ----------------------------------------------------------------------------- */

static void note(const char *kind, const char *text, void *user)
{
    (void)user;
    if (strcmp(kind, "slow") == 0)
        printf("slow: %s|", text);
}

static bool has_other(void)
{
    const char *torch = getenv("TERN_TEST_TORCH");
    return dlsym(RTLD_DEFAULT, "dnnl_sgemm") ||
           (torch && dlopen(torch, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD));
}

/* A product and a convolution of a size that oneDNN takes where it is. */
static int compute(void)
{
    tern_on_warning(note, NULL);
    TERN_SCOPE {
        tern_tensor *a = tern_ones(TERN_SHAPE(160, 160), TERN_F32, "cpu");
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 32, 16, 16), TERN_F32, "cpu");
        tern_tensor *w = tern_ones(TERN_SHAPE(64, 32, 5, 5), TERN_F32, "cpu");
        double product = tern_item(tern_mean(tern_matmul(a, a)));
        double convolution = tern_item(tern_mean(tern_conv2d(x, w, NULL, NULL)));
        printf("product %g convolution %g other %d %s", product, convolution, has_other(),
               tern_last_error());
    }
    return 0;
}

static int devices(void)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, "opencl:0");
    printf("%d %s", x != NULL, tern_last_error());
    return 0;
}

static const scenario scenarios[] = {{"compute", compute}, {"devices", devices}};

/* ---- tests --------------------------------------------------------------------------------- */

static const char alone[] = "product 160 convolution 800 other 0 ";
static const char beside[] = "product 160 convolution 800 other 1 ";

static void another_onednn_that_came_first_is_not_called(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its runtime comes first */
#endif
    const char *output = RUN("compute", "LD_PRELOAD=" TEST_OTHER_DNNL);
    assert_string_equal(output, beside);
}

/* A process that has PyPI's libtorch_cpu, the file that TERN_TEST_TORCH names. */
static void pytorch_that_came_first_is_not_called(void **state)
{
    (void)state;
    const char *torch = getenv("TERN_TEST_TORCH");
    char preload[512];
    if (!torch || access(torch, R_OK) != 0) {
        print_message("SKIP: TERN_TEST_TORCH names no libtorch_cpu.so: it is not loaded first\n");
        skip();
    }
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", torch);
    const char *output = RUN("compute", preload);
    assert_string_equal(output, beside);
}

/* Debian's libdnnl2 needs libOpenCL: the program starts where that is broken, and computes without either. */
static void a_program_starts_where_a_library_is_broken(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* oneDNN is linked then, and it brings libOpenCL (cmake/library.cmake) */
#endif
    char path[1100];
    static const char *const names[] = {"libOpenCL.so.1",  "libdnnl.so.2", "libdnnl.so.3",
                                        "libclblast.so.1", "libz.so.1",    "libzip.so.4"};
    unsetenv("TERN_TEST_TORCH");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "broken%zu/%s", i, names[i]);
        const char *file = file_with(name, "");
        snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", file);
        *strrchr(path, '/') = '\0';
        const char *output = RUN("compute", path);
        assert_string_equal(strrchr(output, '|') ? strrchr(output, '|') + 1 : output, alone);
        if (TEST_WITH_ONEDNN && i == TEST_WITH_ONEDNN - 1)
            assert_non_null(strstr(output, "oneDNN"));
    }
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s/broken0", folder);
    const char *output = RUN("devices", path);
    assert_memory_equal(output, "0 ", 2);
    assert_non_null(strstr(output, "libOpenCL.so.1"));
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(another_onednn_that_came_first_is_not_called),
        TEST(pytorch_that_came_first_is_not_called),
        TEST(a_program_starts_where_a_library_is_broken),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
