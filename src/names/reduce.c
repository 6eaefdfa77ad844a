/* reduce.c -- names of reduce.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* Returns the result of a reduction over all dims, with keepdim reshaped to size 1 for each dim. */
static tern_tensor *kept(tern_tensor *result, const tern_tensor *x, bool keepdim)
{
    tern_shape ones = tern_shape_of(x);
    for (int i = 0; i < ones.ndim; i++)
        ones.dims[i] = 1;
    return keepdim ? tern_view(result, ones) : result;
}

/* Returns a norm with p a number, "fro", or "nuc" for a matrix of two dims. */
static tern_tensor *norm_of(tern_tensor *x, const names_argument *p, tern_shape dims, bool keepdim)
{
    static const char *const texts[] = {"fro", "nuc"};
    int choice = p->text ? names_choice(p, "p", texts, 2) : 0;
    if (choice < 0)
        return NULL;
    if (choice == 1) {
        for (int d = 0; dims.ndim == 0 && d < tern_dim(x); d++)
            dims.dims[d] = d;
        dims.ndim = dims.ndim ? dims.ndim : tern_dim(x);
        return tern_nuclear_norm(x, dims, keepdim);
    }
    return tern_norm_dim(x, p->text ? 2 : tern_scalar_to_real(p->scalar), dims, keepdim);
}

#define TWO(call)            names_several(call, two, 2, out, capacity)
#define ARG_OF_ALL(function) kept(function(T(0)), T(0), B(2))

#define TABLE  names_reduce
#define FAMILY "names/reduce.def"
#include "names/expand.h"
