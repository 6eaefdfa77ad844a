/* header.h -- the headers of tensors: made, and kept once the tensors are gone (header.c). */
#ifndef TERN_TENSOR_HEADER_H
#define TERN_TENSOR_HEADER_H
#include "base/thread.h"
#include "tensor/fields.h"

/* The headers of tensors that ended, by handle.next. */
typedef struct tern_headers {
    tern_handle *first, *last;
    int count;
} tern_headers;
/* A header that has no history and is not asked for a gradient; NULL after an error. */
tern_tensor *tern_header_new(void);
/* Keeps the headers of tensors that ended, for later tensors of the thread. */
void tern_headers_put(tern_headers_kept *kept, const tern_headers *ended);
/* Notes what errors say of a tensor that ends. */
void tern_header_describe(tern_tensor *x);
/* The storage without memory that the tensors of a place that ended share; the last that was asked
 * for. */
tern_storage *tern_gone_storage(struct tern_place *place);
extern _Atomic(tern_storage *) tern_gone_last;
/* tern_release of several: of each, and once after it (storage.c). */
void tern_release_into(tern_tensor *x, tern_headers *ended);
void tern_released(tern_headers_kept *kept, const tern_headers *ended);

#endif
