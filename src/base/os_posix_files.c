/* os_posix_files.c -- files and folders, with POSIX. */
#ifndef _WIN32
#define _GNU_SOURCE /* O_TMPFILE, memfd_create */
#include "base/os.h"
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

const char *tern_os_home(void)
{
    const char *home = getenv("HOME");
    return home && *home ? home : NULL;
}

bool tern_os_folder(tern_os_place place, const char *below, char *path, size_t bytes)
{
    static const char *const names[] = {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR"};
    static const char *const usual[] = {"/.cache", "/.config", "/tmp"};
    const char *chosen = getenv(names[place]), *home = "";
    const bool is_chosen = chosen && *chosen;
    if (!is_chosen && place != TERN_OS_TEMPORARY && !(home = tern_os_home()))
        return false;
    return (size_t)snprintf(path, bytes, "%s%s%s", is_chosen ? chosen : home,
                            is_chosen ? "" : usual[place], below) < bytes;
}

void tern_os_glob(const char *pattern, void (*found)(void *user, const char *path), void *user)
{
    glob_t list;
    if (glob(pattern, 0, NULL, &list) == 0)
        for (size_t i = 0; i < list.gl_pathc; i++)
            found(user, list.gl_pathv[i]);
    globfree(&list);
}

bool tern_os_is_private(const struct tern_os_stat *status, bool *own)
{
    *own = status->st_uid == geteuid() || status->st_uid == 0;
    return *own && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

int tern_os_dup_private(int file)
{
    return fcntl(file, F_DUPFD_CLOEXEC, 0);
}

/* The lock ends with the process. If the system has only locks that belong to the process (not to
 * the open description), threads of one process do not exclude each other. */
bool tern_os_lock_byte(int file, int64_t at, bool locks)
{
    struct flock byte = {.l_type = locks ? F_WRLCK : F_UNLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)at,
                         .l_len = 1};
#ifdef F_OFD_SETLK
    return fcntl(file, F_OFD_SETLK, &byte) == 0;
#else
    return fcntl(file, F_SETLK, &byte) == 0;
#endif
}

int tern_os_open_nameless(int folder)
{
#ifdef O_TMPFILE
    if (access("/proc/self/fd", X_OK) == 0) /* linkat needs /proc to give the file a name */
        return openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
#endif
    (void)folder;
    errno = EOPNOTSUPP;
    return -1;
}

int tern_os_link_nameless(int file, int folder, const char *name)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW);
}

int tern_os_reserve(int file, int64_t bytes)
{
#ifdef __linux__
    return fallocate(file, 0, 0, (off_t)bytes);
#else
    (void)file;
    (void)bytes;
    errno = ENOSYS;
    return -1;
#endif
}

bool tern_os_disk_is_full(int file, uint64_t *free_bytes)
{
    const int code = errno;
    struct statvfs disk;
    const bool full = (code == ENOSPC || code == EDQUOT) && fstatvfs(file, &disk) == 0;
    if (full)
        *free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    errno = code;
    return full;
}

void tern_os_start_writing(int file, int64_t at, int64_t bytes)
{
#ifdef __linux__
    sync_file_range(file, (off_t)at, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
#else
    (void)file;
    (void)at;
    (void)bytes;
#endif
}

int tern_os_sync_folder(int folder)
{
    /* Some file systems cannot sync a folder, and need not. */
    return fsync(folder) == 0 || errno == EINVAL || errno == EROFS ? 0 : -1;
}

void *tern_os_map(int file, size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
    return map == MAP_FAILED ? NULL : map;
}

void tern_os_unmap(void *map, size_t bytes)
{
    munmap(map, bytes);
}

int tern_os_open_memory(void)
{
#ifdef MFD_CLOEXEC
    return memfd_create("tern", MFD_CLOEXEC);
#else
    char path[1024];
    int file =
        tern_os_folder(TERN_OS_TEMPORARY, "/tern-XXXXXX", path, sizeof path) ? mkstemp(path) : -1;
    if (file >= 0)
        unlink(path);
    return file;
#endif
}

void tern_os_wish_large_pages(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

#else
typedef int tern_os_posix_files_is_empty;
#endif
