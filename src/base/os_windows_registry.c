/* os_windows_registry.c -- Windows' registry. */
#include "base/os_registry.h"
#ifdef _WIN32
#include "base/os.h"
#include "base/os_wide.h"
#include <stdlib.h>

void tern_os_registered(const char *key, void (*found)(void *user, const char *name), void *user)
{
    wchar_t *wide = tern_os_widen(key), value[1024];
    char name[2048];
    HKEY open;
    const bool opened =
        wide && RegOpenKeyExW(HKEY_LOCAL_MACHINE, wide, 0, KEY_QUERY_VALUE, &open) == ERROR_SUCCESS;
    free(wide);
    if (!opened)
        return;
    DWORD n = 1024;
    for (DWORD i = 0; RegEnumValueW(open, i, value, &n, NULL, NULL, NULL, NULL) == ERROR_SUCCESS;
         i++, n = 1024)
        if (tern_os_narrow(value, name, sizeof name))
            found(user, name);
    RegCloseKey(open);
}

#else
typedef int tern_os_windows_registry_is_empty;
#endif
