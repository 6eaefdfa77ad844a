/* temporary.h -- names of files and folders that a test makes outside of the build. */
#ifndef TERN_TESTS_TEMPORARY_H
#define TERN_TESTS_TEMPORARY_H
#include <stdio.h>
#include <stdlib.h>

enum { TEMPORARY_BYTES = 512 };

/* "NAME" in the folder of TMPDIR, in /tmp where that is not set; its X are for mkdtemp or mkstemp. */
static inline char *temporary(char path[TEMPORARY_BYTES], const char *name)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, TEMPORARY_BYTES, "%.400s/%.100s", folder && *folder ? folder : "/tmp", name);
    return path;
}

#endif
