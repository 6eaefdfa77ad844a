/* libzip.c -- reads archives by libzip, which is opened at run time. */
#include "io/libzip.h"
#include "base/os.h"
#include "io/out.h"
#ifdef TERN_WITH_ZIP
#include "base/dynlib.h"
#include <stdio.h>
#include <string.h>
#include <zip.h>

#define FUNCTIONS(X)                                                                               \
    X(zip_fdopen)                                                                                  \
    X(zip_discard)                                                                                 \
    X(zip_get_num_entries)                                                                         \
    X(zip_stat_index)                                                                              \
    X(zip_fopen_index)                                                                             \
    X(zip_fread)                                                                                   \
    X(zip_fclose)                                                                                  \
    X(zip_strerror)                                                                                \
    X(zip_file_strerror)                                                                           \
    X(zip_file_get_error)                                                                          \
    X(zip_error_code_zip)                                                                          \
    X(zip_error_init_with_code)                                                                    \
    X(zip_error_strerror)                                                                          \
    X(zip_error_fini)

static struct {
#define X(NAME) __typeof__(&NAME) NAME;
    FUNCTIONS(X)
#undef X
} zip;
static char reason[256];
static bool there;
static tern_once once = TERN_ONCE_INIT;

static void load(void)
{
    void *library = tern_dynlib_open(TERN_LIBRARY_ZIP, reason, sizeof reason), *address = library;
#define X(NAME)                                                                                    \
    if (address) {                                                                                 \
        address = tern_dynlib_symbol(library, #NAME);                                              \
        memcpy(&zip.NAME, &address, sizeof address);                                               \
        if (!address)                                                                              \
            snprintf(reason, sizeof reason, "it has no " #NAME);                                   \
    }
    FUNCTIONS(X)
#undef X
    there = address != NULL;
}

/* An archive, which one thread at a time uses. */
typedef struct archive {
    zip_t *zip;
    tern_mutex lock;
} archive;

static archive *archive_of(const tern_file *file)
{
    return file->parts[0].zip;
}

/* ---- members --------------------------------------------------------------------------------- */

int io_zip_count(const tern_file *file)
{
    zip_int64_t n = zip.zip_get_num_entries(archive_of(file)->zip, 0);
    return n < 0 ? 0 : n > 1 << 24 ? 1 << 24 : (int)n;
}

tern_status io_zip_member(const tern_file *file, int i, io_member_facts *facts)
{
    enum { MOST_RATIO = 1032 }; /* largest ratio of deflate */
    zip_stat_t stat;
    zip_t *from = archive_of(file)->zip;
    const zip_uint64_t all = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                             ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip.zip_stat_index(from, (zip_uint64_t)i, 0, &stat) != 0)
        return io_bad(file, 0, "member %d of the archive: %s", i, zip.zip_strerror(from));
    const char *what =
        (stat.valid & all) != all               ? "has no size"
        : stat.encryption_method != ZIP_EM_NONE ? "is encrypted"
        : stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE
            ? "is compressed in a way that is not deflate"
        : stat.comp_method == ZIP_CM_STORE ? (stat.size == stat.comp_size ? NULL : "has two sizes")
        : stat.size / MOST_RATIO > stat.comp_size ? "says that it is larger than it can be"
                                                  : NULL;
    if (!what && stat.comp_size > file->parts[0].size)
        what = "is larger than the archive";
    if (what)
        return io_bad(file, 0, "member `%s` of the archive %s",
                      stat.name ? IO_SHOW(stat.name) : "?", what);
    *facts = (io_member_facts){stat.name, (uint64_t)i, stat.size,
                               stat.valid & ZIP_STAT_CRC && stat.crc == 0};
    return TERN_OK;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static tern_status bad_member(const tern_file *file, zip_file_t *member, const char *name,
                              uint64_t at)
{
    return io_bad(file, 0, "`%s` at byte %llu: %s", IO_SHOW(name), (unsigned long long)at,
                  zip.zip_file_strerror(member));
}

static tern_status read_bytes(const tern_file *file, zip_file_t *member, const char *name,
                              uint64_t at, void *to, size_t bytes)
{
    for (char *next = to; bytes;) {
        zip_int64_t n = zip.zip_fread(member, next, bytes);
        if (n < 0)
            return bad_member(file, member, name, at);
        if (n == 0)
            return io_bad(file, 0, "`%s` ends at byte %llu", IO_SHOW(name), (unsigned long long)at);
        next += n;
        bytes -= (size_t)n;
        at += (uint64_t)n;
    }
    return TERN_OK;
}

/* Reads behind the last byte: nothing may follow, and libzip compares the checksum. */
static tern_status read_end(const tern_file *file, zip_file_t *member, const char *name,
                            bool is_zero_crc)
{
    char more;
    zip_int64_t n = zip.zip_fread(member, &more, 1);
    if (n == 0)
        return TERN_OK;
    if (n > 0)
        return io_bad(file, 0, "`%s` is longer than the archive says", IO_SHOW(name));
    if (is_zero_crc && zip.zip_error_code_zip(zip.zip_file_get_error(member)) == ZIP_ER_CRC)
        return TERN_OK;
    return io_bad(file, 0, "`%s`: %s", IO_SHOW(name), zip.zip_file_strerror(member));
}

tern_status io_zip_read(tern_file *file, const io_member_facts *facts, void *to, size_t most,
                        size_t *n, bool whole)
{
    archive *a = archive_of(file);
    *n = facts->size < most ? (size_t)facts->size : most;
    tern_mutex_lock(&a->lock);
    zip_file_t *member = zip.zip_fopen_index(a->zip, facts->index, 0);
    tern_status status =
        member ? read_bytes(file, member, facts->name, 0, to, *n)
               : io_bad(file, 0, "`%s`: %s", IO_SHOW(facts->name), zip.zip_strerror(a->zip));
    if (status == TERN_OK && whole)
        status = read_end(file, member, facts->name, facts->is_zero_crc);
    if (member)
        zip.zip_fclose(member);
    tern_mutex_unlock(&a->lock);
    return status;
}

/* ---- streams: a stream has the archive's lock until it ends ---------------------------------- */

static tern_status next_zip(io_stream *s, void *to, size_t bytes)
{
    TERN_TRY(read_bytes(s->file, s->handle, s->entry->name, s->at, to, bytes));
    s->at += bytes;
    return TERN_OK;
}

static tern_status pass_zip(io_stream *s, uint64_t bytes)
{
    char unused[4096];
    for (uint64_t n; bytes; bytes -= n) {
        n = bytes < sizeof unused ? bytes : sizeof unused;
        TERN_TRY(next_zip(s, unused, (size_t)n));
    }
    return TERN_OK;
}

static tern_status finish_zip(io_stream *s, bool whole)
{
    io_member_facts facts;
    tern_status status = TERN_OK;
    if (whole) {
        status = io_zip_member(s->file, s->entry->part, &facts);
        if (status == TERN_OK && s->at == facts.size)
            status = read_end(s->file, s->handle, s->entry->name, facts.is_zero_crc);
    }
    zip.zip_fclose(s->handle);
    tern_mutex_unlock(&archive_of(s->file)->lock);
    return status;
}

static tern_status start_zip(io_stream *s, uint64_t skip)
{
    archive *a = archive_of(s->file);
    tern_mutex_lock(&a->lock);
    s->handle = zip.zip_fopen_index(a->zip, (zip_uint64_t)s->entry->part, 0);
    tern_status status = s->handle ? pass_zip(s, s->entry->at + skip)
                                   : io_bad(s->file, 0, "`%s`: %s", IO_SHOW(s->entry->name),
                                            zip.zip_strerror(a->zip));
    if (status == TERN_OK)
        return TERN_OK;
    if (s->handle)
        zip.zip_fclose(s->handle);
    tern_mutex_unlock(&a->lock);
    return status;
}

static void close_zip(tern_file *file)
{
    archive *a = archive_of(file);
    if (a) {
        zip.zip_discard(a->zip);
        tern_mutex_destroy(&a->lock);
        tern_free(a);
    }
}

static const io_reader zip_reader = {start_zip, next_zip, finish_zip, close_zip};

/* ---- opening --------------------------------------------------------------------------------- */

tern_status io_zip_open(tern_file *file)
{
    tern_call_once(&once, load);
    if (!there)
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "%s: \"%s\" is an archive, and libzip can't be opened (Debian: libzip4): %s",
            file->function, file->path, reason);
    archive *a = tern_alloc(sizeof *a);
    if (!a)
        return TERN_ERR_MEMORY;
    int code = 0, fd = tern_os_dup_private(file->parts[0].fd);
    if (fd < 0) {
        tern_status status = io_fail_system(file->function, file->path, "");
        tern_free(a);
        return status;
    }
    a->zip = zip.zip_fdopen(fd, ZIP_RDONLY | ZIP_CHECKCONS, &code);
    if (!a->zip) {
        zip_error_t error;
        zip.zip_error_init_with_code(&error, code);
        tern_status status = io_bad(file, 0, "the archive: %s", zip.zip_error_strerror(&error));
        zip.zip_error_fini(&error);
        tern_os_close(fd);
        tern_free(a);
        return status;
    }
    tern_mutex_init(&a->lock);
    file->parts[0].zip = a;
    file->reader = &zip_reader;
    return TERN_OK;
}
#else

tern_status io_zip_open(tern_file *file)
{
    return tern_fail(
        TERN_ERR_UNSUPPORTED,
        "%s: \"%s\" is an archive, and tern was built without libzip: configure it with "
        "-DTERN_ZIP=ON and its header (Debian: libzip-dev)",
        file->function, file->path);
}

int io_zip_count(const tern_file *file)
{
    (void)file;
    return 0;
}

tern_status io_zip_member(const tern_file *file, int i, io_member_facts *facts)
{
    (void)i, (void)facts;
    return io_zip_open((tern_file *)(uintptr_t)file);
}

tern_status io_zip_read(tern_file *file, const io_member_facts *facts, void *to, size_t most,
                        size_t *n, bool whole)
{
    (void)facts, (void)to, (void)most, (void)n, (void)whole;
    return io_zip_open(file);
}
#endif
