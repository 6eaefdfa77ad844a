/* diff.c -- differences of adjacent elements, and integrals by the trapezoidal rule.
 *
 *   diff: y[i] = x[i + 1] - x[i], n times
 *   trapezoid: sum (x[i + 1] - x[i]) (y[i] + y[i + 1]) / 2 */
#include "tensor/op.h"
#include <tern/ops.h>

/* Returns dim counted from the front, or -1 after an error. A scalar has no dims. */
static int place_of(int dim, const tern_tensor *x, const char *function)
{
    if (x->ndim == 0) {
        tern_fail(TERN_ERR_SHAPE, "%s: Dimension specified as %d but tensor has no dimensions",
                  function, dim);
        return -1;
    }
    return tern_wrap_dim(dim, x->ndim, &dim, function) == TERN_OK ? dim : -1;
}

/* ---- diff ---------------------------------------------------------------------------------- */

/* Checks that part can be concatenated with x along dim. */
static tern_status check_joined(const tern_tensor *x, const tern_tensor *part, int dim)
{
    if (!part)
        return TERN_OK;
    if (part->ndim != x->ndim)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_diff: diff expects prepend or append to be the same dimension as "
                         "input (%d and %d)",
                         part->ndim, x->ndim);
    for (int d = 0; d < x->ndim; d++)
        if (d != dim && part->shape[d] != x->shape[d])
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_diff: diff expects the shape of tensor to prepend or append to "
                             "match that of input except along the differencing dimension; "
                             "input.size(%d) = %lld, but got tensor.size(%d) = %lld",
                             d, (long long)x->shape[d], d, (long long)part->shape[d]);
    return TERN_OK;
}

/* Returns prepend, x and append concatenated along dim. */
static tern_tensor *joined(tern_tensor *x, int dim, tern_tensor *prepend, tern_tensor *append)
{
    tern_tensor *parts[3];
    int n = 0;
    if (prepend)
        parts[n++] = prepend;
    parts[n++] = x;
    if (append)
        parts[n++] = append;
    return n > 1 ? tern_cat(parts, n, dim) : x;
}

tern_tensor *tern_diff(tern_tensor *x, int64_t n, int dim, tern_tensor *prepend,
                       tern_tensor *append)
{
    TERN_NAMED_IN_ERRORS;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (x->ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_diff: diff expects input to be at least one-dimensional");
    if ((dim = place_of(dim, x, __func__)) < 0 || check_joined(x, prepend, dim) != TERN_OK ||
        check_joined(x, append, dim) != TERN_OK)
        return NULL;
    if (n < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_diff: order must be non-negative but got %lld", (long long)n);
    if (n == 0)
        return tern_clone(x);
    x = joined(x, dim, prepend, append);
    for (; x && n > 0 && x->shape[dim] > 0; n--) {
        int64_t size = x->shape[dim] - 1;
        tern_tensor *after = tern_narrow(x, dim, 1, size), *before = tern_narrow(x, dim, 0, size);
        x = x->dtype == TERN_BOOL ? tern_ne(after, before) : tern_sub(after, before);
    }
    return x;
}

/* ---- integrals ----------------------------------------------------------------------------- */

/* Returns the distances between the points x along the dim of y. */
static tern_tensor *steps(const tern_tensor *y, tern_tensor *x, int dim, const char *function)
{
    tern_shape shape = {.ndim = y->ndim};
    int front = y->ndim - x->ndim;
    if (x->ndim == 1 && x->shape[0] != y->shape[dim])
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: There must be one `x` value for each sample point (%lld and "
                              "%lld)",
                              function, (long long)x->shape[0], (long long)y->shape[dim]);
    for (int d = 0; d < y->ndim; d++)
        shape.dims[d] = x->ndim == 1 ? (d == dim ? x->shape[0] : 1)
                        : d < front  ? 1
                                     : x->shape[d - front];
    if (front > 0 || x->ndim == 1)
        x = tern_view(x, shape);
    return tern_diff(x, 1, dim - y->ndim, NULL, NULL);
}

static tern_tensor *halved(tern_tensor *x)
{
    return tern_div_scalar(x, tern_scalar_int(2));
}

/* Returns twice the areas of the trapezoids. */
static tern_tensor *areas(tern_tensor *y, tern_tensor *x, double dx, int dim, const char *function)
{
    if (y->dtype == TERN_BOOL)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "%s: received a bool input for `y`, but bool is not supported",
                              function);
    int64_t n = y->shape[dim];
    int64_t between = n > 0 ? n - 1 : 0;
    tern_tensor *both =
        tern_add(tern_narrow(y, dim, n - between, between), tern_narrow(y, dim, 0, between));
    return x ? tern_mul(both, steps(y, x, dim, function))
             : tern_mul_scalar(both, tern_scalar_real(dx));
}

tern_tensor *tern_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!y) {
        tern_fail_argument_null(function, "y");
        return NULL;
    }
    if ((dim = place_of(dim, y, function)) < 0)
        return NULL;
    return halved(tern_sum_dim(areas(y, x, dx, dim, function), TERN_DIMS(dim), false));
}

tern_tensor *tern_trapz(tern_tensor *y, tern_tensor *x, double dx, int dim)
{
    TERN_NAMED_IN_ERRORS;
    return tern_trapezoid(y, x, dx, dim);
}

tern_tensor *tern_cumulative_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!y) {
        tern_fail_argument_null(function, "y");
        return NULL;
    }
    if ((dim = place_of(dim, y, function)) < 0)
        return NULL;
    return halved(tern_cumsum(areas(y, x, dx, dim, function), dim));
}
