/* linalg.c -- names of linalg.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* PyTorch gives a copy of A, too. */
static int triangular_solve(const names_argument *a, tern_tensor **out, int capacity)
{
    tern_tensor *x = tern_triangular_solve(T(0), T(1), B(2), B(3), B(4));
    tern_tensor *results[] = {x, x ? tern_clone(T(1)) : NULL};
    return names_several(results[1] ? TERN_OK : TERN_ERR_STATE, results, 2, out, capacity);
}

#define TABLE  names_linalg
#define FAMILY "names/linalg.def"
#include "names/expand.h"
