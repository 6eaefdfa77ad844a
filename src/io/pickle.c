/* pickle.c -- a machine for the opcodes of pickle that PyTorch's tensors are made of.
 *
 * Each opcode makes one value at most, so that there are never more than bytes; operands are looked
 * at before they are used. */
#include "io/pickle.h"
#include <string.h>

/* ---- errors and bytes ------------------------------------------------------------------------ */

static tern_status bad(const io_pickle *p, const char *what)
{
    return io_bad(p->file, 0, "data.pkl at byte %zu: %s", p->at, what);
}

/* The next n bytes; NULL after an error. */
static const unsigned char *take(io_pickle *p, size_t n)
{
    if (n > p->n - p->at) {
        bad(p, "it ends too early");
        return NULL;
    }
    p->at += n;
    return p->bytes + p->at - n;
}

static tern_status take_number(io_pickle *p, int bytes, uint64_t *number)
{
    const unsigned char *from = take(p, (size_t)bytes);
    if (!from)
        return tern_last_status();
    for (*number = 0; bytes; bytes--)
        *number = *number << 8 | from[bytes - 1];
    return TERN_OK;
}

/* ---- values, stack, memo --------------------------------------------------------------------- */

/* Room for one more of n things of that size. */
static tern_status reserve(void **list, int n, int *capacity, size_t size)
{
    if (n < *capacity)
        return TERN_OK;
    int more = *capacity ? 2 * *capacity : 64;
    void *grown = tern_grow(*list, size * (size_t)more);
    if (!grown)
        return TERN_ERR_MEMORY;
    *list = grown;
    *capacity = more;
    return TERN_OK;
}

static tern_status push_value(io_pickle *p, int value)
{
    void *list = p->stack;
    TERN_TRY(reserve(&list, p->depth, &p->stack_capacity, sizeof *p->stack));
    p->stack = list;
    p->stack[p->depth++] = value;
    return TERN_OK;
}

static tern_status push(io_pickle *p, io_value value)
{
    void *list = p->values;
    TERN_TRY(reserve(&list, p->count, &p->capacity, sizeof *p->values));
    p->values = list;
    p->values[p->count] = value;
    return push_value(p, p->count++);
}

/* The lowest place of the stack above the last mark. */
static int floor_of(const io_pickle *p)
{
    return p->n_marks ? p->marks[p->n_marks - 1] : 0;
}

/* The value on top, taken away; -1 after an error. */
static int pop(io_pickle *p)
{
    if (p->depth > floor_of(p))
        return p->stack[--p->depth];
    bad(p, "the stack is empty");
    return -1;
}

/* The value on top, of that kind; NULL after an error. */
static io_value *top(io_pickle *p, io_value_kind kind)
{
    if (p->depth > floor_of(p) && p->values[p->stack[p->depth - 1]].kind == kind)
        return &p->values[p->stack[p->depth - 1]];
    bad(p, "the operand on the stack is of another type");
    return NULL;
}

static tern_status add_item(io_pickle *p, int to, int item)
{
    io_value *v = &p->values[to];
    void *list = v->is.items;
    if (v->count == v->capacity) {
        int more = v->capacity ? 2 * v->capacity : 4;
        list = tern_grow(list, sizeof(int) * (size_t)more);
        if (!list)
            return TERN_ERR_MEMORY;
        v->is.items = list;
        v->capacity = more;
    }
    v->is.items[v->count++] = item;
    return TERN_OK;
}

/* The values above the last mark, which goes; how many, -1 after an error. */
static int pop_mark(io_pickle *p, int **items)
{
    if (!p->n_marks) {
        bad(p, "there is no mark on the stack");
        return -1;
    }
    int from = p->marks[--p->n_marks], n = p->depth - from;
    p->depth = from;
    *items = p->stack + from;
    return n;
}

static tern_status put_memo(io_pickle *p, uint64_t place)
{
    if (p->depth <= floor_of(p) || place > p->n)
        return bad(p, "nothing to be kept, or a place beyond the pickle's length");
    if ((int)place >= p->memo_count) {
        int count = (int)place + 64 + p->memo_count;
        int *memo = tern_grow(p->memo, sizeof *memo * (size_t)count);
        if (!memo)
            return TERN_ERR_MEMORY;
        for (int i = p->memo_count; i < count; i++)
            memo[i] = -1;
        p->memo = memo;
        p->memo_count = count;
    }
    p->memo[place] = p->stack[p->depth - 1];
    return TERN_OK;
}

static tern_status get_memo(io_pickle *p, uint64_t place)
{
    if (place >= (uint64_t)p->memo_count || p->memo[place] < 0)
        return bad(p, "nothing was kept there");
    return push_value(p, p->memo[place]);
}

bool io_text_is(const io_pickle *p, int value, const char *text)
{
    const io_value *v = &p->values[value];
    return v->kind == IO_TEXT && (size_t)v->count == strlen(text) &&
           memcmp(v->is.text, text, (size_t)v->count) == 0;
}

/* ---- opcodes: numbers and texts -------------------------------------------------------------- */

static tern_status read_proto(io_pickle *p, int unused)
{
    uint64_t version = 0;
    (void)unused;
    TERN_TRY(take_number(p, 1, &version));
    return version == 2 ? TERN_OK : bad(p, "only protocol 2 is read");
}

/* Of n bytes, with a sign where n is negative. */
static tern_status read_integer(io_pickle *p, int n)
{
    uint64_t number = 0;
    TERN_TRY(take_number(p, n < 0 ? -n : n, &number));
    int64_t value = n < 0 ? (int32_t)(uint32_t)number : (int64_t)number;
    return push(p, (io_value){.kind = IO_INT, .is.integer = value});
}

/* Larger numbers than any here, a seed perhaps, are passed over. */
static tern_status read_long(io_pickle *p, int bytes)
{
    uint64_t n = 0, number = 0;
    TERN_TRY(take_number(p, bytes, &n));
    if (n > 8)
        return take(p, (size_t)n) ? push(p, (io_value){.kind = IO_OPAQUE}) : tern_last_status();
    TERN_TRY(take_number(p, (int)n, &number));
    if (n && n < 8 && number >> (8 * n - 1))
        number |= ~(uint64_t)0 << 8 * n;
    return push(p, (io_value){.kind = IO_INT, .is.integer = (int64_t)number});
}

static tern_status read_real(io_pickle *p, int n)
{
    const unsigned char *from = take(p, (size_t)n);
    union {
        uint64_t bits;
        double value;
    } v = {0};
    for (int i = 0; from && i < n; i++)
        v.bits = v.bits << 8 | from[i];
    return from ? push(p, (io_value){.kind = IO_REAL, .is.real = v.value}) : tern_last_status();
}

/* The length is of that many bytes. */
static tern_status read_text(io_pickle *p, int bytes)
{
    uint64_t n = 0;
    TERN_TRY(take_number(p, bytes, &n));
    const unsigned char *text = take(p, (size_t)n);
    if (!text || n > INT32_MAX)
        return text ? bad(p, "a text is too long") : tern_last_status();
    return push(p, (io_value){.kind = IO_TEXT, .count = (int)n, .is.text = (const char *)text});
}
/* None, False, True. */
static tern_status read_constant(io_pickle *p, int n)
{
    return push(p, (io_value){.kind = n < 0 ? IO_NONE : IO_BOOL, .is.integer = n});
}

/* ---- opcodes: the memo ----------------------------------------------------------------------- */

static tern_status read_put(io_pickle *p, int bytes)
{
    uint64_t place = 0;
    TERN_TRY(take_number(p, bytes, &place));
    return put_memo(p, place);
}

static tern_status read_get(io_pickle *p, int bytes)
{
    uint64_t place = 0;
    TERN_TRY(take_number(p, bytes, &place));
    return get_memo(p, place);
}

/* ---- opcodes: containers --------------------------------------------------------------------- */

static tern_status read_mark(io_pickle *p, int unused)
{
    void *list = p->marks;
    (void)unused;
    TERN_TRY(reserve(&list, p->n_marks, &p->marks_capacity, sizeof *p->marks));
    p->marks = list;
    p->marks[p->n_marks++] = p->depth;
    return TERN_OK;
}

static tern_status read_empty(io_pickle *p, int kind)
{
    return push(p, (io_value){.kind = (uint8_t)kind});
}

/* The last n values, or where n is negative those above the last mark, taken off; how many, -1
 * after an error. */
static int pop_some(io_pickle *p, int n, int **items)
{
    if (n < 0)
        return pop_mark(p, items);
    if (p->depth - floor_of(p) < n) {
        bad(p, "the stack is empty");
        return -1;
    }
    p->depth -= n;
    *items = p->stack + p->depth;
    return n;
}

/* A tuple of the n values on the stack from items on, which were taken off. */
static tern_status push_tuple(io_pickle *p, const int *items, int n)
{
    int *copy = tern_grow(NULL, sizeof *copy * ((size_t)n + 1));
    if (!copy)
        return TERN_ERR_MEMORY;
    if (n) /* else there may be no stack */
        memcpy(copy, items, sizeof *copy * (size_t)n);
    tern_status status =
        push(p, (io_value){.kind = IO_TUPLE, .count = n, .capacity = n + 1, .is.items = copy});
    if (status != TERN_OK && (!p->count || p->values[p->count - 1].is.items != copy))
        tern_free(copy);
    return status;
}

static tern_status read_tuple(io_pickle *p, int n)
{
    int *items;
    n = pop_some(p, n, &items);
    return n < 0 ? tern_last_status() : push_tuple(p, items, n);
}

/* Values into the list (1, or all above the mark), keys and values into the dict (2) below them. */
static tern_status read_add(io_pickle *p, int n)
{
    int *items;
    io_value_kind kind = n == 2 || n == -2 ? IO_DICT : IO_LIST;
    n = pop_some(p, n, &items);
    if (n < 0 || !top(p, kind))
        return tern_last_status();
    if (kind == IO_DICT && n % 2)
        return bad(p, "a key has no value");
    for (int i = 0; i < n; i++)
        TERN_TRY(add_item(p, p->stack[p->depth - 1], items[i]));
    return TERN_OK;
}

/* ---- opcodes: globals and what they make ----------------------------------------------------- */

/* The rest of a line; NULL after an error. */
static const char *take_line(io_pickle *p, size_t *n)
{
    const unsigned char *begin = p->bytes + p->at;
    const unsigned char *end = memchr(begin, '\n', p->n - p->at);
    if (!end) {
        bad(p, "it ends too early");
        return NULL;
    }
    *n = (size_t)(end - begin);
    p->at += *n + 1;
    return (const char *)begin;
}

static tern_status read_global(io_pickle *p, int unused)
{
    (void)unused;
    size_t k, n;
    const char *module = take_line(p, &k), *name = module ? take_line(p, &n) : NULL;
    if (!name)
        return tern_last_status();
    int number = io_pickle_global(module, k, name, n);
    if (!number)
        return io_bad(p->file, 0,
                      "data.pkl wants %s.%s, and nothing of a pickle is run: save tensors alone, "
                      "torch.save(model.state_dict(), ...)",
                      io_show(module, k).text, io_show(name, n).text);
    return push(p, (io_value){.kind = IO_GLOBAL, .is.integer = number});
}

/* The i-th item, if it is of that kind; NULL otherwise. */
static const io_value *item(const io_pickle *p, const io_value *tuple, int i, io_value_kind kind)
{
    const io_value *v = i < tuple->count ? &p->values[tuple->is.items[i]] : NULL;
    return v && v->kind == kind ? v : NULL;
}

/* ('storage', torch.FloatStorage, '0', 'cpu', 12) */
static tern_status read_storage(io_pickle *p, int unused)
{
    (void)unused;
    const io_value *id = top(p, IO_TUPLE);
    if (!id)
        return tern_last_status();
    const io_value *type = item(p, id, 1, IO_GLOBAL), *count = item(p, id, 4, IO_INT);
    if (id->count != 5 || !io_text_is(p, id->is.items[0], "storage") || !type || !count ||
        !item(p, id, 2, IO_TEXT) || count->is.integer < 0)
        return bad(p, "a persistent id that is no storage");
    int64_t number = type->is.integer;
    const io_torch_type *elements = io_torch_type_at(number - G_TYPES);
    if (number != G_UNTYPED && !elements)
        return bad(p, "a storage of no type");
    io_value storage = {.kind = IO_STORAGE};
    storage.is.storage.type = elements;
    storage.is.storage.key = id->is.items[2];
    storage.is.storage.count = count->is.integer;
    p->depth--;
    return push(p, storage);
}

/* (storage, offset, size, stride, requires_grad, hooks[, dtype][, metadata]) */
static tern_status push_tensor(io_pickle *p, const io_value *args, bool has_dtype)
{
    const io_value *storage = item(p, args, 0, IO_STORAGE), *offset = item(p, args, 1, IO_INT);
    const io_value *dtype = has_dtype ? item(p, args, 6, IO_GLOBAL) : NULL;
    if (!storage || !offset || offset->is.integer < 0 || !item(p, args, 2, IO_TUPLE) ||
        !item(p, args, 3, IO_TUPLE) || args->count < 6 || args->count > 8)
        return bad(p, "a tensor of other arguments");
    io_value tensor = {.kind = IO_TENSOR};
    tensor.is.tensor.type = storage->is.storage.type;
    if (has_dtype)
        tensor.is.tensor.type = dtype ? io_torch_type_at(dtype->is.integer - G_DTYPES) : NULL;
    if (!tensor.is.tensor.type)
        return bad(p, "a tensor of no type");
    tensor.is.tensor.storage = args->is.items[0];
    tensor.is.tensor.size = args->is.items[2];
    tensor.is.tensor.stride = args->is.items[3];
    tensor.is.tensor.offset = offset->is.integer;
    return push(p, tensor);
}

static tern_status read_reduce(io_pickle *p, int unused)
{
    (void)unused;
    int last = pop(p), first = last < 0 ? -1 : pop(p);
    if (first < 0)
        return tern_last_status();
    const io_value *args = &p->values[last], *what = &p->values[first];
    if (args->kind != IO_TUPLE || what->kind != IO_GLOBAL)
        return bad(p, "a call of what is no function");
    switch (what->is.integer) {
    case G_ORDERED_DICT:
        if (args->count == 0)
            return push(p, (io_value){.kind = IO_DICT, .is_ordered = true});
        break;
    case G_TENSOR_V2:
        return push_tensor(p, args, false);
    case G_TENSOR_V3:
        return push_tensor(p, args, true);
    case G_PARAMETER:
        if (args->count == 3 && item(p, args, 0, IO_TENSOR))
            return push_value(p, args->is.items[0]);
        break;
    case G_SIZE:
        if (args->count == 1 && item(p, args, 0, IO_TUPLE))
            return push_value(p, args->is.items[0]);
        break;
    case G_OPAQUE:
        return push(p, (io_value){.kind = IO_OPAQUE});
    }
    return bad(p, "a call with other arguments");
}

/* What PyTorch says of a state_dict beside its tensors, _metadata, which goes. */
static tern_status read_build(io_pickle *p, int unused)
{
    (void)unused;
    if (!top(p, IO_DICT))
        return tern_last_status();
    pop(p);
    const io_value *object = top(p, IO_DICT);
    return !object              ? tern_last_status()
           : object->is_ordered ? TERN_OK
                                : bad(p, "BUILD of what is no OrderedDict");
}

/* ---- the machine ----------------------------------------------------------------------------- */

static const struct {
    unsigned char byte;
    tern_status (*read)(io_pickle *p, int n);
    int n;
} opcodes[] = {
#define OPCODE(BYTE, WHAT, N) {BYTE, read_##WHAT, N},
#include "io/pickle.def"
};

tern_status io_pickle_run(io_pickle *p, int *root)
{
    if (p->n < 2 || p->bytes[0] != 0x80 || p->n > INT32_MAX / 2)
        return bad(p, "it is no pickle of protocol 2");
    while (p->at < p->n) {
        unsigned char byte = p->bytes[p->at++];
        size_t i = 0, n = sizeof opcodes / sizeof *opcodes;
        if (byte == '.') {
            *root = p->n_marks ? -1 : pop(p);
            return *root >= 0 ? TERN_OK : bad(p, "it stops with nothing on the stack");
        }
        while (i < n && opcodes[i].byte != byte)
            i++;
        if (i == n)
            return io_bad(p->file, 0, "data.pkl at byte %zu: opcode 0x%02x is not read", p->at - 1,
                          byte);
        TERN_TRY(opcodes[i].read(p, opcodes[i].n));
    }
    return bad(p, "it does not stop");
}

void io_pickle_free(io_pickle *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->values[i].kind >= IO_TUPLE && p->values[i].kind <= IO_DICT)
            tern_free(p->values[i].is.items);
    tern_free(p->values);
    tern_free(p->stack);
    tern_free(p->memo);
    tern_free(p->marks);
}
