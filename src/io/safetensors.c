/* safetensors.c -- reads the header of a safetensors file, all of it checked.
 *
 *   u64 little-endian N | N bytes of JSON | data
 *
 * Offsets count from the first byte of data. The tensors cover the data without holes and
 * overlaps. */
#include "io/file.h"
#include "io/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADER = 100000000, MOST_VALUE = 4096, MOST_DEPTH = 2, LENGTH = 8 };

typedef struct header {
    tern_file *file;
    uint64_t data; /* offset and length of the data in the file */
    uint64_t bytes;
    bool has_metadata;
    const char *text;
    const io_json *json; /* the object that is read now */
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

/* Counts the bytes of a tensor. Returns false on overflow, also if a dim is 0, or if the bits are
 * no whole number of bytes. */
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

/* The header's entry of a tensor. */
typedef struct info {
    const char *dtype; /* n bytes */
    size_t n;
    int64_t dims[TERN_MAX_DIMS], offsets[2];
    int ndim;
} info;

/* Writes an array's non-negative integers to `to`. Returns their number, or -1. */
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

/* Reads an entry that jansson has parsed. Returns an error text, or NULL. */
static const char *read_info(const json_t *value, info *i)
{
    const json_t *shape = json_object_get(value, "shape");
    i->dtype = json_string_value(json_object_get(value, "dtype"));
    if (!json_is_object(value) || json_object_size(value) != 3 || !i->dtype)
        return "dtype, shape and data_offsets are expected";
    i->n = strlen(i->dtype);
    i->ndim = take_numbers(shape, i->dims, TERN_MAX_DIMS);
    if (i->ndim < 0)
        return json_array_size(shape) > TERN_MAX_DIMS ? "it has more than 12 dims"
                                                      : "shape is no list of whole numbers";
    return take_numbers(json_object_get(value, "data_offsets"), i->offsets, 2) == 2
               ? NULL
               : "data_offsets are no two whole numbers";
}

/* The next functions read the form that all common writers produce, without jansson. They return
 * false or -1 for others, which jansson reads. */
static bool pass(const char **at, const char *end, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(end - *at) < n || memcmp(*at, text, n) != 0)
        return false;
    *at += n;
    return true;
}

static int pass_numbers(const char **at, const char *end, int64_t *to, int most)
{
    enum { DIGITS = 18 };
    int count = 0;
    while (!pass(at, end, "]")) {
        const char *begin = *at;
        if (count == most)
            return -1;
        for (to[count] = 0; *at < end && **at >= '0' && **at <= '9' && *at - begin < DIGITS; ++*at)
            to[count] = to[count] * 10 + (**at - '0');
        if (*at == begin || (*begin == '0' && *at - begin > 1))
            return -1;
        count++;
        if (!pass(at, end, ",") && !(*at < end && **at == ']'))
            return -1;
        if ((*at)[-1] == ',' && *at < end && **at == ']')
            return -1;
    }
    return count;
}

static bool read_usual_info(const io_member *m, info *i)
{
    const char *at = m->value, *end = m->value + m->n;
    if (!pass(&at, end, "{\"dtype\":\""))
        return false;
    for (i->dtype = at;
         at < end && ((*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '_'); at++)
        ;
    i->n = (size_t)(at - i->dtype);
    if (!pass(&at, end, "\",\"shape\":["))
        return false;
    i->ndim = pass_numbers(&at, end, i->dims, TERN_MAX_DIMS);
    return i->ndim >= 0 && pass(&at, end, ",\"data_offsets\":[") &&
           pass_numbers(&at, end, i->offsets, 2) == 2 && pass(&at, end, "}") && at == end;
}

static tern_status take_info(header *h, const char *name, const info *i)
{
    char dtype[32];
    snprintf(dtype, sizeof dtype, "%.*s", i->n < 31 ? (int)i->n : 31, i->dtype);
    const io_type *type = i->n < sizeof dtype ? io_type_named(dtype) : NULL;
    if (!type)
        return io_bad(h->file, 0, "invalid JSON in header: tensor `%s` has the unknown dtype %s",
                      IO_SHOW(name), io_show(i->dtype, i->n).text);
    uint64_t bytes, begin = (uint64_t)i->offsets[0], end = (uint64_t)i->offsets[1];
    if (!count_bytes(type, i->dims, i->ndim, &bytes))
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
    io_entry *e = io_add_entry(h->file, name, type, i->dims, i->ndim, false);
    if (!e)
        return tern_last_status();
    e->at = h->data + begin;
    e->bytes = bytes;
    return TERN_OK;
}

static tern_status take_tensor(header *h, const io_member *m)
{
    info i;
    if (read_usual_info(m, &i))
        return take_info(h, m->key, &i);
    json_t *value = io_json_value(h->json, m);
    if (!value)
        return tern_last_status();
    const char *what = read_info(value, &i);
    tern_status status =
        what ? io_bad(h->file, 0, "invalid JSON in header: tensor `%s`: %s", IO_SHOW(m->key), what)
             : take_info(h, m->key, &i);
    json_decref(value);
    return status;
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
    return take_tensor(h, m);
}

/* ---- the whole header ------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const io_entry *x = *(const io_entry *const *)a, *y = *(const io_entry *const *)b;
    return x->at != y->at ? (x->at > y->at ? 1 : -1)
                          : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Fails unless the tensors cover the data. */
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
        return io_bad(file, 0,
                      "header too large: %llu bytes; or it is no file of a kind that tern reads "
                      "(safetensors, GGUF, PyTorch's, NumPy's)",
                      (unsigned long long)n);
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
