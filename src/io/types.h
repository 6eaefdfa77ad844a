/* types.h -- element types as files call them. */
#ifndef TERN_IO_TYPES_H
#define TERN_IO_TYPES_H
#include <tern/tensor.h>

typedef struct io_type {
    const char *name; /* safetensors' */
    int bits;
    tern_dtype dtype; /* TERN_DTYPE_DEFAULT: tern has none */
    char numpy[4];    /* of a descr, behind the byte order; "": NumPy has none */
} io_type;

/* NULL: there is none. */
const io_type *io_type_named(const char *name);
const io_type *io_type_numpy(const char *descr);
const io_type *io_type_of(tern_dtype dtype);
/* The place in the order in which the reference sorts types in a file. */
int io_type_rank(const io_type *type);

#endif
