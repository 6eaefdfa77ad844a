/* ops/special.h -- error and gamma functions, logit, sinc (torch.special). The first comment of
 * ops/elementwise.h holds here too; it also has expm1 and log1p. All functions are [float]:
 * integers and bools are converted to the default dtype. */
#ifndef TERN_OPS_SPECIAL_H
#define TERN_OPS_SPECIAL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

TERN_API tern_tensor *tern_erf(tern_tensor *x);       /* the error function of x */
TERN_API tern_tensor *tern_erf_(tern_tensor *x);      /* in place */
TERN_API tern_tensor *tern_erfc(tern_tensor *x);      /* 1 - erf(x), precise for large x */
TERN_API tern_tensor *tern_erfc_(tern_tensor *x);     /* in place */
TERN_API tern_tensor *tern_erfinv(tern_tensor *x);    /* inverse of erf; NaN outside of -1..1 */
TERN_API tern_tensor *tern_erfinv_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_lgamma(tern_tensor *x);    /* log |gamma(x)| (special.gammaln) */
TERN_API tern_tensor *tern_lgamma_(tern_tensor *x);   /* in place */
TERN_API tern_tensor *tern_digamma(tern_tensor *x);   /* the derivative of lgamma(x) */
TERN_API tern_tensor *tern_digamma_(tern_tensor *x);  /* in place */
TERN_API tern_tensor *tern_trigamma(tern_tensor *x);  /* the derivative of digamma(x) */
TERN_API tern_tensor *tern_trigamma_(tern_tensor *x); /* in place */

/* The n-th derivative of digamma, n >= 0; from n = 2 on it is n! times a Hurwitz zeta function.
 * Infinite where n! is out of the dtype's range. */
TERN_API tern_tensor *tern_polygamma(int64_t n, tern_tensor *x);
/* The logarithm of the multivariate gamma function of dimension p >= 1 (special.multigammaln). */
TERN_API tern_tensor *tern_mvlgamma(tern_tensor *x, int64_t p);
/* log(x / (1 - x)), with x first limited to [eps, 1 - eps]; eps below 0 means no limit. */
TERN_API tern_tensor *tern_logit(tern_tensor *x, double eps);
TERN_API tern_tensor *tern_logit_(tern_tensor *x, double eps); /* in place */
TERN_API tern_tensor *tern_sinc(tern_tensor *x);               /* sin(pi x) / (pi x); 1 at 0 */
TERN_API tern_tensor *tern_sinc_(tern_tensor *x);              /* in place */

/* x log(y), and 0 where x is 0 unless y is NaN */
TERN_API tern_tensor *tern_xlogy(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_xlogy_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_xlogy_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_xlogy_scalar_(tern_tensor *x,
                                         tern_scalar y); /* y is a number; in place */

TERN_END_DECLS
#endif
