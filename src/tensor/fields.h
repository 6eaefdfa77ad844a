/* fields.h -- the fields of a tensor and of its storage. */
#ifndef TERN_TENSOR_FIELDS_H
#define TERN_TENSOR_FIELDS_H
#include "base/dtype.h"
#include "base/handle.h"
#include <tern/tensor.h>

struct tern_place;
struct tern_block;

/* Elements in a device's memory, shared by a tensor and its views. */
typedef struct tern_storage {
    atomic_int refs;
    atomic_bool handed_out; /* the program has the address: it writes without version's counting */
    atomic_llong version;   /* counts writes in place */
    struct tern_place *place;
    struct tern_block *block; /* NULL for no elements */
    size_t emptied;           /* bytes of the block that it gave back (storage.h) */
    /* All of the memory is so many rows of so many elements, in multiples of TERN_ROW_MULTIPLE of
     * both (tern_tensor_padded); 0: another layout. */
    int64_t padded[2];
    bool zero_padded; /* what is more is zeros */
} tern_storage;

typedef struct tern_history tern_history; /* tensor/history.h */

struct tern_tensor {
    tern_handle handle;
    tern_dtype dtype;
    int ndim;
    bool requires_grad; /* asked for, or inherited from inputs */
    bool contiguous;
    atomic_uchar speculation; /* of a norm's weight (fuse/speculative.c): a dtype, 0 for none */
    int64_t numel;
    int64_t offset; /* first element in the storage */
    tern_storage *storage;
    _Atomic(tern_history *) history; /* NULL for most; threads that share x may make it */
    int64_t shape[TERN_MAX_DIMS];
    int64_t stride[TERN_MAX_DIMS];
};

/* *shape = x's shape: tern_shape_of for where every nanosecond counts. */
static inline void tern_read_shape(const tern_tensor *x, tern_shape *shape)
{
    shape->ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++)
        shape->dims[i] = x->shape[i];
}
/* Whether x is a tensor; an error that names function and argument if it is NULL or gone. */
bool tern_given_slow(const tern_tensor *x, const char *function, const char *argument);
static inline bool tern_given(const tern_tensor *x, const char *function, const char *argument)
{
    return (x && !tern_handle_is_gone(&x->handle)) || tern_given_slow(x, function, argument);
}

#endif
