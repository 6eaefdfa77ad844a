/* again.h -- states of a process: a test of the stand-in, run again for one scenario with a
 * variable of the environment set. */
#ifndef TERN_TESTS_AGAIN_H
#define TERN_TESTS_AGAIN_H
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char again_self[4096];

static inline void again(const char *scenario, const char *name, const char *value)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv(name, value, 1);
        test_limit(100);
        execl(again_self, again_self, scenario, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("%s with %s=%s ended with status %d", scenario, name, value, status);
}

/* main: the tests, or the scenario that the arguments name. */
static inline int again_main(int argc, char **argv, const struct CMUnitTest *scenarios,
                             size_t n_scenarios, const struct CMUnitTest *tests, size_t n_tests)
{
    ssize_t n = readlink("/proc/self/exe", again_self, sizeof again_self - 1);
    if (n < 0 || !getenv("TERN_CUDA_PATH")) {
        puts("SKIP: TERN_CUDA_PATH does not name the stand-in");
        return 77;
    }
    for (size_t i = 0; argc > 1 && i < n_scenarios; i++)
        if (strcmp(scenarios[i].name, argv[1]) == 0)
            return _cmocka_run_group_tests(argv[1], &scenarios[i], 1, NULL, NULL);
    return _cmocka_run_group_tests("tests", tests, n_tests, NULL, NULL);
}

#endif
