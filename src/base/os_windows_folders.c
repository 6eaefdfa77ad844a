/* os_windows_folders.c -- creating, renaming and listing files and folders, on Windows. */
#ifdef _WIN32
#include "base/os.h"
#include "base/os_wide.h"
#include <stdlib.h>

enum { WIDE = TERN_OS_WIDE };

/* ---- names ----------------------------------------------------------------------------------- */

int tern_os_mkdir(const char *path, unsigned mode)
{
    (void)mode;
    wchar_t *wide = tern_os_widen(path);
    const int code = wide ? (CreateDirectoryW(wide, NULL) ? 0 : tern_os_fail()) : -1;
    free(wide);
    return code;
}

int tern_os_rmdir(const char *path)
{
    wchar_t *wide = tern_os_widen(path);
    const int code = wide ? (RemoveDirectoryW(wide) ? 0 : tern_os_fail()) : -1;
    free(wide);
    return code;
}

int tern_os_unlinkat(int folder, const char *name, int flags)
{
    (void)flags;
    wchar_t *path = tern_os_path_in(folder, name);
    const int code = path ? (DeleteFileW(path) ? 0 : tern_os_fail()) : -1;
    free(path);
    return code;
}

int tern_os_unlink(const char *path)
{
    return tern_os_unlinkat(AT_FDCWD, path, 0);
}

int tern_os_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    wchar_t *old = tern_os_path_in(from_folder, from), *new = tern_os_path_in(to_folder, to);
    int code = -1;
    if (old && new)
        code = MoveFileExW(old, new, MOVEFILE_REPLACE_EXISTING) ? 0 : tern_os_fail();
    /* Windows replaces no file that is open or mapped, and reports missing rights then. */
    if (code != 0 && errno == EACCES && GetFileAttributesW(new) != INVALID_FILE_ATTRIBUTES)
        errno = EBUSY;
    free(old);
    free(new);
    return code;
}

int tern_os_rename(const char *from, const char *to)
{
    return tern_os_renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int tern_os_link(const char *from, const char *to)
{
    wchar_t *old = tern_os_widen(from), *new = tern_os_widen(to);
    const int code = old && new ? (CreateHardLinkW(new, old, NULL) ? 0 : tern_os_fail()) : -1;
    free(old);
    free(new);
    return code;
}

/* Replaces XXXXXX at the end of path by letters until `make` succeeds. */
static int make_unique(char *path, int (*make)(const char *path))
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char *at = path + strlen(path) - 6;
    uint64_t seed = (uint64_t)tern_os_now() ^ (uint64_t)GetCurrentProcessId() << 32 ^
                    (uint64_t)(uintptr_t)&seed;
    for (int turn = 0; turn < 200; turn++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        for (int i = 0; i < 6; i++)
            at[i] = letters[(seed >> (20 + 6 * i)) % (sizeof letters - 1)];
        const int made = make(path);
        if (made >= 0 || errno != EEXIST)
            return made;
    }
    return -1;
}

static int make_file(const char *path)
{
    return tern_os_open(path, O_RDWR | O_CREAT | O_EXCL);
}

static int make_folder(const char *path)
{
    return tern_os_mkdir(path, 0700);
}

int tern_os_mkstemp(char *path)
{
    return make_unique(path, make_file);
}

char *tern_os_mkdtemp(char *path)
{
    return make_unique(path, make_folder) == 0 ? path : NULL;
}

/* ---- folders --------------------------------------------------------------------------------- */

struct tern_os_dir {
    HANDLE find;
    WIN32_FIND_DATAW next;
    bool has_next;
    int folder;
    struct tern_os_dirent entry;
};

tern_os_dir *tern_os_fdopendir(int folder)
{
    tern_os_dir *d = malloc(sizeof *d);
    wchar_t *path = folder >= 0 && d ? tern_os_path_in(folder, "*") : NULL;
    if (path)
        d->find = FindFirstFileW(path, &d->next);
    if (!path || (d->find == INVALID_HANDLE_VALUE && tern_os_fail())) {
        free(path);
        free(d);
        return NULL;
    }
    free(path);
    d->has_next = true;
    d->folder = folder;
    return d;
}

tern_os_dir *tern_os_opendir(const char *path)
{
    const int folder = tern_os_open(path, O_RDONLY | O_DIRECTORY);
    tern_os_dir *d = tern_os_fdopendir(folder);
    if (!d && folder >= 0)
        tern_os_close(folder);
    return d;
}

struct tern_os_dirent *tern_os_readdir(tern_os_dir *folder)
{
    while (folder->has_next) {
        const bool fits = tern_os_narrow(folder->next.cFileName, folder->entry.d_name,
                                         sizeof folder->entry.d_name);
        folder->has_next = FindNextFileW(folder->find, &folder->next);
        if (fits)
            return &folder->entry;
    }
    return NULL;
}

int tern_os_closedir(tern_os_dir *folder)
{
    FindClose(folder->find);
    tern_os_close(folder->folder);
    free(folder);
    return 0;
}

int tern_os_dirfd(const tern_os_dir *folder)
{
    return folder->folder;
}

const char *tern_os_home(void)
{
    const char *home = tern_os_getenv("USERPROFILE");
    return home && *home ? home : NULL;
}

bool tern_os_folder(tern_os_place place, const char *below, char *path, size_t bytes)
{
    static const char *const names[][2] = {
        {"XDG_CACHE_HOME", "LOCALAPPDATA"}, {"XDG_CONFIG_HOME", "APPDATA"}, {"TMPDIR", "TEMP"}};
    for (int i = 0; i < 2; i++) {
        const char *chosen = tern_os_getenv(names[place][i]);
        if (!chosen || !*chosen)
            continue;
        const int n = snprintf(path, bytes, "%s%s", chosen, below);
        for (char *c = path; n >= 0 && *c; c++)
            *c = *c == '\\' ? '/' : *c;
        return n >= 0 && (size_t)n < bytes;
    }
    return false;
}

/* Calls found for the paths that begin with path[n] and match the rest of the pattern at `at`. */
static void glob_from(char *path, size_t n, const char *at,
                      void (*found)(void *user, const char *path), void *user)
{
    const size_t length = strcspn(at, "/");
    const char *rest = at + length + (at[length] == '/');
    struct tern_os_stat about;
    if (n + length + 2 > WIDE)
        return;
    memcpy(path + n, at, length);
    path[n + length] = '\0';
    if (!memchr(at, '*', length)) {
        if (!*rest && tern_os_stat(path, &about) == 0)
            found(user, path);
        if (!*rest)
            return;
        path[n + length] = '/';
        glob_from(path, n + length + 1, rest, found, user);
        return;
    }
    WIN32_FIND_DATAW entry;
    wchar_t *wide = tern_os_widen(path);
    HANDLE find = wide ? FindFirstFileW(wide, &entry) : INVALID_HANDLE_VALUE;
    free(wide);
    for (bool more = find != INVALID_HANDLE_VALUE; more; more = FindNextFileW(find, &entry)) {
        if (entry.cFileName[0] == L'.' || !tern_os_narrow(entry.cFileName, path + n, WIDE - n - 2))
            continue;
        const size_t end = strlen(path);
        if (!*rest) {
            found(user, path);
        } else {
            path[end] = '/';
            glob_from(path, end + 1, rest, found, user);
        }
    }
    if (find != INVALID_HANDLE_VALUE)
        FindClose(find);
}

void tern_os_glob(const char *pattern, void (*found)(void *user, const char *path), void *user)
{
    char path[WIDE];
    glob_from(path, 0, pattern, found, user);
}

#else
typedef int tern_os_windows_folders_is_empty;
#endif
