/* environment.h -- sets variables of the environment in the middle of a test, although the
 * library reads each once. */
#ifndef TERN_TESTS_ENVIRONMENT_H
#define TERN_TESTS_ENVIRONMENT_H
#include "base/env.h"
#include <stdlib.h>
#include <string.h>

/* Set TERN_... to value, NULL for not set, and have the library read it again. */
static inline void set_variable(const char *name, const char *value)
{
    static const char *const names[] = {
#define VARIABLE(NAME, ...) "TERN_" #NAME,
#define OTHER(...)
#include "base/env.def"
#undef VARIABLE
#undef OTHER
    };
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    for (int i = 0; i < TERN_ENV_VARIABLES; i++)
        if (strcmp(names[i], name) == 0)
            tern_env_read_again((tern_env_variable)i);
}

#endif
