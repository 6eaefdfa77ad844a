/* blob.h -- tensors in memory that the program owns, for interop.c and dlpack.c. */
#ifndef TERN_TENSOR_BLOB_H
#define TERN_TENSOR_BLOB_H
#include "base/callback.h"
#include <tern/interop.h>

typedef struct tern_blob {
    const char *function; /* for messages */
    const char *device;
    void *data;
    tern_dtype dtype;
    tern_shape shape;
    const int64_t *strides; /* NULL: row-major */
    int64_t offset;         /* elements */
    tern_deleter deleter;   /* called when the memory is no longer used: at once if there are no
                             * elements, never if the function fails */
    void *user;
} tern_blob;
/* Returns a tensor with one reference, in no scope; NULL after an error. */
tern_tensor *tern_blob_tensor(const tern_blob *blob);

#endif
