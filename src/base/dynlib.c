/* dynlib.c -- libraries opened at run time. */
#include "base/dynlib.h"
#include <dlfcn.h>
#include <stdio.h>

void *tern_dynlib_open(const char *const names[], char *reason, size_t bytes)
{
    if (bytes)
        reason[0] = '\0';
    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
        const char *why = dlerror();
        snprintf(reason, bytes, "%s", why ? why : "unknown reason");
    }
    return NULL;
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
