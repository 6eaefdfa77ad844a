/* trace.h -- the operations that a thread calls, written down while they run, for what reads them:
 * exporters.
 *
 *     tern_tracing trace = {0};
 *     tern_trace_add(&trace, x, TERN_TRACED_INPUT);
 *     tern_trace_begin(&trace);
 *     ... operations ...
 *     tern_trace_end(&trace);
 *     ... reads trace.calls ...
 *     tern_trace_free(&trace);
 *
 * Calls are those of the dispatcher that have to do with what was added; what others compute is a
 * constant. Operations that are made of others inside are one call. What the host reads of a
 * tensor, and does for it, is not seen. */
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
    TERN_ATTRIBUTE_DIMS /* bits, as a list of dims */
} tern_attribute_kind;

/* A field of an operation's attributes, `count` numbers of a kind. Lists of them end with one that
 * has no name. */
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
/* A field of TYPE, of one number, and of several; what is no struct; a field of bits. */
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

/* ---- what was written down ------------------------------------------------------------------- */

typedef enum tern_traced_source {
    TERN_TRACED_CONSTANT, /* not of a call that was written down */
    TERN_TRACED_MEMBER,   /* a parameter or buffer, as who traces says */
    TERN_TRACED_INPUT,
    TERN_TRACED_COMPUTED
} tern_traced_source;

typedef struct tern_traced_value {
    tern_tensor *tensor; /* held; what a later write in place made of it is another value */
    int64_t version;     /* of its storage, when it was written down */
    tern_traced_source source;
    bool follows; /* it is an input, or was computed of one */
    int call;     /* that computed it, and which of its results it is */
    int output;
} tern_traced_value;

typedef struct tern_traced_call {
    const char *op;                   /* "conv_transpose" */
    const tern_attribute *names;      /* NULL: it has none, or says nothing of them */
    const void *attributes;           /* a copy */
    const struct tern_module *module; /* the innermost that ran, may be gone; NULL: none */
    int n_in, n_out;
    int *in, *out; /* values; -1: left out */
    bool follows;
    bool is_lost; /* a write in place over unknown values: its first input is left out */
} tern_traced_call;

typedef struct tern_tracing {
    tern_traced_call *calls;
    tern_traced_value *values;
    int n_calls, n_values, calls_capacity, values_capacity;
    int *
        table; /* of table_capacity: a value and one more, 0: free; found by the tensor's address */
    int table_capacity;
    struct tern_tracing *outer; /* while it runs */
} tern_tracing;

/* The number of a tensor before anything ran: an input or a member. -1 after an error. */
TERN_PRIVATE int tern_trace_add(tern_tracing *trace, tern_tensor *x, tern_traced_source source);
/* Whether this thread writes its calls down. */
TERN_PRIVATE bool tern_is_tracing(void);
/* From here on the thread's calls are written down. */
TERN_PRIVATE void tern_trace_begin(tern_tracing *trace);
TERN_PRIVATE void tern_trace_end(tern_tracing *trace);
TERN_PRIVATE void tern_trace_free(tern_tracing *trace);
/* The number of a tensor, a constant's if it has none yet. -1 after an error: of a tensor that was
 * written in place through another one, TERN_ERR_UNSUPPORTED. */
TERN_PRIVATE int tern_trace_find(tern_tracing *trace, tern_tensor *x);
/* TERN_ERR_UNSUPPORTED, naming function, where a constant or member was written to after it was
 * read. */
TERN_PRIVATE tern_status tern_trace_check(const tern_tracing *trace, const char *function);

/* What a call's attribute holds: integers, or the dims of bits, and how many; -1 if there is none
 * of that name. */
TERN_PRIVATE int tern_traced_ints(const tern_traced_call *call, const char *name,
                                  int64_t list[TERN_MAX_DIMS]);
/* A number; false if there is none of that name. */
TERN_PRIVATE bool tern_traced_number(const tern_traced_call *call, const char *name,
                                     double *number);

/* From the dispatcher: a call that succeeded, its attributes of that size; in_place: into its first
 * input. */
tern_status tern_trace_note(tern_tracing *trace, const struct tern_call *call, size_t bytes,
                            bool in_place);

#endif
