/* os_wide.h -- conversions between UTF-8 and UTF-16 for os_windows.c and its files. */
#ifndef TERN_BASE_OS_WIDE_H
#define TERN_BASE_OS_WIDE_H
#define WIN32_LEAN_AND_MEAN
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0a00
#endif
#include <stdbool.h>
#include <stddef.h>
#include <windows.h>

/* Returns text as UTF-16, which the caller frees; NULL with errno. */
wchar_t *tern_os_widen(const char *text);
/* Writes wide as UTF-8. Returns whether it fits. */
bool tern_os_narrow(const wchar_t *wide, char *text, size_t bytes);

enum { TERN_OS_WIDE = 4096 }; /* the longest path */
/* Sets errno from GetLastError(), and returns -1. */
int tern_os_fail(void);
/* Returns the path of a name in an open folder, which the caller frees. */
wchar_t *tern_os_path_in(int folder, const char *name);

#endif
