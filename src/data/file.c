/* file.c -- reads files, whole or in parts; decompresses gzip by zlib and zstd by libzstd. */
#include "data/file.h"
#include "base/os.h"
#include "base/zlib.h"
#include "base/zstd.h"
#include <errno.h>
#include <string.h>

tern_status tern_data_file_open(tern_data_file *f, const char *path, const char *function)
{
    struct tern_os_stat about;
    *f = (tern_data_file){.fd = -1};
    if (!path)
        return tern_fail_argument_null(function, "path");
    int fd = tern_os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, path, strerror(errno));
    if (tern_os_fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        tern_os_close(fd);
        return tern_fail(TERN_ERR_IO, "%s: %s is not a regular file", function, path);
    }
    f->path = tern_copy_text(path);
    if (!f->path) {
        tern_os_close(fd);
        return TERN_ERR_MEMORY;
    }
    f->fd = fd;
    f->size = about.st_size;
    return TERN_OK;
}

void tern_data_file_close(tern_data_file *f)
{
    if (f->fd >= 0)
        tern_os_close(f->fd);
    tern_free(f->path);
    *f = (tern_data_file){.fd = -1};
}

tern_status tern_data_file_read(const tern_data_file *f, int64_t at, void *to, int64_t n,
                                const char *function)
{
    char *next = to;
    while (n > 0) {
        ssize_t got = tern_os_pread(f->fd, next, (size_t)n, at);
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

/* ---- gzip and zstd ------------------------------------------------------------------------- */

enum { PIECE_OF_FRAMES = 1 << 17 };

static bool begins_with(const tern_data_file *f, const char *bytes, size_t n)
{
    char first[4];
    return f->size >= (int64_t)n && tern_os_pread(f->fd, first, n, 0) == (ssize_t)n &&
           memcmp(first, bytes, n) == 0;
}

static bool is_zstd(const tern_data_file *f)
{
    return begins_with(f, "\x28\xb5\x2f\xfd", 4);
}

bool tern_data_is_packed(const tern_data_file *f)
{
    return begins_with(f, "\x1f\x8b", 2) || is_zstd(f);
}

static tern_status open_zstd(tern_data_stream *s, const char *function)
{
    const tern_zstd *zstd = tern_zstd_open(function);
    if (!zstd)
        return TERN_ERR_UNSUPPORTED;
    s->piece = tern_alloc(PIECE_OF_FRAMES);
    s->frames = s->piece ? zstd->create() : NULL;
    s->zstd = zstd;
    if (s->frames)
        return TERN_OK;
    tern_data_stream_close(s);
    return tern_fail(TERN_ERR_MEMORY, "%s: %s: no memory to unpack it", function, s->file->path);
}

tern_status tern_data_stream_open(tern_data_stream *s, const tern_data_file *f,
                                  const char *function)
{
    *s = (tern_data_stream){.file = f};
    if (!tern_data_is_packed(f))
        return TERN_OK;
    if (is_zstd(f))
        return open_zstd(s, function);
    if (!(s->zlib = tern_zlib_open(function)))
        return TERN_ERR_UNSUPPORTED;
    int fd = tern_os_dup_private(f->fd);
    if (fd >= 0 && tern_os_lseek(fd, 0, SEEK_SET) == 0)
        s->gz = s->zlib->gzdopen(fd, "rb");
    if (s->gz)
        return TERN_OK;
    if (fd >= 0)
        tern_os_close(fd);
    return tern_fail(TERN_ERR_MEMORY, "%s: %s: no memory to inflate it", function, f->path);
}

void tern_data_stream_close(tern_data_stream *s)
{
    if (s->gz)
        s->zlib->gzclose(s->gz);
    if (s->frames)
        s->zstd->free(s->frames);
    tern_free(s->piece);
    s->gz = s->frames = NULL;
    s->piece = NULL;
}

/* Decompresses frame after frame; a file that ends within one is an error. */
static tern_status read_zstd(tern_data_stream *s, void *to, int64_t n, int64_t *got,
                             const char *function)
{
    tern_zstd_out out = {.bytes = to, .n = (size_t)n};
    while (out.at < out.n) {
        const int64_t left = s->file->size - s->at;
        const bool ends = s->from == s->to && left == 0;
        if (ends && !s->inside)
            break;
        if (s->from == s->to) {
            s->from = 0;
            s->to = left < PIECE_OF_FRAMES ? left : PIECE_OF_FRAMES;
            TERN_TRY(tern_data_file_read(s->file, s->at, s->piece, s->to, function));
            s->at += s->to;
        }
        tern_zstd_in in = {s->piece + s->from, (size_t)(s->to - s->from), 0};
        const size_t before = out.at, code = s->zstd->decompress(s->frames, &out, &in);
        if (s->zstd->is_error(code))
            return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, s->file->path,
                             s->zstd->error_name(code));
        s->inside = code != 0;
        s->from += (int64_t)in.at;
        if (ends && out.at == before && s->inside)
            return tern_fail(TERN_ERR_IO, "%s: %s ends within a frame of zstd", function,
                             s->file->path);
    }
    *got = (int64_t)out.at;
    return TERN_OK;
}

tern_status tern_data_stream_read(tern_data_stream *s, void *to, int64_t n, int64_t *got,
                                  const char *function)
{
    *got = 0;
    if (s->frames)
        return read_zstd(s, to, n, got, function);
    if (!s->gz) {
        int64_t left = s->file->size - s->at, take = n < left ? n : left;
        TERN_TRY(tern_data_file_read(s->file, s->at, to, take, function));
        s->at += take;
        *got = take;
        return TERN_OK;
    }
    while (*got < n) {
        int64_t left = n - *got;
        int m =
            s->zlib->gzread(s->gz, (char *)to + *got, (unsigned)(left < 1 << 30 ? left : 1 << 30));
        int number = 0;
        if (m < 0)
            return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, s->file->path,
                             s->zlib->gzerror(s->gz, &number));
        if (m == 0) { /* the end, or a truncated file, which gzerror reports */
            const char *text = s->zlib->gzerror(s->gz, &number);
            if (number != 0)
                return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, s->file->path, text);
            break;
        }
        *got += m;
    }
    return TERN_OK;
}

unsigned char *tern_data_file_unpacked(const tern_data_file *f, int64_t *n, const char *function)
{
    tern_data_stream s;
    int64_t size = 0, capacity = tern_data_is_packed(f) ? 4 * f->size : f->size, got = 0;
    unsigned char *bytes = tern_grow(NULL, tern_size_bytes(capacity + 1, 1));
    tern_status status = bytes ? tern_data_stream_open(&s, f, function) : TERN_ERR_MEMORY;
    if (status == TERN_OK) {
        do {
            if (size == capacity) {
                capacity += capacity / 2 + 4096;
                unsigned char *grown = tern_grow(bytes, tern_size_bytes(capacity + 1, 1));
                status = grown ? TERN_OK : TERN_ERR_MEMORY;
                bytes = grown ? grown : bytes;
            }
            if (status == TERN_OK)
                status = tern_data_stream_read(&s, bytes + size, capacity - size, &got, function);
            size += got;
        } while (status == TERN_OK && size == capacity);
        tern_data_stream_close(&s);
    }
    if (status != TERN_OK) {
        tern_free(bytes);
        return NULL;
    }
    bytes[size] = '\0';
    *n = size;
    return bytes;
}

static tern_status write_all(const tern_data_file *f, int fd, const char *bytes, int64_t n,
                             const char *function)
{
    while (n > 0) {
        ssize_t wrote = tern_os_write(fd, bytes, (size_t)n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return tern_fail(TERN_ERR_MEMORY, "%s: %s: no memory to inflate it: %s", function,
                             f->path, strerror(errno));
        bytes += wrote;
        n -= wrote;
    }
    return TERN_OK;
}

tern_status tern_data_file_inflate(tern_data_file *f, const char *function)
{
    enum { PIECE = 1 << 16 };
    tern_data_stream s;
    int64_t size = 0, got = PIECE;
    char *piece = tern_alloc(PIECE);
    int fd = piece ? tern_os_open_memory() : -1;
    tern_status status = fd >= 0 ? tern_data_stream_open(&s, f, function) : TERN_ERR_MEMORY;
    if (piece && fd < 0)
        status = tern_fail(TERN_ERR_MEMORY, "%s: %s: no memory to inflate it: %s", function,
                           f->path, strerror(errno));
    if (status == TERN_OK) {
        for (; status == TERN_OK && got == PIECE; size += got) {
            status = tern_data_stream_read(&s, piece, PIECE, &got, function);
            if (status == TERN_OK)
                status = write_all(f, fd, piece, got, function);
        }
        tern_data_stream_close(&s);
    }
    tern_free(piece);
    if (status != TERN_OK) {
        if (fd >= 0)
            tern_os_close(fd);
        return status;
    }
    tern_os_close(f->fd);
    f->fd = fd;
    f->size = size;
    return TERN_OK;
}
