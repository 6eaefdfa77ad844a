/* pickle.c -- runs the opcodes of pickle, protocols 0 to 5.
 *
 * Each opcode makes one value at most (an object's list and dict of items are made by the first
 * opcode that adds to them), so there are never more values than bytes. Operands are checked before
 * they are used. */
#include "io/pickle.h"
#include "base/os.h"
#include <stdlib.h>
#include <string.h>

/* ---- opcodes: numbers ------------------------------------------------------------------------ */

static tern_status read_proto(io_pickle *p, int unused)
{
    uint64_t version = 0;
    (void)unused;
    TERN_TRY(io_pickle_take_number(p, 1, &version));
    return version <= 5 ? TERN_OK : io_pickle_bad(p, "its protocol is above 5");
}

/* Reads the length of a frame and checks that as many bytes follow. */
static tern_status read_frame(io_pickle *p, int unused)
{
    uint64_t n = 0;
    (void)unused;
    TERN_TRY(io_pickle_take_number(p, 8, &n));
    return n > SIZE_MAX / 2 ? io_pickle_bad(p, "a frame is too long")
                            : io_pickle_need(p, (size_t)n);
}

/* Reads an integer of n bytes, for negative n a signed one of -n. */
static tern_status read_integer(io_pickle *p, int n)
{
    uint64_t number = 0;
    TERN_TRY(io_pickle_take_number(p, n < 0 ? -n : n, &number));
    int64_t value = n < 0 ? (int32_t)(uint32_t)number : (int64_t)number;
    return io_pickle_push(p, (io_value){.kind = IO_INT, .is.integer = value});
}

/* Reads an integer with a length of that many bytes; a value of more than 64 bits becomes
 * IO_OPAQUE. */
static tern_status read_long(io_pickle *p, int bytes)
{
    uint64_t n = 0, number = 0;
    TERN_TRY(io_pickle_take_number(p, bytes, &n));
    if (n > 8)
        return io_pickle_take(p, (size_t)n) ? io_pickle_push(p, (io_value){.kind = IO_OPAQUE})
                                            : tern_last_status();
    TERN_TRY(io_pickle_take_number(p, (int)n, &number));
    if (n && n < 8 && number >> (8 * n - 1))
        number |= ~(uint64_t)0 << 8 * n;
    return io_pickle_push(p, (io_value){.kind = IO_INT, .is.integer = (int64_t)number});
}

static tern_status read_real(io_pickle *p, int n)
{
    const unsigned char *from = io_pickle_take(p, (size_t)n);
    union {
        uint64_t bits;
        double value;
    } v = {0};
    for (int i = 0; from && i < n; i++)
        v.bits = v.bits << 8 | from[i];
    return from ? io_pickle_push(p, (io_value){.kind = IO_REAL, .is.real = v.value})
                : tern_last_status();
}

/* Pushes None, False or True (n 0, 1, 2). */
static tern_status read_constant(io_pickle *p, int n)
{
    return io_pickle_push(p, (io_value){.kind = n ? IO_BOOL : IO_NONE, .is.integer = n == 2});
}

/* Reads a line "12\n", "12L\n", "01\n" (True) or "0.5\n". */
static tern_status read_number_line(io_pickle *p, int real)
{
    size_t at, n;
    char text[64], *end;
    TERN_TRY(io_pickle_take_line(p, &at, &n));
    if (n >= sizeof text)
        return io_pickle_push(p, (io_value){.kind = IO_OPAQUE});
    memcpy(text, p->bytes + at, n);
    text[n] = '\0';
    if (!real && n == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1'))
        return read_constant(p, text[1] - '0' + 1);
    io_value v = {.kind = real ? IO_REAL : n > 19 ? IO_OPAQUE : IO_INT};
    if (real)
        v.is.real = tern_os_strtod(text, &end);
    else
        v.is.integer = strtoll(text, &end, 10);
    end += !real && *end == 'L';
    return end > text && !*end ? io_pickle_push(p, v) : io_pickle_bad(p, "a line is no number");
}

/* ---- opcodes: texts -------------------------------------------------------------------------- */

/* Reads a text or bytes with a length of that many bytes. */
static tern_status read_chars(io_pickle *p, int bytes, io_value_kind kind)
{
    uint64_t n = 0;
    TERN_TRY(io_pickle_take_number(p, bytes, &n));
    if (n > INT32_MAX)
        return io_pickle_bad(p, "a text is too long, or it ends too early");
    if (!io_pickle_take(p, (size_t)n))
        return tern_last_status();
    return io_pickle_push(
        p, (io_value){.kind = (uint8_t)kind, .count = (int)n, .is.at = p->at - (size_t)n});
}

static tern_status read_text(io_pickle *p, int bytes)
{
    return read_chars(p, bytes, IO_TEXT);
}

static tern_status read_bytes(io_pickle *p, int bytes)
{
    return read_chars(p, bytes, IO_BYTES);
}

/* Reads a line of protocol 0, a text with or without quotes. One with escapes becomes IO_OPAQUE. */
static tern_status read_text_line(io_pickle *p, int unquoted)
{
    size_t at, n;
    TERN_TRY(io_pickle_take_line(p, &at, &n));
    const unsigned char *text = p->bytes + at;
    if (!unquoted && (n < 2 || (text[0] != '\'' && text[0] != '"') || text[n - 1] != text[0]))
        return io_pickle_bad(p, "a text without quotes");
    if (n > INT32_MAX || memchr(text, '\\', n))
        return io_pickle_push(p, (io_value){.kind = IO_OPAQUE});
    return io_pickle_push(p, (io_value){.kind = IO_TEXT,
                                        .count = (int)n - (unquoted ? 0 : 2),
                                        .is.at = at + (unquoted ? 0 : 1)});
}

/* ---- opcodes: the memo ----------------------------------------------------------------------- */

/* Reads a memo index of that many bytes, or, for 0, a decimal line. */
static tern_status take_place(io_pickle *p, int bytes, uint64_t *place)
{
    size_t at, n;
    if (bytes)
        return io_pickle_take_number(p, bytes, place);
    TERN_TRY(io_pickle_take_line(p, &at, &n));
    *place = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = p->bytes[at + i];
        if (c < '0' || c > '9' || *place > UINT32_MAX)
            return io_pickle_bad(p, "a place that is no number");
        *place = *place * 10 + (c - '0');
    }
    return TERN_OK;
}

static tern_status read_put(io_pickle *p, int bytes)
{
    uint64_t place = 0;
    TERN_TRY(take_place(p, bytes, &place));
    return io_pickle_put_memo(p, place);
}

static tern_status read_memoize(io_pickle *p, int unused)
{
    (void)unused;
    return io_pickle_put_memo(p, p->next_memo++);
}

static tern_status read_get(io_pickle *p, int bytes)
{
    uint64_t place = 0;
    TERN_TRY(take_place(p, bytes, &place));
    if (place >= (uint64_t)p->memo_count || p->memo[place] < 0)
        return io_pickle_bad(p, "nothing was kept there");
    return io_pickle_push_old(p, p->memo[place]);
}

/* ---- opcodes: containers --------------------------------------------------------------------- */

static tern_status read_mark(io_pickle *p, int unused)
{
    void *list = p->marks;
    (void)unused;
    TERN_TRY(io_pickle_reserve(p, &list, p->n_marks, &p->marks_capacity, sizeof *p->marks));
    p->marks = list;
    p->marks[p->n_marks++] = p->depth;
    return TERN_OK;
}

static tern_status read_pop(io_pickle *p, int unused)
{
    io_popped values;
    (void)unused;
    if (p->n_marks && p->depth == io_pickle_floor(p)) /* POP also removes a mark */
        return io_pickle_pop_mark(p, &values);
    return io_pickle_pop(p) < 0 ? tern_last_status() : TERN_OK;
}

static tern_status read_pop_mark(io_pickle *p, int unused)
{
    io_popped values;
    (void)unused;
    return io_pickle_pop_mark(p, &values);
}

static tern_status read_dup(io_pickle *p, int unused)
{
    (void)unused;
    int value = io_pickle_pop(p);
    if (value < 0)
        return tern_last_status();
    TERN_TRY(io_pickle_push_old(p, value));
    return io_pickle_push_old(p, value);
}

static tern_status read_empty(io_pickle *p, int kind)
{
    return io_pickle_push(p, (io_value){.kind = (uint8_t)kind});
}

/* Pushes a container with the popped values. */
static tern_status push_container(io_pickle *p, int kind, io_popped values)
{
    int *copy = NULL;
    if (kind == IO_DICT && values.n % 2)
        return io_pickle_bad(p, "a key has no value");
    if (values.n) {
        copy = tern_grow(NULL, sizeof *copy * (size_t)values.n);
        if (!copy)
            return TERN_ERR_MEMORY;
        memcpy(copy, values.items, sizeof *copy * (size_t)values.n);
    }
    io_value v = {.kind = (uint8_t)kind, .count = values.n, .capacity = values.n, .is.items = copy};
    int i = io_pickle_new(p, v);
    if (i < 0)
        tern_free(copy);
    return i < 0 ? tern_last_status() : io_pickle_push_old(p, i);
}

static tern_status read_tuple(io_pickle *p, int n)
{
    io_popped values;
    TERN_TRY(io_pickle_pop_some(p, n, &values));
    return push_container(p, IO_TUPLE, values);
}

static tern_status read_container(io_pickle *p, int kind)
{
    io_popped values;
    TERN_TRY(io_pickle_pop_mark(p, &values));
    return push_container(p, kind, values);
}

/* Sets *to to the value that takes items for it: itself, or an object's list or dict. */
static tern_status holder_of(io_pickle *p, int *to, io_value_kind kind)
{
    if (p->values[*to].kind == kind)
        return TERN_OK;
    if (p->values[*to].kind != IO_OBJECT)
        return io_pickle_bad(p, "the operand on the stack is of another type");
    int *held = kind == IO_DICT ? &p->values[*to].is.object.pairs : &p->values[*to].is.object.items;
    if (*held < 0) {
        int new = io_pickle_new(p, (io_value){.kind = (uint8_t)kind});
        if (new < 0)
            return tern_last_status();
        held = kind == IO_DICT ? &p->values[*to].is.object.pairs : &p->values[*to].is.object.items;
        *held = new;
    }
    *to = *held;
    return p->values[*to].kind == kind
               ? TERN_OK
               : io_pickle_bad(p, "the operand on the stack is of another type");
}

/* Adds n values (negative: those above the mark) to the list below them; n 2 or -2: keys and values
 * to the dict below them. */
static tern_status read_add(io_pickle *p, int n)
{
    io_popped values;
    io_value_kind kind = n == 2 || n == -2 ? IO_DICT : IO_LIST;
    TERN_TRY(io_pickle_pop_some(p, n, &values));
    if (p->depth <= io_pickle_floor(p))
        return io_pickle_bad(p, "the stack is empty");
    int to = p->stack[p->depth - 1];
    if (p->values[to].kind == IO_OPAQUE)
        return TERN_OK;
    TERN_TRY(holder_of(p, &to, kind));
    if (kind == IO_DICT && values.n % 2)
        return io_pickle_bad(p, "a key has no value");
    for (int i = 0; i < values.n; i++)
        TERN_TRY(io_pickle_add(p, to, values.items[i]));
    return TERN_OK;
}

/* ---- opcodes: globals and calls -------------------------------------------------------------- */

static io_value global_of(const io_pickle *p, size_t module, size_t k, size_t name, size_t n)
{
    io_value v = {.kind = IO_GLOBAL};
    const char *bytes = (const char *)p->bytes;
    v.is.global.module = (uint32_t)module;
    v.is.global.module_n = (uint32_t)k;
    v.is.global.name = (uint32_t)name;
    v.is.global.name_n = (uint32_t)n;
    v.is.global.number = (int)io_pickle_global(bytes + module, k, bytes + name, n);
    return v;
}

static tern_status read_global(io_pickle *p, int unused)
{
    size_t module, k, name, n;
    (void)unused;
    TERN_TRY(io_pickle_take_line(p, &module, &k));
    TERN_TRY(io_pickle_take_line(p, &name, &n));
    return io_pickle_push(p, global_of(p, module, k, name, n));
}

static tern_status read_stack_global(io_pickle *p, int unused)
{
    io_popped values;
    (void)unused;
    TERN_TRY(io_pickle_pop_some(p, 2, &values));
    const io_value *module = &p->values[values.items[0]], *name = &p->values[values.items[1]];
    if (module->kind != IO_TEXT || name->kind != IO_TEXT)
        return io_pickle_bad(p, "a name that is no text");
    return io_pickle_push(
        p, global_of(p, module->is.at, (size_t)module->count, name->is.at, (size_t)name->count));
}

static tern_status read_persistent(io_pickle *p, int line)
{
    size_t at, n;
    int id = -1;
    if (line) {
        TERN_TRY(io_pickle_take_line(p, &at, &n));
        id = io_pickle_new(p, (io_value){.kind = IO_TEXT, .count = (int)n, .is.at = at});
        if (id < 0)
            return tern_last_status();
    } else if ((id = io_pickle_pop(p)) < 0)
        return tern_last_status();
    return p->persistent(p, id);
}

static tern_status read_reduce(io_pickle *p, int unused)
{
    io_popped values;
    (void)unused;
    TERN_TRY(io_pickle_pop_some(p, 2, &values));
    return io_pickle_make(p, values.items[0], values.items[1]);
}

/* Calls a class with arguments; the keyword arguments become the object's state. */
static tern_status read_new_with(io_pickle *p, int unused)
{
    io_popped values;
    (void)unused;
    TERN_TRY(io_pickle_pop_some(p, 3, &values));
    int class = values.items[0], args = values.items[1], named = values.items[2];
    TERN_TRY(io_pickle_make(p, class, args));
    io_value *made = &p->values[p->stack[p->depth - 1]];
    if (made->kind == IO_OBJECT && made->is.object.state < 0)
        made->is.object.state = named;
    return TERN_OK;
}

/* Makes an object: its class is a global, or the first value above the mark; the other values above
 * the mark are the arguments. */
static tern_status read_instance(io_pickle *p, int on_stack)
{
    io_popped values;
    int class = -1;
    if (!on_stack) {
        TERN_TRY(read_global(p, 0));
        class = io_pickle_pop(p);
    }
    TERN_TRY(io_pickle_pop_mark(p, &values));
    if (on_stack && values.n) {
        class = values.items[0];
        values.items++;
        values.n--;
    }
    if (class < 0)
        return io_pickle_bad(p, "an object of no class");
    TERN_TRY(push_container(p, IO_TUPLE, values));
    return io_pickle_make(p, class, io_pickle_pop(p));
}

/* Sets the state of the object below it. The state of a dict (_metadata of a state_dict) is
 * dropped. */
static tern_status read_build(io_pickle *p, int unused)
{
    (void)unused;
    int state = io_pickle_pop(p);
    if (state < 0)
        return tern_last_status();
    if (p->depth <= io_pickle_floor(p))
        return io_pickle_bad(p, "the stack is empty");
    io_value *object = &p->values[p->stack[p->depth - 1]];
    if (object->kind == IO_OBJECT)
        object->is.object.state = state;
    return object->kind >= IO_DICT || object->kind == IO_OPAQUE || object->kind == IO_LIST
               ? TERN_OK
               : io_pickle_bad(p, "BUILD of what is no object");
}

/* ---- the interpreter ------------------------------------------------------------------------- */

static const struct {
    tern_status (*read)(io_pickle *p, int n);
    int n;
} opcodes[256] = {
#define OPCODE(BYTE, WHAT, N) [BYTE] = {read_##WHAT, N},
#include "io/pickle.def"
};

tern_status io_pickle_run(io_pickle *p, int *root)
{
    p->depth = p->n_marks = p->memo_count = 0;
    p->next_memo = 0;
    for (;;) {
        const unsigned char *byte = io_pickle_take(p, 1);
        if (!byte)
            return tern_last_status();
        if (*byte == '.') {
            *root = p->n_marks ? -1 : io_pickle_pop(p);
            return *root >= 0 ? TERN_OK : io_pickle_bad(p, "it stops with nothing on the stack");
        }
        if (!opcodes[*byte].read)
            return io_bad(p->file, 0, "%s at byte %llu: opcode 0x%02x is not read", p->what,
                          (unsigned long long)p->from + p->at - 1, *byte);
        TERN_TRY(opcodes[*byte].read(p, opcodes[*byte].n));
    }
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
    tern_free(p->bytes);
}
