/* casts.h -- casts that autocast keeps while its outermost block is open. */
#ifndef TERN_SRC_AMP_CASTS_H
#define TERN_SRC_AMP_CASTS_H
#include "tensor/op.h"

/* The one of leaf to a type, of leaf as it is now; NULL: there is none. */
tern_tensor *tern_casts_find(const tern_tensor *leaf, tern_dtype to);
/* Keep made, and leaf. */
tern_status tern_casts_keep(tern_tensor *leaf, tern_tensor *made);
/* x in that type: the cast that is kept, or a new one, which is kept where x is a leaf that
 * autograd records. */
tern_tensor *tern_casts_make(tern_tensor *x, tern_dtype to);
/* Whether two devices, as strings, are of one kind. */
bool tern_casts_same_kind(const char *a, const char *b);
/* What operations on a device are cast to; TERN_DTYPE_DEFAULT for nothing. */
tern_dtype tern_casts_dtype_on(const char *device);
/* What autocast casts to where x is; TERN_DTYPE_DEFAULT for nothing. */
tern_dtype tern_casts_dtype(const tern_tensor *x);
/* How many this thread made one by one so far. */
unsigned tern_casts_made(void);
/* From now on modules that run within a block of autocast have their weights cast together
 * (cast_weights.c). */
void tern_casts_register(void);

#endif
