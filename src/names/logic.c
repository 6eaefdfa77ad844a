/* logic.c -- names of logic.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* Returns a number as a tensor for an operation with x: in the dtype of x, or in the default dtype
 * if that of x would truncate it. */
static tern_tensor *number_like(const names_argument *a, const tern_tensor *x)
{
    bool wide =
        a->scalar.kind == TERN_SCALAR_REAL && !tern_dtype_is_floating_point(tern_dtype_of(x));
    return tern_tensor_scalar(a->scalar, wide ? tern_get_default_dtype() : tern_dtype_of(x),
                              tern_device(x));
}

#define TABLE  names_logic
#define FAMILY "names/logic.def"
#include "names/expand.h"
