/* out.c -- writes files that exist completely or not at all. */
#include "io/out.h"
#include "base/os.h"
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 8 << 20, MOST_LINKS = 40, MOST_OF_NAME = 200 };

tern_status io_fail_system(const char *function, const char *path, const char *what)
{
    return tern_fail(TERN_ERR_IO, "%s: \"%s\": %s%s%s", function, path, what, *what ? ": " : "",
                     strerror(errno));
}

static tern_status fail(const io_out *out, const char *what)
{
    return io_fail_system(out->function, out->path, what);
}

/* ---- folder and name ------------------------------------------------------------------------- */

/* Returns the path after following symbolic links at its end, which the caller frees; NULL after an
 * error. */
static char *resolve(const io_out *out)
{
    char *path = tern_os_plain_path(tern_copy_text(out->path));
    for (int links = 0; path; links++) {
        char to[PATH_MAX];
        ssize_t n = tern_os_readlink(path, to, sizeof to - 1);
        if (n < 0 && (errno == EINVAL || errno == ENOENT))
            return path;
        errno = n < 0 ? errno : links < MOST_LINKS ? 0 : ELOOP;
        if (errno) {
            fail(out, "");
            break;
        }
        to[n] = '\0';
        const char *slash = to[0] == '/' ? NULL : strrchr(path, '/');
        tern_text next = {0};
        tern_text_add(&next, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, to);
        tern_free(path);
        path = next.failed ? NULL : next.data;
        if (next.failed)
            tern_text_free(&next);
    }
    tern_free(path);
    return NULL;
}

/* Opens the folder and sets the name in it. */
static tern_status find(io_out *out)
{
    char *path = resolve(out);
    if (!path)
        return tern_last_status();
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *folder = !slash ? "." : slash == path ? "/" : path;
    tern_status status = TERN_OK;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        status =
            tern_fail(TERN_ERR_IO, "%s: \"%s\" is no name of a file", out->function, out->path);
    else if (!(out->name = tern_copy_text(name)))
        status = TERN_ERR_MEMORY;
    if (slash && slash != path)
        *slash = '\0';
    if (status == TERN_OK) {
        out->folder = tern_os_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (out->folder < 0)
            status = fail(out, "the folder");
    }
    tern_free(path);
    return status;
}

/* Fails unless the existing file is a regular one that may be written. Sets *mode to its mode, or
 * to -1 if there is none. */
static tern_status look_at_old(const io_out *out, int *mode)
{
    struct tern_os_stat old;
    *mode = -1;
    if (tern_os_fstatat(out->folder, out->name, &old, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? TERN_OK : fail(out, "");
    if (!S_ISREG(old.st_mode))
        return tern_fail(TERN_ERR_IO, "%s: \"%s\" is %s and is not replaced", out->function,
                         out->path, S_ISDIR(old.st_mode) ? "a folder" : "no regular file");
    if (out->fresh) {
        errno = EEXIST;
        return fail(out, "");
    }
    if (tern_os_faccessat(out->folder, out->name, W_OK, AT_EACCESS) != 0)
        return fail(out, "");
    *mode = (int)(old.st_mode & 07777);
    return TERN_OK;
}

/* ---- temporary names ------------------------------------------------------------------------- */

/* Sets out->temporary to ".NAME.<pid>.<n>.tmp", unique to this process and call. */
static tern_status name_temporary(io_out *out)
{
    static atomic_ulong calls;
    tern_text text = {0};
    tern_text_add(&text, ".%.*s.%ld.%lu.tmp", MOST_OF_NAME, out->name, (long)tern_os_getpid(),
                  atomic_fetch_add(&calls, 1));
    if (text.failed) {
        tern_text_free(&text);
        return TERN_ERR_MEMORY;
    }
    out->temporary = text.data;
    return TERN_OK;
}

/* Returns whether name is a temporary name for the same file of a process that no longer exists: it
 * was killed before it renamed the file. */
static bool is_left(const io_out *out, const char *name)
{
    size_t length = strlen(out->name);
    char *end;
    length = length < MOST_OF_NAME ? length : MOST_OF_NAME;
    if (name[0] != '.' || strncmp(name + 1, out->name, length) != 0 || name[1 + length] != '.')
        return false;
    long pid = strtol(name + length + 2, &end, 10), n;
    if (pid <= 0 || *end != '.')
        return false;
    n = strtol(end + 1, &end, 10);
    return n >= 0 && strcmp(end, ".tmp") == 0 && tern_os_process_is_gone(pid);
}

static void remove_left(const io_out *out)
{
    int fd = tern_os_openat(out->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tern_os_dir *open = fd < 0 ? NULL : tern_os_fdopendir(fd);
    for (struct tern_os_dirent *e; open && (e = tern_os_readdir(open));)
        if (e->d_name[0] == '.' && is_left(out, e->d_name))
            tern_os_unlinkat(out->folder, e->d_name, 0);
    if (open)
        tern_os_closedir(open);
    else if (fd >= 0)
        tern_os_close(fd);
}

/* Removes the file of an earlier process with this process id. */
static void remove_stale(const io_out *out)
{
    if (errno == EEXIST)
        tern_os_unlinkat(out->folder, out->temporary, 0);
}

static tern_status open_named(io_out *out)
{
    TERN_TRY(name_temporary(out));
    for (int i = 0; i < 2; i++) {
        out->fd = tern_os_openat(out->folder, out->temporary,
                                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (out->fd >= 0)
            return TERN_OK;
        remove_stale(out);
    }
    tern_status status = fail(out, "");
    tern_free(out->temporary); /* the name belongs to another process */
    out->temporary = NULL;
    return status;
}

static tern_status open_file(io_out *out)
{
    out->fd = tern_os_open_nameless(out->folder);
    if (out->fd >= 0)
        return TERN_OK;
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL)
        return open_named(out);
    return fail(out, "");
}

/* Gives an open file without a name the temporary name. */
static tern_status link_file(io_out *out)
{
    TERN_TRY(name_temporary(out));
    for (int i = 0; i < 2; i++) {
        if (tern_os_link_nameless(out->fd, out->folder, out->temporary) == 0)
            return TERN_OK;
        remove_stale(out);
    }
    tern_status status = fail(out, "");
    tern_free(out->temporary);
    out->temporary = NULL;
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static tern_status fail_write(const io_out *out, uint64_t bytes)
{
    uint64_t left;
    if (!tern_os_disk_is_full(out->fd, &left))
        return fail(out, "");
    return tern_fail(TERN_ERR_IO, "%s: \"%s\": %s: %llu bytes are needed, %llu are free",
                     out->function, out->path, strerror(errno), (unsigned long long)bytes,
                     (unsigned long long)left);
}

/* Reserves the whole size, so that a full disk is an error before anything is written. */
static tern_status reserve(io_out *out, uint64_t bytes)
{
    if (bytes > INT64_MAX) {
        errno = EFBIG;
        return fail(out, "");
    }
    int code;
    do {
        code = bytes && tern_os_reserve(out->fd, (int64_t)bytes) != 0 ? errno : 0;
    } while (code == EINTR);
    if (!code || code == EOPNOTSUPP || code == ENOSYS)
        return TERN_OK;
    errno = code;
    return fail_write(out, bytes);
}

tern_status io_out_open(io_out *out, uint64_t bytes)
{
    int mode = -1;
    out->folder = out->fd = -1;
    out->is_open = true;
    TERN_TRY(find(out));
    TERN_TRY(look_at_old(out, &mode));
    remove_left(out);
    TERN_TRY(open_file(out));
    if (mode >= 0 && tern_os_fchmod(out->fd, (mode_t)mode) != 0)
        return fail(out, "its mode");
    return reserve(out, bytes);
}

/* Starts writing to the disk while the next bytes are copied, so that fsync only waits for the last
 * ones. An error has no effect. */
static void start_writing(io_out *out)
{
    if (out->at - out->started < PIECE)
        return;
    tern_os_start_writing(out->fd, (int64_t)out->started, (int64_t)(out->at - out->started));
    out->started = out->at;
}

tern_status io_out_write(io_out *out, const void *data, size_t bytes)
{
    const char *from = data;
    while (bytes) {
        ssize_t n = tern_os_write(out->fd, from, bytes < PIECE ? bytes : PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : EIO;
            return fail_write(out, out->at + bytes);
        }
        from += n;
        bytes -= (size_t)n;
        out->at += (uint64_t)n;
        start_writing(out);
    }
    return TERN_OK;
}

tern_status io_out_write_at(io_out *out, uint64_t at, const void *data, size_t bytes)
{
    ssize_t n;
    do {
        n = tern_os_pwrite(out->fd, data, bytes, (off_t)at);
    } while (n < 0 && errno == EINTR);
    if (n == (ssize_t)bytes)
        return TERN_OK;
    errno = n < 0 ? errno : EIO;
    return fail_write(out, bytes);
}

/* ---- sync and rename ------------------------------------------------------------------------- */

tern_status io_out_sync(io_out *out)
{
    return tern_os_fsync(out->fd) == 0 ? TERN_OK : fail(out, "fsync");
}

tern_status io_out_rename(io_out *out)
{
    if (!out->temporary)
        TERN_TRY(link_file(out));
    if (tern_os_renameat(out->folder, out->temporary, out->folder, out->name) != 0)
        return fail(out,
                    errno == EBUSY ? "a program has it open, or mapped (.mmap of tern_load)" : "");
    out->is_renamed = true;
    return TERN_OK;
}

tern_status io_out_sync_folder(io_out *out)
{
    return tern_os_sync_folder(out->folder) == 0 ? TERN_OK : fail(out, "fsync of the folder");
}

tern_status io_out_commit(io_out *out)
{
    TERN_TRY(io_out_sync(out));
    TERN_TRY(io_out_rename(out));
    return io_out_sync_folder(out);
}

void io_out_undo(io_out *out)
{
    if (out->is_renamed && out->fresh)
        tern_os_unlinkat(out->folder, out->name, 0);
}

void io_out_close(io_out *out)
{
    if (!out->is_open)
        return;
    if (out->temporary && !out->is_renamed)
        tern_os_unlinkat(out->folder, out->temporary, 0);
    if (out->fd >= 0)
        tern_os_close(out->fd);
    if (out->folder >= 0)
        tern_os_close(out->folder);
    tern_free(out->name);
    tern_free(out->temporary);
    out->is_open = false;
}
