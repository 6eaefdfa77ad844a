/* types.h -- the names of element types in files. */
#ifndef TERN_IO_TYPES_H
#define TERN_IO_TYPES_H
#include <tern/tensor.h>

typedef struct io_type {
    const char *name; /* safetensors' name */
    int bits;
    tern_dtype dtype; /* TERN_DTYPE_DEFAULT if tern has no such dtype */
    char numpy[4];    /* NumPy's descr without the byte order, or "" */
} io_type;

/* These return NULL if there is no such type. */
const io_type *io_type_named(const char *name);
const io_type *io_type_numpy(const char *descr);
const io_type *io_type_of(tern_dtype dtype);
/* Returns the rank by which the safetensors library sorts types in a file. */
int io_type_rank(const io_type *type);

#endif
