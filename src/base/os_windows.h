/* os_windows.h -- declarations of POSIX's headers, which os_windows.c defines for Windows. */
#ifndef TERN_BASE_OS_WINDOWS_H
#define TERN_BASE_OS_WINDOWS_H
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Flags of open. Those without a flag of Windows have bits that Windows does not use. */
#define O_CLOEXEC   O_NOINHERIT
#define O_DIRECTORY 0x200000
#define O_NOFOLLOW  0x400000
#define O_NONBLOCK  0
#define O_NOCTTY    0
#define AT_FDCWD    (-100)

#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_EACCESS          0x200
#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#ifndef ELOOP
#define ELOOP 114
#endif
#ifndef EOPNOTSUPP
#define EOPNOTSUPP 130
#endif
#ifndef EDQUOT
#define EDQUOT ENOSPC
#endif
#ifndef ENOTSUP
#define ENOTSUP 129
#endif

struct tern_os_stat {
    uint64_t st_dev, st_ino;
    unsigned st_mode, st_nlink;
    int64_t st_size, st_mtime;
};

struct tern_os_dirent {
    char d_name[1024];
};
typedef struct tern_os_dir tern_os_dir;

FILE *tern_os_fopen(const char *path, const char *mode);
FILE *tern_os_fdopen(int file, const char *mode);
int tern_os_fileno(FILE *file);
int tern_os_open(const char *path, int flags, ...);
int tern_os_openat(int folder, const char *name, int flags, ...);
int tern_os_close(int file);
int64_t tern_os_lseek(int file, int64_t at, int whence);
ssize_t tern_os_read(int file, void *to, size_t bytes);
ssize_t tern_os_write(int file, const void *from, size_t bytes);
ssize_t tern_os_pread(int file, void *to, size_t bytes, int64_t at);
ssize_t tern_os_pwrite(int file, const void *from, size_t bytes, int64_t at);
int tern_os_fsync(int file);
int tern_os_mkdir(const char *path, unsigned mode);
int tern_os_stat(const char *path, struct tern_os_stat *about);
int tern_os_lstat(const char *path, struct tern_os_stat *about);
int tern_os_fstat(int file, struct tern_os_stat *about);
int tern_os_fstatat(int folder, const char *name, struct tern_os_stat *about, int flags);
int tern_os_access(const char *path, int mode);
int tern_os_faccessat(int folder, const char *name, int mode, int flags);
int tern_os_unlink(const char *path);
int tern_os_unlinkat(int folder, const char *name, int flags);
int tern_os_rmdir(const char *path);
int tern_os_rename(const char *from, const char *to);
int tern_os_renameat(int from_folder, const char *from, int to_folder, const char *to);
int tern_os_link(const char *from, const char *to);
ssize_t tern_os_readlink(const char *path, char *to, size_t bytes);
int tern_os_fchmod(int file, unsigned mode);
tern_os_dir *tern_os_opendir(const char *path);
tern_os_dir *tern_os_fdopendir(int folder);
struct tern_os_dirent *tern_os_readdir(tern_os_dir *folder);
int tern_os_closedir(tern_os_dir *folder);
int tern_os_dirfd(const tern_os_dir *folder);
int tern_os_mkstemp(char *path);
char *tern_os_mkdtemp(char *path);
int tern_os_isatty(int file);
long tern_os_getpid(void);
int tern_os_gethostname(char *name, size_t bytes);
int tern_os_strcasecmp(const char *a, const char *b);
int tern_os_strncasecmp(const char *a, const char *b, size_t n);
char *tern_os_strcasestr(const char *text, const char *part);
void *tern_os_memmem(const void *all, size_t n, const void *part, size_t bytes);
char *tern_os_strtok_r(char *text, const char *between, char **next);
/* Returns whether text matches a shell pattern: `*`, `?`, sets in brackets. */
bool tern_os_matches(const char *pattern, const char *text);
char *tern_os_strndup(const char *text, size_t n);
ssize_t tern_os_getline(char **line, size_t *capacity, FILE *file);
/* Replaces backslashes by slashes, except in paths of \\?\, which Windows does not convert. */
static inline char *tern_os_plain_path(char *path)
{
    for (char *c = path && strncmp(path, "\\\\?\\", 4) != 0 ? path : NULL; c && *c; c++)
        *c = *c == '\\' ? '/' : *c;
    return path;
}
static inline char *tern_os_last_slash(const char *path)
{
    char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');
    return !slash || (back && back > slash) ? back : slash;
}
#define TERN_OS_NO_NAME "/\\:"
int tern_os_setenv(const char *name, const char *value, int overwrite);
int tern_os_unsetenv(const char *name);
/* Returns the value in UTF-8. The text stays valid, even if the variable is changed. */
const char *tern_os_getenv(const char *name);
void tern_os_sched_yield(void);

#endif
