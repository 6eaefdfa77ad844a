/* unistd.h -- what tests take from POSIX, for Windows: the operating system's seam of the library
 * (src/base/os.h), by POSIX's names. */
#ifndef TERN_TESTS_WINDOWS_UNISTD_H
#define TERN_TESTS_WINDOWS_UNISTD_H
#pragma GCC system_header
#include_next <unistd.h>
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#ifndef __cplusplus
#include "base/os.h"

#define mkdir(path, mode) tern_os_mkdir(path, mode)
#define rmdir             tern_os_rmdir
#define unlink            tern_os_unlink
#define access            tern_os_access
#define mkdtemp           tern_os_mkdtemp
#define mkstemp           tern_os_mkstemp
#define setenv            tern_os_setenv
#define unsetenv          tern_os_unsetenv
#define link              tern_os_link
#define rename            tern_os_rename
#define fsync             tern_os_fsync
#define pipe(ends)        _pipe(ends, 1 << 16, _O_BINARY)
#define strtok_r          tern_os_strtok_r
#define strcasestr        tern_os_strcasestr
#define strndup           tern_os_strndup
#define memmem            tern_os_memmem
#define getline           tern_os_getline

/* With slashes, as messages have paths. */
static inline char *folder_of_process(char *path, int bytes)
{
    return tern_os_plain_path(_getcwd(path, bytes));
}
#define getcwd folder_of_process

static inline char *stpcpy(char *to, const char *from)
{
    const size_t n = strlen(from);
    memcpy(to, from, n + 1);
    return to + n;
}

static inline int truncate(const char *path, int64_t bytes)
{
    const int file = tern_os_open(path, _O_RDWR);
    const int code = file < 0 ? -1 : _chsize_s(file, bytes) ? -1 : 0;
    if (file >= 0)
        tern_os_close(file);
    return code;
}

/* Nobody but an administrator makes one. */
static inline int symlink(const char *to, const char *path)
{
    (void)to, (void)path;
    errno = EPERM;
    return -1;
}
#endif
#endif
