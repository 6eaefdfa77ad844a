/* init_structure.c -- initial values with a structure: truncated, identity, orthogonal, sparse.
 *
 * All are composed of operations on the device of x. Half precision is computed in float32. */
#include "nn/layers/layer.h"
#include <math.h>

/* Returns the dtype to compute in: float32 for half precision. */
static tern_dtype compute_dtype(const tern_tensor *x)
{
    return tern_dtype_of(x) == TERN_F64 ? TERN_F64 : TERN_F32;
}

/* Copies value to x. Returns NULL if value is NULL. */
static tern_tensor *copy_into(tern_tensor *x, tern_tensor *value)
{
    return value ? tern_copy_(x, value) : NULL;
}

/* ---- truncated normal ------------------------------------------------------------------------ */

/* Evaluates a polynomial by Horner's rule. The coefficients start with the highest. */
static tern_tensor *polynomial(tern_tensor *x, const double *c, int n)
{
    tern_tensor *y = tern_full_like(x, tern_scalar_real(c[0]));
    for (int i = 1; i < n; i++)
        y = tern_add_scalar(tern_mul(y, x), tern_scalar_real(c[i]));
    return y;
}

/* Giles 2010, "Approximating the erfinv function", table 5: x times a polynomial of w = -log(1 -
 * x^2), or of sqrt(w) in the tails, for -1 < x < 1. */
static tern_tensor *erfinv(tern_tensor *x)
{
    static const double central[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                     -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                     -0.00417768164,  0.246640727,    1.50140941};
    static const double tail[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                  -0.00367342844,  0.00573950773,  -0.0076224613,
                                  0.00943887047,   1.00167406,     2.83297682};
    tern_tensor *w = tern_neg(tern_log(tern_rsub_scalar(tern_square(x), tern_scalar_real(1))));
    tern_tensor *near = polynomial(tern_add_scalar(w, tern_scalar_real(-2.5)), central, 9);
    tern_tensor *far = polynomial(tern_add_scalar(tern_sqrt(w), tern_scalar_real(-3)), tail, 9);
    tern_tensor *is_near = tern_lt_scalar(w, tern_scalar_real(5));
    return tern_mul(tern_where(is_near, near, far), x);
}

static double normal_cdf(double x)
{
    return (1 + erf(x / sqrt(2))) / 2;
}

/* Returns mean + std sqrt(2) erfinv(u) with u uniform between 2 cdf(a) - 1 and 2 cdf(b) - 1, which
 * is the inverse of the normal distribution function at a uniform number. */
static tern_tensor *truncated(const tern_tensor *x, double mean, double std, double a, double b)
{
    const double most = 1 - 1.0 / (1 << 23); /* erfinv is infinite beyond it */
    double low = 2 * normal_cdf((a - mean) / std) - 1, high = 2 * normal_cdf((b - mean) / std) - 1;
    tern_tensor *u = tern_empty(tern_shape_of(x), compute_dtype(x), tern_device(x));
    u = tern_uniform_(u, low, high);
    u = erfinv(tern_clamp(u, -most, most));
    u = tern_add_scalar(tern_mul_scalar(u, tern_scalar_real(std * sqrt(2))),
                        tern_scalar_real(mean));
    return tern_clamp(u, a, b);
}

tern_tensor *tern_nn_init_trunc_normal_(tern_tensor *x, double mean, double std, double a, double b)
{
    TERN_NAMED_IN_ERRORS;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (!(std > 0 && a < b))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_init_trunc_normal_: expected std > 0 and a < b, but got "
                              "std=%s, a=%s, b=%s",
                              TERN_NUMBER_TEXT(std), TERN_NUMBER_TEXT(a), TERN_NUMBER_TEXT(b));
    TERN_SCOPE
        TERN_NO_GRAD
            x = copy_into(x, truncated(x, mean, std, a, b));
    return x;
}

/* ---- identities ------------------------------------------------------------------------------ */

static tern_status check_dims(const tern_tensor *x, int least, int most, const char *which,
                              const char *function)
{
    if (!x)
        return tern_fail_argument_null(function, "x");
    if (tern_dim(x) < least || tern_dim(x) > most)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Only tensors with %s dimensions are supported (this one has %d)",
                         function, which, tern_dim(x));
    return TERN_OK;
}

tern_tensor *tern_nn_init_eye_(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (check_dims(x, 2, 2, "2", __func__) != TERN_OK)
        return NULL;
    TERN_SCOPE
        TERN_NO_GRAD
            x = copy_into(
                x, tern_eye(tern_size(x, 0), tern_size(x, 1), tern_dtype_of(x), tern_device(x)));
    return x;
}

/* Returns the kernel of a convolution that returns its input: in each group the identity over
 * channels, in the middle of the window. */
static tern_tensor *dirac(tern_tensor *x, int64_t groups)
{
    int64_t out = tern_size(x, 0) / groups, in = tern_size(x, 1);
    tern_tensor *y = tern_zeros(tern_shape_of(x), tern_dtype_of(x), tern_device(x)), *middle = y;
    for (int dim = tern_dim(x) - 1; dim >= 2; dim--)
        middle = tern_select(middle, dim, tern_size(x, dim) / 2);
    tern_tensor *one = tern_eye(out, in, tern_dtype_of(x), tern_device(x));
    for (int64_t g = 0; g < groups; g++)
        if (!tern_copy_(tern_narrow(middle, 0, g * out, out), one))
            return NULL;
    return y;
}

tern_tensor *tern_nn_init_dirac_(tern_tensor *x, int64_t groups)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (check_dims(x, 3, 5, "3, 4, or 5", function) != TERN_OK)
        return NULL;
    if (groups < 1 || tern_size(x, 0) % groups != 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: dim 0 must be divisible by groups (%lld by %lld)", function,
                              (long long)tern_size(x, 0), (long long)groups);
    TERN_SCOPE
        TERN_NO_GRAD
            x = tern_numel(x) ? copy_into(x, dirac(x, groups)) : x;
    return x;
}

/* ---- orthogonal ------------------------------------------------------------------------------ */

/* Returns rows - rows basis^T basis, for a basis with orthonormal rows (classical Gram-Schmidt). It
 * runs twice because of rounding errors (Giraud, Langou, Rozloznik 2005: twice is enough). */
static tern_tensor *project_out(tern_tensor *rows, tern_tensor *basis)
{
    for (int round = 0; round < 2; round++)
        rows = tern_sub(rows, tern_matmul(tern_matmul(rows, tern_t(basis)), basis));
    return rows;
}

/* Makes rows start to start + n - 1 of q orthonormal, and orthogonal to the rows before them. */
static tern_status orthonormalize_block(tern_tensor *q, int64_t start, int64_t n)
{
    const uint64_t failures = tern_failures();
    tern_tensor *block = tern_narrow(q, 0, start, n);
    if (start > 0 && !tern_copy_(block, project_out(block, tern_narrow(q, 0, 0, start))))
        return tern_last_status();
    for (int64_t i = 0; i < n; i++)
        TERN_SCOPE {
            tern_tensor *place = tern_narrow(block, 0, i, 1);
            tern_tensor *row = i > 0 ? project_out(place, tern_narrow(block, 0, 0, i)) : place;
            tern_copy_(place, tern_div(row, tern_sqrt(tern_sum(tern_square(row)))));
        }
    return tern_failed_since(failures);
}

/* Returns a matrix (rows, columns) with orthonormal rows, rows <= columns. It starts with normal
 * numbers, so the result is uniformly distributed (Haar measure). It works in blocks so that most
 * of the work is matrix products. */
static tern_tensor *orthonormal(int64_t rows, int64_t columns, tern_dtype dtype, const char *device)
{
    enum { BLOCK = 32 };
    tern_tensor *q = tern_randn(TERN_SHAPE(rows, columns), dtype, device);
    for (int64_t start = 0; q && start < rows; start += BLOCK) {
        tern_status status = TERN_OK;
        TERN_SCOPE
            status = orthonormalize_block(q, start, rows - start < BLOCK ? rows - start : BLOCK);
        if (status != TERN_OK)
            return NULL;
    }
    return q;
}

/* Returns an orthogonal matrix times gain in the shape of x. Dims after the first are flattened. A
 * tall matrix has orthonormal columns, from the transposed problem. */
static tern_tensor *orthogonal(const tern_tensor *x, double gain)
{
    int64_t rows = tern_size(x, 0), columns = tern_numel(x) / rows;
    bool tall = rows > columns;
    tern_tensor *q =
        orthonormal(tall ? columns : rows, tall ? rows : columns, compute_dtype(x), tern_device(x));
    q = tern_mul_scalar(tall ? tern_t(q) : q, tern_scalar_real(gain));
    return tern_reshape(q, tern_shape_of(x));
}

tern_tensor *tern_nn_init_orthogonal_(tern_tensor *x, double gain)
{
    TERN_NAMED_IN_ERRORS;
    if (check_dims(x, 2, TERN_MAX_DIMS, "2 or more", __func__) != TERN_OK)
        return NULL;
    TERN_SCOPE
        TERN_NO_GRAD
            x = tern_numel(x) ? copy_into(x, orthogonal(x, gain)) : x;
    return x;
}

/* ---- sparse ---------------------------------------------------------------------------------- */

/* Returns normal numbers with `zeros` random elements of each column set to zero: those of the
 * lowest rank among random numbers. Sorting twice gives the rank. */
static tern_tensor *sparse(const tern_tensor *x, double zeros, double std)
{
    tern_tensor *value = tern_empty(tern_shape_of(x), compute_dtype(x), tern_device(x));
    tern_tensor *order = tern_rand(tern_shape_of(x), TERN_F32, tern_device(x));
    tern_tensor *rank = tern_argsort(tern_argsort(order, 0, false), 0, false);
    return tern_masked_fill(tern_normal_(value, 0, std),
                            tern_lt_scalar(rank, tern_scalar_int((int64_t)zeros)),
                            tern_scalar_real(0));
}

tern_tensor *tern_nn_init_sparse_(tern_tensor *x, double sparsity, double std)
{
    TERN_NAMED_IN_ERRORS;
    if (check_dims(x, 2, 2, "2", __func__) != TERN_OK)
        return NULL;
    if (!(sparsity >= 0 && sparsity <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_init_sparse_: expected sparsity between 0 and 1, but got %s",
                              TERN_NUMBER_TEXT(sparsity));
    double zeros = ceil(sparsity * (double)tern_size(x, 0));
    TERN_SCOPE
        TERN_NO_GRAD
            x = tern_numel(x) ? copy_into(x, sparse(x, zeros, std)) : x;
    return x;
}
