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

/* arithmetic */
TERN_BINARY_(add);         /* x + y; bool: or */
TERN_BINARY_(sub);         /* x - y; refuses bool */
TERN_BINARY_(mul);         /* x y; bool: and */
TERN_BINARY_(div);         /* x / y [float] */
TERN_BINARY_(pow);         /* x to the y [float] */
TERN_BINARY_(maximum);     /* the larger; NaN if either is; at ties each gets half the gradient */
TERN_BINARY_(minimum);     /* the smaller, likewise */
TERN_BINARY_(bitwise_and); /* integers and bool only */
TERN_BINARY_(bitwise_or);
TERN_BINARY_(bitwise_xor);
TERN_UNARY_SCALAR_(rsub_scalar); /* a - x */
TERN_UNARY_SCALAR_(rdiv_scalar); /* a / x [float] */
TERN_UNARY_SCALAR_(rpow_scalar); /* a to the x [float] */
TERN_UNARY_(neg);                /* -x; refuses bool */
TERN_UNARY_(abs);
TERN_UNARY_(sign); /* -1, 0 or 1; 0 for NaN */
TERN_UNARY_(square);
TERN_UNARY_(reciprocal);             /* 1 / x [float] */
TERN_UNARY_REAL2_(clamp, low, high); /* low where smaller, high where larger; +-INFINITY for none */

/* exponentials and powers */
TERN_UNARY_(exp);   /* [float] */
TERN_UNARY_(log);   /* natural logarithm [float] */
TERN_UNARY_(sqrt);  /* [float] */
TERN_UNARY_(rsqrt); /* 1 / sqrt(x) [float] */

/* trigonometric and special functions [float] */
TERN_UNARY_(sin);
TERN_UNARY_(cos);
TERN_UNARY_(tanh);
TERN_UNARY_(erf);

/* activations */
TERN_UNARY_(sigmoid);   /* 1 / (1 + exp(-x)) [float] */
TERN_UNARY_(relu);      /* max(x, 0); NaN stays; gradient 0 at 0 */
TERN_UNARY_(silu);      /* x sigmoid(x) [float] */
TERN_UNARY_(gelu);      /* x times the normal CDF (erf form; Hendrycks & Gimpel 2016) [float] */
TERN_UNARY_(gelu_tanh); /* its tanh form [float] */
TERN_UNARY_REAL1_(leaky_relu, negative_slope); /* PyTorch's default slope is 0.01 [float] */

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

/* x where condition (bool) holds, y elsewhere; all broadcast. */
TERN_API tern_tensor *tern_where(tern_tensor *condition, tern_tensor *x, tern_tensor *y);
/* x with value where mask (bool, broadcast) holds. */
TERN_API tern_tensor *tern_masked_fill(tern_tensor *x, tern_tensor *mask, tern_scalar value);
TERN_API tern_tensor *tern_masked_fill_(tern_tensor *x, tern_tensor *mask, tern_scalar value);

TERN_END_DECLS
#endif
