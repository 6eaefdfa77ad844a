/* env.h -- the environment variables of the library (env.def). Each is read once, when it is first
 * used. */
#ifndef TERN_BASE_ENV_H
#define TERN_BASE_ENV_H
#include "base/error.h"
#include <tern/env.h>

typedef enum tern_env_variable {
#define VARIABLE(NAME, ...) TERN_ENV_##NAME,
#define OTHER(...)
#include "base/env.def"
#undef VARIABLE
#undef OTHER
    TERN_ENV_VARIABLES
} tern_env_variable;

/* Returns the value; NULL if the variable is not set, or is empty and no list. The text stays
 * valid, except that of a variable of the kind LIVE. */
TERN_PRIVATE const char *tern_env(tern_env_variable variable);
/* Returns a flag's value; by_default if it is not set. */
bool tern_env_flag(tern_env_variable variable, bool by_default);

/* Returns whether warnings and errors are printed to stderr if the program has no handler. */
bool tern_env_prints(void);

/* Warns once of unknown variables and of invalid values, as soon as there is a handler of
 * warnings. */
void tern_env_check(void);

/* Test hook: the next read of the variable reads the environment again. No other thread may use
 * tern meanwhile. */
void tern_env_read_again(tern_env_variable variable);

#endif
