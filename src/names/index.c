/* index.c -- names of index.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <tern/ops.h>

/* As a tuple: a vector of coordinates for each dim. */
static int nonzero(tern_tensor *x, bool as_tuple, tern_tensor **out, int capacity)
{
    if (!as_tuple)
        return names_one(tern_nonzero(x), out, capacity);
    return tern_unbind(tern_nonzero(tern_atleast_1d(x)), 1, out, capacity);
}

/* A number as a tensor beside x: of x's type, or float32 where that would cut it. */
static tern_tensor *number_like(const names_argument *a, const tern_tensor *x)
{
    bool wide =
        a->scalar.kind == TERN_SCALAR_REAL && !tern_dtype_is_floating_point(tern_dtype_of(x));
    return tern_tensor_scalar(a->scalar, wide ? TERN_F32 : tern_dtype_of(x), tern_device(x));
}

#define TABLE  names_index
#define FAMILY "names/index.def"
#include "names/expand.h"
