/* composed.c -- elementwise operations that are made of others. */
#include "ops/elementwise/elementwise.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <tern/ops.h>

static tern_tensor *no_rounding(tern_rounding_mode mode)
{
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "tern_div: div expected rounding_mode to be one of None, 'trunc', or "
                          "'floor' but found %d",
                          (int)mode);
}

tern_tensor *tern_div_mode(tern_tensor *x, tern_tensor *y, tern_rounding_mode rounding_mode)
{
    return rounding_mode == TERN_ROUNDING_NONE    ? tern_div(x, y)
           : rounding_mode == TERN_ROUNDING_TRUNC ? tern_trunc_divide(x, y)
           : rounding_mode == TERN_ROUNDING_FLOOR ? tern_floor_divide(x, y)
                                                  : no_rounding(rounding_mode);
}

tern_tensor *tern_div_mode_scalar(tern_tensor *x, tern_scalar y, tern_rounding_mode rounding_mode)
{
    return rounding_mode == TERN_ROUNDING_NONE    ? tern_div_scalar(x, y)
           : rounding_mode == TERN_ROUNDING_TRUNC ? tern_trunc_divide_scalar(x, y)
           : rounding_mode == TERN_ROUNDING_FLOOR ? tern_floor_divide_scalar(x, y)
                                                  : no_rounding(rounding_mode);
}

tern_tensor *tern_round_decimals(tern_tensor *x, int decimals)
{
    if (decimals == 0 || !x)
        return tern_round(x);
    tern_scalar power = tern_scalar_real(pow(10, abs(decimals)));
    if (decimals > 0)
        return tern_div_scalar(tern_round(tern_mul_scalar(x, power)), power);
    return tern_mul_scalar(tern_round(tern_div_scalar(x, power)), power);
}

tern_tensor *tern_clamp_tensor(tern_tensor *x, tern_tensor *min, tern_tensor *max)
{
    if (!min && !max)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_clamp: At least one of 'min' or 'max' must not be None");
    if (min)
        x = tern_clamp_min(x, min);
    return max ? tern_clamp_max(x, max) : x;
}

tern_tensor *tern_lerp_scalar(tern_tensor *x, tern_tensor *end, double weight)
{
    return tern_lerp_number(x, end, x ? tern_detach(x) : NULL, tern_scalar_real(weight));
}

static double largest_of(tern_dtype dtype)
{
    switch (dtype) {
    case TERN_F64:
        return DBL_MAX;
    case TERN_F16:
        return 65504;
    case TERN_BF16:
        return 0x1.FEp127;
    default:
        return (double)FLT_MAX;
    }
}

typedef tern_tensor *(*fill_where)(tern_tensor *x, tern_tensor *mask, tern_scalar value);

static tern_tensor *without_special(tern_tensor *x, double nan, double posinf, double neginf,
                                    fill_where fill)
{
    if (!x || !tern_dtype_is_floating_point(tern_dtype_of(x)))
        return x ? x : tern_neg(x);
    double largest = largest_of(tern_dtype_of(x));
    tern_tensor *is_nan = tern_isnan(x), *is_high = tern_isposinf(x), *is_low = tern_isneginf(x);
    x = fill(x, is_nan, tern_scalar_real(nan));
    x = fill(x, is_high, tern_scalar_real(isnan(posinf) ? largest : posinf));
    return fill(x, is_low, tern_scalar_real(isnan(neginf) ? -largest : neginf));
}

tern_tensor *tern_nan_to_num(tern_tensor *x, double nan, double posinf, double neginf)
{
    return without_special(x, nan, posinf, neginf, tern_masked_fill);
}

tern_tensor *tern_nan_to_num_(tern_tensor *x, double nan, double posinf, double neginf)
{
    return without_special(x, nan, posinf, neginf, tern_masked_fill_);
}

tern_tensor *tern_float_power(tern_tensor *x, tern_tensor *y)
{
    return tern_pow(tern_to_dtype(x, TERN_F64), tern_to_dtype(y, TERN_F64));
}

tern_tensor *tern_float_power_scalar(tern_tensor *x, tern_scalar y)
{
    return tern_pow_scalar(tern_to_dtype(x, TERN_F64), y);
}

tern_tensor *tern_ldexp(tern_tensor *x, tern_tensor *y)
{
    return tern_mul(x, tern_rpow_scalar(y, tern_scalar_real(2)));
}

tern_tensor *tern_ldexp_(tern_tensor *x, tern_tensor *y)
{
    return tern_mul_(x, tern_rpow_scalar(y, tern_scalar_real(2)));
}

tern_tensor *tern_polygamma(int64_t n, tern_tensor *x)
{
    if (n < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_polygamma: polygamma(n, x) does not support negative n (%lld).",
                              (long long)n);
    if (n > 1)
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "tern_polygamma: n is 0 or 1, not %lld",
                              (long long)n);
    return n == 0 ? tern_digamma(x) : tern_trigamma(x);
}

/* log pi^(p (p - 1) / 4) and the sum of lgamma(x + (1 - j) / 2), j = 1 to p. */
tern_tensor *tern_mvlgamma(tern_tensor *x, int64_t p)
{
    tern_tensor *sum = NULL;
    if (p < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_mvlgamma: p has to be greater than or equal to 1, not %lld",
                              (long long)p);
    for (int64_t j = 0; j < p; j++) {
        tern_tensor *part = tern_lgamma(tern_sub_scalar(x, tern_scalar_real((double)j / 2)));
        sum = j ? tern_add(sum, part) : part;
    }
    double shift = (double)p * (double)(p - 1) / 4 * log(3.14159265358979323846);
    return tern_add_scalar(sum, tern_scalar_real(shift));
}

tern_tensor *tern_bitwise_not(tern_tensor *x)
{
    bool is_bool = x && tern_dtype_of(x) == TERN_BOOL;
    return tern_bitwise_xor_scalar(x, is_bool ? tern_scalar_bool(true) : tern_scalar_int(-1));
}

tern_tensor *tern_sgn(tern_tensor *x)
{
    return tern_sign(x);
}

tern_tensor *tern_positive(tern_tensor *x)
{
    if (x && tern_dtype_of(x) == TERN_BOOL)
        return tern_fail_null(
            TERN_ERR_DTYPE, "tern_positive: The `+` operator, on a bool tensor is not supported.");
    return x ? x : tern_neg(x);
}

/* ---- closeness ------------------------------------------------------------------------------- */

tern_tensor *tern_isclose(tern_tensor *x, tern_tensor *y, double rtol, double atol, bool equal_nan)
{
    if (rtol < 0 || atol < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_isclose: rtol and atol must be greater than or equal to zero, "
                              "but got %g and %g",
                              rtol, atol);
    tern_tensor *close = tern_eq(x, y);
    if (equal_nan)
        close = tern_logical_or(close, tern_logical_and(tern_isnan(x), tern_isnan(y)));
    bool bools = x && y && tern_dtype_of(x) == TERN_BOOL && tern_dtype_of(y) == TERN_BOOL;
    if (bools || (rtol == 0 && atol == 0))
        return close;
    tern_tensor *distance = tern_abs(tern_sub(x, y));
    tern_tensor *allowed = tern_add_scalar(tern_mul_scalar(tern_abs(y), tern_scalar_real(rtol)),
                                           tern_scalar_real(atol));
    return tern_logical_or(close,
                           tern_logical_and(tern_isfinite(distance), tern_le(distance, allowed)));
}

/* Whether a tensor of bools holds everywhere. */
static bool holds(tern_tensor *bools)
{
    return bools && tern_item_int(tern_all(bools)) != 0;
}

bool tern_allclose(tern_tensor *x, tern_tensor *y, double rtol, double atol, bool equal_nan)
{
    bool close = false;
    TERN_SCOPE {
        TERN_NO_GRAD {
            close = holds(tern_isclose(x, y, rtol, atol, equal_nan));
        }
    }
    return close;
}

bool tern_equal(tern_tensor *x, tern_tensor *y)
{
    bool equal = false;
    if (x && y && !tern_same_shape(x, y))
        return false;
    TERN_SCOPE {
        TERN_NO_GRAD {
            equal = holds(tern_eq(x, y));
        }
    }
    return equal;
}

/* ---- activations ----------------------------------------------------------------------------- */

tern_tensor *tern_prelu(tern_tensor *x, tern_tensor *weight)
{
    TERN_COMPOSED("prelu", LOWER, &x, &weight);
    int64_t n = tern_numel(weight);
    if (!x || !weight || n == 1)
        return tern_prelu_kernel(x, weight ? tern_reshape(weight, TERN_SHAPE_SCALAR) : NULL);
    if (tern_dim(weight) > 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_prelu: Expected `weight` to be a scalar or 1D tensor, but got "
                              "ndim = %d",
                              tern_dim(weight));
    int64_t channels = tern_dim(x) > 1 ? tern_size(x, 1) : 1;
    if (n != channels)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_prelu: Mismatch of parameter numbers and input channel size. "
                              "Found parameter numbers = %lld and channel size = %lld.",
                              (long long)n, (long long)channels);
    tern_shape shape = {.ndim = tern_dim(x) - 1};
    for (int d = 0; d < shape.ndim; d++)
        shape.dims[d] = d == 0 ? n : 1;
    return tern_prelu_kernel(x, tern_reshape(weight, shape));
}

/* A slope for each element of x. */
static tern_tensor *random_slopes(tern_tensor *x, double lower, double upper)
{
    tern_tensor *slopes = NULL;
    TERN_NO_GRAD {
        slopes =
            tern_add_scalar(tern_mul_scalar(tern_rand_like(x), tern_scalar_real(upper - lower)),
                            tern_scalar_real(lower));
    }
    return slopes;
}

static bool in_order(double lower, double upper, const char *function)
{
    if (lower > upper)
        tern_fail(TERN_ERR_ARGUMENT,
                  "%s: Lower bound should be less than or equal to the upper bound, but got %g "
                  "and %g",
                  function, lower, upper);
    return !(lower > upper);
}

tern_tensor *tern_rrelu(tern_tensor *x, double lower, double upper, bool training)
{
    if (!in_order(lower, upper, "tern_rrelu"))
        return NULL;
    return training && x ? tern_prelu_kernel(x, random_slopes(x, lower, upper))
                         : tern_leaky_relu(x, (lower + upper) / 2);
}

tern_tensor *tern_rrelu_(tern_tensor *x, double lower, double upper, bool training)
{
    if (!in_order(lower, upper, "tern_rrelu_"))
        return NULL;
    return training && x ? tern_prelu_kernel_(x, random_slopes(x, lower, upper))
                         : tern_leaky_relu_(x, (lower + upper) / 2);
}

tern_tensor *tern_glu(tern_tensor *x, int dim)
{
    int64_t size = x && tern_dim(x) > 0 ? tern_size(x, dim) : 0;
    if (x && tern_dim(x) == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_glu: glu does not support 0-dimensional tensors");
    if (size % 2 != 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_glu: Halving dimension must be even, but dimension %d is size "
                              "%lld",
                              dim, (long long)size);
    tern_tensor *gate = tern_sigmoid(tern_narrow(x, dim, size / 2, size / 2));
    return tern_mul(tern_narrow(x, dim, 0, size / 2), gate);
}

tern_tensor *tern_gumbel_softmax(tern_tensor *x, double tau, bool hard, int dim)
{
    tern_tensor *noise = NULL, *choice = NULL;
    TERN_NO_GRAD {
        noise = tern_neg(tern_log(tern_neg(tern_log(tern_rand_like(x)))));
    }
    tern_tensor *soft =
        tern_softmax(tern_div_scalar(tern_add(x, noise), tern_scalar_real(tau)), dim);
    if (!hard || !soft)
        return soft;
    TERN_NO_GRAD {
        tern_tensor *largest = tern_argmax_dim(soft, dim, true);
        choice = tern_sub(tern_scatter_scalar(tern_zeros_like(soft), dim, largest,
                                              tern_scalar_real(1), TERN_REDUCE_NONE),
                          soft);
    }
    return tern_add(choice, soft);
}
