/* index.c -- names of index.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* With as_tuple the result is a vector of coordinates for each dim. */
static int nonzero(tern_tensor *x, bool as_tuple, tern_tensor **out, int capacity)
{
    if (!as_tuple)
        return names_one(tern_nonzero(x), out, capacity);
    return tern_unbind(tern_nonzero(tern_atleast_1d(x)), 1, out, capacity);
}

#define TABLE  names_index
#define FAMILY "names/index.def"
#include "names/expand.h"
