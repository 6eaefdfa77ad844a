/* ops/statistics.h -- histograms, differences and integrals, covariances, combinations, and
 * matrices built from others.
 *
 * tern_x is torch.x. A negative dim counts from the end. Results belong to the innermost scope;
 * NULL after an error. ops/reduce.h has means, variances and norms. */
#ifndef TERN_OPS_STATISTICS_H
#define TERN_OPS_STATISTICS_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- histograms ------------------------------------------------------------------------------ */

/* Returns how often each of 0, 1, ... occurs in x (n), integers that are not negative. The result
 * is int64 of size minlength, or the largest element + 1 if that is more. With weights (n) the
 * result is the sum of the weights instead, in float32 for float32 weights and in float64 for all
 * others. Waits for the device, because the host reads the largest element. */
TERN_API tern_tensor *tern_bincount(tern_tensor *x, tern_tensor *weights, int64_t minlength);
/* Returns how many elements are in each of `bins` equal parts of [min, max], in x's dtype. If min
 * equals max, the range is that of x, and the host waits for the device. For integers min and max
 * are truncated (PyTorch on the cpu does not do so). */
TERN_API tern_tensor *tern_histc(tern_tensor *x, int64_t bins, double min, double max);

/* ---- differences and integrals --------------------------------------------------------------- */

/* Returns the differences of neighbouring elements along dim, n >= 0 times (PyTorch's defaults: 1,
 * -1); for bools, whether they differ. prepend and append are joined to x first, unless they are
 * NULL. */
TERN_API tern_tensor *tern_diff(tern_tensor *x, int64_t n, int dim, tern_tensor *prepend,
                                tern_tensor *append);
/* Returns the integral of y along dim by the trapezoidal rule. The points are x (of that dim's
 * size, or of y's shape), or with x NULL they are dx apart (PyTorch's defaults: dx 1, dim -1). */
TERN_API tern_tensor *tern_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim);
/* Another name of tern_trapezoid. */
TERN_API tern_tensor *tern_trapz(tern_tensor *y, tern_tensor *x, double dx, int dim);
/* Returns the cumulative integrals: those up to each point. */
TERN_API tern_tensor *tern_cumulative_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim);

/* ---- covariances ----------------------------------------------------------------------------- */

typedef struct tern_cov_options {
    tern_optional_int correction; /* default 1 */
    tern_tensor *fweights;        /* (n), integers: how often each observation occurred */
    tern_tensor *aweights;        /* (n), floating point: the weight of each observation */
    uint64_t reserved[4];
} tern_cov_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_cov_options tern_cov_defaults(void);
/* Returns the covariance matrix (variables, variables) of x (variables, observations), or the
 * variance of x (observations). Weights are read from the device, so that negative ones can be
 * refused. */
TERN_API tern_tensor *tern_cov(tern_tensor *x, const tern_cov_options *options);
/* Returns the correlation coefficients: covariances divided by both standard deviations, -1 to
 * 1. */
TERN_API tern_tensor *tern_corrcoef(tern_tensor *x);

/* ---- combinations ---------------------------------------------------------------------------- */

/* Returns all choices of one element from each of n vectors, (choices, n); for one vector, the
 * vector itself. */
TERN_API tern_tensor *tern_cartesian_prod(tern_tensor *const *tensors, int n);
/* Returns all choices of r elements of a vector, in their order, (choices, r). With
 * with_replacement an element may be chosen again. */
TERN_API tern_tensor *tern_combinations(tern_tensor *x, int r, bool with_replacement);

/* ---- matrices built from others -------------------------------------------------------------- */

/* Returns the Kronecker product, a block x_ij y for each element of x. */
TERN_API tern_tensor *tern_kron(tern_tensor *x, tern_tensor *y);
/* Returns a matrix with n matrices, vectors (as rows) or scalars on its block diagonal, and zeros
 * elsewhere. */
TERN_API tern_tensor *tern_block_diag(tern_tensor *const *tensors, int n);
/* Returns the powers 0 to n - 1 of the elements of a vector, one row for each element, from the
 * highest power down, or with increasing from the lowest up. n below 0 means as many powers as
 * there are elements. */
TERN_API tern_tensor *tern_vander(tern_tensor *x, int64_t n, bool increasing);

TERN_END_DECLS
#endif
