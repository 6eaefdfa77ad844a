/* combinations.c -- Kronecker products, block diagonals, Vandermonde matrices; Cartesian products
 * and combinations. */
#include "device/device.h"
#include "tensor/op.h"
#include <tern/autograd.h>
#include <tern/ops.h>

enum { MOST = 64 }; /* most tensors of a list */

static tern_status check_list(tern_tensor *const *tensors, int n, const char *function)
{
    if (n < 0 || n > MOST || (!tensors && n > 0))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: 0 to %d tensors can be given, not %d", function,
                         MOST, n);
    for (int i = 0; i < n; i++)
        if (!tensors[i])
            return tern_fail_argument_null(function, "a tensor");
    return TERN_OK;
}

static tern_status check_vector(const tern_tensor *x, const char *function)
{
    tern_shape shape = tern_shape_of(x);
    return x->ndim == 1 ? TERN_OK
                        : tern_fail(TERN_ERR_SHAPE, "%s: Expect a 1D vector, but got shape %s",
                                    function, TERN_SHAPE_TEXT(&shape));
}

/* ---- matrices ------------------------------------------------------------------------------ */

/* Returns x with a dim of size 1 before, or with `behind` after, each of its dims. */
static tern_tensor *spread(tern_tensor *x, int ndim, bool behind)
{
    tern_shape shape = {.ndim = 2 * ndim};
    for (int d = 0; d < ndim; d++) {
        int at = d - (ndim - x->ndim);
        shape.dims[2 * d + !behind] = at < 0 ? 1 : x->shape[at];
        shape.dims[2 * d + behind] = 1;
    }
    return tern_reshape(x, shape);
}

/* z[i p + k][j q + l] = x[i][j] y[k][l] for y (p, q): an outer product with alternating dims. */
tern_tensor *tern_kron(tern_tensor *x, tern_tensor *y)
{
    TERN_NAMED_IN_ERRORS;
    if (!x || !y) {
        tern_fail_argument_null(__func__, x ? "y" : "x");
        return NULL;
    }
    int ndim = x->ndim > y->ndim ? x->ndim : y->ndim;
    if (2 * ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_kron: at most %d dims, not %d",
                              TERN_MAX_DIMS / 2, ndim);
    tern_tensor *z = tern_mul(spread(x, ndim, true), spread(y, ndim, false));
    tern_shape shape = {.ndim = ndim};
    for (int d = 0; z && d < ndim; d++)
        shape.dims[d] = z->shape[2 * d] * z->shape[2 * d + 1];
    return z ? tern_reshape(z, shape) : NULL;
}

/* Pads each matrix with zeros to its left and right, and concatenates the rows. */
tern_tensor *tern_block_diag(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    tern_tensor *rows[MOST];
    int64_t width = 0, before = 0;
    if (check_list(tensors, n, function) != TERN_OK)
        return NULL;
    for (int i = 0; i < n; i++) {
        if (tensors[i]->ndim > 2)
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "%s: torch.block_diag: Input tensors must have 2 or fewer "
                                  "dimensions. Input %d has %d dimensions",
                                  function, i, tensors[i]->ndim);
        rows[i] = tern_atleast_2d(tensors[i]);
        width += rows[i] ? rows[i]->shape[1] : 0;
    }
    for (int i = 0; i < n && rows[i]; i++) {
        int64_t high = rows[i]->shape[0], wide = rows[i]->shape[1];
        tern_tensor *left = tern_new_zeros(rows[i], TERN_SHAPE(high, before));
        tern_tensor *right = tern_new_zeros(rows[i], TERN_SHAPE(high, width - before - wide));
        rows[i] = tern_cat((tern_tensor *[]){left, rows[i], right}, 3, 1);
        before += wide;
    }
    return n ? tern_cat(rows, n, 0) : tern_empty(TERN_SHAPE(1, 0), TERN_F32, NULL);
}

/* y[i][j] = x[i]^j by cumulative products of x; columns in descending powers unless increasing. */
tern_tensor *tern_vander(tern_tensor *x, int64_t n, bool increasing)
{
    TERN_COMPOSED("vander", NONE, &x);
    const char *function = "tern_vander";
    if (!x || x->ndim != 1)
        return tern_fail_null(TERN_ERR_SHAPE, "%s: x must be a one-dimensional tensor.", function);
    n = n < 0 ? x->numel : n;
    if (!tern_dtype_is_floating_point(x->dtype))
        x = tern_to_dtype(x, TERN_I64);
    if (!x || n == 0)
        return x ? tern_new_zeros(x, TERN_SHAPE(x->numel, 0)) : NULL;
    tern_tensor *powers = tern_new_ones(x, TERN_SHAPE(x->numel, 1));
    if (n > 1) {
        tern_tensor *factors = tern_expand(tern_unsqueeze(x, 1), TERN_SHAPE(x->numel, n - 1));
        powers = tern_cat((tern_tensor *[]){powers, tern_cumprod(factors, 1)}, 2, 1);
    }
    return increasing ? powers : tern_flip(powers, TERN_DIMS(1));
}

/* ---- sets ---------------------------------------------------------------------------------- */

tern_tensor *tern_cartesian_prod(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *all[MOST];
    if (check_list(tensors, n, __func__) != TERN_OK)
        return NULL;
    for (int i = 0; i < n; i++)
        if (check_vector(tensors[i], __func__) != TERN_OK)
            return NULL;
    if (n == 1)
        return tensors[0];
    if (tern_meshgrid(tensors, n, TERN_INDEXING_IJ, all) != TERN_OK)
        return NULL;
    for (int i = 0; i < n; i++)
        all[i] = tern_flatten(all[i], 0, -1);
    return tern_stack(all, n, 1);
}

/* Returns where the numbers of a grid of indices increase, or with `equals` do not decrease. */
static tern_tensor *ascending(tern_tensor *const *grid, int n, bool equals)
{
    tern_tensor *mask = tern_ones(tern_shape_of(grid[0]), TERN_BOOL, tern_device(grid[0]));
    for (int i = 0; i + 1 < n; i++)
        mask = tern_logical_and(mask, equals ? tern_le(grid[i], grid[i + 1])
                                             : tern_lt(grid[i], grid[i + 1]));
    return mask;
}

/* Selects those of all r-tuples whose indices increase: each combination once, in order. */
tern_tensor *tern_combinations(tern_tensor *x, int r, bool with_replacement)
{
    const char *function = "tern_combinations";
    tern_tensor *of[TERN_MAX_DIMS], *grid[TERN_MAX_DIMS];
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (check_vector(x, function) != TERN_OK)
        return NULL;
    if (r < 0 || r > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expect a non-negative number, but got %d (%d at most)", function,
                              r, TERN_MAX_DIMS);
    if (r == 0)
        return tern_new_empty(x, TERN_SHAPE(0));
    tern_tensor *mask = NULL;
    TERN_NO_GRAD {
        tern_tensor *places = tern_arange(0, (double)x->numel, 1, TERN_I64, tern_device(x));
        for (int i = 0; i < r; i++)
            of[i] = places;
        if (tern_meshgrid(of, r, TERN_INDEXING_IJ, grid) == TERN_OK)
            mask = ascending(grid, r, with_replacement);
    }
    for (int i = 0; i < r; i++)
        of[i] = x;
    if (!mask || tern_meshgrid(of, r, TERN_INDEXING_IJ, grid) != TERN_OK)
        return NULL;
    for (int i = 0; i < r; i++)
        grid[i] = tern_masked_select(grid[i], mask);
    return tern_stack(grid, r, 1);
}
