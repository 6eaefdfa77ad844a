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
    LSTATUS status = ERROR_SUCCESS;
    for (DWORD i = 0; status == ERROR_SUCCESS || status == ERROR_MORE_DATA; i++) {
        DWORD n = 1024, kind = 0, number = 0, bytes = sizeof number;
        status = RegEnumValueW(open, i, value, &n, NULL, &kind, (BYTE *)&number, &bytes);
        if (status == ERROR_SUCCESS && kind == REG_DWORD && number == 0 &&
            tern_os_narrow(value, name, sizeof name))
            found(user, name);
    }
    RegCloseKey(open);
}

#else
typedef int tern_os_windows_registry_is_empty;
#endif
