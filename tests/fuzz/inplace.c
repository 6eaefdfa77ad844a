/* inplace.c -- rows of inplace.def. */
#include "fuzz.h"

/* A row without a public name. */
tern_tensor *tern_lerp_number_(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);

/* Also one that there is not. */
#define REDUCE(i) ((tern_reduce_mode)(N(i) & 7))

#define TABLE  fuzz_inplace_rows
#define FAMILY "inplace.def"
#include "names/expand.h"
