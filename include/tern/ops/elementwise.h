/* ops/elementwise.h -- elementwise operations: arithmetic, rounding, powers, exponentials,
 * trigonometry. ops/logic.h has comparisons, ops/special.h gamma functions and ops/activation.h
 * activation functions; this comment holds for all four headers.
 *
 * tern_x is torch.x. Shapes are broadcast, dtypes are promoted and NaN is propagated as in PyTorch
 * (https://pytorch.org/docs/stable/torch.html#pointwise-ops). Results are new tensors that belong
 * to the innermost scope; NULL after an error: TERN_ERR_SHAPE for shapes that cannot be broadcast,
 * TERN_ERR_DTYPE for a dtype that the function does not take, TERN_ERR_DEVICE for tensors on
 * different devices. All functions are differentiable unless stated otherwise.
 *
 * A trailing _ means the same as in PyTorch: the function works in place. It writes the result into
 * x, which keeps its shape and dtype, and returns x. A function that ends in _scalar takes a number
 * for y: TERN_SCALAR(2). The name without _scalar takes one too, by a macro of numbers.h:
 * tern_mul(x, 2). [float] means that integers and bools are converted to the default dtype (float32
 * unless the program has changed it). */
#ifndef TERN_OPS_ELEMENTWISE_H
#define TERN_OPS_ELEMENTWISE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- arithmetic ------------------------------------------------------------------------------ */

TERN_API tern_tensor *tern_add(tern_tensor *x, tern_tensor *y);        /* x + y; of bools: or */
TERN_API tern_tensor *tern_add_scalar(tern_tensor *x, tern_scalar y);  /* y is a number */
TERN_API tern_tensor *tern_add_(tern_tensor *x, tern_tensor *y);       /* in place */
TERN_API tern_tensor *tern_add_scalar_(tern_tensor *x, tern_scalar y); /* y is a number; in place */

TERN_API tern_tensor *tern_sub(tern_tensor *x, tern_tensor *y);        /* x - y; not for bools */
TERN_API tern_tensor *tern_sub_scalar(tern_tensor *x, tern_scalar y);  /* y is a number */
TERN_API tern_tensor *tern_sub_(tern_tensor *x, tern_tensor *y);       /* in place */
TERN_API tern_tensor *tern_sub_scalar_(tern_tensor *x, tern_scalar y); /* y is a number; in place */

TERN_API tern_tensor *tern_mul(tern_tensor *x, tern_tensor *y);       /* x times y; of bools: and */
TERN_API tern_tensor *tern_mul_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_mul_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_mul_scalar_(tern_tensor *x, tern_scalar y); /* y is a number; in place */

TERN_API tern_tensor *tern_div(tern_tensor *x, tern_tensor *y);        /* x / y [float] */
TERN_API tern_tensor *tern_div_scalar(tern_tensor *x, tern_scalar y);  /* y is a number */
TERN_API tern_tensor *tern_div_(tern_tensor *x, tern_tensor *y);       /* in place */
TERN_API tern_tensor *tern_div_scalar_(tern_tensor *x, tern_scalar y); /* y is a number; in place */

/* x / y rounded down (torch.div with rounding_mode="floor"). Integers stay integers, and a division
 * of integers by 0 is an error: at once on the cpu, at the next synchronisation on other devices.
 * Without a gradient. */
TERN_API tern_tensor *tern_floor_divide(tern_tensor *x, tern_tensor *y);
/* y is a number */
TERN_API tern_tensor *tern_floor_divide_scalar(tern_tensor *x, tern_scalar y);
/* in place */
TERN_API tern_tensor *tern_floor_divide_(tern_tensor *x, tern_tensor *y);
/* y is a number; in place */
TERN_API tern_tensor *tern_floor_divide_scalar_(tern_tensor *x, tern_scalar y);

/* x / y rounded towards zero (rounding_mode="trunc"), under the same rules. */
TERN_API tern_tensor *tern_trunc_divide(tern_tensor *x, tern_tensor *y);
/* y is a number */
TERN_API tern_tensor *tern_trunc_divide_scalar(tern_tensor *x, tern_scalar y);
/* in place */
TERN_API tern_tensor *tern_trunc_divide_(tern_tensor *x, tern_tensor *y);
/* y is a number; in place */
TERN_API tern_tensor *tern_trunc_divide_scalar_(tern_tensor *x, tern_scalar y);

/* The remainder of x / y with the sign of x. A division of integers by 0 is an error, as in
 * tern_floor_divide. */
TERN_API tern_tensor *tern_fmod(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_fmod_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_fmod_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_fmod_scalar_(tern_tensor *x,
                                        tern_scalar y); /* y is a number; in place */

/* The remainder of x / y with the sign of y. A division of integers by 0 is an error, as in
 * tern_floor_divide. */
TERN_API tern_tensor *tern_remainder(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_remainder_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_remainder_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_remainder_scalar_(tern_tensor *x,
                                             tern_scalar y); /* y is a number; in place */

/* x to the power of y. Integers stay integers: a negative number as the exponent is an error, and
 * with a tensor of negative exponents the result is 1, -1 or 0. */
TERN_API tern_tensor *tern_pow(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_pow_scalar(tern_tensor *x, tern_scalar y);  /* y is a number */
TERN_API tern_tensor *tern_pow_(tern_tensor *x, tern_tensor *y);       /* in place */
TERN_API tern_tensor *tern_pow_scalar_(tern_tensor *x, tern_scalar y); /* y is a number; in place */

typedef enum tern_rounding_mode {
    TERN_ROUNDING_NONE = 0,
    TERN_ROUNDING_TRUNC, /* towards zero */
    TERN_ROUNDING_FLOOR  /* down */
} tern_rounding_mode;
/* x / y, rounded as rounding_mode says (torch.div with rounding_mode). Errors: TERN_ERR_ARGUMENT
 * for a value that is no mode. */
TERN_API tern_tensor *tern_div_mode(tern_tensor *x, tern_tensor *y,
                                    tern_rounding_mode rounding_mode);
/* x / y for a number y, rounded as rounding_mode says. */
TERN_API tern_tensor *tern_div_mode_scalar(tern_tensor *x, tern_scalar y,
                                           tern_rounding_mode rounding_mode);

TERN_API tern_tensor *tern_rsub_scalar(tern_tensor *x, tern_scalar a);  /* a - x */
TERN_API tern_tensor *tern_rsub_scalar_(tern_tensor *x, tern_scalar a); /* in place */
TERN_API tern_tensor *tern_rdiv_scalar(tern_tensor *x, tern_scalar a);  /* a / x [float] */
TERN_API tern_tensor *tern_rdiv_scalar_(tern_tensor *x, tern_scalar a); /* in place */
TERN_API tern_tensor *tern_rpow_scalar(tern_tensor *x, tern_scalar a);  /* a to the power of x */
TERN_API tern_tensor *tern_rpow_scalar_(tern_tensor *x, tern_scalar a); /* in place */
TERN_API tern_tensor *tern_neg(tern_tensor *x);                         /* -x, not of bools */
TERN_API tern_tensor *tern_neg_(tern_tensor *x);                        /* in place */
TERN_API tern_tensor *tern_abs(tern_tensor *x);   /* the absolute value of x */
TERN_API tern_tensor *tern_abs_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_sign(tern_tensor *x);  /* the sign of x: -1, 0 or 1; 0 for NaN */
TERN_API tern_tensor *tern_sign_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_sgn(tern_tensor *x);   /* the sign of x: tern has no complex numbers */
TERN_API tern_tensor *tern_positive(tern_tensor *x);    /* x itself, not of bools */
TERN_API tern_tensor *tern_square(tern_tensor *x);      /* the square of x */
TERN_API tern_tensor *tern_square_(tern_tensor *x);     /* in place */
TERN_API tern_tensor *tern_reciprocal(tern_tensor *x);  /* the reciprocal 1 / x [float] */
TERN_API tern_tensor *tern_reciprocal_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_deg2rad(tern_tensor *x);     /* degrees converted to radians [float] */
TERN_API tern_tensor *tern_deg2rad_(tern_tensor *x);    /* in place */
TERN_API tern_tensor *tern_rad2deg(tern_tensor *x);     /* radians converted to degrees [float] */
TERN_API tern_tensor *tern_rad2deg_(tern_tensor *x);    /* in place */

/* x + a y z. */
TERN_API tern_tensor *tern_addcmul(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);
/* in place */
TERN_API tern_tensor *tern_addcmul_(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);
/* x + a y / z [float]. */
TERN_API tern_tensor *tern_addcdiv(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);
/* in place */
TERN_API tern_tensor *tern_addcdiv_(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);
/* x + weight (end - x) [float]. */
TERN_API tern_tensor *tern_lerp(tern_tensor *x, tern_tensor *end, tern_tensor *weight);
/* weight is a number */
TERN_API tern_tensor *tern_lerp_scalar(tern_tensor *x, tern_tensor *end, double weight);
/* in place */
TERN_API tern_tensor *tern_lerp_(tern_tensor *x, tern_tensor *end, tern_tensor *weight);
/* x times 2 to the y [float]. */
TERN_API tern_tensor *tern_ldexp(tern_tensor *x, tern_tensor *y);
/* in place */
TERN_API tern_tensor *tern_ldexp_(tern_tensor *x, tern_tensor *y);
/* x to the power of y, computed in float64. Errors: TERN_ERR_UNSUPPORTED on a device without
 * float64. */
TERN_API tern_tensor *tern_float_power(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_float_power_scalar(tern_tensor *x, tern_scalar y); /* y is a number */

/* ---- bounds ---------------------------------------------------------------------------------- */

/* The larger of x and y; NaN if either is NaN. Where they are equal each gets half of the
 * gradient. */
TERN_API tern_tensor *tern_maximum(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_maximum_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_maximum_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_maximum_scalar_(tern_tensor *x,
                                           tern_scalar y); /* y is a number; in place */

/* The smaller of x and y; NaN if either is NaN. Where they are equal each gets half of the
 * gradient. */
TERN_API tern_tensor *tern_minimum(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_minimum_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_minimum_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_minimum_scalar_(tern_tensor *x,
                                           tern_scalar y); /* y is a number; in place */

/* The larger of x and y; where one is NaN, the other. Where they are equal each gets half of the
 * gradient. */
TERN_API tern_tensor *tern_fmax(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_fmax_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_fmax_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_fmax_scalar_(tern_tensor *x,
                                        tern_scalar y); /* y is a number; in place */

/* The smaller of x and y; where one is NaN, the other. Where they are equal each gets half of the
 * gradient. */
TERN_API tern_tensor *tern_fmin(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_fmin_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_fmin_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_fmin_scalar_(tern_tensor *x,
                                        tern_scalar y); /* y is a number; in place */

/* x, or y where x is smaller than y */
TERN_API tern_tensor *tern_clamp_min(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_clamp_min_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_clamp_min_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_clamp_min_scalar_(tern_tensor *x,
                                             tern_scalar y); /* y is a number; in place */

/* x, or y where x is larger than y */
TERN_API tern_tensor *tern_clamp_max(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_clamp_max_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_clamp_max_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_clamp_max_scalar_(tern_tensor *x,
                                             tern_scalar y); /* y is a number; in place */

/* x limited to min..max: min where x is smaller, max where x is larger. -INFINITY and INFINITY mean
 * no limit. */
TERN_API tern_tensor *tern_clamp(tern_tensor *x, double min, double max);
/* in place */
TERN_API tern_tensor *tern_clamp_(tern_tensor *x, double min, double max);
/* x limited by tensors, which are broadcast. One of min and max may be NULL; if both are, the error
 * is TERN_ERR_ARGUMENT. */
TERN_API tern_tensor *tern_clamp_tensor(tern_tensor *x, tern_tensor *min, tern_tensor *max);
/* x with numbers in place of NaN (nan), infinity (posinf) and minus infinity (neginf). posinf NAN
 * stands for the largest number of x's dtype, neginf NAN for the smallest. */
TERN_API tern_tensor *tern_nan_to_num(tern_tensor *x, double nan, double posinf, double neginf);
/* in place */
TERN_API tern_tensor *tern_nan_to_num_(tern_tensor *x, double nan, double posinf, double neginf);

/* the absolute value of x with the sign of y [float] */
TERN_API tern_tensor *tern_copysign(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_copysign_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_copysign_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_copysign_scalar_(tern_tensor *x,
                                            tern_scalar y); /* y is a number; in place */

/* 0 where x is below 0 or NaN, 1 where x is above 0, y where x is 0 */
TERN_API tern_tensor *tern_heaviside(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_heaviside_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_heaviside_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_heaviside_scalar_(tern_tensor *x,
                                             tern_scalar y); /* y is a number; in place */

/* ---- rounding; integers are returned as they are, and the gradient is 0 ---------------------- */

TERN_API tern_tensor *tern_floor(tern_tensor *x);  /* x rounded down */
TERN_API tern_tensor *tern_floor_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_ceil(tern_tensor *x);   /* x rounded up */
TERN_API tern_tensor *tern_ceil_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_round(tern_tensor *x);  /* x rounded, halves to even */
TERN_API tern_tensor *tern_round_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_trunc(tern_tensor *x);  /* x rounded towards zero */
TERN_API tern_tensor *tern_trunc_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_frac(tern_tensor *x);   /* x - trunc(x); gradient 1 [float] */
TERN_API tern_tensor *tern_frac_(tern_tensor *x);  /* in place */
/* x rounded to `decimals` digits after the decimal point; a negative number rounds to tens,
 * hundreds, ... [float] unless decimals is 0. */
TERN_API tern_tensor *tern_round_decimals(tern_tensor *x, int decimals);

/* ---- exponentials, logarithms and roots [float] ---------------------------------------------- */

TERN_API tern_tensor *tern_exp(tern_tensor *x);    /* e to the power of x */
TERN_API tern_tensor *tern_exp_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_exp2(tern_tensor *x);   /* 2 to the power of x */
TERN_API tern_tensor *tern_exp2_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_expm1(tern_tensor *x);  /* exp(x) - 1, precise near 0 */
TERN_API tern_tensor *tern_expm1_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_log(tern_tensor *x);    /* the natural logarithm of x */
TERN_API tern_tensor *tern_log_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_log2(tern_tensor *x);   /* the logarithm of x to base 2 */
TERN_API tern_tensor *tern_log2_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_log10(tern_tensor *x);  /* the logarithm of x to base 10 */
TERN_API tern_tensor *tern_log10_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_log1p(tern_tensor *x);  /* log(1 + x), precise near 0 */
TERN_API tern_tensor *tern_log1p_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_sqrt(tern_tensor *x);   /* the square root of x; NaN below 0 */
TERN_API tern_tensor *tern_sqrt_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_rsqrt(tern_tensor *x);  /* the reciprocal square root 1 / sqrt(x) */
TERN_API tern_tensor *tern_rsqrt_(tern_tensor *x); /* in place */

/* log(exp(x) + exp(y)) */
TERN_API tern_tensor *tern_logaddexp(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_logaddexp_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_logaddexp_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_logaddexp_scalar_(tern_tensor *x,
                                             tern_scalar y); /* y is a number; in place */

TERN_API tern_tensor *tern_logaddexp2(tern_tensor *x, tern_tensor *y);       /* log2(2^x + 2^y) */
TERN_API tern_tensor *tern_logaddexp2_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_logaddexp2_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_logaddexp2_scalar_(tern_tensor *x,
                                              tern_scalar y); /* y is a number; in place */

TERN_API tern_tensor *tern_hypot(tern_tensor *x, tern_tensor *y);       /* sqrt(x^2 + y^2) */
TERN_API tern_tensor *tern_hypot_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_hypot_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_hypot_scalar_(tern_tensor *x,
                                         tern_scalar y); /* y is a number; in place */

/* ---- trigonometric and hyperbolic functions [float]: angles are in radians ------------------- */

TERN_API tern_tensor *tern_sin(tern_tensor *x);    /* the sine of x, in radians */
TERN_API tern_tensor *tern_sin_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_cos(tern_tensor *x);    /* the cosine of x, in radians */
TERN_API tern_tensor *tern_cos_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_tan(tern_tensor *x);    /* the tangent of x, in radians */
TERN_API tern_tensor *tern_tan_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_asin(tern_tensor *x);   /* the arc sine of x; NaN outside of -1..1 */
TERN_API tern_tensor *tern_asin_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_acos(tern_tensor *x);   /* the arc cosine of x; NaN outside of -1..1 */
TERN_API tern_tensor *tern_acos_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_atan(tern_tensor *x);   /* the arc tangent of x */
TERN_API tern_tensor *tern_atan_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_sinh(tern_tensor *x);   /* the hyperbolic sine of x */
TERN_API tern_tensor *tern_sinh_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_cosh(tern_tensor *x);   /* the hyperbolic cosine of x */
TERN_API tern_tensor *tern_cosh_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_tanh(tern_tensor *x);   /* the hyperbolic tangent of x */
TERN_API tern_tensor *tern_tanh_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_asinh(tern_tensor *x);  /* the inverse hyperbolic sine of x */
TERN_API tern_tensor *tern_asinh_(tern_tensor *x); /* in place */
/* the inverse hyperbolic cosine of x; NaN below 1 */
TERN_API tern_tensor *tern_acosh(tern_tensor *x);
TERN_API tern_tensor *tern_acosh_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_atanh(tern_tensor *x);  /* the inverse hyperbolic tangent of x */
TERN_API tern_tensor *tern_atanh_(tern_tensor *x); /* in place */

/* the angle of the point (y, x) in radians, -pi to pi: atan2(x, y) of C, so that the argument x is
 * the height of the point */
TERN_API tern_tensor *tern_atan2(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_atan2_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_atan2_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_atan2_scalar_(tern_tensor *x,
                                         tern_scalar y); /* y is a number; in place */

/* ---- choosing -------------------------------------------------------------------------------- */

/* x where condition is true, y elsewhere. condition is bool (uint8 gives a warning). All three are
 * broadcast; x and y are promoted to one dtype. */
TERN_API tern_tensor *tern_where(tern_tensor *condition, tern_tensor *x, tern_tensor *y);
/* x where condition is true, the number y elsewhere. */
TERN_API tern_tensor *tern_where_scalar(tern_tensor *condition, tern_tensor *x, tern_scalar y);
/* The number x where condition is true, y elsewhere. */
TERN_API tern_tensor *tern_where_scalar_self(tern_tensor *condition, tern_scalar x, tern_tensor *y);
/* The number x where condition is true, the number y elsewhere. The result is int64, bool or the
 * default dtype, depending on the types of the numbers. */
TERN_API tern_tensor *tern_where_scalars(tern_tensor *condition, tern_scalar x, tern_scalar y);
/* x with value in place of the elements where mask is true; mask is bool and is broadcast. */
TERN_API tern_tensor *tern_masked_fill(tern_tensor *x, tern_tensor *mask, tern_scalar value);
/* in place */
TERN_API tern_tensor *tern_masked_fill_(tern_tensor *x, tern_tensor *mask, tern_scalar value);

/* ---- aliases that PyTorch has ---------------------------------------------------------------- */

TERN_API tern_tensor *tern_absolute(tern_tensor *x);  /* abs */
TERN_API tern_tensor *tern_absolute_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_negative(tern_tensor *x);  /* neg */
TERN_API tern_tensor *tern_negative_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_fix(tern_tensor *x);       /* trunc */
TERN_API tern_tensor *tern_fix_(tern_tensor *x);      /* in place */
TERN_API tern_tensor *tern_arccos(tern_tensor *x);    /* acos */
TERN_API tern_tensor *tern_arccos_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_arccosh(tern_tensor *x);   /* acosh */
TERN_API tern_tensor *tern_arccosh_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_arcsin(tern_tensor *x);    /* asin */
TERN_API tern_tensor *tern_arcsin_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_arcsinh(tern_tensor *x);   /* asinh */
TERN_API tern_tensor *tern_arcsinh_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_arctan(tern_tensor *x);    /* atan */
TERN_API tern_tensor *tern_arctan_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_arctanh(tern_tensor *x);   /* atanh */
TERN_API tern_tensor *tern_arctanh_(tern_tensor *x);  /* in place */

TERN_API tern_tensor *tern_multiply(tern_tensor *x, tern_tensor *y);       /* mul */
TERN_API tern_tensor *tern_multiply_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_multiply_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_multiply_scalar_(tern_tensor *x,
                                            tern_scalar y); /* y is a number; in place */

TERN_API tern_tensor *tern_subtract(tern_tensor *x, tern_tensor *y);       /* sub */
TERN_API tern_tensor *tern_subtract_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_subtract_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_subtract_scalar_(tern_tensor *x,
                                            tern_scalar y); /* y is a number; in place */

TERN_API tern_tensor *tern_divide(tern_tensor *x, tern_tensor *y);       /* div */
TERN_API tern_tensor *tern_divide_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_divide_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_divide_scalar_(tern_tensor *x,
                                          tern_scalar y); /* y is a number; in place */

/* div */
TERN_API tern_tensor *tern_true_divide(tern_tensor *x, tern_tensor *y);
/* y is a number */
TERN_API tern_tensor *tern_true_divide_scalar(tern_tensor *x, tern_scalar y);
/* in place */
TERN_API tern_tensor *tern_true_divide_(tern_tensor *x, tern_tensor *y);
/* y is a number; in place */
TERN_API tern_tensor *tern_true_divide_scalar_(tern_tensor *x, tern_scalar y);

TERN_API tern_tensor *tern_arctan2(tern_tensor *x, tern_tensor *y);       /* atan2 */
TERN_API tern_tensor *tern_arctan2_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_arctan2_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_arctan2_scalar_(tern_tensor *x,
                                           tern_scalar y); /* y is a number; in place */

TERN_END_DECLS
#endif
