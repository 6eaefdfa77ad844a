/* torch_tar.c -- reads files of torch.save from before 0.1.10: a tar of sys_info, storages, tensors
 * and pickle.
 *
 *   storages  n; n times (key, location, TYPE), u64 elements, the elements; [(view key, root key,
 *             offset, elements)]
 *   tensors   n; n times (key, storage key, type), i32 dims, i32 nothing, i64 sizes, i64 strides,
 *             i64 offset
 *   pickle    the object, in which a tensor is the text of its key
 *
 * Numbers and parts in brackets are pickles. */
#include "io/torch.h"
#include "io/torch_pickles.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LEAST_RECORD: the pickle of a storage or tensor is longer, as it has the name of a class. */
enum { BLOCK = 512, LEAST_RECORD = 32, SYS_INFO = 0, STORAGES, TENSORS, PICKLE, MEMBERS };
static const char *const names[MEMBERS] = {"sys_info", "storages", "tensors", "pickle"};

typedef struct storage {
    int64_t key;
    int type;
    uint64_t at, bytes;
} storage;

typedef struct tensor {
    int64_t key, storage;
    io_geometry geometry;
} tensor;

typedef struct tar {
    io_checkpoint c;
    uint64_t at[MEMBERS], size[MEMBERS]; /* offsets and sizes of the members */
    storage *storages;
    tensor *tensors;
    int n_storages, n_tensors;
} tar;

static int by_key(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the records of member k by key. Fails if two have the same key. */
static tern_status sort(const tar *t, int k, void *records, int n, size_t size)
{
    const char *at = records;
    qsort(records, (size_t)n, size, by_key);
    for (int i = 1; i < n; i++, at += size)
        if (by_key(at, at + size) == 0)
            return io_bad(t->c.file, 0, "%s: the key %lld is there twice", names[k],
                          (long long)*(const int64_t *)(const void *)at);
    return TERN_OK;
}

/* Runs the pickle of member k at a place of the file. The caller frees *p by io_pickle_free. */
static tern_status run(const tar *t, int k, uint64_t at, io_pickle *p, int *root)
{
    *p = (io_pickle){.file = t->c.file,
                     .what = names[k],
                     .more = io_torch_more,
                     .persistent = io_pickle_storage,
                     .from = at,
                     .end = t->at[k] + t->size[k]};
    return io_pickle_run(p, root);
}

/* Reads a number of records of member k at *at, and moves *at behind it. */
static tern_status run_count(const tar *t, int k, uint64_t *at, int *n)
{
    io_pickle p;
    int root;
    tern_status status = run(t, k, *at, &p, &root);
    const io_value *v = status == TERN_OK ? &p.values[root] : NULL;
    if (v && (v->kind != IO_INT || v->is.integer < 0 || v->is.integer > INT32_MAX ||
              (uint64_t)v->is.integer > t->size[k] / LEAST_RECORD))
        status = io_pickle_bad(&p, "it is no number of records that fit");
    if (status == TERN_OK) {
        *n = (int)v->is.integer;
        *at += p.at;
    }
    io_pickle_free(&p);
    return status;
}

/* ---- members --------------------------------------------------------------------------------- */

static tern_status find_members(tar *t)
{
    char head[BLOCK + 1] = {0};
    const uint64_t all = t->c.file->parts[0].size;
    for (uint64_t at = 0; at + BLOCK <= all;) {
        TERN_TRY(io_read_at(t->c.file, 0, at, head, BLOCK, "a header of the tar"));
        if (!*head)
            break;
        char octal[13] = {0};
        memcpy(octal, head + 124, 12);
        const uint64_t size = strtoull(octal, NULL, 8);
        if (size > all - at - BLOCK)
            return io_bad(t->c.file, 0, "a member of the tar goes beyond its end");
        head[100] = '\0';
        for (int k = 0; k < MEMBERS; k++)
            if (strcmp(head, names[k]) == 0) {
                t->at[k] = at + BLOCK;
                t->size[k] = size;
            }
        at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    for (int k = 0; k < MEMBERS; k++)
        if (!t->at[k])
            return io_bad(t->c.file, 0,
                          "it is a tar archive and none of PyTorch's: it has no %s; "
                          "tern_datasets_tar reads one of samples, otherwise unpack it",
                          names[k]);
    return TERN_OK;
}

static tern_status check_system(const tar *t)
{
    io_pickle p;
    int root;
    tern_status status = run(t, SYS_INFO, t->at[SYS_INFO], &p, &root);
    if (status == TERN_OK)
        status = io_torch_check_system(&p, root);
    io_pickle_free(&p);
    return status;
}

/* ---- storages -------------------------------------------------------------------------------- */

static tern_status take_storage(const tar *t, io_pickle *p, int root, storage *s)
{
    const io_value *id = &p->values[root];
    const io_value *key = id->kind == IO_TUPLE ? io_item(p, id, 0, IO_INT) : NULL;
    const io_value *type = key ? io_item(p, id, 2, IO_GLOBAL) : NULL;
    if (!type || !io_torch_type_at(type->is.global.number - G_TYPES))
        return io_pickle_bad(p, "a storage of no key or no type");
    s->key = key->is.integer;
    s->type = type->is.global.number - G_TYPES;
    TERN_TRY(io_pickle_take_number(p, 8, &s->bytes));
    s->at = p->from + p->at;
    const uint64_t left = t->at[STORAGES] + t->size[STORAGES] - s->at;
    if (__builtin_mul_overflow(s->bytes, (uint64_t)io_torch_type_at(s->type)->bytes, &s->bytes) ||
        s->bytes > left)
        return io_pickle_bad(p, "the file ends within a storage");
    return TERN_OK;
}

/* PyTorch had no use for views of storages, as tensors have offsets. */
static tern_status check_views(const tar *t, uint64_t at)
{
    io_pickle p;
    int root;
    tern_status status = run(t, STORAGES, at, &p, &root);
    if (status == TERN_OK && (p.values[root].kind != IO_LIST || p.values[root].count))
        status = io_pickle_bad(&p, "storages that are parts of others are not read: load the file "
                                   "with PyTorch and save it again");
    io_pickle_free(&p);
    return status;
}

static tern_status read_storages(tar *t)
{
    uint64_t at = t->at[STORAGES];
    int n = 0;
    TERN_TRY(run_count(t, STORAGES, &at, &n));
    t->storages = tern_alloc(sizeof *t->storages * ((size_t)n + 1));
    if (!t->storages)
        return TERN_ERR_MEMORY;
    for (; t->n_storages < n; t->n_storages++) {
        storage *s = &t->storages[t->n_storages];
        io_pickle p;
        int root;
        tern_status status = run(t, STORAGES, at, &p, &root);
        if (status == TERN_OK)
            status = take_storage(t, &p, root, s);
        io_pickle_free(&p);
        TERN_TRY(status);
        at = s->at + s->bytes;
    }
    TERN_TRY(sort(t, STORAGES, t->storages, n, sizeof *t->storages));
    return check_views(t, at);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static tern_status take_i64(io_pickle *p, int64_t *to)
{
    uint64_t number = 0;
    TERN_TRY(io_pickle_take_number(p, 8, &number));
    *to = (int64_t)number;
    return *to >= 0 ? TERN_OK : io_pickle_bad(p, "a size, stride or offset that is negative");
}

static tern_status take_tensor(io_pickle *p, int root, tensor *x)
{
    const io_value *id = &p->values[root];
    const io_value *key = id->kind == IO_TUPLE ? io_item(p, id, 0, IO_INT) : NULL;
    const io_value *of = key ? io_item(p, id, 1, IO_INT) : NULL;
    uint64_t ndim = 0, nothing = 0;
    int64_t offset = 0;
    if (!of)
        return io_pickle_bad(p, "a tensor of no key or no storage");
    x->key = key->is.integer;
    x->storage = of->is.integer;
    TERN_TRY(io_pickle_take_number(p, 4, &ndim));
    TERN_TRY(io_pickle_take_number(p, 4, &nothing));
    if (ndim > TERN_MAX_DIMS)
        return io_pickle_bad(p, "a tensor of more than 12 dims");
    x->geometry.ndim = (int)ndim;
    for (int i = 0; i < 2 * (int)ndim; i++)
        TERN_TRY(take_i64(p, &x->geometry.numbers[i]));
    TERN_TRY(take_i64(p, &offset));
    x->geometry.offset = (uint64_t)offset;
    return TERN_OK;
}

static tern_status read_tensors(tar *t)
{
    uint64_t at = t->at[TENSORS];
    int n = 0;
    TERN_TRY(run_count(t, TENSORS, &at, &n));
    t->tensors = tern_alloc(sizeof *t->tensors * ((size_t)n + 1));
    if (!t->tensors)
        return TERN_ERR_MEMORY;
    for (; t->n_tensors < n; t->n_tensors++) {
        io_pickle p;
        int root;
        tern_status status = run(t, TENSORS, at, &p, &root);
        if (status == TERN_OK)
            status = take_tensor(&p, root, &t->tensors[t->n_tensors]);
        at += p.at;
        io_pickle_free(&p);
        TERN_TRY(status);
    }
    return sort(t, TENSORS, t->tensors, n, sizeof *t->tensors);
}

/* ---- the object ------------------------------------------------------------------------------ */

/* Returns a new tuple of integers, not pushed, or -1 after an error. */
static int new_tuple(io_pickle *p, const int64_t *numbers, int n)
{
    int tuple = io_pickle_new(p, (io_value){.kind = IO_TUPLE});
    for (int i = 0; i < n && tuple >= 0; i++) {
        int item = io_pickle_new(p, (io_value){.kind = IO_INT, .is.integer = numbers[i]});
        if (item < 0 || io_pickle_add(p, tuple, item) != TERN_OK)
            return -1;
    }
    return tuple;
}

/* Pushes the tensor for the text of its key, or the class of (class, file, source). */
static tern_status take_id(io_pickle *p, int value)
{
    const tar *t = p->user;
    const io_value *id = &p->values[value];
    char text[24] = "", *end;
    if (id->kind == IO_TUPLE && io_item(p, id, 0, IO_GLOBAL))
        return io_pickle_push_old(p, id->is.items[0]);
    if (id->kind == IO_TEXT && (size_t)id->count < sizeof text)
        memcpy(text, io_text_of(p, id), (size_t)id->count);
    const int64_t key = strtoll(text, &end, 10);
    const tensor *x = bsearch(&key, t->tensors, (size_t)t->n_tensors, sizeof *x, by_key);
    const storage *s =
        x ? bsearch(&x->storage, t->storages, (size_t)t->n_storages, sizeof *s, by_key) : NULL;
    if (end == text || *end || !s)
        return io_pickle_bad(p, "a persistent id that is no tensor");
    const io_geometry *g = &x->geometry;
    io_value storage_value = {.kind = IO_STORAGE}, v = {.kind = IO_TENSOR};
    storage_value.is.storage.type = v.is.tensor.type = s->type;
    storage_value.is.storage.count = s - t->storages; /* the storage's index, for find */
    storage_value.is.storage.view = -1;
    v.is.tensor.storage = io_pickle_new(p, storage_value);
    v.is.tensor.size = new_tuple(p, g->numbers, g->ndim);
    v.is.tensor.stride = new_tuple(p, g->numbers + g->ndim, g->ndim);
    v.is.tensor.offset = (int64_t)g->offset;
    if (v.is.tensor.storage < 0 || v.is.tensor.size < 0 || v.is.tensor.stride < 0)
        return tern_last_status();
    return io_pickle_push(p, v);
}

static tern_status find(io_checkpoint *c, const char *name, const io_value *value, io_place *place)
{
    const storage *s = &((const tar *)c)->storages[value->is.storage.count];
    (void)name;
    *place = (io_place){0, s->at, s->bytes};
    return TERN_OK;
}

static tern_status open_tar(tar *t)
{
    int root;
    TERN_TRY(find_members(t));
    TERN_TRY(check_system(t));
    TERN_TRY(read_storages(t));
    TERN_TRY(read_tensors(t));
    t->c.pickle = (io_pickle){.file = t->c.file,
                              .what = names[PICKLE],
                              .more = io_torch_more,
                              .persistent = take_id,
                              .user = t,
                              .from = t->at[PICKLE],
                              .end = t->at[PICKLE] + t->size[PICKLE]};
    TERN_TRY(io_pickle_run(&t->c.pickle, &root));
    return io_torch_entries(&t->c, root);
}

tern_status io_torch_tar_open(tern_file *file)
{
    tar t = {.c = {.file = file, .find = find}};
    tern_status status = open_tar(&t);
    io_torch_free(&t.c);
    tern_free(t.storages);
    tern_free(t.tensors);
    return status;
}
