/* stat.c -- a /proc/stat for the program `tern`, by LD_PRELOAD: others took TERN_TEST_BUSY percent of the processors. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *fopen(const char *path, const char *mode)
{
    static char text[2][64] = {"cpu 0 0 0 0 0\n"};
    static int readings;
    FILE *(*real)(const char *, const char *);
    void *symbol = dlsym(RTLD_NEXT, "fopen");
    memcpy(&real, &symbol, sizeof real);
    if (strcmp(path, "/proc/stat") != 0 || !getenv("TERN_TEST_BUSY"))
        return real(path, mode);
    int busy = atoi(getenv("TERN_TEST_BUSY"));
    snprintf(text[1], sizeof text[1], "cpu %d 0 0 %d 0\n", busy, 100 - busy);
    char *now = text[readings++ % 2];
    return fmemopen(now, strlen(now), "r");
}
