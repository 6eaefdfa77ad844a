/* ops/elementwise.h -- one number in, one number out. Shapes broadcast, types promote, NaN passes
 * on, as in PyTorch (https://pytorch.org/docs/stable/torch.html#pointwise-ops).
 *
 * Results are new tensors owned by the innermost scope, NULL after an error. A trailing _ works in
 * place and returns x. _scalar takes a number for y: TERN_SCALAR(2). Functions marked [float] give
 * float32 for integer input. */
#ifndef TERN_OPS_ELEMENTWISE_H
#define TERN_OPS_ELEMENTWISE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

#define TERN_UNARY_(name)                                                                          \
    TERN_API tern_tensor *tern_##name(tern_tensor *x);                                             \
    TERN_API tern_tensor *tern_##name##_(tern_tensor *x)
#define TERN_BINARY_(name)                                                                         \
    TERN_API tern_tensor *tern_##name(tern_tensor *x, tern_tensor *y);                             \
    TERN_API tern_tensor *tern_##name##_scalar(tern_tensor *x, tern_scalar y);                     \
    TERN_API tern_tensor *tern_##name##_(tern_tensor *x, tern_tensor *y);                          \
    TERN_API tern_tensor *tern_##name##_scalar_(tern_tensor *x, tern_scalar y)
#define TERN_COMPARE_(name)                                                                        \
    TERN_API tern_tensor *tern_##name(tern_tensor *x, tern_tensor *y);                             \
    TERN_API tern_tensor *tern_##name##_scalar(tern_tensor *x, tern_scalar y)
#define TERN_PREDICATE_(name) TERN_API tern_tensor *tern_##name(tern_tensor *x)
#define TERN_UNARY_REAL1_(name, a)                                                                 \
    TERN_API tern_tensor *tern_##name(tern_tensor *x, double a);                                   \
    TERN_API tern_tensor *tern_##name##_(tern_tensor *x, double a)
#define TERN_UNARY_REAL2_(name, a, b)                                                              \
    TERN_API tern_tensor *tern_##name(tern_tensor *x, double a, double b);                         \
    TERN_API tern_tensor *tern_##name##_(tern_tensor *x, double a, double b)
#define TERN_UNARY_SCALAR_(name)                                                                   \
    TERN_API tern_tensor *tern_##name(tern_tensor *x, tern_scalar a);                              \
    TERN_API tern_tensor *tern_##name##_(tern_tensor *x, tern_scalar a)

#define TERN_TERNARY_(name, second, third)                                                         \
    TERN_API tern_tensor *tern_##name(tern_tensor *x, tern_tensor *second, tern_tensor *third);    \
    TERN_API tern_tensor *tern_##name##_(tern_tensor *x, tern_tensor *second, tern_tensor *third)
#define TERN_TERNARY_SCALAR_(name)                                                                 \
    TERN_API tern_tensor *tern_##name(tern_tensor *x, tern_tensor *y, tern_tensor *z,              \
                                      tern_scalar a);                                              \
    TERN_API tern_tensor *tern_##name##_(tern_tensor *x, tern_tensor *y, tern_tensor *z,           \
                                         tern_scalar a)

/* arithmetic */
TERN_BINARY_(add); /* x + y; bool: or */
TERN_BINARY_(sub); /* x - y; refuses bool */
TERN_BINARY_(mul); /* x y; bool: and */
TERN_BINARY_(div); /* x / y [float] */
/* x / y rounded, as torch.div with rounding_mode; integers stay integers. A number 0 is refused for
 * integers; where a tensor is 0, their result is 0. No gradient comes of them. */
TERN_BINARY_(floor_divide); /* down */
TERN_BINARY_(trunc_divide); /* towards zero */
TERN_BINARY_(fmod);         /* the remainder with the sign of x; by zero as above */
TERN_BINARY_(remainder);    /* with the sign of y */
/* x to the y. Integers stay integers: a negative number is refused, a negative tensor leaves 1, -1
 * or 0. */
TERN_BINARY_(pow);
TERN_BINARY_(maximum); /* the larger; NaN if either is; at ties each gets half the gradient */
TERN_BINARY_(minimum); /* the smaller, likewise */
TERN_BINARY_(fmax);    /* the larger; the other one where one is NaN; at ties x gets the gradient */
TERN_BINARY_(fmin);    /* the smaller, likewise */
TERN_BINARY_(clamp_min); /* y where x is smaller */
TERN_BINARY_(clamp_max); /* y where x is larger */
TERN_BINARY_(copysign);  /* x with the sign of y [float] */
TERN_BINARY_(heaviside); /* 0 left of 0, 1 right of it, y at 0 */
TERN_BINARY_(hypot);     /* sqrt(x^2 + y^2) [float] */
TERN_BINARY_(xlogy);     /* x log(y), 0 where x is 0 [float] */
TERN_BINARY_(logaddexp); /* log(exp(x) + exp(y)) [float] */
TERN_BINARY_(logaddexp2);
TERN_BINARY_(atan2);              /* the angle of the point (y, x): x is its height [float] */
TERN_TERNARY_SCALAR_(addcmul);    /* x + a y z */
TERN_TERNARY_SCALAR_(addcdiv);    /* x + a y / z [float] */
TERN_TERNARY_(lerp, end, weight); /* x + weight (end - x) [float] */
TERN_UNARY_SCALAR_(rsub_scalar);  /* a - x */
TERN_UNARY_SCALAR_(rdiv_scalar);  /* a / x [float] */
TERN_UNARY_SCALAR_(rpow_scalar);  /* a to the x */
TERN_UNARY_(neg);                 /* -x; refuses bool */
TERN_UNARY_(abs);
TERN_UNARY_(sign); /* -1, 0 or 1; 0 for NaN */
TERN_UNARY_(square);
TERN_UNARY_(reciprocal);            /* 1 / x [float] */
TERN_UNARY_REAL2_(clamp, min, max); /* min where smaller, max where larger; +-INFINITY for none */
TERN_UNARY_(deg2rad);               /* [float] */
TERN_UNARY_(rad2deg);               /* [float] */

/* rounding; integers stay as they are; the gradient is 0 */
TERN_UNARY_(floor);
TERN_UNARY_(ceil);
TERN_UNARY_(round); /* half to even */
TERN_UNARY_(trunc);
TERN_UNARY_(frac); /* x - trunc(x); gradient 1 [float] */

/* exponentials and powers [float] */
TERN_UNARY_(exp);
TERN_UNARY_(exp2);
TERN_UNARY_(expm1); /* exp(x) - 1, exact near 0 */
TERN_UNARY_(log);   /* natural logarithm */
TERN_UNARY_(log2);
TERN_UNARY_(log10);
TERN_UNARY_(log1p); /* log(1 + x), exact near 0 */
TERN_UNARY_(sqrt);
TERN_UNARY_(rsqrt);            /* 1 / sqrt(x) */
TERN_UNARY_REAL1_(logit, eps); /* log(x / (1 - x)), x clamped to [eps, 1 - eps]; negative: not */

/* trigonometric and hyperbolic functions [float] */
TERN_UNARY_(sin);
TERN_UNARY_(cos);
TERN_UNARY_(tan);
TERN_UNARY_(asin);
TERN_UNARY_(acos);
TERN_UNARY_(atan);
TERN_UNARY_(sinh);
TERN_UNARY_(cosh);
TERN_UNARY_(tanh);
TERN_UNARY_(asinh);
TERN_UNARY_(acosh);
TERN_UNARY_(atanh);
TERN_UNARY_(sinc); /* sin(pi x) / (pi x) */

/* error and gamma functions [float] */
TERN_UNARY_(erf);
TERN_UNARY_(erfc);
TERN_UNARY_(erfinv);
TERN_UNARY_(lgamma);   /* log |gamma(x)| */
TERN_UNARY_(digamma);  /* its derivative */
TERN_UNARY_(trigamma); /* and the next one; its gradient has none */

/* activations */
TERN_UNARY_(sigmoid);     /* 1 / (1 + exp(-x)) [float] */
TERN_UNARY_(logsigmoid);  /* its logarithm [float] */
TERN_UNARY_(hardsigmoid); /* relu6(x + 3) / 6 [float] */
TERN_UNARY_(relu);        /* max(x, 0); NaN stays; gradient 0 at 0 */
TERN_UNARY_(relu6);       /* min(max(x, 0), 6) */
TERN_UNARY_(silu);        /* x sigmoid(x) [float] */
TERN_UNARY_(hardswish);   /* x relu6(x + 3) / 6 [float] */
TERN_UNARY_(mish);        /* x tanh(softplus(x)) (Misra 2019) [float] */
TERN_UNARY_(gelu);        /* x times the normal CDF (erf form; Hendrycks & Gimpel 2016) [float] */
TERN_UNARY_(gelu_tanh);   /* its tanh form [float] */
TERN_UNARY_(selu);        /* scaled elu (Klambauer et al. 2017) [float] */
TERN_UNARY_(softsign);    /* x / (1 + |x|) [float] */
TERN_UNARY_(tanhshrink);  /* x - tanh(x) [float] */
TERN_UNARY_REAL1_(leaky_relu, negative_slope); /* PyTorch's default slope is 0.01 [float] */
TERN_BINARY_(prelu_kernel);     /* leaky_relu with slopes y; tern_prelu spreads a weight [float] */
TERN_UNARY_REAL1_(elu, alpha);  /* x, or alpha (exp(x) - 1) below 0; 1 [float] */
TERN_UNARY_REAL1_(celu, alpha); /* x, or alpha (exp(x / alpha) - 1); 1 [float] */
TERN_UNARY_REAL1_(hardshrink, lambd);           /* 0 within -lambd..lambd; 0.5 [float] */
TERN_UNARY_REAL1_(softshrink, lambd);           /* lambd closer to 0, or 0; 0.5 [float] */
TERN_UNARY_REAL2_(softplus, beta, threshold);   /* log(1 + exp(beta x)) / beta; 1, 20 [float] */
TERN_UNARY_REAL2_(hardtanh, min_val, max_val);  /* -1, 1; gradient 0 at the ends */
TERN_UNARY_REAL2_(threshold, threshold, value); /* value where x <= threshold */

/* comparisons: bool results, no gradient */
TERN_COMPARE_(eq);
TERN_COMPARE_(ne);
TERN_COMPARE_(lt);
TERN_COMPARE_(le);
TERN_COMPARE_(gt);
TERN_COMPARE_(ge);
TERN_COMPARE_(logical_and);
TERN_COMPARE_(logical_or);
TERN_COMPARE_(logical_xor);
TERN_PREDICATE_(logical_not);
TERN_PREDICATE_(isnan);
TERN_PREDICATE_(isfinite);
TERN_PREDICATE_(isinf);
TERN_PREDICATE_(isposinf);
TERN_PREDICATE_(isneginf);
TERN_PREDICATE_(signbit); /* of -0.0 too */

/* bits of integers and bool */
TERN_BINARY_(bitwise_and);
TERN_BINARY_(bitwise_or);
TERN_BINARY_(bitwise_xor);
/* Integers only; by the width and more, or less than 0, leaves 0, or -1 of a negative number
 * shifted to the right. */
TERN_BINARY_(bitwise_left_shift);
TERN_BINARY_(bitwise_right_shift);

/* x where condition (bool) holds, y elsewhere; all broadcast. */
TERN_API tern_tensor *tern_where(tern_tensor *condition, tern_tensor *x, tern_tensor *y);
/* x with value where mask (bool, broadcast) holds. */
TERN_API tern_tensor *tern_masked_fill(tern_tensor *x, tern_tensor *mask, tern_scalar value);
TERN_API tern_tensor *tern_masked_fill_(tern_tensor *x, tern_tensor *mask, tern_scalar value);

TERN_END_DECLS
#endif
