/* debug.c -- whether the debug mode is on. */
#include "base/debug.h"
#include "base/env.h"

bool tern_debugging;

/* Runs before main, so that readers need not check whether the environment was read. */
__attribute__((constructor)) static void read_environment(void)
{
    tern_debugging = tern_env_flag(TERN_ENV_DEBUG, false);
}

void tern_set_debug(bool on)
{
    tern_debugging = on;
}

bool tern_is_debug(void)
{
    return tern_debugging;
}
