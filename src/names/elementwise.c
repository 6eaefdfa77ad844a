/* elementwise.c -- names of elementwise.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <math.h>

static tern_tensor *clamp(tern_tensor *x, const names_argument *low, const names_argument *high)
{
    return tern_clamp(x, low->given ? tern_scalar_to_real(low->scalar) : -INFINITY,
                      high->given ? tern_scalar_to_real(high->scalar) : INFINITY);
}

/* Fills by where, so that a value given as a tensor gets a gradient. */
static tern_tensor *masked_fill(tern_tensor *x, tern_tensor *mask, tern_tensor *value)
{
    if (tern_dim(value) != 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_masked_fill: masked_fill only supports a 0-dimensional value "
                              "tensor, but got tensor with %d dimension(s).",
                              tern_dim(value));
    return tern_where(mask, tern_to_dtype(value, tern_dtype_of(x)), x);
}

/* Returns alpha x in the promoted dtype of x and y, for x + alpha y and similar operations. */
static tern_tensor *scaled(tern_tensor *x, tern_tensor *y, tern_scalar alpha)
{
    if (!x || !y)
        return NULL;
    return tern_mul_scalar(tern_to_dtype(x, tern_result_type(x, y)), alpha);
}

#define TABLE  names_elementwise
#define FAMILY "names/elementwise.def"
#include "names/expand.h"
