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
    atomic_bool handed_out; /* the program has the address, and can write without changing
                             * version */
    atomic_llong version;   /* the number of writes in place */
    struct tern_place *place;
    struct tern_block *block; /* NULL if there are no elements, or if the memory was released */
    size_t emptied;           /* bytes of the block that tern_storage_empty freed, else 0 */
    /* Rows and columns of the tensor that tern_tensor_padded created in this storage; the memory
     * has both rounded up to multiples of TERN_ROW_MULTIPLE. 0 for every other storage. */
    int64_t padded[2];
    bool zero_padded; /* the elements of the padding are zeros */
} tern_storage;

typedef struct tern_history tern_history; /* tensor/history.h */

struct tern_tensor {
    tern_handle handle;
    tern_dtype dtype;
    int ndim;
    bool requires_grad; /* set by the program, or inherited from inputs */
    bool contiguous;
    atomic_uchar speculation; /* of a norm's weight (fuse/speculative.c): output's dtype, or 0 */
    int64_t numel;
    int64_t offset; /* first element in the storage */
    tern_storage *storage;
    _Atomic(tern_history *) history; /* NULL for most tensors; threads that share x may create it */
    int64_t shape[TERN_MAX_DIMS];
    int64_t stride[TERN_MAX_DIMS];
};

/* Sets *shape to x's shape. It is faster than tern_shape_of, which returns the struct. */
static inline void tern_read_shape(const tern_tensor *x, tern_shape *shape)
{
    shape->ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++)
        shape->dims[i] = x->shape[i];
}
/* Returns whether x is a tensor. If x is NULL or was freed, records an error that names function
 * and argument. */
bool tern_given_slow(const tern_tensor *x, const char *function, const char *argument);
static inline bool tern_given(const tern_tensor *x, const char *function, const char *argument)
{
    return (x && !tern_handle_is_gone(&x->handle)) || tern_given_slow(x, function, argument);
}

#endif
