/* torch_entries.c -- turns the values of a pickle into names, tensors and metadata.
 *
 * Names are keys, indices and attributes joined by dots: optimizer.state.0.exp_avg. A pickled
 * nn.Module has the names of its state_dict. A shared value is visited under each of its names, a
 * value that contains itself once. */
#include "io/save.h"
#include "base/os.h"
#include "io/torch.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 256, MOST_NOTE = 1 << 20, MOST_OPAQUE = 4096 };

tern_status io_torch_bad_tensor(const tern_file *file, const char *name, const char *what)
{
    return io_bad(file, 0, "tensor `%s`: %s", IO_SHOW(name), what);
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct extent {
    uint64_t numel, span; /* numel: elements; span: from the first to the last in memory */
    bool is_dense;
} extent;

static bool measure(const io_geometry *g, uint64_t in_storage, extent *e)
{
    uint64_t row = 1;
    *e = (extent){1, 1, true};
    for (int i = g->ndim - 1; i >= 0; i--) {
        uint64_t size = (uint64_t)g->numbers[i], stride = (uint64_t)g->numbers[g->ndim + i], reach;
        if (__builtin_mul_overflow(e->numel, size, &e->numel))
            return false;
        if (size > 1 && (__builtin_mul_overflow(size - 1, stride, &reach) ||
                         __builtin_add_overflow(e->span, reach, &e->span)))
            return false;
        e->is_dense = e->is_dense && (size <= 1 || stride == row);
        if (size && __builtin_mul_overflow(row, size, &row))
            return false;
    }
    if (!e->numel)
        *e = (extent){0, 0, true};
    return e->span <= in_storage && g->offset <= in_storage - e->span;
}

tern_status io_torch_tensor(tern_file *file, const char *name, const io_torch_type *type,
                            const io_geometry *g, const io_place *storage, uint64_t *needed,
                            io_entry **entry)
{
    const uint64_t size = (uint64_t)type->bytes;
    extent x;
    if (!*name || !io_is_utf8(name) || tern_keys_find(&file->keys, name) >= 0)
        return io_torch_bad_tensor(file, name, "it is there twice, or has no name");
    if (!measure(g, storage->bytes / size, &x))
        return io_torch_bad_tensor(file, name,
                                   "sizes, strides and offset do not fit into its storage");
    const io_type *known = io_type_named(type->type); /* types that tern lacks are never read by
                                                         strides */
    io_entry *e = io_add_entry(file, name, known, g->numbers, g->ndim, known && !x.is_dense);
    if (!e)
        return tern_last_status();
    e->part = storage->part;
    e->at = storage->at + g->offset * size;
    e->bytes = x.span * size;
    snprintf(e->foreign, sizeof e->foreign, "%s", type->dtype);
    if (x.numel > x.span) {
        uint64_t bytes;
        if (__builtin_mul_overflow(x.numel, size, &bytes) ||
            bytes > file->parts[0].size + ((uint64_t)64 << 20) - *needed)
            e->refused = io_refusal_text(IO_EXPANDED);
        else
            *needed += bytes;
    }
    *entry = e;
    return TERN_OK;
}

/* Reads the sizes or strides of a tensor. Returns their number, or -1 after an error. */
static int take_numbers(const io_checkpoint *c, const char *name, int tuple, int64_t *to)
{
    const io_value *v = &c->pickle.values[tuple];
    for (int i = 0; i < v->count && v->count <= TERN_MAX_DIMS; i++) {
        const io_value *number = &c->pickle.values[v->is.items[i]];
        to[i] = number->kind == IO_INT ? number->is.integer : -1;
        if (to[i] < 0) {
            io_torch_bad_tensor(c->file, name,
                                "a size or stride that is negative, or no whole number");
            return -1;
        }
    }
    if (v->count <= TERN_MAX_DIMS)
        return v->count;
    io_torch_bad_tensor(c->file, name, "it has more than 12 dims");
    return -1;
}

/* Finds the bytes of a storage, or of the part of it that its view names. */
static tern_status find_storage(io_checkpoint *c, const char *name, const io_value *storage,
                                io_place *place)
{
    const io_pickle *p = &c->pickle;
    const io_torch_type *type = io_torch_type_at(storage->is.storage.type);
    const uint64_t size = type ? (uint64_t)type->bytes : 1;
    TERN_TRY(c->find(c, name, storage, place));
    if (storage->is.storage.view < 0)
        return TERN_OK;
    const io_value *view = &p->values[storage->is.storage.view];
    const io_value *offset = io_item(p, view, 1, IO_INT), *count = io_item(p, view, 2, IO_INT);
    const uint64_t all = place->bytes / size;
    if (!offset || !count || offset->is.integer < 0 || count->is.integer < 0 ||
        (uint64_t)count->is.integer > all ||
        (uint64_t)offset->is.integer > all - (uint64_t)count->is.integer)
        return io_torch_bad_tensor(c->file, name, "its storage is no part of the other one");
    place->at += (uint64_t)offset->is.integer * size;
    place->bytes = (uint64_t)count->is.integer * size;
    return TERN_OK;
}

static tern_status add_refused(io_checkpoint *c, io_refusal why)
{
    const char *name = c->name;
    if (!*name || !io_is_utf8(name) || tern_keys_find(&c->file->keys, name) >= 0)
        return io_torch_bad_tensor(c->file, name, "it is there twice, or has no name");
    io_entry *e = io_add_entry(c->file, name, NULL, NULL, 0, false);
    if (!e)
        return tern_last_status();
    e->refused = io_refusal_text(why);
    snprintf(e->foreign, sizeof e->foreign, "?");
    return TERN_OK;
}

static tern_status add_tensor(io_checkpoint *c, const io_value *tensor)
{
    const char *name = c->name;
    io_geometry g = {.offset = (uint64_t)tensor->is.tensor.offset};
    io_entry *e;
    io_place place;
    if (tensor->is.tensor.storage < 0)
        return add_refused(c, (io_refusal)tensor->refusal);
    TERN_TRY(find_storage(c, name, &c->pickle.values[tensor->is.tensor.storage], &place));
    g.ndim = take_numbers(c, name, tensor->is.tensor.size, g.numbers);
    if (g.ndim < 0)
        return tern_last_status();
    int strides = take_numbers(c, name, tensor->is.tensor.stride, g.numbers + g.ndim);
    if (strides != g.ndim)
        return strides < 0
                   ? tern_last_status()
                   : io_torch_bad_tensor(c->file, name, "it has not as many strides as sizes");
    TERN_TRY(io_torch_tensor(c->file, name, io_torch_type_at(tensor->is.tensor.type), &g, &place,
                             &c->expanded, &e));
    e->is_negated = tensor->is_negated;
    if (tensor->refusal)
        e->refused = io_refusal_text((io_refusal)tensor->refusal);
    return TERN_OK;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* The memory of names and metadata is limited in proportion to the pickle's size. */
static tern_status count_written(io_checkpoint *c, size_t bytes)
{
    c->written += bytes;
    return c->written <= 64 * (uint64_t)c->pickle.n + (16 << 20)
               ? TERN_OK
               : io_bad(c->file, 0, "values are shared until their names are more than the pickle");
}

static tern_status add_note(io_checkpoint *c, const char *text, size_t n)
{
    tern_text note = {0};
    if (n > MOST_NOTE || memchr(text, '\0', n) || !*c->name || !io_is_utf8(c->name))
        return TERN_OK;
    TERN_TRY(count_written(c, n));
    tern_text_add_bytes(&note, text, n);
    tern_status status = note.failed ? TERN_ERR_MEMORY : TERN_OK;
    if (status == TERN_OK && io_is_utf8(note.data))
        status = tern_state_dict_set_metadata(c->file->notes, c->name, note.data);
    tern_text_free(&note);
    return status;
}

/* Returns the global of a value: itself, a class, or the global that was called to make the value.
 * Returns NULL for other values. */
static const io_value *global_of(const io_checkpoint *c, int value)
{
    const io_value *v = &c->pickle.values[value];
    for (int i = 0; i < 8 && v->kind == IO_OBJECT; i++)
        v = &c->pickle.values[v->is.object.global];
    return v->kind == IO_GLOBAL ? v : NULL;
}

/* Adds an unknown global once to the list of their names, unless the list is full. */
static tern_status note_opaque(io_checkpoint *c, int value)
{
    const io_value *v = global_of(c, value);
    const char *bytes = (const char *)c->pickle.bytes;
    tern_text name = {0};
    if (!v || c->opaque.length > MOST_OPAQUE - 8)
        return TERN_OK;
    tern_text_add(&name, "%s.%s", io_show(bytes + v->is.global.module, v->is.global.module_n).text,
                  io_show(bytes + v->is.global.name, v->is.global.name_n).text);
    char **names = tern_grow(c->noted_names, sizeof *names * (size_t)(c->n_noted + 1));
    c->noted_names = names ? names : c->noted_names;
    tern_status status = names && !name.failed ? TERN_OK : TERN_ERR_MEMORY;
    if (status != TERN_OK || tern_keys_find(&c->noted, name.data) >= 0 || !io_is_utf8(name.data) ||
        c->opaque.length + name.length + 2 > MOST_OPAQUE) {
        tern_text_free(&name);
        return status;
    }
    tern_text_add(&c->opaque, "%s%s", c->n_noted ? ", " : "", name.data);
    names[c->n_noted++] = name.data;
    return c->opaque.failed ? TERN_ERR_MEMORY : tern_keys_add(&c->noted, name.data, c->n_noted - 1);
}

/* ---- traversal: c->name is the name of the value that a function gets ------------------------ */

static tern_status add_value(io_checkpoint *c, int value, int depth);

static tern_status count_visit(io_checkpoint *c)
{
    return ++c->visits <= c->pickle.n
               ? TERN_OK
               : io_torch_bad_tensor(
                     c->file, c->name,
                     "values are shared until they are more than the pickle has bytes");
}

/* Adds the value with the name "<name>.<key>". */
static tern_status add_named(io_checkpoint *c, const char *key, size_t n, int value, int depth)
{
    const size_t k = c->name_length;
    TERN_TRY(count_visit(c));
    if (c->pickle.values[value].kind <= IO_OPAQUE)
        return TERN_OK; /* None has no entry */
    if (n > sizeof c->name - 2 - k)
        return io_torch_bad_tensor(c->file, c->name, "names below it are too long");
    TERN_TRY(count_written(c, k + n));
    if (k)
        c->name[c->name_length++] = '.';
    memcpy(c->name + c->name_length, key, n);
    c->name_length += n;
    c->name[c->name_length] = '\0';
    tern_status status = add_value(c, value, depth + 1);
    c->name_length = k;
    c->name[k] = '\0';
    return status;
}

static tern_status add_at(io_checkpoint *c, int place, int value, int depth)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d", place);
    return add_named(c, text, (size_t)n, value, depth);
}

/* Adds the i-th pair of a dict. Texts, numbers, None and bools are names in Python's form; for
 * other keys the name is i. */
static tern_status add_pair(io_checkpoint *c, const io_value *dict, int i, int depth)
{
    const io_value *key = &c->pickle.values[dict->is.items[2 * i]];
    const int value = dict->is.items[2 * i + 1];
    char text[40];
    switch ((io_value_kind)key->kind) {
    case IO_TEXT:
        if (memchr(io_text_of(&c->pickle, key), '\0', (size_t)key->count))
            return add_at(c, i, value, depth);
        return add_named(c, io_text_of(&c->pickle, key), (size_t)key->count, value, depth);
    case IO_INT:
        snprintf(text, sizeof text, "%lld", (long long)key->is.integer);
        break;
    case IO_REAL:
        snprintf(text, sizeof text, "%s", TERN_NUMBER_TEXT(key->is.real));
        break;
    case IO_BOOL:
        strcpy(text, key->is.integer ? "True" : "False");
        break;
    case IO_NONE:
        strcpy(text, "None");
        break;
    default:
        return add_at(c, i, value, depth);
    }
    return add_named(c, text, strlen(text), value, depth);
}

static tern_status add_items(io_checkpoint *c, int list, int depth)
{
    const io_value *v = list < 0 ? NULL : &c->pickle.values[list];
    for (int i = 0; v && i < (v->kind == IO_DICT ? v->count / 2 : v->count); i++)
        TERN_TRY(v->kind == IO_DICT ? add_pair(c, v, i, depth)
                                    : add_at(c, i, v->is.items[i], depth));
    return TERN_OK;
}

static bool is_key(const io_checkpoint *c, int key, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (io_text_is(&c->pickle, key, names[i]))
            return true;
    return false;
}

/* Adds the attributes of an object. The dicts of an nn.Module with its tensors and children add no
 * name; its other attributes with an underscore are left out, as they repeat these. */
static tern_status add_attributes(io_checkpoint *c, int dict, int depth)
{
    static const char *const parts[] = {"_parameters", "_buffers", "_modules"},
                             *const flat[] = {"_flat_weights"};
    const io_value *v = &c->pickle.values[dict];
    bool module = false;
    for (int i = 0; i < v->count; i += 2)
        module = module || is_key(c, v->is.items[i], parts, 3);
    for (int i = 0; i < v->count / 2; i++) {
        const int key = v->is.items[2 * i], value = v->is.items[2 * i + 1];
        const io_value *k = &c->pickle.values[key];
        bool private = k->kind == IO_TEXT && k->count && *io_text_of(&c->pickle, k) == '_';
        if (module && is_key(c, key, parts, 3)) {
            TERN_TRY(count_visit(c));
            TERN_TRY(add_value(c, value, depth + 1));
        } else if (!(module && private) && !(c->is_script && is_key(c, key, flat, 1)))
            TERN_TRY(add_pair(c, v, i, depth));
    }
    return TERN_OK;
}

/* Adds a state: a dict of attributes, or a pair of it and a dict of slots; other tuples as
 * items. */
static tern_status add_state(io_checkpoint *c, int state, int depth)
{
    const io_value *v = &c->pickle.values[state];
    if (v->kind == IO_DICT)
        return add_attributes(c, state, depth);
    bool pair = v->kind == IO_TUPLE && v->count == 2;
    for (int i = 0; i < 2 && pair; i++) {
        const int kind = c->pickle.values[v->is.items[i]].kind;
        pair = kind == IO_DICT || kind == IO_NONE;
    }
    for (int i = 0; i < 2 && pair; i++)
        if (c->pickle.values[v->is.items[i]].kind == IO_DICT)
            TERN_TRY(add_attributes(c, v->is.items[i], depth));
    return pair || v->kind != IO_TUPLE ? TERN_OK : add_items(c, state, depth);
}

static tern_status add_object(io_checkpoint *c, int value, int depth)
{
    const io_value *v = &c->pickle.values[value];
    const io_value *class = &c->pickle.values[v->is.object.global];
    TERN_TRY(note_opaque(c, v->is.object.global));
    if (class->kind == IO_GLOBAL && class->is.global.number == G_NUMPY_ARRAY)
        return TERN_OK;
    TERN_TRY(add_items(c, v->is.object.args, depth));
    TERN_TRY(add_items(c, v->is.object.items, depth));
    TERN_TRY(add_items(c, v->is.object.pairs, depth));
    return v->is.object.state < 0 ? TERN_OK : add_state(c, v->is.object.state, depth);
}

/* Adds a container or object, unless it is being visited, as it then contains itself. */
static tern_status add_container(io_checkpoint *c, int value, int depth)
{
    io_value *v = &c->pickle.values[value];
    if (v->is_open)
        return TERN_OK;
    if (depth > MOST_DEPTH)
        return io_torch_bad_tensor(c->file, c->name, "it is too deep in lists and dicts");
    v->is_open = true;
    tern_status status =
        v->kind == IO_OBJECT ? add_object(c, value, depth) : add_items(c, value, depth);
    v->is_open = false;
    return status;
}

static tern_status add_value(io_checkpoint *c, int value, int depth)
{
    const io_value *v = &c->pickle.values[value];
    char text[40];
    switch ((io_value_kind)v->kind) {
    case IO_TENSOR:
        return add_tensor(c, v);
    case IO_TUPLE:
    case IO_LIST:
    case IO_DICT:
    case IO_OBJECT:
        return add_container(c, value, depth);
    case IO_GLOBAL:
        return v->is.global.number == G_UNKNOWN ? note_opaque(c, value) : TERN_OK;
    case IO_TEXT:
        return add_note(c, io_text_of(&c->pickle, v), (size_t)v->count);
    case IO_BOOL:
        strcpy(text, v->is.integer ? "True" : "False");
        break;
    case IO_INT:
        snprintf(text, sizeof text, "%lld", (long long)v->is.integer);
        break;
    case IO_REAL:
        tern_os_print_real(text, sizeof text, "%.17g",
                           isnan(v->is.real) ? fabs(v->is.real) : v->is.real);
        break;
    default:
        return TERN_OK; /* bytes, storages without a tensor */
    }
    return add_note(c, text, strlen(text));
}

tern_status io_torch_entries(io_checkpoint *c, int root)
{
    bool alone = c->pickle.values[root].kind == IO_TENSOR; /* the file of torch.save(x, ...) */
    strcpy(c->name, alone ? "tensor" : "");
    c->name_length = strlen(c->name);
    TERN_TRY(add_value(c, root, 0));
    return c->opaque.length
               ? tern_state_dict_set_metadata(c->file->notes, "__opaque__", c->opaque.data)
               : TERN_OK;
}

void io_torch_free(io_checkpoint *c)
{
    io_pickle_free(&c->pickle);
    tern_keys_free(&c->noted);
    for (int i = 0; i < c->n_noted; i++)
        tern_free(c->noted_names[i]);
    tern_free(c->noted_names);
    tern_text_free(&c->opaque);
}
