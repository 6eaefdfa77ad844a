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

/* The call fails with that status, a word in its message, and nothing else happens. */
#define REFUSED(call, status, word)                                                                \
    do {                                                                                           \
        (void)(call);                                                                              \
        CHECK(tern_last_status() == (status) && strstr(tern_last_error(), word),                   \
              "expected %s with '%s'", tern_status_name(status), word);                            \
        tern_clear_error();                                                                        \
    } while (0)

#endif
