/* env.h -- the library's variables of the environment (env.def), each read once, when it is
 * first used. */
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

/* The value; NULL where the variable is not set, or empty and no list. It stays where it is, but
 * for that of a variable of the kind LIVE. */
TERN_PRIVATE const char *tern_env(tern_env_variable variable);
/* The same of a flag: by_default where it is not set. */
bool tern_env_flag(tern_env_variable variable, bool by_default);

/* Whether warnings and errors go to stderr where the program has no handler of them. */
bool tern_env_prints(void);

/* Warn once of variables that are in no table and of values that are none, as soon as somebody
 * listens. */
void tern_env_check(void);

/* Test hook: what is read of the variable next is the environment's value then. No other thread
 * may use tern meanwhile. */
void tern_env_read_again(tern_env_variable variable);

#endif
