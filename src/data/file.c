/* file.c -- files read whole or in parts, out of gzip by zlib, which is opened at run time. */
#include "data/file.h"
#include "base/dynlib.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tern_status tern_data_file_open(tern_data_file *f, const char *path, const char *function)
{
    struct stat about;
    *f = (tern_data_file){.fd = -1};
    if (!path)
        return tern_fail_argument_null(function, "path");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, path, strerror(errno));
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(fd);
        return tern_fail(TERN_ERR_IO, "%s: %s is not a regular file", function, path);
    }
    f->path = tern_copy_text(path);
    if (!f->path) {
        close(fd);
        return TERN_ERR_MEMORY;
    }
    f->fd = fd;
    f->size = about.st_size;
    return TERN_OK;
}

void tern_data_file_close(tern_data_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    tern_free(f->path);
    *f = (tern_data_file){.fd = -1};
}

tern_status tern_data_file_read(const tern_data_file *f, int64_t at, void *to, int64_t n,
                                const char *function)
{
    char *next = to;
    while (n > 0) {
        ssize_t got = pread(f->fd, next, (size_t)n, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, f->path, strerror(errno));
        if (got == 0)
            return tern_fail(TERN_ERR_IO, "%s: %s ends at byte %lld, %lld too early", function,
                             f->path, (long long)at, (long long)n);
        next += got;
        at += got;
        n -= got;
    }
    return TERN_OK;
}

unsigned char *tern_data_file_all(const tern_data_file *f, int64_t most, const char *function)
{
    if (f->size > most)
        return tern_fail_null(TERN_ERR_IO, "%s: %s has %lld bytes, %lld are allowed", function,
                              f->path, (long long)f->size, (long long)most);
    unsigned char *bytes = tern_alloc(tern_size_bytes(f->size + 1, 1));
    if (bytes && tern_data_file_read(f, 0, bytes, f->size, function) == TERN_OK)
        return bytes;
    tern_free(bytes);
    return NULL;
}

/* ---- gzip -------------------------------------------------------------------------------- */

bool tern_data_is_gzip(const tern_data_file *f)
{
    unsigned char first[2] = {0, 0};
    return f->size >= 2 && pread(f->fd, first, 2, 0) == 2 && first[0] == 0x1f && first[1] == 0x8b;
}

static struct {
    pthread_once_t once;
    void *(*dopen)(int fd, const char *mode);
    int (*read)(void *file, void *to, unsigned n);
    int (*close)(void *file);
    const char *(*error)(void *file, int *number);
    char reason[256];
} zlib = {.once = PTHREAD_ONCE_INIT};

#ifdef TERN_WITH_ZLIB
static void find_zlib(void)
{
    static const char *const names[] = {"libz.so.1", "libz.so", NULL};
    void *library = tern_dynlib_open(names, zlib.reason, sizeof zlib.reason);
    if (!library)
        return;
    void *found[4] = {
        tern_dynlib_symbol(library, "gzread"), tern_dynlib_symbol(library, "gzclose_r"),
        tern_dynlib_symbol(library, "gzerror"), tern_dynlib_symbol(library, "gzdopen")};
    if (!found[0] || !found[1] || !found[2])
        return;
    memcpy(&zlib.read, &found[0], sizeof found[0]);
    memcpy(&zlib.close, &found[1], sizeof found[1]);
    memcpy(&zlib.error, &found[2], sizeof found[2]);
    memcpy(&zlib.dopen, &found[3], sizeof found[3]);
}
#else
static void find_zlib(void)
{
}
#endif

tern_status tern_data_stream_open(tern_data_stream *s, const tern_data_file *f,
                                  const char *function)
{
    *s = (tern_data_stream){.file = f};
    if (!tern_data_is_gzip(f))
        return TERN_OK;
    pthread_once(&zlib.once, find_zlib);
    if (!zlib.dopen)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: %s is gzip: that takes zlib (Debian: zlib1g; TERN_ZLIB when tern is "
                         "built) %s",
                         function, f->path, zlib.reason);
    int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0)
        s->gz = zlib.dopen(fd, "rb");
    if (s->gz)
        return TERN_OK;
    if (fd >= 0)
        close(fd);
    return tern_fail(TERN_ERR_MEMORY, "%s: %s: no memory to inflate it", function, f->path);
}

void tern_data_stream_close(tern_data_stream *s)
{
    if (s->gz)
        zlib.close(s->gz);
    s->gz = NULL;
}

tern_status tern_data_stream_read(tern_data_stream *s, void *to, int64_t n, int64_t *got,
                                  const char *function)
{
    *got = 0;
    if (!s->gz) {
        int64_t left = s->file->size - s->at, take = n < left ? n : left;
        TERN_TRY(tern_data_file_read(s->file, s->at, to, take, function));
        s->at += take;
        *got = take;
        return TERN_OK;
    }
    while (*got < n) {
        int64_t left = n - *got;
        int m = zlib.read(s->gz, (char *)to + *got, (unsigned)(left < 1 << 30 ? left : 1 << 30));
        int number = 0;
        if (m < 0)
            return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, s->file->path,
                             zlib.error(s->gz, &number));
        if (m == 0) { /* at the end, or of a file that was cut: gzread says so behind */
            const char *text = zlib.error(s->gz, &number);
            if (number != 0)
                return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, s->file->path, text);
            break;
        }
        *got += m;
    }
    return TERN_OK;
}
