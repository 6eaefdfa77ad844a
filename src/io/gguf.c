/* gguf.c -- the header of a GGUF file: read, and checked before anything is made of it.
 *
 *   "GGUF" | u32 version | u64 tensors | u64 pairs | pairs | records | zeros up to a multiple of A
 *   | data
 *   pair:    text key | u32 kind | value         text: u64 length | bytes
 *   record:  text name | u32 n_dims | u64 dims[n_dims], the innermost first | u32 type | u64 offset
 *
 * Offsets count from the first byte of data; tensors cover the data, each padded to A
 * (general.alignment). */
#include "io/gguf.h"
#include "io/file.h"
#include "io/gguf_inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_KEY = 65535,
    MOST_ENTRIES = 65536, /* limit of pairs, and of tensors: it bounds the tables' memory */
    LEAST_PAIR = 13,
    LEAST_RECORD = 24,
    MOST_DIMS = 4
};

typedef struct reader {
    tern_file *file;
    const unsigned char *begin, *at, *end;
    uint64_t tensors, pairs;
    uint64_t align, data; /* data is the offset of the data */
} reader;

#define SHOW(text, n)  (io_show(text, (size_t)(n)).text)
#define LEFT(r)        ((uint64_t)((r)->end - (r)->at))
#define ULL(x)         ((unsigned long long)(x))
#define BAD(r, ...)    io_bad((r)->file, 0, __VA_ARGS__)
#define ROUND_UP(x, a) (((x) + (a)-1) & ~((a)-1))

/* ---- numbers and texts ------------------------------------------------------------------- */

static tern_status ends_in(const reader *r, const char *what)
{
    return BAD(r, "the file ends at byte %llu, in the middle of %s", ULL(r->end - r->begin), what);
}

static uint64_t take_bits(reader *r, int bytes)
{
    uint64_t x = io_gguf_bits(r->at, bytes);
    r->at += bytes;
    return x;
}

static tern_status take_number(reader *r, int bytes, uint64_t *x, const char *what)
{
    if (LEFT(r) < (uint64_t)bytes)
        return ends_in(r, what);
    *x = take_bits(r, bytes);
    return TERN_OK;
}

/* Reads a length, and that many bytes. */
static tern_status take_text(reader *r, const char **text, uint64_t *n, const char *what)
{
    if (LEFT(r) < 8)
        return ends_in(r, what);
    uint64_t at = (uint64_t)(r->at - r->begin);
    *n = io_gguf_bits(r->at, 8);
    if (*n > LEFT(r) - 8)
        return BAD(r, "%s at byte %llu is a text of %llu bytes, and the file has %llu more", what,
                   ULL(at), ULL(*n), ULL(LEFT(r) - 8));
    *text = (const char *)r->at + 8;
    r->at += 8 + *n;
    return TERN_OK;
}

/* Reads the name of a tensor or key, which the caller frees. */
static tern_status take_name(reader *r, char **name, uint64_t most, const char *what)
{
    const char *text;
    uint64_t n;
    TERN_TRY(take_text(r, &text, &n, what));
    if (!n || n > most)
        return BAD(r, "%s `%s` of %llu bytes, and 1 to %llu are expected", what, SHOW(text, n),
                   ULL(n), ULL(most));
    if (memchr(text, 0, (size_t)n))
        return BAD(r, "%s `%s` has a zero byte in it", what, SHOW(text, n));
    *name = tern_alloc((size_t)n + 1);
    if (!*name)
        return TERN_ERR_MEMORY;
    memcpy(*name, text, (size_t)n);
    return TERN_OK;
}

/* ---- pairs ------------------------------------------------------------------------------- */

static tern_status take_array(reader *r, const char *key, io_gguf_value *v)
{
    char what[400];
    uint64_t kind;
    snprintf(what, sizeof what, "the array `%s`", IO_SHOW(key));
    TERN_TRY(take_number(r, 4, &kind, what));
    TERN_TRY(take_number(r, 8, &v->count, what));
    if (kind >= IO_GGUF_KINDS || kind == IO_GGUF_ARRAY)
        return BAD(r, "%s has elements of kind %llu%s", what, ULL(kind),
                   kind == IO_GGUF_ARRAY ? ", arrays, which are not read" : ", which is not known");
    v->kind = (io_gguf_kind)kind;
    v->is_array = true;
    uint64_t least = kind == IO_GGUF_TEXT ? 8 : io_gguf_size(v->kind);
    if (v->count > LEFT(r) / least)
        return BAD(r, "%s has %llu elements of at least %llu bytes, and the file has %llu more",
                   what, ULL(v->count), ULL(least), ULL(LEFT(r)));
    v->bytes = r->at;
    for (uint64_t i = 0; kind == IO_GGUF_TEXT && i < v->count; i++) {
        const char *text;
        uint64_t n;
        TERN_TRY(take_text(r, &text, &n, what));
    }
    if (kind != IO_GGUF_TEXT)
        r->at += v->count * least;
    v->end = r->at;
    return TERN_OK;
}

static tern_status take_value(reader *r, const char *key, io_gguf_value *v)
{
    char what[400];
    const char *text;
    uint64_t kind, n;
    snprintf(what, sizeof what, "the value of `%s`", IO_SHOW(key));
    TERN_TRY(take_number(r, 4, &kind, what));
    if (kind >= IO_GGUF_KINDS)
        return BAD(r, "%s is of kind %llu, which is not known", what, ULL(kind));
    if (kind == IO_GGUF_ARRAY)
        return take_array(r, key, v);
    *v = (io_gguf_value){.kind = (io_gguf_kind)kind, .count = 1, .bytes = r->at};
    if (kind == IO_GGUF_TEXT)
        TERN_TRY(take_text(r, &text, &n, what));
    else if (LEFT(r) < io_gguf_size(v->kind))
        return ends_in(r, what);
    else
        r->at += io_gguf_size(v->kind);
    v->end = r->at;
    return TERN_OK;
}

static tern_status take_pair(reader *r, struct io_gguf *g)
{
    io_gguf_pair *p = &g->pairs[g->count];
    TERN_TRY(take_name(r, &p->key, MOST_KEY, "a key"));
    g->count++;
    if (!io_is_utf8(p->key))
        return BAD(r, "the key `%s` is no UTF-8", IO_SHOW(p->key));
    if (tern_keys_find(&g->keys, p->key) >= 0)
        return BAD(r, "the key `%s` is there twice", IO_SHOW(p->key));
    TERN_TRY(tern_keys_add(&g->keys, p->key, g->count - 1));
    TERN_TRY(take_value(r, p->key, &p->value));
    return io_gguf_note(r->file->notes, p);
}

static tern_status read_pairs(reader *r)
{
    static const char key[] = "general.alignment";
    io_gguf_value v;
    struct io_gguf *g = r->file->gguf = tern_alloc(sizeof *g);
    if (!g || !(g->pairs = tern_alloc(sizeof *g->pairs * (size_t)(r->pairs + 1))))
        return TERN_ERR_MEMORY;
    for (uint64_t i = 0; i < r->pairs; i++)
        TERN_TRY(take_pair(r, g));
    r->align = 32;
    if (!io_gguf_find(r->file, key, &v))
        return TERN_OK;
    if (v.is_array || v.kind != IO_GGUF_U32)
        return BAD(r, "`%s` is of kind %d, and a u32 is expected", key, (int)v.kind);
    r->align = io_gguf_bits(v.bytes, 4);
    if (r->align < 8 || (r->align & (r->align - 1)))
        return BAD(r, "`%s` is %llu, and a power of two from 8 on is expected", key, ULL(r->align));
    return TERN_OK;
}

/* ---- tensors ----------------------------------------------------------------------------- */

/* A record's name, type, and dims in PyTorch's order, the outermost first. */
typedef struct record {
    char *name;
    const io_block *block;
    int64_t dims[MOST_DIMS];
    int ndim;
    uint64_t elements, bytes; /* bytes is the size in the file */
} record;

static tern_status take_dims(reader *r, record *t, const char *what)
{
    uint64_t n, d, product = 1;
    bool empty = false;
    TERN_TRY(take_number(r, 4, &n, what));
    if (n > MOST_DIMS)
        return BAD(r, "%s has %llu dims, and at most 4 are expected", what, ULL(n));
    t->ndim = (int)n;
    for (int i = t->ndim - 1; i >= 0; i--) {
        TERN_TRY(take_number(r, 8, &d, what));
        if (d > INT64_MAX || (d && __builtin_mul_overflow(product, d, &product)))
            return BAD(r, "%s has a dim of %llu: its elements can't be counted", what, ULL(d));
        empty = empty || !d;
        t->dims[i] = (int64_t)d;
    }
    t->elements = empty ? 0 : product;
    /* strides and bytes are products of all dims except those of size 0 */
    return product <= INT64_MAX / 8 ? TERN_OK
                                    : BAD(r, "%s has too many elements: %llu", what, ULL(product));
}

static tern_status take_type(reader *r, record *t, const char *what)
{
    uint64_t id;
    TERN_TRY(take_number(r, 4, &id, what));
    t->block = io_block_of((uint32_t)id);
    if (!t->block)
        return BAD(r, "%s is of type %llu, which is not known", what, ULL(id));
    if (!t->block->bytes)
        return BAD(r,
                   "%s is of type %s (%llu), which was taken out of the format: the model is to be "
                   "converted again",
                   what, t->block->name, ULL(id));
    int64_t row = t->ndim ? t->dims[t->ndim - 1] : 1;
    if (row % t->block->elements)
        return BAD(r, "%s has rows of %lld elements, and %s has blocks of %d", what, (long long)row,
                   t->block->name, t->block->elements);
    if (__builtin_mul_overflow(t->elements / (uint64_t)t->block->elements,
                               (uint64_t)t->block->bytes, &t->bytes))
        return BAD(r, "%s has too many elements: %llu", what, ULL(t->elements));
    return TERN_OK;
}

static tern_status add_tensor(reader *r, const record *t, uint64_t offset)
{
    const io_type *type = t->block->elements == 1 ? io_type_named(t->block->name)
                          : t->block->decode      ? io_type_named("F32")
                                                  : NULL;
    if (!io_is_utf8(t->name))
        return BAD(r, "the name of tensor `%s` is no UTF-8", IO_SHOW(t->name));
    if (tern_keys_find(&r->file->keys, t->name) >= 0)
        return BAD(r, "tensor `%s` is there twice", IO_SHOW(t->name));
    io_entry *e = io_add_entry(r->file, t->name, type, t->dims, t->ndim, false);
    if (!e)
        return tern_last_status();
    if (!type)
        snprintf(e->foreign, sizeof e->foreign, "%s", t->block->name);
    e->at = offset;
    e->block = t->block->decode ? t->block : NULL;
    e->bytes = e->block ? 4 * t->elements : t->bytes;
    return TERN_OK;
}

static tern_status take_record(reader *r)
{
    record t = {0};
    char what[400] = "a tensor's name";
    uint64_t offset;
    tern_status status = take_name(r, &t.name, INT32_MAX, what);
    if (status == TERN_OK) {
        snprintf(what, sizeof what, "tensor `%s`", IO_SHOW(t.name));
        status = take_dims(r, &t, what);
    }
    if (status == TERN_OK)
        status = take_type(r, &t, what);
    if (status == TERN_OK)
        status = take_number(r, 8, &offset, what);
    if (status == TERN_OK && offset % r->align)
        status = BAD(r, "%s is at offset %llu, which is no multiple of %llu (general.alignment)",
                     what, ULL(offset), ULL(r->align));
    if (status == TERN_OK)
        status = add_tensor(r, &t, offset);
    tern_free(t.name);
    return status;
}

/* ---- order of tensors in the data ------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const io_entry *x = *(io_entry *const *)a, *y = *(io_entry *const *)b;
    return x->at != y->at
               ? (x->at > y->at ? 1 : -1)
               : (io_entry_bytes(x) > io_entry_bytes(y)) - (io_entry_bytes(x) < io_entry_bytes(y));
}

/* Checks that each tensor begins where the padding of the one before ends, and makes offsets
 * relative to the file. */
static tern_status check_order(const reader *r, io_entry **sorted, size_t n)
{
    uint64_t at = 0, left = (uint64_t)(r->end - r->begin) - r->data;
    for (size_t i = 0; i < n; i++) {
        io_entry *e = sorted[i];
        uint64_t bytes = io_entry_bytes(e);
        if (e->at != at)
            return BAD(r,
                       "tensor `%s` is at offset %llu of the data, and %llu is expected, where the "
                       "tensor before it ends",
                       IO_SHOW(e->name), ULL(e->at), ULL(at));
        if (at > left || bytes > left - at)
            return BAD(r, "tensor `%s` has %llu bytes at offset %llu, and the data %llu",
                       IO_SHOW(e->name), ULL(bytes), ULL(at), ULL(left));
        e->at += r->data;
        at += ROUND_UP(bytes, r->align);
    }
    return at < left ? BAD(r, "the tensors end at %llu of %llu bytes of data", ULL(at), ULL(left))
                     : TERN_OK;
}

static tern_status check_places(reader *r)
{
    size_t n = (size_t)r->file->count;
    uint64_t size = (uint64_t)(r->end - r->begin);
    r->data = ROUND_UP((uint64_t)(r->at - r->begin), r->align);
    if (r->data > size && !n)
        r->data = size;
    if (r->data > size)
        return BAD(r, "data begin at byte %llu by general.alignment %llu, and the file has %llu",
                   ULL(r->data), ULL(r->align), ULL(size));
    io_entry **sorted = tern_alloc(sizeof *sorted * (n + 1));
    if (!sorted)
        return TERN_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &r->file->entries[i];
    qsort(sorted, n, sizeof *sorted, by_place);
    tern_status status = check_order(r, sorted, n);
    tern_free(sorted);
    return status;
}

/* ---- header ---------------------------------------------------------------------------------- */

static tern_status check_version(const reader *r)
{
    uint64_t version = io_gguf_bits(r->begin + 4, 4);
    if (version >= 0x01000000 && !(version & 0xffff))
        return BAD(r, "a big-endian GGUF, which is not read");
    if (version == 2 || version == 3)
        return TERN_OK;
    return BAD(r, "GGUF of version %llu, and 2 or 3 is expected%s", ULL(version),
               version == 1 ? ": the model is to be converted again" : "");
}

static tern_status check_counts(const reader *r)
{
    const struct {
        const char *what;
        uint64_t n, least;
    } rows[] = {{"pairs of metadata", r->pairs, LEAST_PAIR}, {"tensors", r->tensors, LEAST_RECORD}};
    for (int i = 0; i < 2; i++) {
        if (rows[i].n > LEFT(r) / rows[i].least)
            return BAD(r, "%llu %s, of which the file's %llu bytes hold at most %llu",
                       ULL(rows[i].n), rows[i].what, ULL(LEFT(r)), ULL(LEFT(r) / rows[i].least));
        if (rows[i].n > MOST_ENTRIES)
            return BAD(r, "%llu %s, and at most %d are read", ULL(rows[i].n), rows[i].what,
                       (int)MOST_ENTRIES);
    }
    return TERN_OK;
}

tern_status io_gguf_open_one(tern_file *file)
{
    enum { HEAD = 24 };
    uint64_t size = file->parts[0].size;
    char head[4];
    TERN_TRY(io_read_at(file, 0, 0, head, sizeof head, "the first bytes"));
    if (memcmp(head, "GGUF", 4) != 0)
        return io_bad(
            file, 0,
            "a model of ggml before GGUF (%.4s), which has no names for what it holds: it "
            "is to be converted again",
            head);
    if (size < HEAD)
        return io_bad(file, 0, "a GGUF of %llu bytes, and its header has %d", ULL(size), HEAD);
    reader r = {.file = file, .begin = io_map_bytes(file, 0)};
    if (!r.begin)
        return tern_last_status();
    r.at = r.begin + 8;
    r.end = r.begin + size;
    TERN_TRY(check_version(&r));
    r.tensors = take_bits(&r, 8);
    r.pairs = take_bits(&r, 8);
    TERN_TRY(check_counts(&r));
    TERN_TRY(read_pairs(&r));
    for (uint64_t i = 0; i < r.tensors; i++)
        TERN_TRY(take_record(&r));
    return check_places(&r);
}
