/* trace.c -- records the operations that a thread calls. */
#include "base/memory.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <string.h>

/* ---- values by tensor ------------------------------------------------------------------------ */

static size_t place_of(const tern_tracing *t, const tern_tensor *x)
{
    return (size_t)((uintptr_t)x >> 4) * 0x9e3779b9u & (size_t)(t->table_capacity - 1);
}

static void enter(tern_tracing *t, int value)
{
    const tern_tensor *x = t->values[value].tensor;
    size_t i = place_of(t, x);
    while (t->table[i] && t->values[t->table[i] - 1].tensor != x)
        i = (i + 1) & (size_t)(t->table_capacity - 1);
    t->table[i] = value + 1;
}

/* Makes space for one more value. */
static tern_status reserve(tern_tracing *t)
{
    if (t->n_values == t->values_capacity) {
        int capacity = t->values_capacity ? 2 * t->values_capacity : 64;
        void *more = tern_grow(t->values, sizeof *t->values * (size_t)capacity);
        if (!more)
            return TERN_ERR_MEMORY;
        t->values = more;
        t->values_capacity = capacity;
    }
    if (2 * (t->n_values + 1) > t->table_capacity) {
        int capacity = t->table_capacity ? 2 * t->table_capacity : 128;
        int *table = tern_alloc(sizeof *table * (size_t)capacity);
        if (!table)
            return TERN_ERR_MEMORY;
        tern_free(t->table);
        t->table = table;
        t->table_capacity = capacity;
        for (int v = 0; v < t->n_values; v++) /* of one tensor's values, the last is found */
            enter(t, v);
    }
    return TERN_OK;
}

static int add(tern_tracing *t, tern_tensor *x, tern_traced_source source, bool follows)
{
    if (reserve(t) != TERN_OK)
        return -1;
    t->values[t->n_values] = (tern_traced_value){.tensor = tern_keep(x),
                                                 .version = tern_tensor_version(x),
                                                 .source = source,
                                                 .follows = follows,
                                                 .call = -1};
    enter(t, t->n_values);
    return t->n_values++;
}

/* Returns the newest value of the same elements with another handle (tern_detach), or -1. Sets
 * *shares to whether a computed value has a part of x's storage. */
static int find_alias(const tern_tracing *t, const tern_tensor *x, bool *shares)
{
    *shares = false;
    for (int v = t->n_values - 1; v >= 0; v--) {
        const tern_tensor *y = t->values[v].tensor;
        if (y->storage != x->storage || !x->numel || t->values[v].source == TERN_TRACED_CONSTANT)
            continue;
        if (y->offset == x->offset && y->dtype == x->dtype && tern_same_shape(y, x) &&
            !memcmp(y->stride, x->stride, sizeof *x->stride * (size_t)x->ndim))
            return v;
        *shares = *shares || t->values[v].source == TERN_TRACED_COMPUTED;
    }
    return -1;
}

/* Returns the newest value of x; -1: none; -2: none, but x shares storage with a computed value. */
static int known(const tern_tracing *t, const tern_tensor *x)
{
    bool shares;
    if (t->table_capacity)
        for (size_t i = place_of(t, x); t->table[i]; i = (i + 1) & (size_t)(t->table_capacity - 1))
            if (t->values[t->table[i] - 1].tensor == x)
                return t->table[i] - 1;
    int alias = find_alias(t, x, &shares);
    return alias >= 0 ? alias : -1 - (int)shares;
}

int tern_trace_find(tern_tracing *t, tern_tensor *x)
{
    int v = known(t, x);
    if (v == -2 || (v >= 0 && t->values[v].version != tern_tensor_version(x))) {
        tern_fail(TERN_ERR_UNSUPPORTED,
                  "tracing: a tensor of shape %s was written in place through another view of it",
                  TERN_TENSOR_TEXT(x));
        return -1;
    }
    return v >= 0 ? v : add(t, x, TERN_TRACED_CONSTANT, false);
}

int tern_trace_add(tern_tracing *t, tern_tensor *x, tern_traced_source source)
{
    return add(t, x, source, source == TERN_TRACED_INPUT);
}

tern_status tern_trace_check(const tern_tracing *t, const char *function)
{
    for (int v = 0; v < t->n_values; v++)
        if (t->values[v].source <= TERN_TRACED_MEMBER &&
            t->values[v].version != tern_tensor_version(t->values[v].tensor))
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: a tensor of shape %s was written in place after it had been read",
                             function, TERN_TENSOR_TEXT(t->values[v].tensor));
    return TERN_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static tern_traced_call *new_call(tern_tracing *t, const tern_call *call, size_t bytes)
{
    if (t->n_calls == t->calls_capacity) {
        int capacity = t->calls_capacity ? 2 * t->calls_capacity : 64;
        void *more = tern_grow(t->calls, sizeof *t->calls * (size_t)capacity);
        if (!more)
            return NULL;
        t->calls = more;
        t->calls_capacity = capacity;
    }
    size_t at = (bytes + sizeof(int) - 1) / sizeof(int) * sizeof(int);
    char *block = tern_alloc(at + sizeof(int) * (size_t)(call->n_in + call->n_out));
    if (!block)
        return NULL;
    if (bytes)
        memcpy(block, call->attributes, bytes);
    tern_traced_call *c = &t->calls[t->n_calls++];
    *c = (tern_traced_call){.op = call->op->name,
                            .names = call->op->names,
                            .attributes = block,
                            .module = tern_thread.running.modules.innermost.module,
                            .n_in = call->n_in,
                            .n_out = call->n_out,
                            .in = (int *)(void *)(block + at)};
    c->out = c->in + c->n_in;
    return c;
}

/* Returns whether an input of the call was added or computed from an added tensor. */
static bool concerns(const tern_tracing *t, const tern_call *call)
{
    for (int i = 0; i < call->n_in; i++) {
        int v = call->in[i] ? known(t, call->in[i]) : -1;
        if (v == -2 || (v >= 0 && t->values[v].source != TERN_TRACED_CONSTANT))
            return true;
    }
    return false;
}

/* Returns a tensor's value before the write that just incremented its version; -1: unknown. */
static int before_write(const tern_tracing *t, const tern_tensor *x)
{
    int v = known(t, x);
    return v >= 0 && t->values[v].version + 1 == tern_tensor_version(x) ? v : -1;
}

tern_status tern_trace_note(tern_tracing *t, const tern_call *call, size_t bytes, bool in_place)
{
    if (!concerns(t, call))
        return TERN_OK;
    tern_traced_call *c = new_call(t, call, bytes);
    if (!c)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < c->n_in; i++) {
        tern_tensor *x = call->in[i];
        if (in_place && x == call->out[0]) {
            c->in[i] = before_write(t, x);
            c->is_lost = c->in[i] < 0;
        } else
            c->in[i] = x ? tern_trace_find(t, x) : -1;
        if (x && x != call->out[0] && c->in[i] < 0)
            return tern_last_status();
        c->follows = c->follows || (c->in[i] >= 0 && t->values[c->in[i]].follows);
    }
    for (int i = 0; i < c->n_out; i++) {
        int v = add(t, call->out[i], TERN_TRACED_COMPUTED, c->follows);
        if (v < 0)
            return TERN_ERR_MEMORY;
        t->values[v].call = (int)(c - t->calls);
        t->values[v].output = i;
        c->out[i] = v;
    }
    return TERN_OK;
}

void tern_trace_begin(tern_tracing *t)
{
    t->outer = tern_thread.mode.trace;
    tern_thread.mode.trace = t;
}

bool tern_is_tracing(void)
{
    return tern_thread.mode.trace != NULL;
}

void tern_trace_end(tern_tracing *t)
{
    tern_thread.mode.trace = t->outer;
}

void tern_trace_free(tern_tracing *t)
{
    for (int i = 0; i < t->n_calls; i++)
        tern_free((void *)(uintptr_t)t->calls[i].attributes);
    for (int v = 0; v < t->n_values; v++)
        tern_release(t->values[v].tensor);
    tern_free(t->calls);
    tern_free(t->values);
    tern_free(t->table);
    *t = (tern_tracing){0};
}

/* ---- attributes ------------------------------------------------------------------------------ */

static const tern_attribute *find_name(const tern_traced_call *call, const char *name)
{
    for (const tern_attribute *a = call->names; a && *a->name; a++)
        if (!strcmp(a->name, name))
            return a;
    return NULL;
}

int tern_traced_ints(const tern_traced_call *call, const char *name, int64_t list[TERN_MAX_DIMS])
{
    const tern_attribute *a = find_name(call, name);
    if (!a)
        return -1;
    const char *at = (const char *)call->attributes + a->offset;
    int n = a->count;
    if (a->kind == TERN_ATTRIBUTE_SHAPE) {
        const tern_shape *shape = (const void *)at;
        memcpy(list, shape->dims, sizeof *list * (size_t)shape->ndim);
        return shape->ndim;
    }
    if (a->kind == TERN_ATTRIBUTE_DIMS) {
        n = 0;
        for (int d = 0; d < TERN_MAX_DIMS; d++)
            if (*(const uint32_t *)(const void *)at >> d & 1)
                list[n++] = d;
        return n;
    }
    for (int i = 0; i < n; i++)
        list[i] = a->kind == TERN_ATTRIBUTE_I64    ? ((const int64_t *)(const void *)at)[i]
                  : a->kind == TERN_ATTRIBUTE_BOOL ? ((const uint8_t *)at)[i]
                                                   : ((const int *)(const void *)at)[i];
    return n;
}

bool tern_traced_number(const tern_traced_call *call, const char *name, double *number)
{
    const tern_attribute *a = find_name(call, name);
    int64_t list[TERN_MAX_DIMS];
    if (!a)
        return false;
    const void *at = (const char *)call->attributes + a->offset;
    if (a->kind == TERN_ATTRIBUTE_REAL)
        *number = *(const double *)at;
    else if (a->kind == TERN_ATTRIBUTE_SCALAR)
        *number = tern_scalar_to_real(*(const tern_scalar *)at);
    else
        *number = tern_traced_ints(call, name, list) > 0 ? (double)list[0] : 0;
    return true;
}
