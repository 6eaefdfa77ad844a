/* gguf_hostile.h -- the hostile GGUF files that a script of ../shared writes. */
#ifndef TERN_TESTS_GGUF_HOSTILE_H
#define TERN_TESTS_GGUF_HOSTILE_H
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The rows "ID verdict words" of the hostile files that ../shared/hostile/gguf.py writes into a folder, FOLDER/ID.gguf; the test
 * is skipped where there is no such script, or no Python. */
static inline FILE *gguf_hostile_rows(const char *into)
{
    char command[9000], path[5000];
    if (access(TEST_FOLDER "/../../shared/hostile/gguf.py", R_OK) != 0) {
        test_skipped("there is no ../shared/hostile/gguf.py: none of its files was tried");
        skip();
    }
    if (system("python3 --version >/dev/null 2>&1") != 0) {
        test_skipped("there is no Python: no file of ../shared/hostile/gguf.py was tried");
        skip();
    }
    snprintf(command, sizeof command,
             "python3 '" TEST_FOLDER "/../../shared/hostile/gguf.py' '%s' >/dev/null", into);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/expected.tsv", into);
    FILE *rows = fopen(path, "r");
    assert_non_null(rows);
    return rows;
}

#endif
