/* pickle_values.c -- the state of pickle.c's interpreter: bytes, values, the stack and the memo. */
#include "io/pickle.h"
#include <string.h>

/* ---- errors and bytes ------------------------------------------------------------------------ */

tern_status io_pickle_bad(const io_pickle *p, const char *what)
{
    return io_bad(p->file, 0, "%s at byte %llu: %s", p->what, (unsigned long long)p->from + p->at,
                  what);
}

tern_status io_pickle_need(io_pickle *p, size_t n)
{
    if (n <= p->n - p->at)
        return TERN_OK;
    return p->more ? p->more(p, n - (p->n - p->at)) : io_pickle_bad(p, "it ends too early");
}

const unsigned char *io_pickle_take(io_pickle *p, size_t n)
{
    if (io_pickle_need(p, n) != TERN_OK)
        return NULL;
    p->at += n;
    return p->bytes + p->at - n;
}

tern_status io_pickle_take_number(io_pickle *p, int bytes, uint64_t *number)
{
    const unsigned char *from = io_pickle_take(p, (size_t)bytes);
    if (!from)
        return tern_last_status();
    for (*number = 0; bytes; bytes--)
        *number = *number << 8 | from[bytes - 1];
    return TERN_OK;
}

tern_status io_pickle_take_line(io_pickle *p, size_t *at, size_t *n)
{
    size_t seen = 0;
    for (;;) {
        const unsigned char *begin = p->bytes + p->at;
        const unsigned char *end =
            p->n - p->at > seen ? memchr(begin + seen, '\n', p->n - p->at - seen) : NULL;
        if (end) {
            *at = p->at;
            *n = (size_t)(end - begin);
            p->at += *n + 1;
            return TERN_OK;
        }
        seen = p->n - p->at;
        TERN_TRY(io_pickle_need(p, seen + 1));
    }
}

/* ---- values, stack, memo --------------------------------------------------------------------- */

/* The memory of values, stack, marks and memo is limited in proportion to the file's size, as a few
 * compressed bytes can be many bytes of a pickle. */
static tern_status check_memory(const io_pickle *p, uint64_t more)
{
    const uint64_t most = ((uint64_t)64 << 20) + 64 * p->file->parts[0].size;
    const uint64_t places =
        (uint64_t)p->stack_capacity + (uint64_t)p->marks_capacity + (uint64_t)p->memo_count;
    return (uint64_t)p->capacity * sizeof *p->values + places * sizeof(int) + more <= most
               ? TERN_OK
               : io_pickle_bad(p, "it has far more values than the file has bytes");
}

tern_status io_pickle_reserve(const io_pickle *p, void **list, int n, int *capacity, size_t size)
{
    if (n < *capacity)
        return TERN_OK;
    TERN_TRY(check_memory(p, 0));
    int more = *capacity ? *capacity + *capacity / 2 : 64;
    void *grown = tern_grow(*list, size * (size_t)more);
    if (!grown)
        return TERN_ERR_MEMORY;
    *list = grown;
    *capacity = more;
    return TERN_OK;
}

tern_status io_pickle_push_old(io_pickle *p, int value)
{
    void *list = p->stack;
    TERN_TRY(io_pickle_reserve(p, &list, p->depth, &p->stack_capacity, sizeof *p->stack));
    p->stack = list;
    p->stack[p->depth++] = value;
    return TERN_OK;
}

int io_pickle_new(io_pickle *p, io_value value)
{
    void *list = p->values;
    if (io_pickle_reserve(p, &list, p->count, &p->capacity, sizeof *p->values) != TERN_OK)
        return -1;
    p->values = list;
    p->values[p->count] = value;
    return p->count++;
}

tern_status io_pickle_push(io_pickle *p, io_value value)
{
    int i = io_pickle_new(p, value);
    return i < 0 ? tern_last_status() : io_pickle_push_old(p, i);
}

int io_pickle_floor(const io_pickle *p)
{
    return p->n_marks ? p->marks[p->n_marks - 1] : 0;
}

int io_pickle_pop(io_pickle *p)
{
    if (p->depth > io_pickle_floor(p))
        return p->stack[--p->depth];
    io_pickle_bad(p, "the stack is empty");
    return -1;
}

tern_status io_pickle_add(io_pickle *p, int to, int item)
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

tern_status io_pickle_pop_mark(io_pickle *p, io_popped *values)
{
    if (!p->n_marks)
        return io_pickle_bad(p, "there is no mark on the stack");
    int from = p->marks[--p->n_marks];
    *values = (io_popped){p->stack ? p->stack + from : NULL, p->depth - from};
    p->depth = from;
    return TERN_OK;
}

tern_status io_pickle_pop_some(io_pickle *p, int n, io_popped *values)
{
    if (n < 0)
        return io_pickle_pop_mark(p, values);
    if (p->depth - io_pickle_floor(p) < n)
        return io_pickle_bad(p, "the stack is empty");
    p->depth -= n;
    *values = (io_popped){p->stack + p->depth, n};
    return TERN_OK;
}

tern_status io_pickle_put_memo(io_pickle *p, uint64_t place)
{
    if (p->depth <= io_pickle_floor(p) || place > p->at)
        return io_pickle_bad(p, "nothing to be kept, or a place beyond the pickle's length");
    if (place >= (uint64_t)p->memo_count) {
        size_t count = (size_t)place + 64 + (size_t)p->memo_count / 2;
        TERN_TRY(check_memory(p, (count - (size_t)p->memo_count) * sizeof *p->memo));
        int *memo = tern_grow(p->memo, sizeof *memo * count);
        if (!memo)
            return TERN_ERR_MEMORY;
        for (size_t i = (size_t)p->memo_count; i < count; i++)
            memo[i] = -1;
        p->memo = memo;
        p->memo_count = (int)count;
    }
    p->memo[place] = p->stack[p->depth - 1];
    return TERN_OK;
}

const char *io_text_of(const io_pickle *p, const io_value *value)
{
    return (const char *)p->bytes + value->is.at;
}

bool io_text_is(const io_pickle *p, int value, const char *text)
{
    const io_value *v = &p->values[value];
    return v->kind == IO_TEXT && (size_t)v->count == strlen(text) &&
           memcmp(io_text_of(p, v), text, (size_t)v->count) == 0;
}

const io_value *io_item(const io_pickle *p, const io_value *tuple, int i, io_value_kind kind)
{
    const io_value *v = i < tuple->count ? &p->values[tuple->is.items[i]] : NULL;
    return v && v->kind == kind ? v : NULL;
}
