/* user_compiles.h -- whether a device has a compiler for kernels of the program's own, for their tests. */
#ifndef TERN_TESTS_USER_COMPILES_H
#define TERN_TESTS_USER_COMPILES_H
#include "support.h"
#include <stdlib.h>

static bool compiles(const char *device)
{
    if (strncmp(device, "cuda", 4) != 0 && strcmp(device, "cpu") != 0)
        return true;
    bool there = system("c++ --version > /dev/null 2>&1") == 0;
    if (!there)
        print_message("SKIP: no C++ compiler, which %s needs here\n", device);
    return there;
}

#endif
