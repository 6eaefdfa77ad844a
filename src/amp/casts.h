/* casts.h -- casts that autocast caches while its outermost block is open. */
#ifndef TERN_SRC_AMP_CASTS_H
#define TERN_SRC_AMP_CASTS_H
#include "tensor/op.h"

/* Returns the cached cast of leaf's current version to that dtype, or NULL. */
tern_tensor *tern_casts_find(const tern_tensor *leaf, tern_dtype to);
/* Caches the cast `made` of leaf, with references to both. */
tern_status tern_casts_keep(tern_tensor *leaf, tern_tensor *made);
/* Returns x in that dtype: the cached cast, or a new one, which is cached if x is a leaf that
 * autograd records. */
tern_tensor *tern_casts_make(tern_tensor *x, tern_dtype to);
/* Returns whether two device names are of one kind, as "cuda" and "cuda:1". */
bool tern_casts_same_kind(const char *a, const char *b);
/* Returns the dtype to which autocast casts on a device, or TERN_DTYPE_DEFAULT if autocast is off
 * there. */
tern_dtype tern_casts_dtype_on(const char *device);
/* Returns the dtype to which autocast casts on x's device, or TERN_DTYPE_DEFAULT if autocast is off
 * there. */
tern_dtype tern_casts_dtype(const tern_tensor *x);
/* Returns how many casts this thread has made one by one. */
unsigned tern_casts_made(void);
/* Lets modules that run inside of autocast cast their weights together from now on
 * (cast_weights.c). */
void tern_casts_register(void);

#endif
