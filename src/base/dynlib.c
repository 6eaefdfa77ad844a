/* dynlib.c -- libraries opened at run time. */
#include "base/dynlib.h"
#include "base/os.h"
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 160 };

static void *open_first(const char *names, tern_os_binding how, char *reason, size_t bytes)
{
    char name[NAME_BYTES], why[512];
    if (bytes)
        reason[0] = '\0';
    for (size_t n; *names; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        void *library = tern_os_library_open(name, how, why, sizeof why);
        if (library)
            return library;
        /* an error of a file that exists is more useful */
        if (!bytes || !reason[0] || tern_dynlib_is_absent(reason))
            snprintf(reason, bytes, "%s", why);
    }
    return NULL;
}

void *tern_dynlib_open(const char *names, char *reason, size_t bytes)
{
    return open_first(names, TERN_OS_NOW, reason, bytes);
}

void *tern_dynlib_open_apart(const char *names, char *reason, size_t bytes)
{
    return open_first(names, TERN_OS_APART, reason, bytes);
}

void *tern_dynlib_open_path(const char *path, char *reason, size_t bytes)
{
    return tern_os_library_open(path, TERN_OS_NOW, reason, bytes);
}

/* Without the "N", which macOS writes small; os_windows.c writes these words itself. */
bool tern_dynlib_is_absent(const char *reason)
{
    return strstr(reason, "o such file") != NULL;
}

bool tern_dynlib_beside(const char *name, char *path, size_t bytes)
{
    static const char here = 0; /* any address in the library */
#ifdef _WIN32
    static const char *const ways[] = {"%s/libtern_%s.dll", "%s/tern/libtern_%s.dll"};
#else
    static const char *const ways[] = {"%s/tern/libtern_%s" TERN_LIBRARY_ENDING,
                                       "%s/../lib/tern/libtern_%s" TERN_LIBRARY_ENDING};
#endif
    char folder[1024];
    tern_os_library_folder(&here, folder, sizeof folder);
    for (int k = 0; k < 2; k++) {
        snprintf(path, bytes, ways[k], folder, name);
        FILE *file = tern_os_fopen(path, "r");
        if (!file)
            continue;
        fclose(file);
        return true;
    }
    snprintf(path, bytes, "there is no libtern_%s" TERN_LIBRARY_ENDING " in %.*s/tern", name,
             (int)(bytes > 100 ? bytes - 100 : 0), folder);
    return false;
}

void tern_dynlib_close(void *library)
{
    if (library)
        tern_os_library_close(library);
}

void *tern_dynlib_symbol(void *library, const char *name)
{
    return tern_os_library_symbol(library, name);
}

bool tern_dynlib_take(const char *names, const char *const symbols[], void *const to[],
                      char *reason, size_t bytes)
{
    void *library = tern_dynlib_open(names, reason, bytes), *found[TERN_DYNLIB_MOST];
    int n = 0;
    for (; library && symbols[n]; n++)
        if (!(found[n] = tern_dynlib_symbol(library, symbols[n]))) {
            snprintf(reason, bytes, "it has no %s", symbols[n]);
            return false;
        }
    for (int i = 0; i < n; i++)
        memcpy(to[i], &found[i], sizeof found[i]);
    return library != NULL;
}
