/* torch.c -- files of torch.save: an archive of a pickle and the bytes of storages. */
#include "io/torch.h"
#include "io/libzip.h"
#include "io/pickle.h"
#include "io/save.h"
#include <stdio.h>
#include <string.h>

enum { MOST_PICKLE = 256 << 20, MOST_DEPTH = 64 };

typedef struct checkpoint {
    tern_file *file;
    io_pickle pickle;
    tern_text stem;    /* "archive/" */
    tern_keys members; /* of the archive, by their names */
    int64_t visits;    /* of values so far: shared ones can be a tree of any size */
} checkpoint;

/* ---- the archive ----------------------------------------------------------------------------- */

/* The member "<stem><name>"; false where there is none. */
static tern_status find_member(const checkpoint *c, const char *name, io_member_facts *facts,
                               bool *found)
{
    tern_text path = {0};
    tern_text_add(&path, "%s%s", c->stem.data, name);
    int i = path.failed ? -1 : tern_keys_find(&c->members, path.data);
    tern_status status = path.failed ? TERN_ERR_MEMORY : TERN_OK;
    *found = i >= 0;
    if (i >= 0)
        status = io_zip_member(c->file, i, facts);
    tern_text_free(&path);
    return status;
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), k = strlen(with);
    return n >= k && strcmp(text + n - k, with) == 0;
}

static tern_status list_members(checkpoint *c)
{
    for (int i = 0; i < io_zip_count(c->file); i++) {
        io_member_facts facts;
        TERN_TRY(io_zip_member(c->file, i, &facts));
        if (tern_keys_find(&c->members, facts.name) >= 0)
            return io_bad(c->file, 0, "`%s` is twice in the archive", IO_SHOW(facts.name));
        TERN_TRY(tern_keys_add(&c->members, facts.name, i));
        if (ends(facts.name, "/data.pkl") && !c->stem.length) {
            tern_text_add(&c->stem, "%.*s", (int)(strlen(facts.name) - strlen("data.pkl")),
                          facts.name);
            if (c->stem.failed)
                return TERN_ERR_MEMORY;
        }
    }
    return c->stem.length ? TERN_OK : io_bad(c->file, 0, "the archive has no data.pkl");
}

/* What is in the archive beside tensors. */
static tern_status check_kind(const checkpoint *c)
{
    io_member_facts facts;
    bool found;
    char order[8] = "";
    size_t n;
    TERN_TRY(find_member(c, "constants.pkl", &facts, &found));
    if (found)
        return io_bad(c->file, 0,
                      "it is a TorchScript program, which is not run: save its tensors, "
                      "torch.save(model.state_dict(), ...)");
    TERN_TRY(find_member(c, "byteorder", &facts, &found));
    if (found)
        TERN_TRY(io_zip_read(c->file, &facts, order, sizeof order - 1, &n, false));
    if (found && strcmp(order, "little") != 0)
        return io_bad(c->file, 0, "its byte order is \"%s\", little is read", IO_SHOW(order));
    return TERN_OK;
}

static tern_status read_pickle(checkpoint *c)
{
    io_member_facts facts;
    bool found;
    TERN_TRY(find_member(c, "data.pkl", &facts, &found));
    if (facts.size > MOST_PICKLE)
        return io_bad(c->file, 0, "data.pkl is too large: %llu bytes",
                      (unsigned long long)facts.size);
    unsigned char *bytes = tern_grow(NULL, (size_t)facts.size + 1);
    if (!bytes)
        return TERN_ERR_MEMORY;
    c->pickle = (io_pickle){.file = c->file, .bytes = bytes};
    return io_zip_read(c->file, &facts, bytes, (size_t)facts.size, &c->pickle.n, true);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static tern_status bad_tensor(const checkpoint *c, const char *name, const char *what)
{
    return io_bad(c->file, 0, "tensor `%s`: %s", IO_SHOW(name), what);
}

/* The record of a storage, whose bytes must be those that the pickle says. */
static tern_status find_record(const checkpoint *c, const char *name, const io_value *storage,
                               io_member_facts *facts)
{
    const io_value *key = &c->pickle.values[storage->is.storage.key];
    uint64_t bytes = storage->is.storage.type ? (uint64_t)storage->is.storage.type->bytes : 1;
    char path[128];
    bool found;
    if (key->count > 100 || memchr(key->is.text, '/', (size_t)key->count))
        return bad_tensor(c, name, "its storage has no plain name");
    snprintf(path, sizeof path, "data/%.*s", key->count, key->is.text);
    TERN_TRY(find_member(c, path, facts, &found));
    if (!found)
        return bad_tensor(c, name, "its storage is not in the archive");
    if (__builtin_mul_overflow(bytes, (uint64_t)storage->is.storage.count, &bytes) ||
        bytes != facts->size)
        return bad_tensor(c, name, "its storage is not as long as the pickle says");
    return TERN_OK;
}

/* Sizes or strides of a tensor; how many, -1 after an error. */
static int take_numbers(const checkpoint *c, const char *name, int tuple, int64_t *to)
{
    const io_value *v = &c->pickle.values[tuple];
    for (int i = 0; i < v->count && v->count <= TERN_MAX_DIMS; i++) {
        const io_value *number = &c->pickle.values[v->is.items[i]];
        to[i] = number->kind == IO_INT ? number->is.integer : -1;
        if (to[i] < 0) {
            bad_tensor(c, name, "a size or stride that is negative, or no whole number");
            return -1;
        }
    }
    if (v->count <= TERN_MAX_DIMS)
        return v->count;
    bad_tensor(c, name, "it has more than 12 dims");
    return -1;
}

typedef struct geometry {
    int64_t numbers[2 * TERN_MAX_DIMS]; /* sizes, strides */
    int ndim;
    uint64_t numel, span; /* elements, and those from the first to the last */
    bool is_dense;
} geometry;

/* Elements must lie in a storage of n from the offset on, and be no more than it has: a stride of 0
 * would make terabytes of four bytes. */
static bool measure(geometry *g, uint64_t offset, uint64_t n)
{
    uint64_t row = 1;
    g->numel = g->span = 1;
    g->is_dense = true;
    for (int i = g->ndim - 1; i >= 0; i--) {
        uint64_t size = (uint64_t)g->numbers[i], stride = (uint64_t)g->numbers[g->ndim + i], reach;
        if (__builtin_mul_overflow(g->numel, size, &g->numel))
            return false;
        if (size > 1 && (__builtin_mul_overflow(size - 1, stride, &reach) ||
                         __builtin_add_overflow(g->span, reach, &g->span)))
            return false;
        g->is_dense = g->is_dense && (size <= 1 || stride == row);
        if (size && __builtin_mul_overflow(row, size, &row))
            return false;
    }
    if (!g->numel) {
        g->span = 0;
        g->is_dense = true;
    }
    return g->numel <= n && g->span <= n && offset <= n - g->span;
}

static tern_status add_tensor(checkpoint *c, const char *name, const io_value *tensor)
{
    geometry g;
    io_member_facts facts;
    const io_torch_type *type = tensor->is.tensor.type;
    const io_value *storage = &c->pickle.values[tensor->is.tensor.storage];
    if (!*name || !io_is_utf8(name) || tern_keys_find(&c->file->keys, name) >= 0)
        return bad_tensor(c, name, "it is there twice, or has no name");
    TERN_TRY(find_record(c, name, storage, &facts));
    g.ndim = take_numbers(c, name, tensor->is.tensor.size, g.numbers);
    if (g.ndim < 0)
        return tern_last_status();
    int strides = take_numbers(c, name, tensor->is.tensor.stride, g.numbers + g.ndim);
    if (strides != g.ndim)
        return strides < 0 ? tern_last_status()
                           : bad_tensor(c, name, "it has not as many strides as sizes");
    uint64_t size = (uint64_t)type->bytes, offset = (uint64_t)tensor->is.tensor.offset;
    if (!measure(&g, offset, facts.size / size))
        return bad_tensor(c, name, "sizes, strides and offset do not fit into its storage");
    io_entry *e =
        io_add_entry(c->file, name, io_type_named(type->type), g.numbers, g.ndim, !g.is_dense);
    if (!e)
        return tern_last_status();
    e->part = (int)facts.index;
    e->at = offset * size;
    e->bytes = g.span * size;
    snprintf(e->foreign, sizeof e->foreign, "%s", type->dtype);
    return TERN_OK;
}

/* ---- what the pickle holds ------------------------------------------------------------------- */

static tern_status add_value(checkpoint *c, const char *name, int value, int depth);

/* "<name>.<key>" and the value there. */
static tern_status add_named(checkpoint *c, const char *name, const char *key, int n, int value,
                             int depth)
{
    tern_text path = {0};
    tern_text_add(&path, "%s%s%.*s", name, *name ? "." : "", n, key);
    tern_status status = path.failed ? TERN_ERR_MEMORY : add_value(c, path.data, value, depth + 1);
    tern_text_free(&path);
    return status;
}

static tern_status add_pair(checkpoint *c, const char *name, int key, int value, int depth)
{
    const io_value *k = &c->pickle.values[key];
    char text[32];
    if (k->kind == IO_TEXT && !memchr(k->is.text, '\0', (size_t)k->count))
        return add_named(c, name, k->is.text, k->count, value, depth);
    if (k->kind != IO_INT)
        return bad_tensor(c, name, "a key that is neither text nor whole number");
    int n = snprintf(text, sizeof text, "%lld", (long long)k->is.integer);
    return add_named(c, name, text, n, value, depth);
}

static tern_status add_items(checkpoint *c, const char *name, const io_value *v, int depth)
{
    if (depth > MOST_DEPTH)
        return bad_tensor(c, name, "it is too deep in lists and dicts");
    bool pairs = v->kind == IO_DICT;
    for (int i = 0; i < v->count; i += pairs ? 2 : 1) {
        char text[32];
        int n = snprintf(text, sizeof text, "%d", i);
        TERN_TRY(pairs ? add_pair(c, name, v->is.items[i], v->is.items[i + 1], depth)
                       : add_named(c, name, text, n, v->is.items[i], depth));
    }
    return TERN_OK;
}

static tern_status add_value(checkpoint *c, const char *name, int value, int depth)
{
    const io_value *v = &c->pickle.values[value];
    char text[40];
    if (++c->visits > (int64_t)c->pickle.n)
        return bad_tensor(c, name,
                          "values are shared until they are more than the pickle has bytes");
    switch ((io_value_kind)v->kind) {
    case IO_TENSOR:
        return add_tensor(c, name, v);
    case IO_TUPLE:
    case IO_LIST:
    case IO_DICT:
        return add_items(c, name, v, depth);
    case IO_TEXT:
        if (memchr(v->is.text, '\0', (size_t)v->count) || v->count > 1 << 20)
            return TERN_OK;
        {
            tern_text note = {0};
            tern_text_add(&note, "%.*s", v->count, v->is.text);
            tern_status status =
                note.failed ? TERN_ERR_MEMORY
                            : tern_state_dict_set_metadata(c->file->notes, name, note.data);
            tern_text_free(&note);
            return status;
        }
    case IO_BOOL:
        return tern_state_dict_set_metadata(c->file->notes, name, v->is.integer ? "True" : "False");
    case IO_INT:
        snprintf(text, sizeof text, "%lld", (long long)v->is.integer);
        return tern_state_dict_set_metadata(c->file->notes, name, text);
    case IO_REAL:
        snprintf(text, sizeof text, "%.17g", v->is.real);
        return tern_state_dict_set_metadata(c->file->notes, name, text);
    default:
        return TERN_OK; /* None, and what is of no use */
    }
}

static tern_status open_checkpoint(checkpoint *c)
{
    int root;
    TERN_TRY(list_members(c));
    TERN_TRY(check_kind(c));
    TERN_TRY(read_pickle(c));
    TERN_TRY(io_pickle_run(&c->pickle, &root));
    bool alone = c->pickle.values[root].kind == IO_TENSOR; /* torch.save(x, ...) */
    return add_value(c, alone ? "tensor" : "", root, 0);
}

tern_status io_torch_open(tern_file *file)
{
    checkpoint c = {.file = file};
    tern_status status = open_checkpoint(&c);
    tern_free((void *)(uintptr_t)c.pickle.bytes);
    io_pickle_free(&c.pickle);
    tern_keys_free(&c.members);
    tern_text_free(&c.stem);
    return status;
}

/* ---- which archive, and what is none --------------------------------------------------------- */

tern_status io_archive_open(tern_file *file)
{
    TERN_TRY(io_zip_open(file));
    for (int i = 0; i < io_zip_count(file); i++) {
        io_member_facts facts;
        TERN_TRY(io_zip_member(file, i, &facts));
        if (ends(facts.name, "/data.pkl"))
            return io_torch_open(file);
    }
    return io_npz_open(file);
}

static tern_status refuse_old(const tern_file *file, const char *kind)
{
    return io_bad(file, 0,
                  "it is %s, which is not read: load it with PyTorch and save it again, "
                  "torch.save(model.state_dict(), ...)",
                  kind);
}

tern_status io_torch_stream_open(tern_file *file)
{
    return refuse_old(file, "of the form that PyTorch wrote before 1.6");
}

tern_status io_torch_tar_open(tern_file *file)
{
    return refuse_old(file, "a tar, which PyTorch wrote before 0.1.10");
}
