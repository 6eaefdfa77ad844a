/* os_windows_files.c -- files and folders, on Windows. Text is UTF-8, a folder may be a descriptor,
 * and child processes inherit no opened file. */
#ifdef _WIN32
#include "base/os.h"
#include "base/os_wide.h"
#include <stdarg.h>
#include <stdlib.h>

enum { SHARED = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, WIDE = TERN_OS_WIDE };

int tern_os_fail(void)
{
    static const struct {
        DWORD code;
        int number;
    } known[] = {{ERROR_FILE_NOT_FOUND, ENOENT},
                 {ERROR_PATH_NOT_FOUND, ENOENT},
                 {ERROR_INVALID_NAME, ENOENT},
                 {ERROR_BAD_PATHNAME, ENOENT},
                 {ERROR_BAD_NETPATH, ENOENT},
                 {ERROR_BAD_NET_NAME, ENOENT},
                 {ERROR_ACCESS_DENIED, EACCES},
                 {ERROR_SHARING_VIOLATION, EBUSY},
                 {ERROR_USER_MAPPED_FILE, EBUSY},
                 {ERROR_LOCK_VIOLATION, EAGAIN},
                 {ERROR_FILE_EXISTS, EEXIST},
                 {ERROR_ALREADY_EXISTS, EEXIST},
                 {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
                 {ERROR_DISK_FULL, ENOSPC},
                 {ERROR_HANDLE_DISK_FULL, ENOSPC},
                 {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
                 {ERROR_DIRECTORY, ENOTDIR},
                 {ERROR_INVALID_HANDLE, EBADF},
                 {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG}};
    const DWORD code = GetLastError();
    errno = EIO;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            errno = known[i].number;
    return -1;
}

static HANDLE handle_of(int file)
{
    return (HANDLE)_get_osfhandle(file);
}

wchar_t *tern_os_path_in(int folder, const char *name)
{
    wchar_t *wide = tern_os_widen(name), *path;
    if (!wide || folder == AT_FDCWD || strchr(name, ':') || *name == '/')
        return wide;
    path = malloc(sizeof *path * (WIDE + wcslen(wide) + 2));
    const DWORD n = path ? GetFinalPathNameByHandleW(handle_of(folder), path, WIDE, 0) : 0;
    if (n == 0 || n >= WIDE) {
        tern_os_fail();
        free(path);
        free(wide);
        return NULL;
    }
    if (strcmp(name, ".") != 0) {
        path[n] = L'\\';
        wcscpy(path + n + 1, wide);
        for (wchar_t *c = path + n + 1; *c; c++) /* not converted by Windows in such paths */
            *c = *c == L'/' ? L'\\' : *c;
    }
    free(wide);
    return path;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_wide(const wchar_t *path, int flags)
{
    const int way = flags & (O_RDONLY | O_WRONLY | O_RDWR);
    const DWORD access = way == O_RDWR     ? GENERIC_READ | GENERIC_WRITE
                         : way == O_WRONLY ? GENERIC_WRITE
                                           : GENERIC_READ;
    const DWORD make = flags & O_CREAT && flags & O_EXCL    ? CREATE_NEW
                       : flags & O_CREAT && flags & O_TRUNC ? CREATE_ALWAYS
                       : flags & O_CREAT                    ? OPEN_ALWAYS
                       : flags & O_TRUNC                    ? TRUNCATE_EXISTING
                                                            : OPEN_EXISTING;
    const DWORD kind =
        FILE_FLAG_BACKUP_SEMANTICS | (flags & O_NOFOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0);
    /* The handle has no right to delete the file, because C's fopen does not share that. */
    HANDLE handle = CreateFileW(path, access, SHARED, NULL, make, kind, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return tern_os_fail();
    FILE_ATTRIBUTE_TAG_INFO tag = {0};
    const bool known = GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag);
    const bool folder = known && tag.FileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    const bool link = known && tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT;
    if ((flags & O_DIRECTORY && !folder) || (flags & O_NOFOLLOW && link)) {
        CloseHandle(handle);
        errno = link ? ELOOP : ENOTDIR;
        return -1;
    }
    const int file = _open_osfhandle((intptr_t)handle, way | O_BINARY | O_NOINHERIT);
    if (file < 0)
        CloseHandle(handle);
    return file;
}

int tern_os_openat(int folder, const char *name, int flags, ...)
{
    wchar_t *path = tern_os_path_in(folder, name);
    const int file = path ? open_wide(path, flags) : -1;
    free(path);
    return file;
}

int tern_os_open(const char *path, int flags, ...)
{
    return tern_os_openat(AT_FDCWD, path, flags);
}

int tern_os_close(int file)
{
    return _close(file);
}

/* Files are binary, and child processes do not inherit them. */
static void mode_of(const char *mode, wchar_t wide[8])
{
    size_t n = 0;
    for (; *mode && n < 5; mode++)
        if (*mode != 'e' && *mode != 'b')
            wide[n++] = (wchar_t)*mode;
    wide[n++] = L'b';
    wide[n] = L'\0';
}

FILE *tern_os_fopen(const char *path, const char *mode)
{
    const int flags = *mode == 'r'   ? (strchr(mode, '+') ? O_RDWR : O_RDONLY)
                      : *mode == 'w' ? O_CREAT | O_TRUNC | (strchr(mode, '+') ? O_RDWR : O_WRONLY)
                                     : O_CREAT | O_RDWR;
    const int file = tern_os_open(path, flags);
    struct tern_os_stat about;
    if (file < 0)
        return NULL;
    if (*mode == 'a')
        _lseeki64(file, 0, SEEK_END);
    FILE *f = tern_os_fstat(file, &about) == 0 && S_ISDIR(about.st_mode)
                  ? NULL
                  : tern_os_fdopen(file, mode);
    if (!f) {
        _close(file);
        errno = EISDIR;
    }
    return f;
}

FILE *tern_os_fdopen(int file, const char *mode)
{
    wchar_t wide[8];
    mode_of(mode, wide);
    return _wfdopen(file, wide);
}

int tern_os_fileno(FILE *file)
{
    return _fileno(file);
}

int tern_os_isatty(int file)
{
    return _isatty(file);
}

int tern_os_dup_private(int file)
{
    HANDLE copy, process = GetCurrentProcess();
    if (!DuplicateHandle(process, handle_of(file), process, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS))
        return tern_os_fail();
    const int own = _open_osfhandle((intptr_t)copy, O_BINARY | O_NOINHERIT);
    if (own < 0)
        CloseHandle(copy);
    return own;
}

int tern_os_open_memory(void)
{
    wchar_t folder[WIDE], path[WIDE];
    const DWORD n = GetTempPathW(WIDE, folder);
    if (n == 0 || n >= WIDE || !GetTempFileNameW(folder, L"ter", 0, path))
        return tern_os_fail();
    HANDLE handle =
        CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, SHARED, NULL, CREATE_ALWAYS,
                    FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return tern_os_fail();
    return _open_osfhandle((intptr_t)handle, O_RDWR | O_BINARY | O_NOINHERIT);
}

int tern_os_open_nameless(int folder)
{
    (void)folder;
    errno = EOPNOTSUPP;
    return -1;
}

int tern_os_link_nameless(int file, int folder, const char *name)
{
    (void)file;
    (void)name;
    return tern_os_open_nameless(folder);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static DWORD piece_of(size_t bytes)
{
    return (DWORD)(bytes < (1u << 30) ? bytes : 1u << 30);
}

ssize_t tern_os_read(int file, void *to, size_t bytes)
{
    return _read(file, to, piece_of(bytes));
}

ssize_t tern_os_write(int file, const void *from, size_t bytes)
{
    return _write(file, from, piece_of(bytes));
}

int64_t tern_os_lseek(int file, int64_t at, int whence)
{
    return _lseeki64(file, at, whence);
}

static OVERLAPPED place_of(int64_t at)
{
    return (OVERLAPPED){.Offset = (DWORD)(at & 0xffffffff), .OffsetHigh = (DWORD)(at >> 32)};
}

/* ReadFile with an offset moves the file's position too, so the position is restored. */
ssize_t tern_os_pread(int file, void *to, size_t bytes, int64_t at)
{
    OVERLAPPED place = place_of(at);
    DWORD n = 0;
    const int64_t before = _lseeki64(file, 0, SEEK_CUR);
    const bool good = ReadFile(handle_of(file), to, piece_of(bytes), &n, &place) ||
                      GetLastError() == ERROR_HANDLE_EOF;
    const ssize_t result = good ? (ssize_t)n : tern_os_fail();
    _lseeki64(file, before, SEEK_SET);
    return result;
}

ssize_t tern_os_pwrite(int file, const void *from, size_t bytes, int64_t at)
{
    OVERLAPPED place = place_of(at);
    DWORD n = 0;
    const int64_t before = _lseeki64(file, 0, SEEK_CUR);
    const bool good = WriteFile(handle_of(file), from, piece_of(bytes), &n, &place);
    const ssize_t result = good ? (ssize_t)n : tern_os_fail();
    _lseeki64(file, before, SEEK_SET);
    return result;
}

int tern_os_fsync(int file)
{
    return FlushFileBuffers(handle_of(file)) ? 0 : tern_os_fail();
}

int tern_os_sync_folder(int folder)
{
    (void)folder;
    return 0;
}

int tern_os_reserve(int file, int64_t bytes)
{
    FILE_ALLOCATION_INFO info = {.AllocationSize = {.QuadPart = bytes}};
    if (SetFileInformationByHandle(handle_of(file), FileAllocationInfo, &info, sizeof info))
        return 0;
    tern_os_fail();
    errno = errno == ENOSPC ? ENOSPC : ENOSYS;
    return -1;
}

bool tern_os_disk_is_full(int file, uint64_t *free_bytes)
{
    ULARGE_INTEGER left;
    wchar_t path[WIDE];
    const int code = errno;
    const DWORD n = code == ENOSPC ? GetFinalPathNameByHandleW(handle_of(file), path, WIDE, 0) : 0;
    wchar_t *slash = n && n < WIDE ? wcsrchr(path, L'\\') : NULL;
    if (slash)
        slash[1] = L'\0';
    const bool full = slash && GetDiskFreeSpaceExW(path, &left, NULL, NULL);
    if (full)
        *free_bytes = left.QuadPart;
    errno = code;
    return full;
}

void tern_os_start_writing(int file, int64_t at, int64_t bytes)
{
    (void)file;
    (void)at;
    (void)bytes;
}

bool tern_os_lock_byte(int file, int64_t at, bool locks)
{
    OVERLAPPED place = place_of(at);
    const DWORD how = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    if (locks ? LockFileEx(handle_of(file), how, 0, 1, 0, &place)
              : UnlockFileEx(handle_of(file), 0, 1, 0, &place))
        return true;
    tern_os_fail();
    errno = EAGAIN;
    return false;
}

void *tern_os_map(int file, size_t bytes)
{
    if (file < 0) {
        void *range = VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_READWRITE);
        if (range && VirtualAlloc(range, 1, MEM_COMMIT, PAGE_READWRITE))
            return range;
        tern_os_fail();
        if (range)
            VirtualFree(range, 0, MEM_RELEASE);
        return NULL;
    }
    HANDLE mapping = CreateFileMappingW(handle_of(file), NULL, PAGE_WRITECOPY, 0, 0, NULL);
    void *map = mapping ? MapViewOfFile(mapping, FILE_MAP_COPY, 0, 0, bytes) : NULL;
    if (!map)
        tern_os_fail();
    if (mapping)
        CloseHandle(mapping);
    return map;
}

void tern_os_unmap(void *map, size_t bytes)
{
    MEMORY_BASIC_INFORMATION about;
    (void)bytes;
    if (VirtualQuery(map, &about, sizeof about) && about.Type == MEM_PRIVATE)
        VirtualFree(map, 0, MEM_RELEASE);
    else
        UnmapViewOfFile(map);
}

void tern_os_wish_large_pages(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

/* ---- status ---------------------------------------------------------------------------------- */

static int stat_handle(HANDLE handle, struct tern_os_stat *about)
{
    BY_HANDLE_FILE_INFORMATION info;
    const DWORD type = GetFileType(handle);
    *about = (struct tern_os_stat){.st_mode = type == FILE_TYPE_CHAR ? S_IFCHR : S_IFIFO};
    if (type != FILE_TYPE_DISK)
        return 0;
    if (!GetFileInformationByHandle(handle, &info))
        return tern_os_fail();
    const bool folder = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    const uint64_t written =
        (uint64_t)info.ftLastWriteTime.dwHighDateTime << 32 | info.ftLastWriteTime.dwLowDateTime;
    about->st_mode = folder ? S_IFDIR | 0777 : S_IFREG | 0666;
    if (!folder && info.dwFileAttributes & FILE_ATTRIBUTE_READONLY)
        about->st_mode &= ~0222u;
    about->st_dev = info.dwVolumeSerialNumber;
    about->st_ino = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    about->st_nlink = info.nNumberOfLinks;
    about->st_size = (int64_t)((uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow);
    about->st_mtime = (int64_t)(written / 10000000) - INT64_C(11644473600);
    return 0;
}

int tern_os_fstat(int file, struct tern_os_stat *about)
{
    return stat_handle(handle_of(file), about);
}

int tern_os_fstatat(int folder, const char *name, struct tern_os_stat *about, int flags)
{
    wchar_t *path = tern_os_path_in(folder, name);
    const DWORD kind = FILE_FLAG_BACKUP_SEMANTICS |
                       (flags & AT_SYMLINK_NOFOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0);
    if (!path)
        return -1;
    HANDLE handle = CreateFileW(path, 0, SHARED, NULL, OPEN_EXISTING, kind, NULL);
    const int code = handle == INVALID_HANDLE_VALUE ? tern_os_fail() : stat_handle(handle, about);
    if (handle != INVALID_HANDLE_VALUE)
        CloseHandle(handle);
    free(path);
    return code;
}

int tern_os_stat(const char *path, struct tern_os_stat *about)
{
    return tern_os_fstatat(AT_FDCWD, path, about, 0);
}

int tern_os_lstat(const char *path, struct tern_os_stat *about)
{
    return tern_os_fstatat(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);
}

int tern_os_faccessat(int folder, const char *name, int mode, int flags)
{
    struct tern_os_stat about;
    (void)flags;
    if (tern_os_fstatat(folder, name, &about, 0) != 0)
        return -1;
    if (mode & 2 && !(about.st_mode & 0222)) {
        errno = EACCES;
        return -1;
    }
    return 0;
}

int tern_os_access(const char *path, int mode)
{
    return tern_os_faccessat(AT_FDCWD, path, mode, 0);
}

ssize_t tern_os_readlink(const char *path, char *to, size_t bytes)
{
    struct tern_os_stat about;
    (void)to;
    (void)bytes;
    if (tern_os_lstat(path, &about) == 0)
        errno = EINVAL;
    return -1;
}

int tern_os_fchmod(int file, unsigned mode)
{
    (void)file;
    (void)mode;
    return 0;
}

bool tern_os_is_private(const struct tern_os_stat *status, bool *own)
{
    (void)status;
    return *own = true; /* access lists protect the folders of a user */
}

#else
typedef int tern_os_windows_files_is_empty;
#endif
