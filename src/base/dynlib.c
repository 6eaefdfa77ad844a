/* dynlib.c -- libraries opened at run time. */
#define _GNU_SOURCE /* dladdr */
#include "base/dynlib.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *open_first(const char *const names[], int flags, char *reason, size_t bytes)
{
    if (bytes)
        reason[0] = '\0';
    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | flags);
        if (library)
            return library;
        const char *why = dlerror();
        if (!bytes || !reason[0] || strstr(reason, "No such file")) /* what is broken tells more */
            snprintf(reason, bytes, "%s", why ? why : "unknown reason");
    }
    return NULL;
}

void *tern_dynlib_open(const char *const names[], char *reason, size_t bytes)
{
    return open_first(names, 0, reason, bytes);
}

void *tern_dynlib_open_apart(const char *const names[], char *reason, size_t bytes)
{
    int apart = 0;
#ifdef RTLD_DEEPBIND
    /* Sanitizers end a process that does that. */
    if (!dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace"))
        apart = RTLD_DEEPBIND;
#endif
    return open_first(names, apart, reason, bytes);
}

bool tern_dynlib_beside(const char *name, char *path, size_t bytes)
{
    static const char here = 0; /* somewhere in the library */
    static const char *const ways[] = {"%.*s/tern/libtern_%s.so", "%.*s/../lib/tern/libtern_%s.so"};
    Dl_info info;
    if (!dladdr(&here, &info) || !info.dli_fname)
        info.dli_fname = "";
    const char *slash = strrchr(info.dli_fname, '/'), *folder = slash ? info.dli_fname : ".";
    const int length = slash ? (int)(slash - folder) : 1;
    for (int k = 0; k < 2; k++) {
        snprintf(path, bytes, ways[k], length, folder, name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        fclose(file);
        return true;
    }
    snprintf(path, bytes, "there is no libtern_%s.so in %.*s/tern", name, length, folder);
    return false;
}

void tern_dynlib_close(void *library)
{
    if (library)
        dlclose(library);
}

void *tern_dynlib_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}
