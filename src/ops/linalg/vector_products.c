/* vector_products.c -- products, distances and norms of vectors. */
#include "tensor/op.h"
#include <tern/ops.h>

/* ---- cross products ------------------------------------------------------------------------ */

/* Checks that x and y have equally many dims and size 3 along dim; other dims broadcast. */
static tern_status check_cross(const tern_tensor *x, const tern_tensor *y, int dim)
{
    if (x->ndim != y->ndim)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_linalg_cross: linalg.cross: inputs must have the same number of "
                         "dimensions (%d and %d).",
                         x->ndim, y->ndim);
    int at;
    TERN_TRY(tern_wrap_dim(dim, x->ndim, &at, "tern_linalg_cross"));
    return x->ndim > 0 && x->shape[at] == 3 && y->shape[at] == 3
               ? TERN_OK
               : tern_fail(TERN_ERR_SHAPE,
                           "tern_linalg_cross: linalg.cross: inputs dimension %d must have length "
                           "3. Got %lld and %lld",
                           dim, x->ndim ? (long long)x->shape[at] : 1,
                           y->ndim ? (long long)y->shape[at] : 1);
}

/* y_i = x_(i+1) y_(i+2) - x_(i+2) y_(i+1), indices modulo 3: operands are rolled by -1 and -2. */
static tern_tensor *cross(tern_tensor *x, tern_tensor *y, int dim)
{
    tern_shape one = TERN_DIMS(-1), two = TERN_DIMS(-2), along = TERN_DIMS(dim);
    return tern_sub(tern_mul(tern_roll(x, one, along), tern_roll(y, two, along)),
                    tern_mul(tern_roll(x, two, along), tern_roll(y, one, along)));
}

tern_tensor *tern_linalg_cross(tern_tensor *x, tern_tensor *y, int dim)
{
    TERN_NAMED_IN_ERRORS;
    if (!x || !y) {
        tern_fail_argument_null(__func__, x ? "y" : "x");
        return NULL;
    }
    if (check_cross(x, y, dim) != TERN_OK)
        return NULL;
    tern_dtype dtype = tern_promote_types(x->dtype, y->dtype);
    if (tern_dtype_size(dtype) != 2)
        return cross(x, y, dim);
    /* half precision is computed in float32 and rounded once, at the end */
    return tern_to_dtype(cross(tern_to_dtype(x, TERN_F32), tern_to_dtype(y, TERN_F32), dim), dtype);
}

/* Without a dim the product is along the first dim of size 3. */
tern_tensor *tern_cross(tern_tensor *x, tern_tensor *y, tern_optional_int dim)
{
    TERN_COMPOSED("cross", WIDEST, &x, &y);
    int at = 0;
    if (dim.set)
        return tern_linalg_cross(x, y, (int)dim.value);
    while (x && at < x->ndim && x->shape[at] != 3)
        at++;
    if (x && at == x->ndim)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_cross: no dimension of size 3 in input");
    return tern_linalg_cross(x, y, at);
}

/* ---- sums of products, norms --------------------------------------------------------------- */

/* sum x y over dim, after broadcasting */
tern_tensor *tern_linalg_vecdot(tern_tensor *x, tern_tensor *y, int dim)
{
    TERN_COMPOSED("linalg_vecdot", LOWER, &x, &y);
    return tern_sum_dim(tern_mul(x, y), TERN_DIMS(dim), false);
}

/* |x - y|_p over all elements */
tern_tensor *tern_dist(tern_tensor *x, tern_tensor *y, double p)
{
    TERN_COMPOSED("dist", FLOAT32, &x, &y);
    return tern_norm(tern_sub(x, y), p);
}

/* Scales each slice along dim whose p-norm exceeds maxnorm by maxnorm / (norm + 1e-7), with
 * PyTorch's constant; other slices are unchanged. */
tern_tensor *tern_renorm(tern_tensor *x, double p, int dim, double maxnorm)
{
    TERN_COMPOSED("renorm", FLOAT32, &x);
    const char *function = "tern_renorm";
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (!(p > 0))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: renorm: non-positive-norm not supported (%g)",
                              function, p);
    if (!(maxnorm >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: renorm: expected maxnorm to be >= 0 but got %g", function,
                              maxnorm);
    if (x->ndim < 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: renorm: input needs at least 2 dimensions, got %d dimensions",
                              function, x->ndim);
    int at;
    if (tern_wrap_dim(dim, x->ndim, &at, function) != TERN_OK)
        return NULL;
    tern_shape others = {.ndim = 0};
    for (int d = 0; d < x->ndim; d++)
        if (d != at)
            others.dims[others.ndim++] = d;
    tern_tensor *length = tern_norm_dim(x, p, others, true);
    tern_tensor *scale = tern_rdiv_scalar(tern_add_scalar(length, tern_scalar_real(1e-7)),
                                          tern_scalar_real(maxnorm));
    tern_tensor *is_long = tern_gt_scalar(length, tern_scalar_real(maxnorm));
    return tern_mul(x, tern_where(is_long, scale, length ? tern_ones_like(length) : NULL));
}
