/* linalg.c -- names of linalg.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* As in PyTorch the second result is a copy of A. */
static int triangular_solve(const names_argument *a, tern_tensor **out, int capacity)
{
    tern_tensor *x = tern_triangular_solve(T(0), T(1), B(2), B(3), B(4));
    tern_tensor *results[] = {x, x ? tern_clone(T(1)) : NULL};
    return names_several(results[1] ? TERN_OK : TERN_ERR_STATE, results, 2, out, capacity);
}

static int svd(const names_argument *a, tern_tensor **out, int capacity)
{
    tern_tensor *results[3];
    return names_several(tern_linalg_svd(T(0), B(1), results), results, 3, out, capacity);
}

/* Without ord computes the root of the sum of squares; with ord a matrix norm for two dims. */
static tern_tensor *norm(tern_tensor *x, const names_argument *ord, const names_argument *dim,
                         bool keepdim)
{
    tern_shape dims = tern_shape_from(dim->count, dim->ints);
    double p = ord->given ? tern_scalar_to_real(ord->scalar) : 2;
    int count = dim->given ? dims.ndim : tern_dim(x);
    if (ord->given && !dim->given && count != 1 && count != 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_linalg_norm: linalg.norm: If dim is not specified but ord is, "
                              "the input must be 1D or 2D. Got %dD.",
                              count);
    return ord->given && count == 2 ? tern_linalg_matrix_norm_scalar(x, p, dims, keepdim)
                                    : tern_linalg_vector_norm(x, p, dims, keepdim);
}

static tern_tensor *norm_text(tern_tensor *x, tern_matrix_norm_ord ord, tern_shape dims,
                              bool keepdim)
{
    if (x && dims.ndim == 0 && tern_dim(x) != 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_linalg_norm: linalg.norm: If dim is not specified but ord is, "
                              "the input must be 1D or 2D. Got %dD.",
                              tern_dim(x));
    return tern_linalg_matrix_norm(x, ord, dims, keepdim);
}

#define TABLE  names_linalg
#define FAMILY "names/linalg.def"
#include "names/expand.h"
