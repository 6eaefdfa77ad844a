/* pickle_make.c -- the results of a pickle's calls: containers, numbers, tensors, and objects for
 * all unknown globals. */
#include "io/pickle.h"
#include <stdio.h>
#include <string.h>

enum { MOST_WRAPPED = 8 };

static tern_status other_arguments(const io_pickle *p)
{
    return io_pickle_bad(p, "a call with other arguments");
}

/* Returns the i-th argument, or -1. */
static int argument(const io_value *args, int i)
{
    return i < args->count ? args->is.items[i] : -1;
}

static io_value_kind kind_of(const io_pickle *p, int value)
{
    return value < 0 ? IO_NONE : (io_value_kind)p->values[value].kind;
}

/* ---- objects and containers ------------------------------------------------------------------ */

static tern_status push_object(io_pickle *p, int class, int args, int held)
{
    io_value v = {.kind = IO_OBJECT};
    io_value_kind kind = kind_of(p, held);
    v.is.object.global = class;
    v.is.object.args = args;
    v.is.object.items = kind == IO_LIST ? held : -1;
    v.is.object.pairs = kind == IO_DICT ? held : -1;
    v.is.object.state = -1;
    return io_pickle_push(p, v);
}

/* Pushes a dict of a list's pairs. */
static tern_status push_pairs(io_pickle *p, int list)
{
    int dict = io_pickle_new(p, (io_value){.kind = IO_DICT});
    if (dict < 0)
        return tern_last_status();
    p->copied += (uint64_t)p->values[list].count;
    if (p->copied > p->n)
        return io_pickle_bad(p, "dicts are made of more pairs than it has bytes");
    for (int i = 0; i < p->values[list].count; i++) {
        const io_value *pair = &p->values[p->values[list].is.items[i]];
        if ((pair->kind != IO_TUPLE && pair->kind != IO_LIST) || pair->count != 2)
            return other_arguments(p);
        const int key = pair->is.items[0], value = pair->is.items[1];
        TERN_TRY(io_pickle_add(p, dict, key));
        TERN_TRY(io_pickle_add(p, dict, value));
    }
    return io_pickle_push_old(p, dict);
}

static tern_status push_dict(io_pickle *p, int from)
{
    switch (kind_of(p, from)) {
    case IO_NONE:
        return io_pickle_push(p, (io_value){.kind = IO_DICT});
    case IO_DICT:
        return io_pickle_push_old(p, from);
    case IO_TUPLE:
    case IO_LIST:
        return push_pairs(p, from);
    default:
        return other_arguments(p);
    }
}

/* ---- NumPy's scalars ------------------------------------------------------------------------- */

/* Copies the first bytes of a value, at most n. Returns their number. */
static int bytes_of(const io_pickle *p, const io_value *v, unsigned char *to, int n)
{
    const unsigned char *text = p->bytes + v->is.at;
    int count = 0;
    for (int i = 0; i < v->count && count < n; i++) {
        unsigned char c = text[i];
        if (v->is_latin1 && c >= 0xc0 && i + 1 < v->count)
            c = (unsigned char)(c << 6 | (text[++i] & 0x3f));
        to[count++] = c;
    }
    return count;
}

/* Returns a number of n bytes, of a kind that is NumPy's letter. */
static io_value number_of(char kind, int n, const unsigned char *bytes)
{
    uint64_t bits = 0;
    io_value v = {.kind = IO_OPAQUE};
    for (int i = n - 1; i >= 0; i--)
        bits = bits << 8 | bytes[i];
    if (kind == 'f' && n == 8) {
        v.kind = IO_REAL;
        memcpy(&v.is.real, &bits, sizeof bits);
    } else if (kind == 'f' && n == 4) {
        float real;
        uint32_t low = (uint32_t)bits;
        memcpy(&real, &low, sizeof low);
        v = (io_value){.kind = IO_REAL, .is.real = (double)real};
    } else if (kind == 'b' && n == 1) {
        v = (io_value){.kind = IO_BOOL, .is.integer = bits != 0};
    } else if (kind == 'i' || (kind == 'u' && (n < 8 || !(bits >> 63)))) {
        if (kind == 'i' && n < 8 && bits >> (8 * n - 1))
            bits |= ~(uint64_t)0 << 8 * n;
        v = (io_value){.kind = IO_INT, .is.integer = (int64_t)bits};
    }
    return v;
}

/* Pushes the scalar of numpy.dtype('f8', ...) with the state (3, '<', ...), and its bytes. */
static tern_status push_scalar(io_pickle *p, const io_value *args)
{
    const io_value *dtype = io_item(p, args, 0, IO_OBJECT);
    const io_value *bytes = io_item(p, args, 1, IO_BYTES);
    const io_value none = {.kind = IO_TUPLE};
    unsigned char of[8];
    if (!bytes)
        bytes = io_item(p, args, 1, IO_TEXT); /* Python 2 writes bytes as text */
    const io_value *made =
        dtype && dtype->is.object.args >= 0 ? &p->values[dtype->is.object.args] : &none;
    const io_value *name = io_item(p, made, 0, IO_TEXT);
    int n = name && name->count == 2 ? io_text_of(p, name)[1] - '0' : 0;
    if (!bytes || n < 1 || n > 8 || bytes_of(p, bytes, of, n) != n)
        return io_pickle_push(p, (io_value){.kind = IO_OPAQUE});
    const int state = dtype->is.object.state;
    const io_value *order =
        kind_of(p, state) == IO_TUPLE ? io_item(p, &p->values[state], 1, IO_TEXT) : NULL;
    if (order && order->count == 1 && *io_text_of(p, order) == '>')
        return io_pickle_push(p, (io_value){.kind = IO_OPAQUE});
    return io_pickle_push(p, number_of(*io_text_of(p, name), n, of));
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Reads the negative bit and others, as {'neg': True}. */
static void take_metadata(const io_pickle *p, int metadata, io_value *tensor)
{
    const io_value *dict = &p->values[metadata];
    for (int i = 0; i + 1 < dict->count; i += 2) {
        const int key = dict->is.items[i];
        const io_value *value = &p->values[dict->is.items[i + 1]];
        if (value->kind == IO_NONE || (value->kind == IO_BOOL && !value->is.integer))
            continue;
        if (io_text_is(p, key, "neg") && value->kind == IO_BOOL)
            tensor->is_negated = true;
        else
            tensor->refusal = io_text_is(p, key, "conj") ? IO_CONJUGATED : IO_OTHER_METADATA;
    }
}

/* Pushes the tensor of (storage, offset, size, stride), in versions 2 and 3 with (...,
 * requires_grad, hooks[, dtype][, metadata]). */
static tern_status push_tensor(io_pickle *p, const io_value *args, int version)
{
    const int least = version == 1 ? 4 : version + 4, metadata = argument(args, version + 4);
    const io_value *storage = io_item(p, args, 0, IO_STORAGE), *dtype = NULL;
    const io_value *offset = io_item(p, args, 1, IO_INT);
    if (!storage || !offset || offset->is.integer < 0 || !io_item(p, args, 2, IO_TUPLE) ||
        !io_item(p, args, 3, IO_TUPLE) || args->count < least || args->count > version + 5)
        return io_pickle_bad(p, "a tensor of other arguments");
    io_value tensor = {.kind = IO_TENSOR};
    tensor.is.tensor.type = storage->is.storage.type;
    if (version == 3) {
        dtype = io_item(p, args, 6, IO_GLOBAL);
        tensor.is.tensor.type = dtype ? dtype->is.global.number - G_DTYPES : -1;
    }
    if (!io_torch_type_at(tensor.is.tensor.type))
        return io_pickle_bad(p, "a tensor of no type");
    tensor.is.tensor.storage = args->is.items[0];
    tensor.is.tensor.size = args->is.items[2];
    tensor.is.tensor.stride = args->is.items[3];
    tensor.is.tensor.offset = offset->is.integer;
    if (version > 1 && kind_of(p, metadata) == IO_DICT)
        take_metadata(p, metadata, &tensor);
    return io_pickle_push(p, tensor);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static tern_status make_known(io_pickle *p, io_global number, int callee, int args)
{
    const io_value *a = &p->values[args];
    const int first = argument(a, 0);
    switch (number) {
    case G_DICT:
        return push_dict(p, first);
    case G_DEFAULTDICT:
        return push_dict(p, argument(a, 1));
    case G_LIST:
        return first >= 0 ? io_pickle_push_old(p, first)
                          : io_pickle_push(p, (io_value){.kind = IO_LIST});
    case G_FIRST:
        return first >= 0 ? io_pickle_push_old(p, first) : other_arguments(p);
    case G_NUMBER:
        return kind_of(p, first) == IO_INT || kind_of(p, first) == IO_REAL
                   ? io_pickle_push_old(p, first)
                   : io_pickle_push(p, (io_value){.kind = IO_OPAQUE});
    case G_BYTES: {
        io_value v = kind_of(p, first) == IO_TEXT ? p->values[first] : (io_value){0};
        v.kind = v.kind == IO_TEXT ? IO_BYTES : IO_OPAQUE;
        v.is_latin1 = true;
        return io_pickle_push(p, v);
    }
    case G_OPAQUE:
        return io_pickle_push(p, (io_value){.kind = IO_OPAQUE});
    case G_OBJECT:
        return first >= 0 ? push_object(p, first, -1, argument(a, 2)) : other_arguments(p);
    case G_NUMPY_SCALAR:
        return push_scalar(p, a);
    case G_TENSOR:
    case G_TENSOR_V2:
    case G_TENSOR_V3:
        return push_tensor(p, a, (int)(number - G_TENSOR) + 1);
    default:
        return push_object(p, callee, args, -1);
    }
}

tern_status io_pickle_make(io_pickle *p, int callee, int args)
{
    io_global number = G_FROM_TYPE;
    for (int i = 0; number == G_FROM_TYPE; i++) {
        io_value_kind kind = kind_of(p, callee);
        if (kind_of(p, args) != IO_TUPLE)
            return io_pickle_bad(p, "a call without a tuple of arguments");
        if (kind != IO_GLOBAL && kind != IO_OBJECT && kind != IO_OPAQUE)
            return io_pickle_bad(p, "a call of what is no function");
        number = kind == IO_GLOBAL ? (io_global)p->values[callee].is.global.number : G_UNKNOWN;
        if (number == G_FROM_TYPE) { /* the arguments are a function and its arguments */
            const io_value *a = &p->values[args];
            callee = argument(a, 0);
            args = argument(a, 2);
            if (i == MOST_WRAPPED)
                return other_arguments(p);
        }
    }
    if (number >= G_QUANTIZED && number <= G_OTHER_TENSOR) {
        io_value tensor = {.kind = IO_TENSOR,
                           .refusal = (uint8_t)(IO_QUANTIZED + (number - G_QUANTIZED))};
        tensor.is.tensor.type = tensor.is.tensor.storage = -1;
        return io_pickle_push(p, tensor);
    }
    return make_known(p, number, callee, args);
}

/* ---- persistent ids -------------------------------------------------------------------------- */

/* Pushes the storage of an id in protocol 0, as Python prints it: "('storage', <class
 * 'torch.FloatStorage'>, '0', 'cpu', 12)". */
static tern_status printed_storage(io_pickle *p, const io_value *id)
{
    char text[256], module[64] = "", key[64] = "", *name;
    int at = 0;
    long long count = -1;
    snprintf(text, sizeof text, "%.*s", id->count, io_text_of(p, id));
    if (sscanf(text, "('storage', <class '%63[A-Za-z0-9_.]'>, '%n%63[^']', '%*[^']', %lld)", module,
               &at, key, &count) != 3 ||
        count < 0 || !(name = strrchr(module, '.')))
        return io_pickle_bad(p, "a persistent id that is no storage");
    *name++ = '\0';
    const io_global number = io_pickle_global(module, strlen(module), name, strlen(name));
    io_value text_of_key = {
        .kind = IO_TEXT, .count = (int)strlen(key), .is.at = id->is.at + (size_t)at};
    io_value storage = {.kind = IO_STORAGE};
    storage.is.storage.type = number == G_UNTYPED ? -1 : (int)number - G_TYPES;
    if (number != G_UNTYPED && !io_torch_type_at(storage.is.storage.type))
        return io_pickle_bad(p, "a storage of no type");
    storage.is.storage.count = count;
    storage.is.storage.view = -1;
    storage.is.storage.key = io_pickle_new(p, text_of_key);
    return storage.is.storage.key < 0 ? tern_last_status() : io_pickle_push(p, storage);
}

tern_status io_pickle_storage(io_pickle *p, int value)
{
    const io_value *id = &p->values[value];
    if (id->kind == IO_TEXT)
        return printed_storage(p, id);
    if (id->kind != IO_TUPLE)
        return io_pickle_bad(p, "a persistent id that is no storage");
    if (id->count == 4 && io_text_is(p, id->is.items[0], "module") && io_item(p, id, 1, IO_GLOBAL))
        return io_pickle_push_old(p, id->is.items[1]); /* the class alone is used, its source is
                                                          ignored */
    const io_value *type = io_item(p, id, 1, IO_GLOBAL), *count = io_item(p, id, 4, IO_INT);
    const io_value *view = io_item(p, id, 5, IO_TUPLE);
    if (id->count < 5 || id->count > 6 || !io_text_is(p, id->is.items[0], "storage") || !type ||
        !count || !io_item(p, id, 2, IO_TEXT) || count->is.integer < 0 ||
        (id->count == 6 && !view && !io_item(p, id, 5, IO_NONE)))
        return io_pickle_bad(p, "a persistent id that is no storage");
    const int number = type->is.global.number;
    io_value storage = {.kind = IO_STORAGE};
    storage.is.storage.type = number == G_UNTYPED ? -1 : number - G_TYPES;
    if (number != G_UNTYPED && !io_torch_type_at(storage.is.storage.type))
        return io_pickle_bad(p, "a storage of no type");
    storage.is.storage.key = id->is.items[2];
    storage.is.storage.count = count->is.integer;
    storage.is.storage.view = view ? id->is.items[5] : -1;
    return io_pickle_push(p, storage);
}
