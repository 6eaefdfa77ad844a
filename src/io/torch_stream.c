/* torch_stream.c -- reads files of torch.save from before 1.6: five pickles, then the storages.
 *
 *   magic | 1001 | {"little_endian": True, ...} | the object | [keys of storages] | for each: u64
 *   elements, the elements */
#include "io/torch.h"
#include "io/torch_pickles.h"
#include <stdio.h>
#include <string.h>

/* A storage that the object uses. */
typedef struct storage {
    char key[64];
    int type;      /* index of the element type */
    int64_t count; /* number of elements */
    uint64_t at;   /* offset of the first element in the file, or 0 until known */
} storage;

typedef struct stream {
    io_checkpoint c;
    storage *list; /* n storages */
    int n;
    tern_keys keys;
} stream;

static tern_status bad_storage(const stream *s, const char *key, const char *what)
{
    return io_bad(s->c.file, 0, "storage `%s`: %s", IO_SHOW(key), what);
}

static const char *key_of(const stream *s, const io_value *value, char key[64])
{
    if (value->kind != IO_TEXT || value->count > 63 || !value->count ||
        memchr(io_text_of(&s->c.pickle, value), '\0', (size_t)value->count))
        return NULL;
    memcpy(key, io_text_of(&s->c.pickle, value), (size_t)value->count);
    key[value->count] = '\0';
    return key;
}

/* ---- the storages ---------------------------------------------------------------------------- */

static tern_status add_storage(stream *s, const io_value *value)
{
    char key[64];
    if (!key_of(s, &s->c.pickle.values[value->is.storage.key], key))
        return io_bad(s->c.file, 0, "a storage has no plain key");
    int i = tern_keys_find(&s->keys, key);
    if (i >= 0)
        return s->list[i].type == value->is.storage.type &&
                       s->list[i].count == value->is.storage.count
                   ? TERN_OK
                   : bad_storage(s, key, "it is of two types or of two sizes");
    storage *new = &s->list[s->n];
    *new = (storage){.type = value->is.storage.type, .count = value->is.storage.count};
    memcpy(new->key, key, sizeof key);
    s->n++;
    return TERN_OK;
}

/* Lists the storages of all values. The list has space for each use, so keys never move. */
static tern_status collect(stream *s)
{
    const io_pickle *p = &s->c.pickle;
    int uses = 0;
    for (int i = 0; i < p->count; i++)
        uses += p->values[i].kind == IO_STORAGE;
    s->list = tern_grow(NULL, sizeof *s->list * ((size_t)uses + 1));
    if (!s->list)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < p->count; i++) {
        const int n = s->n;
        if (p->values[i].kind != IO_STORAGE)
            continue;
        TERN_TRY(add_storage(s, &p->values[i]));
        if (s->n > n)
            TERN_TRY(tern_keys_add(&s->keys, s->list[n].key, n));
    }
    return TERN_OK;
}

/* Reads the next storage of the data at *at, and moves *at behind it. */
static tern_status place_storage(stream *s, const io_value *value, uint64_t *at)
{
    char key[64];
    unsigned char number[8];
    uint64_t count = 0, bytes;
    const uint64_t size = s->c.file->parts[0].size;
    int i = key_of(s, value, key) ? tern_keys_find(&s->keys, key) : -1;
    if (i < 0)
        return io_bad(s->c.file, 0, "the list of storages has a key that no tensor uses: `%s`",
                      value->kind == IO_TEXT
                          ? io_show(io_text_of(&s->c.pickle, value), (size_t)value->count).text
                          : "?");
    storage *x = &s->list[i];
    const io_torch_type *type = io_torch_type_at(x->type);
    if (x->at)
        return bad_storage(s, key, "its key is twice in the list");
    if (size - *at < 8)
        return bad_storage(s, key, "the file ends before it");
    TERN_TRY(io_read_at(s->c.file, 0, *at, number, sizeof number, "a storage"));
    for (int k = 7; k >= 0; k--)
        count = count << 8 | number[k];
    *at += 8;
    x->at = *at;
    if (count != (uint64_t)x->count)
        return bad_storage(s, key, "it has not as many elements as the pickle says");
    if (__builtin_mul_overflow(count, type ? (uint64_t)type->bytes : 1, &bytes) ||
        bytes > size - *at)
        return bad_storage(s, key, "the file ends within it");
    *at += bytes;
    return TERN_OK;
}

static tern_status place_storages(stream *s, int list)
{
    uint64_t at = s->c.pickle.at;
    const io_value *v = &s->c.pickle.values[list];
    if (v->kind != IO_LIST)
        return io_bad(s->c.file, 0, "the fifth pickle is no list of storages");
    TERN_TRY(collect(s));
    for (int i = 0; i < v->count; i++)
        TERN_TRY(place_storage(s, &s->c.pickle.values[v->is.items[i]], &at));
    for (int i = 0; i < s->n; i++)
        if (!s->list[i].at)
            return bad_storage(s, s->list[i].key, "it is not in the file");
    return TERN_OK;
}

static tern_status find(io_checkpoint *c, const char *name, const io_value *value, io_place *place)
{
    const stream *s = (const stream *)c;
    char key[64];
    const int i = key_of(s, &c->pickle.values[value->is.storage.key], key)
                      ? tern_keys_find(&s->keys, key)
                      : -1;
    if (i < 0)
        return io_torch_bad_tensor(c->file, name, "its storage is not in the file");
    const io_torch_type *type = io_torch_type_at(s->list[i].type);
    *place = (io_place){0, s->list[i].at,
                        (uint64_t)s->list[i].count * (type ? (uint64_t)type->bytes : 1)};
    return TERN_OK;
}

/* ---- the pickles ----------------------------------------------------------------------------- */

static tern_status open_stream(stream *s)
{
    io_pickle *p = &s->c.pickle;
    int magic, protocol, machine, root, list;
    TERN_TRY(io_pickle_run(p, &magic)); /* the first bytes were checked when the file was opened */
    TERN_TRY(io_pickle_run(p, &protocol));
    const io_value *number = &p->values[protocol];
    if (number->kind != IO_INT || number->is.integer != 1001)
        return io_bad(p->file, 0, "its protocol is %lld, and only 1001 is read",
                      number->kind == IO_INT ? (long long)number->is.integer : 0LL);
    TERN_TRY(io_pickle_run(p, &machine));
    TERN_TRY(io_torch_check_system(p, machine));
    TERN_TRY(io_pickle_run(p, &root));
    TERN_TRY(io_pickle_run(p, &list));
    TERN_TRY(place_storages(s, list));
    return io_torch_entries(&s->c, root);
}

tern_status io_torch_stream_open(tern_file *file)
{
    stream s = {.c = {.file = file, .find = find}};
    s.c.pickle = (io_pickle){.file = file,
                             .what = "the pickles",
                             .more = io_torch_more,
                             .persistent = io_pickle_storage,
                             .end = file->parts[0].size};
    tern_status status = open_stream(&s);
    io_torch_free(&s.c);
    tern_keys_free(&s.keys);
    tern_free(s.list);
    return status;
}
