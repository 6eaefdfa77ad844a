/* create.c -- names of create.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* Integers give int64, also where they are computed as reals. */
static tern_tensor *arange(tern_scalar start, tern_scalar end, tern_scalar step, tern_dtype dtype,
                           const char *device)
{
    bool real = start.kind == TERN_SCALAR_REAL || end.kind == TERN_SCALAR_REAL ||
                step.kind == TERN_SCALAR_REAL;
    if (dtype == TERN_DTYPE_DEFAULT)
        dtype = real ? TERN_F32 : TERN_I64;
    return tern_arange(tern_scalar_to_real(start), tern_scalar_to_real(end),
                       tern_scalar_to_real(step), dtype, device);
}

/* The dtype of argument i, or that of the first one. */
#define DTYPE_LIKE(i) (a[i].given ? a[i].dtype : tern_dtype_of(T(0)))

#define TABLE  names_create
#define FAMILY "names/create.def"
#include "names/expand.h"
