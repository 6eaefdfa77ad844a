/* ops/activation.h -- activation functions: relu, gelu and others.
 *
 * tern_x is torch.nn.functional.x; nn/activation.h has the modules. The first comment of
 * ops/elementwise.h holds here too: it explains types, errors, the trailing _ and [float]. */
#ifndef TERN_OPS_ACTIVATION_H
#define TERN_OPS_ACTIVATION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

TERN_API tern_tensor *tern_relu(tern_tensor *x);         /* max(x, 0); NaN stays; gradient 0 at 0 */
TERN_API tern_tensor *tern_relu_(tern_tensor *x);        /* in place */
TERN_API tern_tensor *tern_relu6(tern_tensor *x);        /* min(max(x, 0), 6) */
TERN_API tern_tensor *tern_relu6_(tern_tensor *x);       /* in place */
TERN_API tern_tensor *tern_sigmoid(tern_tensor *x);      /* the sigmoid 1 / (1 + exp(-x)) [float] */
TERN_API tern_tensor *tern_sigmoid_(tern_tensor *x);     /* in place */
TERN_API tern_tensor *tern_logsigmoid(tern_tensor *x);   /* the logarithm of it [float] */
TERN_API tern_tensor *tern_logsigmoid_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_hardsigmoid(tern_tensor *x);  /* relu6(x + 3) / 6 [float] */
TERN_API tern_tensor *tern_hardsigmoid_(tern_tensor *x); /* in place */
TERN_API tern_tensor *tern_silu(tern_tensor *x);         /* x sigmoid(x) [float] */
TERN_API tern_tensor *tern_silu_(tern_tensor *x);        /* in place */
TERN_API tern_tensor *tern_hardswish(tern_tensor *x);    /* x relu6(x + 3) / 6 [float] */
TERN_API tern_tensor *tern_hardswish_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_mish(tern_tensor *x);         /* x tanh(softplus(x)) [float] */
TERN_API tern_tensor *tern_mish_(tern_tensor *x);        /* in place */
TERN_API tern_tensor *tern_softsign(tern_tensor *x);     /* x / (1 + |x|) [float] */
TERN_API tern_tensor *tern_softsign_(tern_tensor *x);    /* in place */
TERN_API tern_tensor *tern_tanhshrink(tern_tensor *x);   /* x - tanh(x) [float] */
TERN_API tern_tensor *tern_tanhshrink_(tern_tensor *x);  /* in place */

/* x times the distribution function of the standard normal distribution, computed with erf
 * (Hendrycks & Gimpel 2016) [float]. */
TERN_API tern_tensor *tern_gelu(tern_tensor *x);
TERN_API tern_tensor *tern_gelu_(tern_tensor *x); /* in place */
/* gelu with the approximation by tanh (approximate="tanh") [float]. */
TERN_API tern_tensor *tern_gelu_tanh(tern_tensor *x);
TERN_API tern_tensor *tern_gelu_tanh_(tern_tensor *x); /* in place */
/* elu, scaled so that activations keep mean 0 and variance 1 (Klambauer et al. 2017) [float]. */
TERN_API tern_tensor *tern_selu(tern_tensor *x);
TERN_API tern_tensor *tern_selu_(tern_tensor *x); /* in place */

/* ---- with parameters; the parentheses give PyTorch's defaults -------------------------------- */

/* x where x is above 0, negative_slope x elsewhere (negative_slope 0.01) [float]. */
TERN_API tern_tensor *tern_leaky_relu(tern_tensor *x, double negative_slope);
TERN_API tern_tensor *tern_leaky_relu_(tern_tensor *x, double negative_slope); /* in place */
/* x where x is above 0, alpha (exp(x) - 1) elsewhere (alpha 1) [float]. */
TERN_API tern_tensor *tern_elu(tern_tensor *x, double alpha);
TERN_API tern_tensor *tern_elu_(tern_tensor *x, double alpha); /* in place */
/* x where x is above 0, alpha (exp(x / alpha) - 1) elsewhere (alpha 1) [float]. */
TERN_API tern_tensor *tern_celu(tern_tensor *x, double alpha);
TERN_API tern_tensor *tern_celu_(tern_tensor *x, double alpha); /* in place */
/* 0 where x is in -lambd..lambd, x elsewhere (lambd 0.5) [float]. */
TERN_API tern_tensor *tern_hardshrink(tern_tensor *x, double lambd);
TERN_API tern_tensor *tern_hardshrink_(tern_tensor *x, double lambd); /* in place */
/* x moved towards 0 by lambd, and 0 where x is in -lambd..lambd (lambd 0.5) [float]. */
TERN_API tern_tensor *tern_softshrink(tern_tensor *x, double lambd);
TERN_API tern_tensor *tern_softshrink_(tern_tensor *x, double lambd); /* in place */
/* log(1 + exp(beta x)) / beta, and x itself where beta x is above threshold (beta 1, threshold 20)
 * [float]. */
TERN_API tern_tensor *tern_softplus(tern_tensor *x, double beta, double threshold);
TERN_API tern_tensor *tern_softplus_(tern_tensor *x, double beta, double threshold); /* in place */
/* x limited to min_val..max_val (-1, 1). The gradient is 0 where x is at a limit or beyond it. */
TERN_API tern_tensor *tern_hardtanh(tern_tensor *x, double min_val, double max_val);
TERN_API tern_tensor *tern_hardtanh_(tern_tensor *x, double min_val, double max_val); /* in place */
/* value where x is at most threshold, x elsewhere: NaN stays. */
TERN_API tern_tensor *tern_threshold(tern_tensor *x, double threshold, double value);
TERN_API tern_tensor *tern_threshold_(tern_tensor *x, double threshold,
                                      double value); /* in place */

/* ---- with a weight, at random, or along a dim ------------------------------------------------ */

/* x where x is above 0, weight x elsewhere. weight has one element, or one for each channel (dim 1)
 * of x. */
TERN_API tern_tensor *tern_prelu(tern_tensor *x, tern_tensor *weight);
/* x where x is above 0, y x elsewhere; y is broadcast. tern_prelu calls it (torch._prelu_kernel)
 * [float]. */
TERN_API tern_tensor *tern_prelu_kernel(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_prelu_kernel_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_prelu_kernel_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_prelu_kernel_scalar_(tern_tensor *x,
                                                tern_scalar y); /* y is a number; in place */
/* x where x is above 0, a slope times x elsewhere. When training is true the slope of each element
 * is drawn from lower..upper; else it is their mean (lower 1/8, upper 1/3). */
TERN_API tern_tensor *tern_rrelu(tern_tensor *x, double lower, double upper, bool training);
TERN_API tern_tensor *tern_rrelu_(tern_tensor *x, double lower, double upper,
                                  bool training); /* in place */
/* The first half of x along dim times the sigmoid of the second half (Dauphin et al. 2017; dim
 * -1). */
TERN_API tern_tensor *tern_glu(tern_tensor *x, int dim);

TERN_END_DECLS
#endif
