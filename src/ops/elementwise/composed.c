/* composed.c -- elementwise operations composed of others. */
#include "ops/elementwise/elementwise.h"
#include <math.h>
#include <stdlib.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* Records the error for a rounding mode that is not a value of the enum, and returns NULL. */
static tern_tensor *no_rounding(tern_rounding_mode mode)
{
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "tern_div: div expected rounding_mode to be one of None, 'trunc', or "
                          "'floor' but found %d",
                          (int)mode);
}

/* Returns x / y, trunc(x / y) or floor(x / y). The rounding modes have their own kernels: rounding
 * a float quotient would lose the low digits of int64. */
tern_tensor *tern_div_mode(tern_tensor *x, tern_tensor *y, tern_rounding_mode rounding_mode)
{
    TERN_NAMED_IN_ERRORS;
    return rounding_mode == TERN_ROUNDING_NONE    ? tern_div(x, y)
           : rounding_mode == TERN_ROUNDING_TRUNC ? tern_trunc_divide(x, y)
           : rounding_mode == TERN_ROUNDING_FLOOR ? tern_floor_divide(x, y)
                                                  : no_rounding(rounding_mode);
}

tern_tensor *tern_div_mode_scalar(tern_tensor *x, tern_scalar y, tern_rounding_mode rounding_mode)
{
    TERN_NAMED_IN_ERRORS;
    return rounding_mode == TERN_ROUNDING_NONE    ? tern_div_scalar(x, y)
           : rounding_mode == TERN_ROUNDING_TRUNC ? tern_trunc_divide_scalar(x, y)
           : rounding_mode == TERN_ROUNDING_FLOOR ? tern_floor_divide_scalar(x, y)
                                                  : no_rounding(rounding_mode);
}

/* Returns y = round(x 10^d) / 10^d. For a negative d, it is computed as round(x / 10^-d) 10^-d,
 * because 10^d is not exact in binary and 10^-d is. */
tern_tensor *tern_round_decimals(tern_tensor *x, int decimals)
{
    TERN_NAMED_IN_ERRORS;
    if (decimals == 0 || !x)
        return tern_round(x);
    tern_scalar power = tern_scalar_real(pow(10, fabs((double)decimals)));
    if (decimals > 0)
        return tern_div_scalar(tern_round(tern_mul_scalar(x, power)), power);
    return tern_mul_scalar(tern_round(tern_div_scalar(x, power)), power);
}

/* Returns min(max(x, min), max), broadcast. Where min > max the result is max, as in PyTorch, since
 * the upper bound is applied last. */
tern_tensor *tern_clamp_tensor(tern_tensor *x, tern_tensor *min, tern_tensor *max)
{
    TERN_NAMED_IN_ERRORS;
    if (!min && !max)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_clamp: At least one of 'min' or 'max' must not be None");
    if (min)
        x = tern_clamp_min(x, min);
    return max ? tern_clamp_max(x, max) : x;
}

/* Returns x + weight (end - x). The ternary kernel has a third tensor as input: x detached is
 * passed, which costs neither memory nor a gradient. */
tern_tensor *tern_lerp_scalar(tern_tensor *x, tern_tensor *end, double weight)
{
    TERN_NAMED_IN_ERRORS;
    return tern_lerp_number(x, end, x ? tern_detach(x) : NULL, tern_scalar_real(weight));
}

/* Replaces NaN by nan, +inf by posinf and -inf by neginf, or by the largest or smallest finite
 * number of the dtype if posinf or neginf is NaN. The three masks are computed from the original x,
 * since a replacement may be infinite. Integers are returned unchanged. */
tern_tensor *tern_nan_to_num(tern_tensor *x, double nan, double posinf, double neginf)
{
    TERN_NAMED_IN_ERRORS;
    if (!x || !tern_dtype_is_floating_point(tern_dtype_of(x)))
        return tern_given(x, __func__, "x") ? x : NULL;
    double largest = tern_dtype_rows[tern_dtype_of(x)].greatest;
    tern_tensor *is_nan = tern_isnan(x), *is_high = tern_isposinf(x), *is_low = tern_isneginf(x);
    x = tern_masked_fill(x, is_nan, tern_scalar_real(nan));
    x = tern_masked_fill(x, is_high, tern_scalar_real(isnan(posinf) ? largest : posinf));
    return tern_masked_fill(x, is_low, tern_scalar_real(isnan(neginf) ? -largest : neginf));
}

tern_tensor *tern_nan_to_num_(tern_tensor *x, double nan, double posinf, double neginf)
{
    TERN_NAMED_IN_ERRORS;
    /* Computed into a new tensor first: if the dtype can't hold one of the three numbers, x is
     * unchanged. */
    tern_tensor *y = tern_nan_to_num(x, nan, posinf, neginf);
    return y == x ? x : y ? tern_copy_(x, y) : NULL;
}

/* Returns x^y in float64 for all dtypes, so that integers to negative powers are defined. */
tern_tensor *tern_float_power(tern_tensor *x, tern_tensor *y)
{
    TERN_NAMED_IN_ERRORS;
    return tern_pow(tern_to_dtype(x, TERN_F64), tern_to_dtype(y, TERN_F64));
}

tern_tensor *tern_float_power_scalar(tern_tensor *x, tern_scalar y)
{
    TERN_NAMED_IN_ERRORS;
    return tern_pow_scalar(tern_to_dtype(x, TERN_F64), y);
}

/* Returns x 2^y. */
tern_tensor *tern_ldexp(tern_tensor *x, tern_tensor *y)
{
    TERN_COMPOSED("ldexp", NONE, &x, &y);
    return tern_mul(x, tern_rpow_scalar(y, tern_scalar_real(2)));
}

tern_tensor *tern_ldexp_(tern_tensor *x, tern_tensor *y)
{
    TERN_NAMED_IN_ERRORS;
    return tern_mul_(x, tern_rpow_scalar(y, tern_scalar_real(2)));
}

/* The same as sign, since there are no complex dtypes, for which sgn is x / |x|. */
tern_tensor *tern_sgn(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_sign(x);
}

/* Returns x itself. */
tern_tensor *tern_positive(tern_tensor *x)
{
    if (x && tern_dtype_of(x) == TERN_BOOL)
        return tern_fail_null(
            TERN_ERR_DTYPE, "tern_positive: The `+` operator, on a bool tensor is not supported.");
    return tern_given(x, "tern_positive", "x") ? x : NULL;
}
