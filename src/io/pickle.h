/* pickle.h -- Python's pickles of protocols 0 to 5, and the values that they make.
 *
 * Nothing in a pickle is called and no module is looked up. A global is a name; the few names that
 * tensors are made of are known by number, and what any other name would make is an object: the
 * name, its arguments, its items, its state. */
#ifndef TERN_IO_PICKLE_H
#define TERN_IO_PICKLE_H
#include "io/file.h"

typedef enum io_value_kind {
    IO_NONE,
    IO_OPAQUE, /* a value of Python's own that is not looked into: a range, a large number */
    IO_BOOL,
    IO_INT,
    IO_REAL,
    IO_TEXT,
    IO_BYTES,
    IO_GLOBAL,
    IO_TUPLE,
    IO_LIST, /* also a set */
    IO_DICT, /* keys and values in turn */
    IO_OBJECT,
    IO_STORAGE,
    IO_TENSOR
} io_value_kind;

/* A type of elements: of the rows STORAGE of pickle.def. */
typedef struct io_torch_type {
    const char *storage, *dtype, *type;
    int bytes;
} io_torch_type;

/* Globals that are known; types of elements are behind the last two. */
typedef enum io_global {
    G_UNKNOWN,
    G_DICT,        /* dict, OrderedDict, Counter: of pairs, or of a dict */
    G_DEFAULTDICT, /* the same behind its factory */
    G_LIST,        /* list, tuple, set, frozenset, torch.Size */
    G_NUMBER,      /* int, float */
    G_BYTES,       /* _codecs.encode */
    G_FIRST, /* its first argument: Parameters, TorchScript's lists and tags, a device's name */
    G_OPAQUE,
    G_OBJECT, /* copyreg's functions: an object of the class that is their first argument */
    G_NUMPY_DTYPE,
    G_NUMPY_SCALAR,
    G_NUMPY_ARRAY,
    G_TENSOR,
    G_TENSOR_V2,
    G_TENSOR_V3,
    G_FROM_TYPE, /* (function, type, arguments, state) */
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

/* Why a tensor can't be read; IO_READABLE: it can. */
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

/* The number of a module's name, of k and n bytes. */
io_global io_pickle_global(const char *module, size_t k, const char *name, size_t n);
/* The i-th type; NULL for none. */
const io_torch_type *io_torch_type_at(int64_t i);
/* What a refusal says behind "tensor `x` is"; NULL for IO_READABLE. */
const char *io_refusal_text(io_refusal why);

/* A value. Others are named by their place in the list of all; -1 is none. */
typedef struct io_value {
    uint8_t kind, refusal; /* the latter of a tensor */
    bool is_negated;       /* a tensor whose elements are to be negated */
    bool is_latin1;        /* bytes that the pickle has as text */
    bool is_open;          /* a reader is inside */
    int count;             /* of items; bytes of a text */
    int capacity;
    union {
        int64_t integer; /* also the bool */
        double real;
        size_t at; /* of a text or bytes in the pickle */
        int *items;
        struct {
            uint32_t module, name, module_n, name_n; /* in the pickle; how many bytes */
            int number;                              /* io_global */
        } global;
        struct {
            int64_t count;       /* of elements */
            int type, key, view; /* a number of io_torch_type_at, -1: bytes; a text; a tuple */
        } storage;
        struct {
            int64_t offset;
            int type, storage, size, stride; /* the latter two are tuples */
        } tensor;
        struct {
            int global, args, items, pairs, state; /* a global, a tuple, a list, a dict, any */
        } object;
    } is;
} io_value;

typedef struct io_pickle io_pickle;
struct io_pickle {
    const tern_file *file; /* for messages */
    const char *what;      /* likewise: "data.pkl" */
    /* Reads on: at least n bytes more than there are, or an error. NULL: all bytes are there. */
    tern_status (*more)(io_pickle *p, size_t n);
    /* Pushes what a persistent id stands for. */
    tern_status (*persistent)(io_pickle *p, int id);
    void *user;           /* theirs */
    unsigned char *bytes; /* of n that are there; of these `at` were read */
    size_t n, at;
    uint64_t from,
        end; /* where the bytes begin in the file, and where those end that `more` may read */
    io_value *values; /* of count */
    int count, capacity;
    int *stack, *memo; /* the memo: -1 for nothing */
    int depth, stack_capacity, memo_count;
    uint64_t next_memo; /* MEMOIZE's */
    int *marks;
    int n_marks, marks_capacity;
    uint64_t copied; /* pairs of lists that dicts were made of */
};

/* Runs it up to its end; the result is the value at *root. May be called again for a pickle behind
 * it. Values are freed by io_pickle_free, also after errors. */
tern_status io_pickle_run(io_pickle *p, int *root);
void io_pickle_free(io_pickle *p);

/* ---- for those who make values --------------------------------------------------------------- */
tern_status io_pickle_bad(const io_pickle *p, const char *what);
/* The next n bytes, good until the next are taken; NULL after an error. */
const unsigned char *io_pickle_take(io_pickle *p, size_t n);
/* Whether n bytes more are there. */
tern_status io_pickle_need(io_pickle *p, size_t n);
/* A number of that many bytes. */
tern_status io_pickle_take_number(io_pickle *p, int bytes, uint64_t *number);
/* The bytes up to the end of the line, at *at in the pickle, *n of them. */
tern_status io_pickle_take_line(io_pickle *p, size_t *at, size_t *n);
/* Memory for one more of n things of that size, within the bound of all that the pickle takes. */
tern_status io_pickle_reserve(const io_pickle *p, void **list, int n, int *capacity, size_t size);
/* The lowest place of the stack above the last mark. */
int io_pickle_floor(const io_pickle *p);
/* The value on top, taken away; -1 after an error. */
int io_pickle_pop(io_pickle *p);
/* Values that were taken off the stack. They stay where they are until the next is pushed. */
typedef struct io_popped {
    const int *items;
    int n;
} io_popped;
/* The values above the last mark, which goes; the last n, or where n is negative those above the
 * mark. */
tern_status io_pickle_pop_mark(io_pickle *p, io_popped *values);
tern_status io_pickle_pop_some(io_pickle *p, int n, io_popped *values);
/* The value on top is kept at a place of the memo. */
tern_status io_pickle_put_memo(io_pickle *p, uint64_t place);
/* A new value, on the stack too. */
tern_status io_pickle_push(io_pickle *p, io_value value);
/* A value that is there, on the stack. */
tern_status io_pickle_push_old(io_pickle *p, int value);
/* A value that nothing names yet; -1 after an error. */
int io_pickle_new(io_pickle *p, io_value value);
/* Another item of a list, tuple or dict. */
tern_status io_pickle_add(io_pickle *p, int to, int item);
/* The text of a value of kind IO_TEXT, of value->count bytes, without an end. */
const char *io_text_of(const io_pickle *p, const io_value *value);
bool io_text_is(const io_pickle *p, int value, const char *text);
/* The i-th item of a tuple, if it is of that kind; NULL otherwise. */
const io_value *io_item(const io_pickle *p, const io_value *tuple, int i, io_value_kind kind);

/* ---- what calls make (pickle_make.c) --------------------------------------------------------- */
/* The value of a call of a global or an object, pushed. */
tern_status io_pickle_make(io_pickle *p, int callee, int args);
/* ('storage', torch.FloatStorage, '0', 'cpu', 12[, view]) or ('module', class, file, source):
 * `persistent` of streams and archives. */
tern_status io_pickle_storage(io_pickle *p, int id);

#endif
