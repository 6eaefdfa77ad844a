/* pickle.h -- reads Python's pickles of protocols 0 to 5 as values.
 *
 * Nothing in a pickle is called and no module is looked up. A global is a name; the few names of
 * which tensors are made are known by number, and a call of any other becomes an object with the
 * name, arguments, items and state. */
#ifndef TERN_IO_PICKLE_H
#define TERN_IO_PICKLE_H
#include "io/file.h"

typedef enum io_value_kind {
    IO_NONE,
    IO_OPAQUE, /* a Python value that is not examined: a range, a large integer */
    IO_BOOL,
    IO_INT,
    IO_REAL,
    IO_TEXT,
    IO_BYTES,
    IO_GLOBAL,
    IO_TUPLE,
    IO_LIST, /* also sets */
    IO_DICT, /* alternating keys and values */
    IO_OBJECT,
    IO_STORAGE,
    IO_TENSOR
} io_value_kind;

/* An element type, from the STORAGE rows of pickle.def. */
typedef struct io_torch_type {
    const char *storage, *dtype, *type;
    int bytes;
} io_torch_type;

/* Known globals; element types follow the last two. */
typedef enum io_global {
    G_UNKNOWN,
    G_DICT,        /* dict, OrderedDict, Counter: from pairs or a dict */
    G_DEFAULTDICT, /* the same after the factory */
    G_LIST,        /* list, tuple, set, frozenset, torch.Size */
    G_NUMBER,      /* int, float */
    G_BYTES,       /* _codecs.encode */
    G_FIRST, /* returns its first argument: Parameters, TorchScript's lists and tags, a device's
                name */
    G_OPAQUE,
    G_OBJECT, /* copyreg's functions: an object of the class in the first argument */
    G_NUMPY_DTYPE,
    G_NUMPY_SCALAR,
    G_NUMPY_ARRAY,
    G_TENSOR,
    G_TENSOR_V2,
    G_TENSOR_V3,
    G_FROM_TYPE, /* called with (function, type, arguments, state) */
    G_QUANTIZED, /* from here on tensors that tern does not have, in the order of io_refusals */
    G_SPARSE,
    G_NESTED,
    G_META,
    G_WRAPPER,
    G_OTHER_TENSOR,
    G_UNTYPED,
    G_TYPES = 100,
    G_DTYPES = 200
} io_global;

/* The reason why a tensor can't be read. */
typedef enum io_refusal {
    IO_READABLE,
    IO_QUANTIZED,
    IO_SPARSE,
    IO_NESTED,
    IO_META,
    IO_WRAPPER,
    IO_OTHER_TENSOR,
    IO_CONJUGATED,
    IO_OTHER_METADATA,
    IO_EXPANDED
} io_refusal;

/* Returns the number of a global, from k bytes of its module and n bytes of its name. */
io_global io_pickle_global(const char *module, size_t k, const char *name, size_t n);
/* Returns the i-th element type, or NULL. */
const io_torch_type *io_torch_type_at(int64_t i);
/* Returns the text of a refusal, after "tensor `x` is"; NULL for IO_READABLE. */
const char *io_refusal_text(io_refusal why);

/* A value. References to values are indices in io_pickle.values, or -1. */
typedef struct io_value {
    uint8_t kind, refusal; /* refusal is that of a tensor */
    bool is_negated;       /* a tensor whose elements must be negated */
    bool is_latin1;        /* bytes that the pickle encodes as text */
    bool is_open;          /* the value is being visited */
    int count;             /* items, or bytes of a text */
    int capacity;
    union {
        int64_t integer; /* also for bool */
        double real;
        size_t at; /* offset of a text or bytes in the pickle */
        int *items;
        struct {
            uint32_t module, name, module_n, name_n; /* offsets in the pickle, and lengths in
                                                        bytes */
            int number;                              /* an io_global */
        } global;
        struct {
            int64_t count;       /* elements */
            int type, key, view; /* type is the index of the element type, or -1 for bytes; key is a
                                    text, view a tuple */
        } storage;
        struct {
            int64_t offset;
            int type, storage, size, stride; /* size and stride are tuples */
        } tensor;
        struct {
            int global, args, items, pairs, state; /* a global, a tuple, a list, a dict, any
                                                      value */
        } object;
    } is;
} io_value;

typedef struct io_pickle io_pickle;
struct io_pickle {
    const tern_file *file; /* file, for messages */
    const char *what;      /* name of the pickle for messages, such as "data.pkl" */
    /* Reads at least n more bytes, or fails. NULL if all bytes have been read. */
    tern_status (*more)(io_pickle *p, size_t n);
    /* Pushes the value of a persistent id. */
    tern_status (*persistent)(io_pickle *p, int id);
    void *user;           /* argument of the two functions */
    unsigned char *bytes; /* n bytes of the pickle, of which `at` were interpreted */
    size_t n, at;
    uint64_t from,
        /* Offsets in the file of the first of these bytes, and of the end of those that `more` may
         * read. */
        end;
    io_value *values; /* array of `count` values */
    int count, capacity;
    int *stack, *memo; /* memo is -1 in empty places */
    int depth, stack_capacity, memo_count;
    uint64_t next_memo; /* next place of MEMOIZE */
    int *marks;
    int n_marks, marks_capacity;
    uint64_t copied; /* pairs copied from lists to dicts */
};

/* Runs the pickle to its end, and sets *root to the result. It may be called again for a pickle
 * that follows. io_pickle_free frees the values, also after errors. */
tern_status io_pickle_run(io_pickle *p, int *root);
void io_pickle_free(io_pickle *p);

/* ---- functions that make values -------------------------------------------------------------- */
tern_status io_pickle_bad(const io_pickle *p, const char *what);
/* Returns the next n bytes, valid until the next call, or NULL after an error. */
const unsigned char *io_pickle_take(io_pickle *p, size_t n);
/* Makes n more bytes available, or fails. */
tern_status io_pickle_need(io_pickle *p, size_t n);
/* Reads a little-endian number of that many bytes. */
tern_status io_pickle_take_number(io_pickle *p, int bytes, uint64_t *number);
/* Reads the bytes up to the line's end: sets their offset *at in the pickle and their number *n. */
tern_status io_pickle_take_line(io_pickle *p, size_t *at, size_t *n);
/* Makes space for one more item of a list of n, within the limit on a pickle's memory. */
tern_status io_pickle_reserve(const io_pickle *p, void **list, int n, int *capacity, size_t size);
/* Returns the stack depth of the last mark, or 0. */
int io_pickle_floor(const io_pickle *p);
/* Pops the top value; -1 after an error. */
int io_pickle_pop(io_pickle *p);
/* Popped values; the pointer is valid until the next push. */
typedef struct io_popped {
    const int *items;
    int n;
} io_popped;
/* The first pops the values above the last mark, and the mark; the second the top n values, or, for
 * negative n, those above the mark. */
tern_status io_pickle_pop_mark(io_pickle *p, io_popped *values);
tern_status io_pickle_pop_some(io_pickle *p, int n, io_popped *values);
/* Stores the top value in the memo. */
tern_status io_pickle_put_memo(io_pickle *p, uint64_t place);
/* Adds a new value and pushes it. */
tern_status io_pickle_push(io_pickle *p, io_value value);
/* Pushes an existing value. */
tern_status io_pickle_push_old(io_pickle *p, int value);
/* Adds a new value without pushing it; -1 after an error. */
int io_pickle_new(io_pickle *p, io_value value);
/* Adds an item to a list, tuple or dict. */
tern_status io_pickle_add(io_pickle *p, int to, int item);
/* Returns the text of a value of kind IO_TEXT: value->count bytes, not NUL-terminated. */
const char *io_text_of(const io_pickle *p, const io_value *value);
bool io_text_is(const io_pickle *p, int value, const char *text);
/* Returns the i-th item of a tuple if it has that kind, else NULL. */
const io_value *io_item(const io_pickle *p, const io_value *tuple, int i, io_value_kind kind);

/* ---- calls (pickle_make.c) ------------------------------------------------------------------- */
/* Pushes the value of a call of a global or an object. */
tern_status io_pickle_make(io_pickle *p, int callee, int args);
/* The function `persistent` of streams and archives, for the ids ('storage', torch.FloatStorage,
 * '0', 'cpu', 12[, view]) and ('module', class, file, source). */
tern_status io_pickle_storage(io_pickle *p, int id);

#endif
