/* os_windows_program.c -- what a program asks of Windows when it begins. */
#include "base/os_program.h"
#ifdef _WIN32
#include "base/os_wide.h"
#include <shellapi.h>
#include <stdlib.h>

void tern_os_take_arguments(int *argc, char ***argv)
{
    int n = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    char **words = wide ? calloc((size_t)n + 1, sizeof *words) : NULL;
    bool whole = words != NULL;
    for (int i = 0; whole && i < n; i++) {
        const size_t bytes = 4 * wcslen(wide[i]) + 1; /* at most */
        words[i] = malloc(bytes);
        whole = words[i] && tern_os_narrow(wide[i], words[i], bytes);
    }
    if (whole) {
        *argc = n;
        *argv = words;
    }
    LocalFree(wide);
    SetConsoleOutputCP(CP_UTF8);
}

#else
typedef int tern_os_windows_program_is_empty;
#endif
