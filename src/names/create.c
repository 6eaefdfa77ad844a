/* create.c -- names of create.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* The dtype of argument i, or that of the first one. */
#define DTYPE_LIKE(i) (a[i].given ? a[i].dtype : tern_dtype_of(T(0)))

#define TABLE  names_create
#define FAMILY "names/create.def"
#include "names/expand.h"
