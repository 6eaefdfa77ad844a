/* program_archive.c -- files of compiled programs: a header, a text that describes the device and
 * driver, then the entries of the cache, each with its key, its size and its bytes. A whole file is
 * checked before any entry is loaded. */
#include "device/program_archive.h"
#include "base/os.h"
#include "base/error.h"
#include "base/warning.h"
#include "device/place.h"
#include "device/sources.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/compile.h>

enum { FORMAT = 1, PATH_BYTES = 4096 };
static const char magic[8] = "ternpack";

/* The header. Numbers have the byte order of the machine, as programs are for one kind of machine
 * anyway. */
typedef struct head {
    char magic[8];
    uint64_t format, text_bytes, count, bytes; /* count, bytes: of the entries */
    uint64_t hash;                             /* of the bytes behind the header */
} head;
typedef struct entry {
    tern_cache_key key;
    uint64_t bytes;
} entry;

/* ---- programs that were used --------------------------------------------------------------- */

static struct {
    tern_mutex lock;
    struct used {
        const tern_place *place;
        tern_cache_key key;
    } * list;
    size_t count, capacity;
} used = {.lock = TERN_MUTEX_INIT};

static bool is_noted(const tern_place *place, const tern_cache_key *key)
{
    for (size_t i = 0; i < used.count; i++)
        if (used.list[i].place == place && memcmp(&used.list[i].key, key, sizeof *key) == 0)
            return true;
    return false;
}

/* If memory is out, the program is not added. */
void tern_program_archive_note(const tern_place *place, const tern_cache_key *key)
{
    tern_mutex_lock(&used.lock);
    if (!is_noted(place, key)) {
        if (used.count == used.capacity) {
            size_t capacity = used.capacity ? 2 * used.capacity : 64;
            struct used *grown = realloc(used.list, sizeof *grown * capacity);
            used.list = grown ? grown : used.list;
            used.capacity = grown ? capacity : used.capacity;
        }
        if (used.count < used.capacity)
            used.list[used.count++] = (struct used){place, *key};
    }
    tern_mutex_unlock(&used.lock);
}

/* ---- the description of the device --------------------------------------------------------- */

static char *made_for(const tern_place *place)
{
    const tern_source_pack *sources = &tern_packed_sources;
    tern_text text = {0};
    tern_text_add(&text, "%s, %s, driver %s (%s, kernels %016llx)", place->info.name,
                  place->info.platform, place->info.driver, place->backend->kind,
                  (unsigned long long)tern_hash(TERN_HASH_SEED, sources->bytes, sources->packed));
    if (!text.failed)
        return text.data;
    tern_text_free(&text);
    return NULL;
}

/* ---- writing ------------------------------------------------------------------------------- */

typedef struct writer {
    FILE *f;
    head h;
    bool failed;
} writer;

static void put(writer *w, const void *data, size_t bytes)
{
    w->h.hash = tern_hash(w->h.hash, data, bytes);
    w->failed = w->failed || fwrite(data, 1, bytes, w->f) != bytes;
}

static void put_programs(writer *w, const tern_place *place)
{
    tern_mutex_lock(&used.lock);
    for (size_t i = 0; i < used.count && !w->failed; i++) {
        size_t bytes;
        void *data =
            used.list[i].place == place ? tern_cache_load(&used.list[i].key, &bytes) : NULL;
        if (!data)
            continue;
        entry e = {used.list[i].key, bytes};
        put(w, &e, sizeof e);
        put(w, data, bytes);
        w->h.count++;
        w->h.bytes += sizeof e + bytes;
        tern_free(data);
    }
    tern_mutex_unlock(&used.lock);
}

static bool write_pack(FILE *f, const tern_place *place, const char *text)
{
    writer w = {.f = f,
                .h = {.format = FORMAT, .text_bytes = strlen(text), .hash = TERN_HASH_SEED}};
    memcpy(w.h.magic, magic, sizeof magic);
    w.failed = fwrite(&w.h, sizeof w.h, 1, f) != 1;
    put(&w, text, w.h.text_bytes);
    put_programs(&w, place);
    return !w.failed && fseek(f, 0, SEEK_SET) == 0 && fwrite(&w.h, sizeof w.h, 1, f) == 1;
}

static tern_status open_place(const char *function, const char *device, const char *path,
                              tern_place **place)
{
    if (!path)
        return tern_fail_argument_null(function, "path");
    *place = tern_place_find(device, function);
    return *place ? TERN_OK : tern_last_status();
}

tern_status tern_programs_save(const char *device, const char *path)
{
    static const char function[] = "tern_programs_save";
    tern_place *place;
    char temporary[PATH_BYTES];
    TERN_TRY(open_place(function, device, path, &place));
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= sizeof temporary)
        return tern_fail(TERN_ERR_IO, "%s: the path is too long: %.80s...", function, path);
    if (place->backend->keep_programs)
        place->backend->keep_programs(place);
    char *text = made_for(place);
    if (!text)
        return TERN_ERR_MEMORY;
    int file = tern_os_mkstemp(temporary);
    FILE *f = file < 0 ? NULL : tern_os_fdopen(file, "wb");
    bool whole = f && write_pack(f, place, text);
    if (f)
        whole = fclose(f) == 0 && whole;
    tern_free(text);
    if (whole && tern_os_rename(temporary, path) == 0)
        return TERN_OK;
    tern_status status =
        tern_fail(TERN_ERR_IO, "%s: %s can't be written: %s", function, path, strerror(errno));
    if (file >= 0)
        tern_os_unlink(temporary);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Returns the bytes of the file, which the caller frees with tern_free; NULL after an error. */
static unsigned char *read_file(const char *function, const char *path, size_t *bytes)
{
    struct tern_os_stat status;
    FILE *f = tern_os_fopen(path, "rb");
    unsigned char *data = NULL;
    if (f && tern_os_fstat(fileno(f), &status) == 0 && S_ISREG(status.st_mode)) {
        *bytes = (size_t)status.st_size;
        data = tern_alloc_aligned(*bytes ? *bytes : 1);
        if (data && fread(data, 1, *bytes, f) != *bytes) {
            tern_free(data);
            data = NULL;
        }
    }
    if (!data)
        tern_fail(TERN_ERR_IO, "%s: %s can't be read: %s", function, path,
                  f ? "it is no file, or it changes" : strerror(errno));
    if (f)
        fclose(f);
    return data;
}

/* Returns whether `count` entries end exactly after `left` bytes. */
static bool are_whole(const unsigned char *at, uint64_t left, uint64_t count)
{
    entry e;
    for (uint64_t i = 0; i < count; i++) {
        if (left < sizeof e)
            return false;
        memcpy(&e, at, sizeof e);
        if (e.bytes > left - sizeof e)
            return false;
        at += sizeof e + e.bytes;
        left -= sizeof e + e.bytes;
    }
    return left == 0;
}

static const char *damage_of(const head *h, const unsigned char *data, size_t bytes)
{
    if (bytes < sizeof *h || memcmp(h->magic, magic, sizeof magic) != 0)
        return "it is no pack of programs";
    if (h->format != FORMAT)
        return "it is of another version of the format";
    size_t left = bytes - sizeof *h;
    if (h->text_bytes > left || h->bytes != left - h->text_bytes)
        return "it is cut, or has bytes too many";
    if (tern_hash(TERN_HASH_SEED, data + sizeof *h, left) != h->hash ||
        !are_whole(data + sizeof *h + h->text_bytes, h->bytes, h->count))
        return "it is damaged";
    return NULL;
}

static int64_t take(const tern_place *place, const head *h, const unsigned char *at)
{
    int64_t taken = 0;
    entry e;
    for (uint64_t i = 0; i < h->count; i++) {
        memcpy(&e, at, sizeof e);
        at += sizeof e;
        if (tern_cache_has(&e.key) || tern_cache_keep(&e.key, at, (size_t)e.bytes)) {
            tern_program_archive_note(place, &e.key);
            taken++;
        }
        at += e.bytes;
    }
    return taken;
}

int64_t tern_programs_load(const char *device, const char *path)
{
    static const char function[] = "tern_programs_load";
    tern_place *place;
    size_t bytes;
    if (open_place(function, device, path, &place) != TERN_OK)
        return -1;
    unsigned char *data = read_file(function, path, &bytes);
    char *text = data ? made_for(place) : NULL;
    int64_t taken = -1;
    if (text) {
        head h = {.format = 0};
        memcpy(&h, data, bytes < sizeof h ? bytes : sizeof h);
        const char *damage = damage_of(&h, data, bytes), *own = (const char *)data + sizeof h;
        if (damage) {
            tern_fail(TERN_ERR_IO, "%s: %s: %s", function, path, damage);
        } else if (h.text_bytes != strlen(text) || memcmp(own, text, h.text_bytes) != 0) {
            tern_warn("cache", function, "the programs of %s are for %.*s, this is %s", path,
                      h.text_bytes < 400 ? (int)h.text_bytes : 400, own, text);
            taken = 0;
        } else {
            taken = take(place, &h, data + sizeof h + h.text_bytes);
        }
    }
    tern_free(text);
    tern_free(data);
    return taken;
}
