/* ranks.h -- for programs that several ranks run: what each checks ends the whole job where it fails. */
#ifndef TESTS_DIST_RANKS_H
#define TESTS_DIST_RANKS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>
#include <unistd.h>

/* For tests/dist/run, which ends what the launcher has left. */
static inline void leave_pid(void)
{
    char path[64];
    snprintf(path, sizeof path, "pid.%ld", (long)getpid());
    FILE *file = fopen(path, "w");
    if (file)
        fclose(file);
}

/* Seconds: what a busy machine takes, not what a hang does. */
enum { IN_TIME = 60 };

/* Seconds that a collective may wait for the others: two, TERN_TEST_PATIENCE times. */
static inline double wait_limit(void)
{
    const char *times = getenv("TERN_TEST_PATIENCE");
    return 2 * (times ? atof(times) : 1);
}

/* Whether what a message says was waited, if it says so, is the limit at least, and was in time. */
static inline bool waited_in_time(const char *message, double limit)
{
    const char *at = strstr(message, "was waited for ");
    double seconds = 0;
    return !at || (sscanf(at, "was waited for %lf s", &seconds) == 1 && seconds >= limit &&
                   seconds < IN_TIME);
}

/* The launcher ends the other ranks. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d, %s:%d: %s: ", tern_dist_get_rank(NULL), __FILE__, __LINE__,  \
                    #condition);                                                                   \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, " (%s)\n", tern_last_error());                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* What a rank met, whole or not at all, in result.<rank>. */
#define write_result(rank, ...)                                                                    \
    do {                                                                                           \
        char result_path[64], result_new[64];                                                      \
        snprintf(result_path, sizeof result_path, "result.%d", rank);                              \
        snprintf(result_new, sizeof result_new, "result.%d.new", rank);                            \
        FILE *result_file = fopen(result_new, "w");                                                \
        CHECK(result_file, "%s", result_new);                                                      \
        fprintf(result_file, __VA_ARGS__);                                                         \
        fputc('\n', result_file);                                                                  \
        CHECK(fclose(result_file) == 0 && rename(result_new, result_path) == 0, "%s",              \
              result_path);                                                                        \
    } while (0)

/* Until all but one have written, at most two minutes: the first that leaves may end the job. */
static inline void await_results(int ranks, int but)
{
    char path[64];
    for (int r = 0, turns = 0; r < ranks; r++) {
        snprintf(path, sizeof path, "result.%d", r);
        for (; r != but && turns < 12000 && access(path, F_OK) != 0; turns++)
            usleep(10000);
    }
}

/* The call fails with that status, a word in its message, and nothing else happens. */
#define REFUSED(call, status, word)                                                                \
    do {                                                                                           \
        (void)(call);                                                                              \
        CHECK(tern_last_status() == (status) && strstr(tern_last_error(), word),                   \
              "expected %s with '%s'", tern_status_name(status), word);                            \
        tern_clear_error();                                                                        \
    } while (0)

#endif
