/* casts.h -- casts that autocast keeps while its outermost block is open. */
#ifndef TERN_SRC_AMP_CASTS_H
#define TERN_SRC_AMP_CASTS_H
#include "tensor/op.h"

/* The one of leaf to a type, of leaf as it is now; NULL: there is none. */
tern_tensor *tern_casts_find(const tern_tensor *leaf, tern_dtype to);
/* Keep made, and leaf. */
tern_status tern_casts_keep(tern_tensor *leaf, tern_tensor *made);
/* What autocast casts to where x is; TERN_DTYPE_DEFAULT for nothing. */
tern_dtype tern_casts_dtype(const tern_tensor *x);
/* How many this thread made one by one so far. */
unsigned tern_casts_made(void);

#endif
