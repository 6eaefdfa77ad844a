/* distance.c -- cosine_similarity, and distances of pairs: pairwise_distance, cdist, pdist. */
#include "base/checked.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduction.h"
#include <math.h>
#include <stdlib.h>

/* Returns x / max(|x|, eps) along dim. The difference max(|x|, eps) - |x| is added as a constant,
 * so that the gradient of the norm passes where |x| < eps too, as in PyTorch 2.15. The norm works
 * for vectors of any length. */
static tern_tensor *to_unit(tern_tensor *x, int dim, double eps)
{
    tern_tensor *norm = tern_norm_dim(x, 2, TERN_DIMS(dim), true), *rise = NULL;
    TERN_NO_GRAD
        rise = tern_sub(tern_clamp(norm, eps, INFINITY), norm);
    return tern_div(x, tern_add(norm, rise));
}

static tern_status check_not_null(tern_tensor *x1, tern_tensor *x2, const char *function)
{
    return x1 && x2 ? TERN_OK : tern_fail_argument_null(function, x1 ? "x2" : "x1");
}

/* Returns sum x1 x2 / (max(|x1|, eps) max(|x2|, eps)) over dim, after broadcasting. */
tern_tensor *tern_cosine_similarity(tern_tensor *x1, tern_tensor *x2, int dim, double eps)
{
    TERN_COMPOSED("cosine_similarity", FLOAT32, &x1, &x2);
    if (check_not_null(x1, x2, "tern_cosine_similarity") != TERN_OK)
        return NULL;
    tern_dtype common = tern_promote_types(x1->dtype, x2->dtype);
    if (!tern_dtype_is_floating_point(common))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_cosine_similarity: expected common dtype to be floating point, "
                              "yet common dtype is %s",
                              tern_dtype_name(common));
    if (!(eps >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_cosine_similarity: eps must be non-negative, got: %g", eps);
    tern_shape a = tern_shape_of(x1), b = tern_shape_of(x2), shape;
    if (tern_shape_broadcast(&a, &b, &shape, "tern_cosine_similarity") != TERN_OK)
        return NULL;
    tern_tensor *wide1 = tern_loss_wide(tern_to_dtype(x1, common));
    tern_tensor *wide2 = tern_loss_wide(tern_to_dtype(x2, common));
    tern_tensor *u1 = to_unit(tern_expand(wide1, shape), dim, eps);
    tern_tensor *u2 = to_unit(tern_expand(wide2, shape), dim, eps);
    tern_tensor *y = tern_sum_dim(tern_mul(u1, u2), TERN_DIMS(dim), false);
    return tern_loss_reduce(y, TERN_REDUCTION_NONE, x1, x2);
}

/* Returns |x1 - x2 + eps|_p over the last dim; eps keeps the norm away from 0, where it has no
 * gradient. */
tern_tensor *tern_pairwise_distance(tern_tensor *x1, tern_tensor *x2, double p, double eps,
                                    bool keepdim)
{
    TERN_COMPOSED("pairwise_distance", FLOAT32, &x1, &x2);
    if (check_not_null(x1, x2, "tern_pairwise_distance") != TERN_OK)
        return NULL;
    tern_tensor *difference = tern_sub(tern_loss_wide(x1), tern_loss_wide(x2));
    difference = tern_add_scalar(difference, tern_scalar_real(eps));
    tern_tensor *y = tern_norm_dim(difference, p, TERN_DIMS(-1), keepdim);
    return tern_loss_reduce(y, TERN_REDUCTION_NONE, x1, x2);
}

/* ---- all pairs --------------------------------------------------------------------------- */

enum { SMALL = 25 }; /* up to this number of points cdist computes differences, as in PyTorch */

static tern_status check_points(const tern_tensor *x, const char *name, double p)
{
    if (!tern_dtype_is_floating_point(x->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_cdist: cdist only supports floating-point dtypes, %s got: %s", name,
                         tern_dtype_name(x->dtype));
    if (x->ndim < 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_cdist: cdist only supports at least 2D tensors, %s got: %dD", name,
                         x->ndim);
    if (!(p >= 0))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_cdist: cdist only supports non-negative p values, not %g", p);
    return TERN_OK;
}

/* Returns sqrt(|a|^2 + |b|^2 - 2 a b^T), which needs one matrix product and no tensor of all
 * differences (P, R, M). For points that are close, rounding can make the sum negative: the
 * distance and its gradient are then 0. */
static tern_tensor *euclidean(tern_tensor *x1, tern_tensor *x2)
{
    tern_tensor *a = tern_sum_dim(tern_square(x1), TERN_DIMS(-1), true);
    tern_tensor *b = tern_sum_dim(tern_square(x2), TERN_DIMS(-1), true);
    tern_tensor *product = tern_matmul(x1, tern_transpose(x2, -2, -1));
    tern_tensor *y = tern_add(a, tern_transpose(b, -2, -1));
    y = tern_sub(y, tern_mul_scalar(product, tern_scalar_int(2)));
    tern_tensor *none = tern_le_scalar(y, tern_scalar_int(0));
    y = tern_sqrt(tern_masked_fill(y, none, tern_scalar_int(1)));
    return tern_masked_fill(y, none, tern_scalar_int(0));
}

/* Returns y[i][j] = |x1[i] - x2[j]|_p for all pairs of (..., P, M) and (..., R, M). For M = 0 every
 * distance is 0, for any p. */
tern_tensor *tern_cdist(tern_tensor *x1, tern_tensor *x2, double p)
{
    TERN_COMPOSED("cdist", FLOAT32, &x1, &x2);
    tern_tensor *y;
    if (check_not_null(x1, x2, "tern_cdist") != TERN_OK || check_points(x1, "X1", p) != TERN_OK ||
        check_points(x2, "X2", p) != TERN_OK)
        return NULL;
    int64_t width = x1->shape[x1->ndim - 1];
    if (width != x2->shape[x2->ndim - 1])
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_cdist: X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
            (long long)width, (long long)x2->shape[x2->ndim - 1]);
    tern_tensor *a = tern_loss_wide(x1), *b = tern_loss_wide(x2);
    bool many = x1->shape[x1->ndim - 2] > SMALL || x2->shape[x2->ndim - 2] > SMALL;
    if (p == 2 && many && width > 0)
        y = euclidean(a, b);
    else
        y = tern_norm_of_points(tern_sub(tern_unsqueeze(a, -2), tern_unsqueeze(b, -3)),
                                width ? p : 1);
    return tern_loss_reduce(y, TERN_REDUCTION_NONE, x1, x2);
}

/* Returns the indices of the first (or the second) points of all pairs i < j of n, in PyTorch's
 * order. */
static tern_tensor *pair_indices(const tern_tensor *x, bool second)
{
    int64_t n = x->shape[0], pairs = n > 1 ? tern_size_div(tern_size_mul(n, n - 1), 2) : 0, k = 0;
    int64_t *ends = malloc(tern_size_bytes(tern_size_add(pairs, 1), sizeof *ends));
    if (!ends)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_pdist: out of memory");
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            ends[k++] = second ? j : i;
    tern_tensor *index = tern_from_data(ends, TERN_SHAPE(pairs), TERN_I64, tern_device(x));
    free(ends);
    return index;
}

/* Returns |x[i] - x[j]|_p for all i < j: the upper triangle of cdist(x, x) as a vector. */
tern_tensor *tern_pdist(tern_tensor *x, double p)
{
    TERN_COMPOSED("pdist", FLOAT32, &x);
    if (!x) {
        tern_fail_argument_null("tern_pdist", "x");
        return NULL;
    }
    if (x->ndim != 2 || !tern_dtype_is_floating_point(x->dtype))
        return tern_fail_null(x->ndim != 2 ? TERN_ERR_SHAPE : TERN_ERR_DTYPE,
                              "tern_pdist: pdist only supports 2D tensors of floating-point "
                              "dtypes, got: %dD (%s)",
                              x->ndim, tern_dtype_name(x->dtype));
    if (!(p >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_pdist: pdist only supports non-negative p values, not %g", p);
    tern_tensor *wide = tern_loss_wide(x);
    tern_tensor *first = tern_index(wide, pair_indices(x, false));
    tern_tensor *difference = tern_sub(first, tern_index(wide, pair_indices(x, true)));
    difference = tern_norm_of_points(difference, x->shape[1] ? p : 1);
    return tern_loss_reduce(difference, TERN_REDUCTION_NONE, x, x);
}
