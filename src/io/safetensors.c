/* safetensors.c -- the header of a safetensors file: read, and checked before anything is made of it.
 *
 *   u64 little-endian N | N bytes of JSON | data
 *
 * Offsets count from the first byte of data, which tensors cover without holes and overlaps. */
#include "io/file.h"
#include "io/json.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADER = 100000000, MOST_VALUE = 4096, MOST_DEPTH = 2, LENGTH = 8 };

typedef struct header {
    tern_file *file;
    uint64_t data; /* where it begins in the file, and how long it is */
    uint64_t bytes;
    bool has_metadata;
    const char *text;
    const io_json *json; /* what is walked now */
} header;

static tern_status bad_json(void *user, size_t at, const char *what)
{
    const header *h = user;
    at += (size_t)(h->json->text - h->text) + LENGTH;
    return io_bad(h->file, 0, "invalid JSON in header: %s at byte %zu", what, at);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static tern_status take_note(void *user, const io_member *m)
{
    header *h = user;
    if (tern_state_dict_metadata(h->file->notes, m->key))
        return io_bad(h->file, 0, "invalid JSON in header: \"%s\" twice in __metadata__",
                      IO_SHOW(m->key));
    json_error_t error;
    json_t *text = m->depth ? NULL : json_loadb(m->value, m->n, JSON_DECODE_ANY, &error);
    if (!json_is_string(text)) {
        json_decref(text);
        return io_bad(h->file, 0, "invalid JSON in header: \"%s\" of __metadata__ is no text",
                      IO_SHOW(m->key));
    }
    tern_status status =
        tern_state_dict_set_metadata(h->file->notes, m->key, json_string_value(text));
    json_decref(text);
    return status;
}

static tern_status take_metadata(header *h, const io_member *m)
{
    if (h->has_metadata)
        return io_bad(h->file, 0, "invalid JSON in header: __metadata__ twice");
    h->has_metadata = true;
    const io_json *outer = h->json;
    io_json json = {m->value, m->n, bad_json, take_note, h};
    h->json = &json;
    tern_status status = io_json_walk(&json);
    h->json = outer;
    return status;
}

/* ---- tensors ----------------------------------------------------------------------------- */

/* The bytes of a tensor; false where they can't be counted, also where a dim is 0, or are no whole
 * number of them. */
static bool count_bytes(const io_type *type, const int64_t *dims, int ndim, uint64_t *bytes)
{
    uint64_t n = (uint64_t)type->bits;
    bool empty = false;
    for (int i = 0; i < ndim; i++) {
        empty = empty || !dims[i];
        if (dims[i] && __builtin_mul_overflow(n, (uint64_t)dims[i], &n))
            return false;
    }
    *bytes = empty ? 0 : n / 8;
    return n <= INT64_MAX && (empty || n % 8 == 0);
}

/* Whole numbers of an array into to; how many, or -1. */
static int take_numbers(const json_t *array, int64_t *to, size_t most)
{
    if (!json_is_array(array) || json_array_size(array) > most)
        return -1;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return -1;
        to[i] = json_integer_value(number);
    }
    return (int)json_array_size(array);
}

static tern_status take_info(header *h, const char *name, const json_t *info)
{
    int64_t dims[TERN_MAX_DIMS], offsets[2];
    const char *dtype = json_string_value(json_object_get(info, "dtype"));
    const json_t *shape = json_object_get(info, "shape");
    int ndim = take_numbers(shape, dims, TERN_MAX_DIMS);
    const char *what = !json_is_object(info) || json_object_size(info) != 3 || !dtype
                           ? "dtype, shape and data_offsets are expected"
                       : ndim < 0 && json_array_size(shape) > TERN_MAX_DIMS
                           ? "it has more than 12 dims"
                       : ndim < 0 ? "shape is no list of whole numbers"
                       : take_numbers(json_object_get(info, "data_offsets"), offsets, 2) != 2
                           ? "data_offsets are no two whole numbers"
                           : NULL;
    const io_type *type = what ? NULL : io_type_named(dtype);
    if (!what && !type)
        return io_bad(h->file, 0, "invalid JSON in header: tensor `%s` has the unknown dtype %s",
                      IO_SHOW(name), IO_SHOW(dtype));
    if (what)
        return io_bad(h->file, 0, "invalid JSON in header: tensor `%s`: %s", IO_SHOW(name), what);
    uint64_t bytes, begin = (uint64_t)offsets[0], end = (uint64_t)offsets[1];
    if (!count_bytes(type, dims, ndim, &bytes))
        return io_bad(
            h->file, 0,
            "overflow computing buffer size from shape and/or element type of tensor `%s`",
            IO_SHOW(name));
    if (begin > end || end > h->bytes)
        return io_bad(h->file, 0,
                      "invalid offset for tensor `%s`: %llu to %llu of %llu bytes of data",
                      IO_SHOW(name), (unsigned long long)begin, (unsigned long long)end,
                      (unsigned long long)h->bytes);
    if (bytes != end - begin)
        return io_bad(h->file, 0,
                      "invalid shape, data type, or offset for tensor `%s`: it has %llu bytes at "
                      "offset %llu, its shape %llu",
                      IO_SHOW(name), (unsigned long long)(end - begin), (unsigned long long)begin,
                      (unsigned long long)bytes);
    io_entry *e = io_add_entry(h->file, name, type, dims, ndim, false);
    if (!e)
        return tern_last_status();
    e->at = h->data + begin;
    e->bytes = bytes;
    return TERN_OK;
}

static tern_status take_member(void *user, const io_member *m)
{
    header *h = user;
    if (strcmp(m->key, "__metadata__") == 0)
        return take_metadata(h, m);
    if (!*m->key)
        return io_bad(h->file, 0, "a tensor without a name");
    if (tern_keys_find(&h->file->keys, m->key) >= 0)
        return io_bad(h->file, 0, "tensor `%s` is there twice", IO_SHOW(m->key));
    if (m->n > MOST_VALUE || m->depth > MOST_DEPTH)
        return io_bad(h->file, 0, "invalid JSON in header: what is said of tensor `%s` is too long",
                      IO_SHOW(m->key));
    json_t *info = io_json_value(h->json, m);
    tern_status status = info ? take_info(h, m->key, info) : tern_last_status();
    json_decref(info);
    return status;
}

/* ---- the whole --------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const io_entry *x = *(const io_entry *const *)a, *y = *(const io_entry *const *)b;
    return x->at != y->at ? (x->at > y->at ? 1 : -1)
                          : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Whether the tensors cover the data. */
static tern_status check_cover(const header *h)
{
    const tern_file *file = h->file;
    size_t n = (size_t)file->count;
    const io_entry **sorted = tern_grow(NULL, sizeof *sorted * (n + 1));
    if (!sorted)
        return TERN_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &file->entries[i];
    qsort(sorted, n, sizeof *sorted, by_place);
    uint64_t at = h->data;
    tern_status status = TERN_OK;
    for (size_t i = 0; i < n && status == TERN_OK; i++) {
        if (sorted[i]->at != at)
            status = io_bad(file, 0,
                            "invalid offset for tensor `%s`: it begins at %llu of the data, "
                            "what is before it ends at %llu",
                            IO_SHOW(sorted[i]->name), (unsigned long long)(sorted[i]->at - h->data),
                            (unsigned long long)(at - h->data));
        at += sorted[i]->bytes;
    }
    tern_free(sorted);
    if (status == TERN_OK && at != h->data + h->bytes)
        return io_bad(
            file, 0,
            "incomplete metadata, file not fully covered: tensors end at %llu of %llu bytes "
            "of data",
            (unsigned long long)(at - h->data), (unsigned long long)h->bytes);
    return status;
}

tern_status io_safetensors_open(tern_file *file)
{
    unsigned char length[LENGTH];
    uint64_t n = 0, size = file->parts[0].size;
    if (size < LENGTH)
        return io_bad(file, 0, "header too small: the file has %llu bytes",
                      (unsigned long long)size);
    TERN_TRY(io_read_at(file, 0, 0, length, LENGTH, "header"));
    for (int i = LENGTH - 1; i >= 0; i--)
        n = n << 8 | length[i];
    if (n > MOST_HEADER)
        return io_bad(file, 0, "header too large: %llu bytes", (unsigned long long)n);
    if (n > size - LENGTH)
        return io_bad(file, 0, "invalid header length: %llu bytes, the file has %llu",
                      (unsigned long long)n, (unsigned long long)size);
    char *text = tern_grow(NULL, (size_t)n + 1);
    if (!text)
        return TERN_ERR_MEMORY;
    header h = {.file = file, .data = LENGTH + n, .bytes = size - LENGTH - n, .text = text};
    io_json json = {text, (size_t)n, bad_json, take_member, &h};
    h.json = &json;
    tern_status status = io_read_at(file, 0, LENGTH, text, (size_t)n, "header");
    if (status == TERN_OK)
        status = io_json_walk(&json);
    tern_free(text);
    return status == TERN_OK ? check_cover(&h) : status;
}
