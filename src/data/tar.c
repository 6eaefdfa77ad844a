/* tar.c -- tar archives of samples (webdataset): indexed when opened, read in place.
 *
 * The format is ustar with GNU's and pax's long names. Names are keys and never used as paths. */
#include "base/magic.h"
#include "base/option.h"
#include "data/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_datasets_tar";
enum { BLOCK = 512, LONGEST_NAME = 4096, MOST_EXTRA = 1 << 20 };

/* A file in an archive. */
typedef struct member {
    int64_t at, size;
    int archive; /* archive with the member, or -1 */
} member;

typedef struct shards {
    tern_data_file *file;
    int n;
    char **fields; /* names of the fields, each such as "jpg;png" */
    int n_fields;
    tern_image_options image;
    member *members; /* samples * n_fields members */
    int64_t samples, capacity;
} shards;

static void free_shards(void *data)
{
    shards *s = data;
    for (int i = 0; i < s->n; i++)
        tern_data_file_close(&s->file[i]);
    for (int i = 0; s->fields && i < s->n_fields; i++)
        tern_free(s->fields[i]);
    tern_free(s->file);
    tern_free(s->fields);
    tern_free(s->members);
    tern_free(s);
}

/* ---- headers ----------------------------------------------------------------------------- */

/* The position in an archive, and the sample that is being assembled. */
typedef struct walker {
    shards *s;
    int archive;
    int64_t at;
    char name[LONGEST_NAME], key[LONGEST_NAME];
    char longer[LONGEST_NAME]; /* name from an extra header, or "" */
    int64_t longer_size;       /* size from a pax header, or -1 */
} walker;

static tern_status wrong(const walker *w, const char *what)
{
    return tern_fail(TERN_ERR_IO, "%s: %s, byte %lld: %s", function, w->s->file[w->archive].path,
                     (long long)w->at, what);
}

/* Reads an octal number, or one of base 256 if the first bit is set. Returns false for neither. */
static bool number(const unsigned char *field, int n, int64_t *x)
{
    uint64_t sum = 0;
    int i = 0;
    if (field[0] & 0x80) {
        for (i = 1; i < n; i++) {
            if (sum >> 54)
                return false;
            sum = sum << 8 | field[i];
        }
        *x = (int64_t)sum;
        return field[0] == 0x80;
    }
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        sum = sum << 3 | (uint64_t)(field[i] - '0');
    *x = (int64_t)sum;
    return i == n || !field[i] || field[i] == ' ';
}

static bool sum_fits(const unsigned char *header)
{
    int64_t expected, sum = 8 * ' ';
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? 0 : header[i];
    return number(header + 148, 8, &expected) && expected == sum;
}

/* Reads the records "27 path=...\n" of a pax header. */
static tern_status read_pax(walker *w, char *text, int64_t n)
{
    for (int64_t at = 0; at < n;) {
        char *end;
        long length = strtol(text + at, &end, 10);
        if (length < 5 || length > n - at || *end != ' ' || text[at + length - 1] != '\n')
            return wrong(w, "a malformed pax header");
        text[at + length - 1] = '\0';
        if (strncmp(end + 1, "path=", 5) == 0)
            snprintf(w->longer, sizeof w->longer, "%s", end + 6);
        else if (strncmp(end + 1, "size=", 5) == 0)
            w->longer_size = strtoll(end + 6, NULL, 10);
        at += length;
    }
    return TERN_OK;
}

/* Reads an extra header about the next file: kind L is GNU's long name, x is pax. */
static tern_status read_extra(walker *w, char kind, int64_t size)
{
    if (size < 1 || size > MOST_EXTRA)
        return wrong(w, "a header of a name that is too long");
    char *text = tern_alloc((size_t)size + 1);
    if (!text)
        return TERN_ERR_MEMORY;
    tern_status status =
        tern_data_file_read(&w->s->file[w->archive], w->at + BLOCK, text, size, function);
    if (status == TERN_OK && kind == 'L')
        snprintf(w->longer, sizeof w->longer, "%s", text);
    else if (status == TERN_OK)
        status = read_pax(w, text, size);
    tern_free(text);
    return status;
}

/* ---- samples ----------------------------------------------------------------------------- */

/* Returns the field for files with that extension, or -1. */
static int field_of(const shards *s, const char *ending)
{
    size_t n = strlen(ending);
    for (int k = 0; k < s->n_fields; k++)
        for (const char *at = s->fields[k]; at; at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL)
            if (strncmp(at, ending, n) == 0 && (at[n] == ';' || !at[n]))
                return k;
    return -1;
}

/* Counts the current sample if it has all fields. */
static void end_sample(shards *s)
{
    const member *m = s->members + s->samples * s->n_fields;
    for (int k = 0; k < s->n_fields; k++)
        if (m[k].archive < 0)
            return;
    s->samples++;
}

static tern_status begin_sample(shards *s)
{
    if (s->samples == s->capacity) {
        int64_t capacity = s->capacity ? 2 * s->capacity : 256;
        member *grown = tern_grow(
            s->members, tern_size_bytes(tern_size_mul(capacity, s->n_fields), sizeof *grown));
        if (!grown)
            return TERN_ERR_MEMORY;
        s->members = grown;
        s->capacity = capacity;
    }
    for (int k = 0; k < s->n_fields; k++)
        s->members[s->samples * s->n_fields + k].archive = -1;
    return TERN_OK;
}

static tern_status add_member(walker *w, int64_t size)
{
    shards *s = w->s;
    const char *slash = strrchr(w->name, '/');
    char *point = strchr(slash ? w->name + (slash - w->name) : w->name, '.');
    if (!point)
        return TERN_OK;
    *point = '\0';
    if (strcmp(w->key, w->name) != 0) {
        if (*w->key)
            end_sample(s);
        TERN_TRY(begin_sample(s));
        snprintf(w->key, sizeof w->key, "%s", w->name);
    }
    int k = field_of(s, point + 1);
    if (k < 0)
        return TERN_OK;
    member *m = &s->members[s->samples * s->n_fields + k];
    if (m->archive >= 0)
        return wrong(w, "two files for one field of a sample");
    *m = (member){w->at + BLOCK, size, w->archive};
    return TERN_OK;
}

/* Reads the header at w->at, and sets *size to the bytes after it. */
static tern_status read_member(walker *w, const unsigned char *header, int64_t *size)
{
    const char kind = (char)header[156];
    const tern_data_file *f = &w->s->file[w->archive];
    if (!sum_fits(header) && w->at)
        return wrong(w, "not a tar header (its checksum does not fit)");
    if (!sum_fits(header))
        return tern_fail(TERN_ERR_IO, "%s: %s is no tar archive (a checksum does not fit)%s",
                         function, f->path, tern_magic_say(header, BLOCK).text);
    if (!number(header + 124, 12, size))
        return wrong(w, "a size that is no number");
    if (w->longer_size >= 0 && kind != 'x' && kind != 'L')
        *size = w->longer_size;
    if (*size < 0 || *size > f->size - w->at - BLOCK)
        return wrong(w, "a file that goes beyond the archive's end");
    if (kind == 'x' || kind == 'L')
        return read_extra(w, kind, *size);
    bool is_file = kind == '0' || kind == '\0';
    bool prefix = memcmp(header + 257, "ustar", 6) == 0 && header[345];
    if (*w->longer)
        snprintf(w->name, sizeof w->name, "%s", w->longer);
    else
        snprintf(w->name, sizeof w->name, "%.155s%s%.100s",
                 prefix ? (const char *)header + 345 : "", prefix ? "/" : "", (const char *)header);
    w->longer[0] = '\0';
    w->longer_size = -1;
    if (!is_file && kind != 'g')
        *size = 0; /* folders and links */
    return is_file ? add_member(w, *size) : TERN_OK;
}

static tern_status read_archive(walker *w)
{
    static const unsigned char zeros[BLOCK];
    unsigned char header[BLOCK];
    const tern_data_file *f = &w->s->file[w->archive];
    w->key[0] = w->longer[0] = '\0';
    w->longer_size = -1;
    w->at = 0;
    if (f->size < BLOCK)
        return tern_fail(TERN_ERR_IO, "%s: %s has %lld bytes and is no tar archive", function,
                         f->path, (long long)f->size);
    while (w->at < f->size) {
        int64_t size;
        TERN_TRY(tern_data_file_read(f, w->at, header, BLOCK, function));
        if (memcmp(header, zeros, BLOCK) == 0)
            break;
        TERN_TRY(read_member(w, header, &size));
        w->at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    if (*w->key)
        end_sample(w->s);
    return TERN_OK;
}

/* ---- items ------------------------------------------------------------------------------- */

static tern_tensor *tensor_of(const shards *s, const char *field, unsigned char *bytes, int64_t n)
{
    size_t length = strcspn(field, ";");
    bool image = (length == 3 && (!memcmp(field, "jpg", 3) || !memcmp(field, "png", 3))) ||
                 (length == 4 && !memcmp(field, "jpeg", 4));
    if (image)
        return tern_image_decode(bytes, (size_t)n, &s->image);
    if (length == 3 && !memcmp(field, "cls", 3)) {
        char *end;
        bytes[n] = '\0';
        long long class = strtoll((char *)bytes, &end, 10);
        while (*end == '\n' || *end == ' ' || *end == '\r')
            end++;
        if (end == (char *)bytes || *end)
            return tern_fail_null(TERN_ERR_IO, "%s: '%.40s' is not a class's number", function,
                                  bytes);
        return tern_tensor_scalar(TERN_SCALAR(class), TERN_I64, "cpu");
    }
    return tern_from_data((void *)bytes, TERN_SHAPE(n), TERN_U8, "cpu");
}

static tern_status tar_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const shards *s = self->data;
    for (int k = 0; k < s->n_fields; k++) {
        const member *m = &s->members[i * s->n_fields + k];
        uint64_t failures = tern_failures();
        unsigned char *bytes = tern_alloc(tern_size_bytes(m->size + 1, 1));
        if (!bytes)
            return TERN_ERR_MEMORY;
        tern_status status =
            tern_data_file_read(&s->file[m->archive], m->at, bytes, m->size, function);
        item[k] = status == TERN_OK ? tensor_of(s, s->fields[k], bytes, m->size) : NULL;
        tern_free(bytes);
        if (!item[k])
            return tern_failed_since(failures);
    }
    return TERN_OK;
}

static tern_status fill(shards *s, const char *const *paths, int n, const char *const *fields,
                        int n_fields)
{
    s->file = tern_alloc(sizeof *s->file * (size_t)n);
    s->fields = tern_alloc(sizeof *s->fields * (size_t)n_fields);
    if (!s->file || !s->fields)
        return TERN_ERR_MEMORY;
    s->n_fields = n_fields;
    for (int i = 0; i < n_fields; i++) {
        if (!fields[i] || !*fields[i])
            return tern_fail_argument_null(function, "a field");
        if (!(s->fields[i] = tern_copy_text(fields[i])))
            return TERN_ERR_MEMORY;
    }
    walker *w = tern_alloc(sizeof *w);
    tern_status status = w ? TERN_OK : TERN_ERR_MEMORY;
    for (int i = 0; i < n && status == TERN_OK; i++) {
        status = tern_data_file_open(&s->file[i], paths[i], function);
        s->n += status == TERN_OK;
        w->s = s;
        w->archive = i;
        if (status == TERN_OK && tern_data_is_packed(&s->file[i]))
            status = tern_data_file_inflate(&s->file[i], function);
        if (status == TERN_OK)
            status = read_archive(w);
    }
    tern_free(w);
    return status;
}

tern_dataset *tern_datasets_tar(const char *const *paths, int n_paths, const char *const *fields,
                                int n_fields, const tern_image_options *options)
{
    static const tern_dataset_type type = {
        .name = "tar", .item = tar_item, .free_data = free_shards};
    if (!paths || !fields || n_paths < 1 || n_fields < 1 || n_fields > TERN_MAX_ITEM)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %d archives, %d fields (1 to %d)", function,
                              n_paths, n_fields, TERN_MAX_ITEM);
    shards *s = tern_alloc(sizeof *s);
    if (!s)
        return NULL;
    s->image = tern_read_image(options);
    tern_dataset *d = NULL;
    if (fill(s, paths, n_paths, fields, n_fields) == TERN_OK)
        d = tern_data_dataset_of(&type, s->samples, n_fields, s);
    if (!d)
        free_shards(s);
    return d;
}
