/* os_wide.h -- texts between UTF-8 and what Windows takes, for os_windows.c and its files. */
#ifndef TERN_BASE_OS_WIDE_H
#define TERN_BASE_OS_WIDE_H
#define WIN32_LEAN_AND_MEAN
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0a00
#endif
#include <stdbool.h>
#include <stddef.h>
#include <windows.h>

/* To be freed; NULL and errno. */
wchar_t *tern_os_widen(const char *text);
/* Whether it fits. */
bool tern_os_narrow(const wchar_t *wide, char *text, size_t bytes);

enum { TERN_OS_WIDE = 4096 }; /* of a path */
/* errno for GetLastError(); returns -1. */
int tern_os_fail(void);
/* The path of a name in an open folder, to be freed. */
wchar_t *tern_os_path_in(int folder, const char *name);

#endif
