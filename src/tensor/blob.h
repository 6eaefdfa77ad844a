/* blob.h -- a tensor on memory that is not tern's, as interop.c and dlpack.c make it. */
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
    tern_deleter deleter;   /* called by nobody if this fails, at once for no elements */
    void *user;
} tern_blob;
/* With one reference, in no scope. */
tern_tensor *tern_blob_tensor(const tern_blob *blob);

#endif
