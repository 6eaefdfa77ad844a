/* rerun.h -- states of a process: a test that runs its own program again for a scenario, with
 * variables of the environment set, and reads what that prints. */
#ifndef TERN_TESTS_RERUN_H
#define TERN_TESTS_RERUN_H
#include "execute.h"
#include "support.h"
#include "temporary.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUTPUT = 8192, MAX_VARIABLES = 6 };

static char self[4096];
static char folder[TEMPORARY_BYTES];

/* Run a scenario with these variables ("NAME=value"; "NAME" alone unsets); its output. */
static inline const char *run(const char *scenario, const char *const *variables)
{
    static char output[MAX_OUTPUT];
    int ends[2], status;
    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = 0; i < MAX_VARIABLES && variables[i]; i++) {
            char *equals = strchr(variables[i], '=');
            if (equals)
                setenv(strndup(variables[i], (size_t)(equals - variables[i])), equals + 1, 1);
            else
                unsetenv(variables[i]);
        }
        dup2(ends[1], STDOUT_FILENO);
        if (getenv("TERN_WARN"))
            dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        test_limit(100);
        execute(self, (char *[]){strdup(scenario), NULL});
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], output + used, sizeof output - 1 - used)) > 0;)
        used += (size_t)n;
    output[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s ended with %d: %s", scenario, status, output);
    return output;
}
#define RUN(scenario, ...) run(scenario, (const char *const[MAX_VARIABLES]){__VA_ARGS__})

/* A file of that name in the folder; its path. */
static inline const char *file_with(const char *name, const char *text)
{
    static char path[2 * TEMPORARY_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static inline void remove_folder(void)
{
    char command[2 * TEMPORARY_BYTES];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s is left over\n", folder);
}

/* A scenario prints and returns 0. */
typedef struct scenario {
    const char *name;
    int (*run)(void);
} scenario;

/* The scenario that the arguments ask for; -1 where they ask for the tests. */
static inline int rerun_scenario(int argc, char **argv, const scenario *scenarios, size_t n)
{
    for (size_t i = 0; argc > 1 && i < n; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0)
            return scenarios[i].run();
    return readlink("/proc/self/exe", self, sizeof self - 1) < 0 ||
                   !mkdtemp(temporary(folder, "tern-test-XXXXXX"))
               ? 1
               : -1;
}

#endif
