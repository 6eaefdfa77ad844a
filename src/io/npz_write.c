/* npz_write.c -- writes an archive of arrays as numpy.savez does: each member has a local header
 * with a zip64 field, the array's header and its elements; the central directory follows. */
#include "base/option.h"
#include "base/zlib.h"
#include "io/npz.h"
#include "io/numpy.h"
#include <string.h>
#include <tern/io/numpy.h>

enum { LOCAL = 30, ZIP64 = 20, MARK = 8, DEFLATED = 1 << 16, VERSION = 45, UTF8 = 0x800 };
enum { DATE = 1 << 5 | 1 }; /* always 1980-01-01, so that the same tensors give the same bytes */

/* A member of the archive. */
typedef struct member {
    const char *name; /* without ".npy" */
    uint64_t at, size, packed;
    uint32_t crc;
    bool is_ascii;
} member;

typedef struct writer {
    io_out out;
    member *members; /* count members */
    int count;
    member *now;
    const tern_zlib *zlib; /* zlib, or NULL without compression */
    uint32_t table[256];   /* for the checksum */
#ifdef TERN_WITH_ZLIB
    z_stream stream;
    unsigned char packed[DEFLATED];
#endif
} writer;

/* ---- numbers, little-endian ------------------------------------------------------------------ */

static void put(tern_text *to, uint64_t value, int bytes)
{
    char text[8];
    for (int i = 0; i < bytes; i++)
        text[i] = (char)(value >> 8 * i & 255);
    tern_text_add_bytes(to, text, (size_t)bytes);
}

static void make_table(writer *w)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        w->table[i] = c;
    }
}

static void add_crc(writer *w, const unsigned char *data, size_t bytes)
{
    uint32_t c = ~w->now->crc;
    for (size_t i = 0; i < bytes; i++)
        c = w->table[(c ^ data[i]) & 255] ^ c >> 8;
    w->now->crc = ~c;
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Writes the fields common to a local header and an entry of the directory. */
static void put_facts(tern_text *to, const writer *w, const member *m)
{
    put(to, VERSION, 2);
    put(to, m->is_ascii ? 0 : UTF8, 2);
    put(to, w->zlib ? 8 : 0, 2);
    put(to, 0, 2);
    put(to, DATE, 2);
    put(to, m->crc, 4);
    put(to, UINT32_MAX, 4); /* both sizes are in the zip64 field */
    put(to, UINT32_MAX, 4);
    put(to, strlen(m->name) + 4, 2);
}

static tern_text local_header(const writer *w, const member *m)
{
    tern_text text = {0};
    tern_text_add_bytes(&text, "PK\3\4", 4);
    put_facts(&text, w, m);
    put(&text, ZIP64, 2);
    tern_text_add(&text, "%s.npy", m->name);
    put(&text, 1, 2);
    put(&text, ZIP64 - 4, 2);
    put(&text, m->size, 8);
    put(&text, m->packed, 8);
    return text;
}

static void put_entry(tern_text *to, const writer *w, const member *m)
{
    tern_text_add_bytes(to, "PK\1\2", 4);
    put(to, 3 << 8 | VERSION, 2); /* made by Unix */
    put_facts(to, w, m);
    put(to, ZIP64 + MARK, 2);
    put(to, 0, 2); /* no comment, one disk, no attributes except the mode */
    put(to, 0, 2);
    put(to, 0, 2);
    put(to, (uint64_t)0600 << 16, 4);
    put(to, UINT32_MAX, 4);
    tern_text_add(to, "%s.npy", m->name);
    put(to, 1, 2);
    put(to, ZIP64 - 4 + MARK, 2);
    put(to, m->size, 8);
    put(to, m->packed, 8);
    put(to, m->at, 8);
}

/* Writes the two 64-bit records with the place of the directory. */
static void put_zip64(tern_text *to, uint64_t at, uint64_t n, uint64_t bytes)
{
    tern_text_add_bytes(to, "PK\6\6", 4);
    put(to, 44, 8);
    put(to, VERSION, 2);
    put(to, VERSION, 2);
    put(to, 0, 4);
    put(to, 0, 4);
    put(to, n, 8);
    put(to, n, 8);
    put(to, bytes, 8);
    put(to, at, 8);
    tern_text_add_bytes(to, "PK\6\7", 4);
    put(to, 0, 4);
    put(to, at + bytes, 8);
    put(to, 1, 4);
}

/* Writes the directory, and the three records with its place. */
static tern_status write_directory(writer *w)
{
    tern_text text = {0};
    uint64_t at = w->out.at, n = (uint64_t)w->count;
    for (int i = 0; i < w->count; i++)
        put_entry(&text, w, &w->members[i]);
    uint64_t bytes = text.length;
    if (n) /* an empty archive begins with its last record, by which NumPy recognizes it */
        put_zip64(&text, at, n, bytes);
    tern_text_add_bytes(&text, "PK\5\6", 4);
    put(&text, 0, 4);
    put(&text, n < UINT16_MAX ? n : UINT16_MAX, 2);
    put(&text, n < UINT16_MAX ? n : UINT16_MAX, 2);
    put(&text, bytes < UINT32_MAX ? bytes : UINT32_MAX, 4);
    put(&text, at < UINT32_MAX ? at : UINT32_MAX, 4);
    put(&text, 0, 2);
    tern_status status =
        text.failed ? TERN_ERR_MEMORY : io_out_write(&w->out, text.data, text.length);
    tern_text_free(&text);
    return status;
}

/* ---- data of a member ------------------------------------------------------------------------ */

#ifdef TERN_WITH_ZLIB
/* Compresses bytes into the file; flush is zlib's argument. */
static tern_status pack(writer *w, const void *data, size_t bytes, int flush)
{
    z_stream *z = &w->stream;
    z->next_in = (unsigned char *)(uintptr_t)data;
    z->avail_in = (unsigned)bytes;
    do {
        z->next_out = w->packed;
        z->avail_out = sizeof w->packed;
        w->zlib->deflate(z, flush);
        size_t n = sizeof w->packed - z->avail_out;
        w->now->packed += n;
        TERN_TRY(io_out_write(&w->out, w->packed, n));
    } while (z->avail_out == 0);
    return TERN_OK;
}

static tern_status begin_packing(writer *w)
{
    memset(&w->stream, 0, sizeof w->stream);
    return w->zlib->deflateInit2_(&w->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                                  Z_DEFAULT_STRATEGY, ZLIB_VERSION, (int)sizeof w->stream) == Z_OK
               ? TERN_OK
               : tern_fail(TERN_ERR_MEMORY, "%s: zlib has no memory", w->out.function);
}

static void end_packing(writer *w)
{
    w->zlib->deflateEnd(&w->stream);
}
#else
static tern_status pack(writer *w, const void *data, size_t bytes, int flush)
{
    (void)w, (void)data, (void)bytes, (void)flush;
    return TERN_ERR_UNSUPPORTED;
}
static tern_status begin_packing(writer *w)
{
    return pack(w, NULL, 0, 0);
}
static void end_packing(writer *w)
{
    (void)w;
}
#define Z_NO_FLUSH 0
#define Z_FINISH   4
#endif

/* Called with each piece of a tensor: updates checksum and sizes, and writes the piece, compressed
 * if w->zlib is set. */
static tern_status see(void *user, const void *data, size_t bytes)
{
    writer *w = user;
    add_crc(w, data, bytes);
    w->now->size += bytes;
    if (w->zlib)
        return pack(w, data, bytes, Z_NO_FLUSH);
    w->now->packed += bytes;
    return io_out_write(&w->out, data, bytes);
}

static tern_status write_elements(writer *w, tern_tensor *x)
{
    tern_text header = io_npy_header(x, w->out.function);
    tern_status status = header.data ? see(w, header.data, header.length) : tern_last_status();
    tern_text_free(&header);
    return status == TERN_OK ? io_out_tensor(&w->out, x, see, w) : status;
}

static tern_status write_packed(writer *w, tern_tensor *x)
{
    TERN_TRY(begin_packing(w));
    tern_status status = write_elements(w, x);
    if (status == TERN_OK)
        status = pack(w, NULL, 0, Z_FINISH);
    end_packing(w);
    return status;
}

/* The local header is written first without its sizes, and again when they are known. */
static tern_status write_member(writer *w, tern_tensor *x)
{
    member *m = w->now;
    m->at = w->out.at;
    tern_text header = local_header(w, m);
    tern_status status =
        header.failed ? TERN_ERR_MEMORY : io_out_write(&w->out, header.data, header.length);
    tern_text_free(&header);
    if (status == TERN_OK)
        status = w->zlib ? write_packed(w, x) : write_elements(w, x);
    if (status != TERN_OK)
        return status;
    header = local_header(w, m);
    status = header.failed ? TERN_ERR_MEMORY
                           : io_out_write_at(&w->out, m->at, header.data, header.length);
    tern_text_free(&header);
    return status;
}

/* ---- the archive ----------------------------------------------------------------------------- */

/* Checks names and dtypes before anything is written, and counts the bytes of an uncompressed
 * archive. */
static tern_status check(const tern_state_dict *dict, member *members, uint64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < tern_state_dict_count(dict); i++) {
        const char *name = members[i].name = tern_state_dict_key_at(dict, i);
        tern_tensor *x = tern_state_dict_at(dict, i);
        if (!*name || !io_is_utf8(name) || strlen(name) > UINT16_MAX - 4)
            return tern_fail(TERN_ERR_ARGUMENT, "tern_npz_save: an array can't be called \"%s\"",
                             name);
        tern_text header = io_npy_header(x, "tern_npz_save");
        if (!header.data)
            return tern_last_status();
        *bytes += LOCAL + 2 * strlen(name) + ZIP64 + header.length + io_tensor_bytes(x);
        tern_text_free(&header);
        members[i].is_ascii = true;
        for (const char *c = name; *c; c++)
            members[i].is_ascii = members[i].is_ascii && (unsigned char)*c < 0x80;
    }
    return TERN_OK;
}

static tern_status write_all(writer *w, const tern_state_dict *dict)
{
    uint64_t bytes;
    TERN_TRY(check(dict, w->members, &bytes));
    TERN_TRY(io_out_open(&w->out, w->zlib ? 0 : bytes));
    for (int i = 0; i < tern_state_dict_count(dict); i++) {
        w->now = &w->members[w->count++];
        TERN_TRY(write_member(w, tern_state_dict_at(dict, i)));
    }
    TERN_TRY(write_directory(w));
    return io_out_commit(&w->out);
}

tern_status tern_npz_save(const tern_state_dict *dict, const char *path,
                          const tern_npz_options *options)
{
    tern_npz_options o = tern_read_npz(options);
    if (!dict || !path)
        return tern_fail_argument_null("tern_npz_save", dict ? "path" : "dict");
    TERN_TRY(tern_last_status());
    writer *w = tern_alloc(sizeof *w);
    if (!w)
        return TERN_ERR_MEMORY;
    w->out = (io_out){.function = "tern_npz_save", .path = path};
    w->members = tern_alloc(sizeof *w->members * ((size_t)tern_state_dict_count(dict) + 1));
    w->zlib = o.compressed ? tern_zlib_open("tern_npz_save") : NULL;
    make_table(w);
    tern_status status = !w->members                ? TERN_ERR_MEMORY
                         : o.compressed && !w->zlib ? tern_last_status()
                                                    : write_all(w, dict);
    io_out_close(&w->out);
    tern_free(w->members);
    tern_free(w);
    return status;
}
