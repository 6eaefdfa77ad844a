/* debug.c -- the switch of the debug mode. */
#include "base/debug.h"
#include <stdlib.h>
#include <string.h>

bool tern_debugging;

/* Before main, so that nobody has to ask whether the environment was read. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *wanted = getenv("TERN_DEBUG");
    tern_debugging = wanted && *wanted && strcmp(wanted, "0") != 0;
}

void tern_set_debug(bool on)
{
    tern_debugging = on;
}

bool tern_is_debug(void)
{
    return tern_debugging;
}
