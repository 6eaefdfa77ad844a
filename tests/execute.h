/* execute.h -- executes a test's own program once more, by what runs it (TEST_EMULATOR) if it is
 * of another processor. */
#ifndef TERN_TESTS_EXECUTE_H
#define TERN_TESTS_EXECUTE_H
#include <stdlib.h>
#include <unistd.h>

enum { EXECUTE_MOST = 6 };

/* In a child: words, of which NULL ends them, follow the program's path. Returns where it fails. */
static inline void execute(char *self, char *const *words)
{
    char *line[EXECUTE_MOST + 3], **to = line;
    if (getenv("TEST_EMULATOR"))
        *to++ = getenv("TEST_EMULATOR");
    *to++ = self;
    for (int i = 0; i < EXECUTE_MOST && words[i]; i++)
        *to++ = words[i];
    *to = NULL;
    execv(line[0], line);
}

#endif
