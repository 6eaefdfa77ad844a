/* header.h -- the headers of tensors, which stay allocated after their tensors are freed
 * (header.c). */
#ifndef TERN_TENSOR_HEADER_H
#define TERN_TENSOR_HEADER_H
#include "base/thread.h"
#include "tensor/fields.h"

/* A list of the headers of freed tensors, linked by handle.next. */
typedef struct tern_headers {
    tern_handle *first, *last;
    int count;
} tern_headers;
/* Returns a header without history that requires no gradient; NULL after an error. */
tern_tensor *tern_header_new(void);
/* Keeps the headers of freed tensors for later tensors of the thread. */
void tern_headers_put(tern_headers_kept *kept, const tern_headers *ended);
/* Records the text with which errors describe a tensor that is being freed. */
void tern_header_describe(tern_tensor *x);
/* Returns the storage without memory that all freed tensors of a place share. tern_gone_last is the
 * storage that the last call returned. */
tern_storage *tern_gone_storage(struct tern_place *place);
extern _Atomic(tern_storage *) tern_gone_last;
/* The first function releases x, and adds its header to `ended` if x is freed. After one or more
 * such calls, the second function keeps the headers in `ended` (storage.c). */
void tern_release_into(tern_tensor *x, tern_headers *ended);
void tern_released(tern_headers_kept *kept, const tern_headers *ended);

#endif
