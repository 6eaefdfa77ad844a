/* torch_export.c -- reads archives of torch.export.save (.pt2): records of raw storages, and a JSON
 * text that describes them.
 *
 *   {"config": {"0.weight": {"path_name": "weight_0", "use_pickle": false, "tensor_meta": {"dtype":
 *       7, "sizes": ...}}}} */
#include "io/json.h"
#include "io/torch.h"
#include <stdio.h>
#include <string.h>

enum { MOST_CONFIG = 64 << 20, MOST_VALUE = 16384, MOST_RECORD = 200 };

typedef struct config {
    tern_file *file;
    const tern_keys *members;
    const char *stem;
    bool is_there;     /* "config" was read */
    uint64_t expanded; /* bytes of expanded tensors (torch.h) */
    tern_text passed;  /* names of pickled weights, which are not read */
} config;

static tern_status bad_json(void *user, size_t at, const char *what)
{
    const config *c = user;
    return io_bad(c->file, 0, "model_weights_config.json at byte %zu: %s", at, what);
}

/* Returns the name of a dtype by its number in torch.export's schema, or NULL. */
static const char *dtype_of(json_int_t number)
{
    static const char *const names[] = {
        [1] = "uint8",
        [2] = "int8",
        [3] = "int16",
        [4] = "int32",
        [5] = "int64",
        [6] = "float16",
        [7] = "float32",
        [8] = "float64",
        [9] = "complex32",
        [10] = "complex64",
        [11] = "complex128",
        [12] = "bool",
        [13] = "bfloat16",
        [28] = "uint16",
        [29] = "float8_e4m3fn",
        [30] = "float8_e5m2",
        [31] = "float8_e4m3fnuz",
        [32] = "float8_e5m2fnuz",
        [33] = "float8_e8m0fnu",
        [34] = "uint32",
        [35] = "uint64",
    };
    const bool known = number > 0 && number < (json_int_t)(sizeof names / sizeof *names);
    return known ? names[number] : NULL;
}

/* Reads a non-negative integer, {"as_int": 4} in the schema. Returns false for anything else. */
static bool whole(const json_t *value, int64_t *to)
{
    const json_t *number = json_object_get(value, "as_int");
    *to = json_is_integer(number) ? json_integer_value(number) : -1;
    return *to >= 0;
}

/* Reads a list of sizes or strides. Returns its length, or -1 if it is no list of non-negative
 * integers. */
static int take_numbers(const json_t *list, int64_t *to)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > TERN_MAX_DIMS)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!whole(json_array_get(list, i), &to[i]))
            return -1;
    return (int)n;
}

static const io_torch_type *type_named(const char *dtype)
{
    for (int i = 0; io_torch_type_at(i); i++)
        if (strcmp(io_torch_type_at(i)->dtype, dtype) == 0)
            return io_torch_type_at(i);
    return NULL;
}

static tern_status add_tensor(config *c, const char *name, const json_t *about, const char *record)
{
    const json_t *meta = json_object_get(about, "tensor_meta");
    const json_t *number = json_object_get(meta, "dtype");
    const char *dtype = json_is_integer(number) ? dtype_of(json_integer_value(number)) : NULL;
    const io_torch_type *type = dtype ? type_named(dtype) : NULL;
    io_geometry g;
    io_entry *e;
    io_member_facts facts;
    int64_t offset = 0;
    bool found = false;
    char path[MOST_RECORD + 32];
    g.ndim = take_numbers(json_object_get(meta, "sizes"), g.numbers);
    if (g.ndim < 0 ||
        take_numbers(json_object_get(meta, "strides"), g.numbers + g.ndim) != g.ndim ||
        !whole(json_object_get(meta, "storage_offset"), &offset))
        return io_torch_bad_tensor(c->file, name, "sizes, strides and an offset are expected");
    if (!type) {
        e = io_add_entry(c->file, name, NULL, g.numbers, g.ndim, false);
        if (e)
            snprintf(e->foreign, sizeof e->foreign, "%s", dtype ? dtype : "?");
        return e ? TERN_OK : tern_last_status();
    }
    snprintf(path, sizeof path, "data/weights/%s", record);
    TERN_TRY(io_torch_member(c->file, c->members, c->stem, path, &facts, &found));
    if (!found)
        return io_torch_bad_tensor(c->file, name, "its record is not in the archive");
    g.offset = (uint64_t)offset;
    const io_place place = {(int)facts.index, 0, facts.size};
    return io_torch_tensor(c->file, name, type, &g, &place, &c->expanded, &e);
}

static tern_status take_weight(void *user, const io_member *m)
{
    config *c = user;
    json_error_t error;
    json_t *about =
        m->n > MOST_VALUE ? NULL : json_loadb(m->value, m->n, JSON_REJECT_DUPLICATES, &error);
    const char *record = json_string_value(json_object_get(about, "path_name"));
    tern_status status = TERN_OK;
    if (!record || strlen(record) > MOST_RECORD || strchr(record, '/') || !*m->key ||
        tern_keys_find(&c->file->keys, m->key) >= 0)
        status = io_torch_bad_tensor(c->file, m->key,
                                     "it is there twice, or has no plain name of a record");
    else if (json_is_true(json_object_get(about, "use_pickle")))
        tern_text_add(&c->passed, "%s%s", c->passed.length ? ", " : "", IO_SHOW(m->key));
    else
        status = add_tensor(c, m->key, about, record);
    json_decref(about);
    return status;
}

static tern_status take_config(void *user, const io_member *m)
{
    config *c = user;
    if (strcmp(m->key, "config") != 0)
        return TERN_OK;
    if (c->is_there)
        return io_bad(c->file, 0, "model_weights_config.json: config is there twice");
    c->is_there = true;
    const io_json json = {m->value, m->n, bad_json, take_weight, c};
    return io_json_walk(&json);
}

static tern_status read_config(config *c, char *text, const io_member_facts *facts)
{
    size_t n;
    TERN_TRY(io_zip_read(c->file, facts, text, (size_t)facts->size, &n, true));
    const io_json json = {text, n, bad_json, take_config, c};
    TERN_TRY(io_json_walk(&json));
    if (!c->is_there)
        return io_bad(c->file, 0, "model_weights_config.json has no config");
    if (c->passed.failed)
        return TERN_ERR_MEMORY;
    return c->passed.length
               ? tern_state_dict_set_metadata(c->file->notes, "__opaque__", c->passed.data)
               : TERN_OK;
}

tern_status io_torch_export_open(tern_file *file, const tern_keys *members, const char *stem)
{
    config c = {.file = file, .members = members, .stem = stem};
    io_member_facts facts;
    bool found;
    TERN_TRY(io_torch_member(file, members, stem, "data/weights/model_weights_config.json", &facts,
                             &found));
    if (!found)
        return io_bad(file, 0,
                      "it is a .pt2 whose weights are not those of a model called `model`: save "
                      "the program's state_dict() with torch.save");
    if (facts.size > MOST_CONFIG)
        return io_bad(file, 0, "model_weights_config.json is too large: %llu bytes",
                      (unsigned long long)facts.size);
    char *text = tern_grow(NULL, (size_t)facts.size + 1);
    if (!text)
        return TERN_ERR_MEMORY;
    tern_status status = read_config(&c, text, &facts);
    tern_text_free(&c.passed);
    tern_free(text);
    return status;
}
