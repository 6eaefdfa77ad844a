/* pickle.h -- the few of pickle's opcodes that PyTorch's tensors need, and the values that they make.
 *
 * Nothing in a pickle is called: a global is a number, and REDUCE a switch over it. */
#ifndef TERN_IO_PICKLE_H
#define TERN_IO_PICKLE_H
#include "io/file.h"

typedef enum io_value_kind {
    IO_NONE,
    IO_OPAQUE, /* seen, and of no use here */
    IO_BOOL,
    IO_INT,
    IO_REAL,
    IO_TEXT,
    IO_GLOBAL,
    IO_TUPLE,
    IO_LIST,
    IO_DICT, /* keys and values in turn */
    IO_STORAGE,
    IO_TENSOR
} io_value_kind;

/* What STORAGE rows know of a type of elements. */
typedef struct io_torch_type {
    const char *storage, *dtype, *type;
    int bytes;
} io_torch_type;

/* What a global is pushed as; types of elements are behind the last two. */
enum {
    G_ORDERED_DICT = 1,
    G_TENSOR_V2,
    G_TENSOR_V3,
    G_PARAMETER,
    G_UNTYPED,
    G_SIZE,
    G_OPAQUE,
    G_TYPES = 100,
    G_DTYPES = 200
};
/* The number of a module's name, of k and n bytes; 0 for one that is not known. */
int io_pickle_global(const char *module, size_t k, const char *name, size_t n);
/* The i-th type; NULL for none. */
const io_torch_type *io_torch_type_at(int64_t i);

/* A value; others are named by their place in the list of all. */
typedef struct io_value {
    uint8_t kind;
    bool is_ordered; /* a dict that BUILD may be applied to */
    int count;       /* of items; bytes of a text */
    int capacity;
    union {
        int64_t integer; /* also the bool, and the global */
        double real;
        const char *text; /* of the pickle, without an end */
        int *items;
        struct {
            const io_torch_type *type; /* NULL: bytes */
            int key;                   /* a text */
            int64_t count;             /* of elements */
        } storage;
        struct {
            const io_torch_type *type;
            int storage, size, stride; /* values; the latter are tuples */
            int64_t offset;
        } tensor;
    } is;
} io_value;

typedef struct io_pickle {
    const tern_file *file; /* for messages */
    const unsigned char *bytes;
    size_t n, at;
    io_value *values; /* of count */
    int count, capacity;
    int *stack, *memo; /* the memo: -1 for nothing */
    int depth, stack_capacity, memo_count;
    int *marks;
    int n_marks, marks_capacity;
} io_pickle;

/* Run it; the result is the value at *root. Values are freed by io_pickle_free, also after errors. */
tern_status io_pickle_run(io_pickle *p, int *root);
void io_pickle_free(io_pickle *p);
bool io_text_is(const io_pickle *p, int value, const char *text);

#endif
