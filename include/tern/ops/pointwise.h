/* ops/pointwise.h -- elementwise operations that are made of others. A trailing _ works in place
 * and returns x. */
#ifndef TERN_OPS_POINTWISE_H
#define TERN_OPS_POINTWISE_H
#include <tern/ops/elementwise.h>

TERN_BEGIN_DECLS

typedef enum tern_rounding_mode {
    TERN_ROUNDING_NONE = 0,
    TERN_ROUNDING_TRUNC, /* towards zero */
    TERN_ROUNDING_FLOOR  /* down */
} tern_rounding_mode;
/* x / y, rounded. */
TERN_API tern_tensor *tern_div_mode(tern_tensor *x, tern_tensor *y,
                                    tern_rounding_mode rounding_mode);
TERN_API tern_tensor *tern_div_mode_scalar(tern_tensor *x, tern_scalar y,
                                           tern_rounding_mode rounding_mode);

/* x rounded to that many digits behind the point, negative ones before it. */
TERN_API tern_tensor *tern_round_decimals(tern_tensor *x, int decimals);

/* x between tensors min and max; NULL for none of them, but one there must be. */
TERN_API tern_tensor *tern_clamp_tensor(tern_tensor *x, tern_tensor *min, tern_tensor *max);

/* x + weight (end - x), with a number for weight. */
TERN_API tern_tensor *tern_lerp_scalar(tern_tensor *x, tern_tensor *end, double weight);

/* NaN becomes nan, infinities posinf and neginf; where those are NAN, the largest and the smallest
 * number of x's dtype. */
TERN_API tern_tensor *tern_nan_to_num(tern_tensor *x, double nan, double posinf, double neginf);
TERN_API tern_tensor *tern_nan_to_num_(tern_tensor *x, double nan, double posinf, double neginf);

/* Every bit of integers turned over; not, of bool. */
TERN_API tern_tensor *tern_bitwise_not(tern_tensor *x);
/* sign(x); for complex numbers, which tern does not have, it would be x / |x|. */
TERN_API tern_tensor *tern_sgn(tern_tensor *x);
/* x itself; refuses bool. */
TERN_API tern_tensor *tern_positive(tern_tensor *x);

/* |x - y| <= atol + rtol |y|, or equal; NaN equals NaN where equal_nan. PyTorch's defaults are rtol
 * 1e-5 and atol 1e-8. A bool tensor; of all elements; whether shapes and values are the same. The
 * last two read the answer from the device; a failure, which is recorded, answers false. */
TERN_API tern_tensor *tern_isclose(tern_tensor *x, tern_tensor *y, double rtol, double atol,
                                   bool equal_nan);
TERN_API bool tern_allclose(tern_tensor *x, tern_tensor *y, double rtol, double atol,
                            bool equal_nan);
TERN_API bool tern_equal(tern_tensor *x, tern_tensor *y);

/* x, or weight x below 0: weight of one element, or of one for each channel (dim 1) of x. */
TERN_API tern_tensor *tern_prelu(tern_tensor *x, tern_tensor *weight);
/* x, or a slope times x below 0: drawn from lower..upper for each element when training, else their
 * mean. PyTorch's defaults are 1/8 and 1/3. */
TERN_API tern_tensor *tern_rrelu(tern_tensor *x, double lower, double upper, bool training);
TERN_API tern_tensor *tern_rrelu_(tern_tensor *x, double lower, double upper, bool training);
/* The first half of x along dim times the sigmoid of the second (Dauphin et al. 2017). */
TERN_API tern_tensor *tern_glu(tern_tensor *x, int dim);
/* A sample of the classes along dim that x are logits of, relaxed by temperature tau; hard:
 * one-hot, with the gradient of the relaxed one (Jang et al. 2016). PyTorch's defaults are tau 1
 * and dim -1. */
TERN_API tern_tensor *tern_gumbel_softmax(tern_tensor *x, double tau, bool hard, int dim);

/* x to the y in float64, which the device must have. */
TERN_API tern_tensor *tern_float_power(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_float_power_scalar(tern_tensor *x, tern_scalar y);
/* x times 2 to the y. */
TERN_API tern_tensor *tern_ldexp(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_ldexp_(tern_tensor *x, tern_tensor *y);

/* Second names. */
TERN_UNARY_(absolute);        /* abs */
TERN_UNARY_(negative);        /* neg */
TERN_UNARY_(arccos);          /* acos */
TERN_UNARY_(arccosh);         /* acosh */
TERN_UNARY_(arcsin);          /* asin */
TERN_UNARY_(arcsinh);         /* asinh */
TERN_UNARY_(arctan);          /* atan */
TERN_UNARY_(arctanh);         /* atanh */
TERN_UNARY_(fix);             /* trunc */
TERN_BINARY_(multiply);       /* mul */
TERN_BINARY_(subtract);       /* sub */
TERN_BINARY_(divide);         /* div */
TERN_BINARY_(true_divide);    /* div */
TERN_BINARY_(arctan2);        /* atan2 */
TERN_COMPARE_(greater);       /* gt */
TERN_COMPARE_(greater_equal); /* ge */
TERN_COMPARE_(less);          /* lt */
TERN_COMPARE_(less_equal);    /* le */
TERN_COMPARE_(not_equal);     /* ne */

TERN_END_DECLS
#endif
