/* ld.c -- the linker as PoCL calls it for each kernel, without the libraries of C.
 *
 * A kernel needs nothing of libc, libm and libgcc_s that its process does not have open already;
 * opening and searching them is nine tenths of the linker's time. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_left_out(const char *argument)
{
    static const char *const names[] = {"-lm", "-lc", "-lgcc_s"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(argument, names[i]) == 0)
            return true;
    return false;
}

/* Whether what is linked is a kernel in PoCL's cache. */
static bool is_kernel(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "-o") == 0)
            return strstr(argv[i + 1], "/kcache/") != NULL;
    return false;
}

int main(int argc, char **argv)
{
    int n = 1;
    const bool kernel = is_kernel(argc, argv);
    for (int i = 1; i < argc; i++)
        if (!kernel || !is_left_out(argv[i]))
            argv[n++] = argv[i];
    argv[n] = NULL;
    argv[0] = TEST_LINKER;
    execv(TEST_LINKER, argv);
    perror(TEST_LINKER);
    return 1;
}
