/* os_windows_program.c -- what a program calls when it begins, on Windows. */
#include "base/os_program.h"
#ifdef _WIN32
#include "base/os_wide.h"
#include <stdlib.h>

/* The C library's arguments of the command line; with shell32's function, every program would load
 * that library. start: not changed. */
extern int __wgetmainargs(int *argc, wchar_t ***argv, wchar_t ***environment, int expands,
                          void *start);

/* The code page of the console, which is restored because the shell uses the same console. */
static UINT code_page;

static void give_back(void)
{
    SetConsoleOutputCP(code_page);
}

void tern_os_take_arguments(int *argc, char ***argv)
{
    int n = 0, start = 0;
    wchar_t **wide = NULL, **environment;
    const bool known = __wgetmainargs(&n, &wide, &environment, 0, &start) == 0 && wide;
    char **words = known ? calloc((size_t)n + 1, sizeof *words) : NULL;
    bool whole = words != NULL;
    for (int i = 0; whole && i < n; i++) {
        const size_t bytes = 4 * wcslen(wide[i]) + 1; /* the most bytes that UTF-8 can take */
        words[i] = malloc(bytes);
        whole = words[i] && tern_os_narrow(wide[i], words[i], bytes);
    }
    if (whole) {
        *argc = n;
        *argv = words;
    }
    code_page = GetConsoleOutputCP();
    if (code_page && code_page != CP_UTF8 && atexit(give_back) == 0)
        SetConsoleOutputCP(CP_UTF8);
}

#else
typedef int tern_os_windows_program_is_empty;
#endif
