/* trace.h -- records the operations that a thread calls, for exporters.
 *
 *     tern_tracing trace = {0};
 *     tern_trace_add(&trace, x, TERN_TRACED_INPUT);
 *     tern_trace_begin(&trace);
 *     ... operations ...
 *     tern_trace_end(&trace);
 *     ... reads trace.calls ...
 *     tern_trace_free(&trace);
 *
 * A trace has the calls of the dispatcher whose inputs were added or computed from added tensors;
 * every other tensor is a constant. An operation that calls others is one call. Values that the
 * host reads from a tensor, and what it does with them, are not in the trace. */
#ifndef TERN_SRC_TRACE_H
#define TERN_SRC_TRACE_H
#include "base/error.h"
#include <stddef.h>
#include <tern/tensor.h>

struct tern_module;
struct tern_call;

/* ---- attributes by name ---------------------------------------------------------------------- */

typedef enum tern_attribute_kind {
    TERN_ATTRIBUTE_INT, /* and enums */
    TERN_ATTRIBUTE_I64,
    TERN_ATTRIBUTE_BOOL,
    TERN_ATTRIBUTE_REAL,
    TERN_ATTRIBUTE_SHAPE, /* a list */
    TERN_ATTRIBUTE_SCALAR,
    TERN_ATTRIBUTE_DIMS /* bits, read as a list of dims */
} tern_attribute_kind;

/* A field of an operation's attributes: `count` numbers of a kind. A list of fields ends with a
 * field whose name is empty. */
typedef struct tern_attribute {
    char name[20];
    uint8_t kind, count;
    uint16_t offset;
} tern_attribute;

#define TERN_ATTRIBUTE_KIND(x)                                                                     \
    _Generic((x), int: TERN_ATTRIBUTE_INT, unsigned: TERN_ATTRIBUTE_INT,                           \
             int64_t: TERN_ATTRIBUTE_I64, int64_t *: TERN_ATTRIBUTE_I64,                           \
             bool: TERN_ATTRIBUTE_BOOL, bool *: TERN_ATTRIBUTE_BOOL, uint8_t: TERN_ATTRIBUTE_BOOL, \
             uint8_t *: TERN_ATTRIBUTE_BOOL, double: TERN_ATTRIBUTE_REAL,                          \
             double *: TERN_ATTRIBUTE_REAL, tern_shape: TERN_ATTRIBUTE_SHAPE,                      \
             tern_scalar: TERN_ATTRIBUTE_SCALAR)
/* A field of TYPE that is one number; a field that is an array; attributes that are no struct; a
 * field whose bits are dims. */
#define TERN_FIELD(TYPE, NAME, FIELD)                                                              \
    {                                                                                              \
        NAME, TERN_ATTRIBUTE_KIND(((TYPE *)0)->FIELD), 1, offsetof(TYPE, FIELD)                    \
    }
#define TERN_FIELDS(TYPE, NAME, FIELD)                                                             \
    {                                                                                              \
        NAME, TERN_ATTRIBUTE_KIND(((TYPE *)0)->FIELD),                                             \
            sizeof((TYPE *)0)->FIELD / sizeof *((TYPE *)0)->FIELD, offsetof(TYPE, FIELD)           \
    }
#define TERN_WHOLE(TYPE, NAME)                                                                     \
    {                                                                                              \
        NAME, TERN_ATTRIBUTE_KIND(*(TYPE *)0), 1, 0                                                \
    }
#define TERN_DIMS_FIELD(TYPE, NAME, FIELD)                                                         \
    {                                                                                              \
        NAME, TERN_ATTRIBUTE_DIMS, 1, offsetof(TYPE, FIELD)                                        \
    }
#define TERN_NAMES(...)                                                                            \
    (const tern_attribute[])                                                                       \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            {0}, 0, 0, 0                                                                           \
        }                                                                                          \
    }

/* ---- the trace ------------------------------------------------------------------------------- */

typedef enum tern_traced_source {
    TERN_TRACED_CONSTANT, /* not computed by a call of the trace */
    TERN_TRACED_MEMBER,   /* a parameter or buffer, as added by the caller */
    TERN_TRACED_INPUT,
    TERN_TRACED_COMPUTED
} tern_traced_source;

typedef struct tern_traced_value {
    tern_tensor *tensor; /* retained; after a write in place the tensor has another value */
    int64_t version;     /* of its storage, when the value was recorded */
    tern_traced_source source;
    bool follows; /* the value is an input or was computed from one */
    int call;     /* the call that computed the value, and the number of its result */
    int output;
} tern_traced_value;

typedef struct tern_traced_call {
    const char *op;                   /* "conv_transpose" */
    const tern_attribute *names;      /* NULL: no attributes, or none with a name */
    const void *attributes;           /* a copy */
    const struct tern_module *module; /* the innermost module that ran, may be freed; or NULL */
    int n_in, n_out;
    int *in, *out; /* indices of values; -1: left out */
    bool follows;
    bool is_lost; /* a write in place over an unknown value: the first input is left out */
} tern_traced_call;

typedef struct tern_tracing {
    tern_traced_call *calls;
    tern_traced_value *values;
    int n_calls, n_values, calls_capacity, values_capacity;
    int *table; /* hash table of table_capacity entries by the tensor's address: index of a value
                 * + 1, or 0 if free */
    int table_capacity;
    struct tern_tracing *outer; /* the trace that was recorded when this one began */
} tern_tracing;

/* Adds an input or a member before the first call. Returns the index of its value; -1 after an
 * error. */
TERN_PRIVATE int tern_trace_add(tern_tracing *trace, tern_tensor *x, tern_traced_source source);
/* Returns whether a trace of this thread is being recorded. */
TERN_PRIVATE bool tern_is_tracing(void);
/* Begins to record this thread's calls. */
TERN_PRIVATE void tern_trace_begin(tern_tracing *trace);
TERN_PRIVATE void tern_trace_end(tern_tracing *trace);
TERN_PRIVATE void tern_trace_free(tern_tracing *trace);
/* Returns the index of a tensor's value, and adds a constant if there is none. Returns -1 after an
 * error: TERN_ERR_UNSUPPORTED for a tensor that was written in place through another tensor. */
TERN_PRIVATE int tern_trace_find(tern_tracing *trace, tern_tensor *x);
/* Returns TERN_ERR_UNSUPPORTED, with a message that names function, if a constant or a member was
 * written after it was read. */
TERN_PRIVATE tern_status tern_trace_check(const tern_tracing *trace, const char *function);

/* Writes the integers of an attribute, or the dims of its bits, to list. Returns how many there
 * are; -1 if no attribute has that name. */
TERN_PRIVATE int tern_traced_ints(const tern_traced_call *call, const char *name,
                                  int64_t list[TERN_MAX_DIMS]);
/* Sets *number to the attribute's value. Returns false if no attribute has that name. */
TERN_PRIVATE bool tern_traced_number(const tern_traced_call *call, const char *name,
                                     double *number);

/* For the dispatcher: adds a call that has succeeded, with `bytes` bytes of attributes. in_place:
 * the call wrote to its first input. */
tern_status tern_trace_note(tern_tracing *trace, const struct tern_call *call, size_t bytes,
                            bool in_place);

#endif
