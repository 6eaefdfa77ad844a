/* ops/activation.h -- what stands between layers: relu and its like.
 *
 * tern_x is torch.nn.functional.x; the modules are in nn/activation.h. ops/elementwise.h says what
 * holds for all of them, and what [float] means. */
#ifndef TERN_OPS_ACTIVATION_H
#define TERN_OPS_ACTIVATION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

TERN_API tern_tensor *tern_relu(tern_tensor *x);         /* max(x, 0); NaN stays; gradient 0 at 0 */
TERN_API tern_tensor *tern_relu_(tern_tensor *x);        /* into x */
TERN_API tern_tensor *tern_relu6(tern_tensor *x);        /* min(max(x, 0), 6) */
TERN_API tern_tensor *tern_relu6_(tern_tensor *x);       /* into x */
TERN_API tern_tensor *tern_sigmoid(tern_tensor *x);      /* the sigmoid 1 / (1 + exp(-x)) [float] */
TERN_API tern_tensor *tern_sigmoid_(tern_tensor *x);     /* into x */
TERN_API tern_tensor *tern_logsigmoid(tern_tensor *x);   /* the logarithm of it [float] */
TERN_API tern_tensor *tern_logsigmoid_(tern_tensor *x);  /* into x */
TERN_API tern_tensor *tern_hardsigmoid(tern_tensor *x);  /* relu6(x + 3) / 6 [float] */
TERN_API tern_tensor *tern_hardsigmoid_(tern_tensor *x); /* into x */
TERN_API tern_tensor *tern_silu(tern_tensor *x);         /* x sigmoid(x) [float] */
TERN_API tern_tensor *tern_silu_(tern_tensor *x);        /* into x */
TERN_API tern_tensor *tern_hardswish(tern_tensor *x);    /* x relu6(x + 3) / 6 [float] */
TERN_API tern_tensor *tern_hardswish_(tern_tensor *x);   /* into x */
TERN_API tern_tensor *tern_mish(tern_tensor *x);         /* x tanh(softplus(x)) [float] */
TERN_API tern_tensor *tern_mish_(tern_tensor *x);        /* into x */
TERN_API tern_tensor *tern_softsign(tern_tensor *x);     /* x / (1 + |x|) [float] */
TERN_API tern_tensor *tern_softsign_(tern_tensor *x);    /* into x */
TERN_API tern_tensor *tern_tanhshrink(tern_tensor *x);   /* x - tanh(x) [float] */
TERN_API tern_tensor *tern_tanhshrink_(tern_tensor *x);  /* into x */

/* x times the normal distribution function, by erf (Hendrycks & Gimpel 2016) [float]. */
TERN_API tern_tensor *tern_gelu(tern_tensor *x);
TERN_API tern_tensor *tern_gelu_(tern_tensor *x); /* into x */
/* The same by tanh (approximate="tanh") [float]. */
TERN_API tern_tensor *tern_gelu_tanh(tern_tensor *x);
TERN_API tern_tensor *tern_gelu_tanh_(tern_tensor *x); /* into x */
/* elu, scaled so that mean 0 and variance 1 stay (Klambauer et al. 2017) [float]. */
TERN_API tern_tensor *tern_selu(tern_tensor *x);
TERN_API tern_tensor *tern_selu_(tern_tensor *x); /* into x */

/* ---- with numbers, whose defaults in PyTorch are given --------------------------------------- */

/* x, or negative_slope x below 0 (0.01) [float]. */
TERN_API tern_tensor *tern_leaky_relu(tern_tensor *x, double negative_slope);
TERN_API tern_tensor *tern_leaky_relu_(tern_tensor *x, double negative_slope); /* into x */
/* x, or alpha (exp(x) - 1) below 0 (1) [float]. */
TERN_API tern_tensor *tern_elu(tern_tensor *x, double alpha);
TERN_API tern_tensor *tern_elu_(tern_tensor *x, double alpha); /* into x */
/* x, or alpha (exp(x / alpha) - 1) below 0 (1) [float]. */
TERN_API tern_tensor *tern_celu(tern_tensor *x, double alpha);
TERN_API tern_tensor *tern_celu_(tern_tensor *x, double alpha); /* into x */
/* 0 within -lambd..lambd, else x (0.5) [float]. */
TERN_API tern_tensor *tern_hardshrink(tern_tensor *x, double lambd);
TERN_API tern_tensor *tern_hardshrink_(tern_tensor *x, double lambd); /* into x */
/* x moved by lambd towards 0, 0 within -lambd..lambd (0.5) [float]. */
TERN_API tern_tensor *tern_softshrink(tern_tensor *x, double lambd);
TERN_API tern_tensor *tern_softshrink_(tern_tensor *x, double lambd); /* into x */
/* log(1 + exp(beta x)) / beta, x itself where beta x > threshold (1, 20) [float]. */
TERN_API tern_tensor *tern_softplus(tern_tensor *x, double beta, double threshold);
TERN_API tern_tensor *tern_softplus_(tern_tensor *x, double beta, double threshold); /* into x */
/* x between min_val and max_val (-1, 1); gradient 0 at the ends. */
TERN_API tern_tensor *tern_hardtanh(tern_tensor *x, double min_val, double max_val);
TERN_API tern_tensor *tern_hardtanh_(tern_tensor *x, double min_val, double max_val); /* into x */
/* x where it is above threshold, else value. */
TERN_API tern_tensor *tern_threshold(tern_tensor *x, double threshold, double value);
TERN_API tern_tensor *tern_threshold_(tern_tensor *x, double threshold, double value); /* into x */

/* ---- with tensors, dims or chance ------------------------------------------------------------ */

/* x, or weight x below 0; weight of one element, or of one for each channel (dim 1) of x. */
TERN_API tern_tensor *tern_prelu(tern_tensor *x, tern_tensor *weight);
/* x, or y x below 0, y broadcast: what tern_prelu is made of (torch._prelu_kernel) [float]. */
TERN_API tern_tensor *tern_prelu_kernel(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_prelu_kernel_scalar(tern_tensor *x, tern_scalar y); /* y a number */
TERN_API tern_tensor *tern_prelu_kernel_(tern_tensor *x, tern_tensor *y);      /* into x */
TERN_API tern_tensor *tern_prelu_kernel_scalar_(tern_tensor *x,
                                                tern_scalar y); /* a number, into x */
/* x, or a slope times x below 0: drawn from lower..upper for each element when training, else their
 * mean (1/8, 1/3). */
TERN_API tern_tensor *tern_rrelu(tern_tensor *x, double lower, double upper, bool training);
TERN_API tern_tensor *tern_rrelu_(tern_tensor *x, double lower, double upper,
                                  bool training); /* into x */
/* The first half of x along dim times the sigmoid of the second (Dauphin et al. 2017; dim -1). */
TERN_API tern_tensor *tern_glu(tern_tensor *x, int dim);

TERN_END_DECLS
#endif
