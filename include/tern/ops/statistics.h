/* ops/statistics.h -- counts, differences and areas, covariances, choices,
 * matrices made of others.
 *
 * tern_x is torch.x. Dims count from the end when negative. Results belong to the innermost scope;
 * NULL after an error. Means, variances and norms are in ops/reduce.h. */
#ifndef TERN_OPS_STATISTICS_H
#define TERN_OPS_STATISTICS_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- counts ---------------------------------------------------------------------------------- */

/* How often each of 0, 1, ... is among x (n), integers that are not negative: int64 (minlength, or
 * the largest + 1 where that is more). With weights (n) their sums instead: float32 weights in
 * float32, the others in float64. Waits for the device, which must say how large the largest is. */
TERN_API tern_tensor *tern_bincount(tern_tensor *x, tern_tensor *weights, int64_t minlength);
/* How many elements are in each of `bins` parts of [min, max], in x's type; of integers (unlike
 * PyTorch's on the cpu) min and max lose their fractions. min == max: the range of x, for which the
 * device is waited for. */
TERN_API tern_tensor *tern_histc(tern_tensor *x, int64_t bins, double min, double max);

/* ---- differences and areas ------------------------------------------------------------------- */

/* Each element less the one before, n >= 0 times, along dim (PyTorch's defaults: 1, -1); of bools
 * whether they differ. prepend and append, or NULL, are joined to x first. */
TERN_API tern_tensor *tern_diff(tern_tensor *x, int64_t n, int dim, tern_tensor *prepend,
                                tern_tensor *append);
/* The area below y along dim by trapezoids, at the places x (of that dim, or of y's shape), or x
 * NULL and dx apart (PyTorch's defaults: dx 1, dim -1). */
TERN_API tern_tensor *tern_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim);
/* tern_trapezoid. */
TERN_API tern_tensor *tern_trapz(tern_tensor *y, tern_tensor *x, double dx, int dim);
/* All the areas up to each place. */
TERN_API tern_tensor *tern_cumulative_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim);

/* ---- covariances ----------------------------------------------------------------------------- */

typedef struct tern_cov_options {
    tern_optional_int correction; /* default 1 */
    tern_tensor *fweights;        /* (n), integers: how often each observation is there */
    tern_tensor *aweights;        /* (n), floating point: how much it weighs */
    uint64_t reserved[4];
} tern_cov_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_cov_options tern_cov_defaults(void);
/* Of the rows of x (variables, observations) or (observations): (variables, variables), or a
 * number. Weights are read from the device to refuse negative ones. */
TERN_API tern_tensor *tern_cov(tern_tensor *x, const tern_cov_options *options);
/* The same over the products of their standard deviations, -1 to 1. */
TERN_API tern_tensor *tern_corrcoef(tern_tensor *x);

/* ---- choices --------------------------------------------------------------------------------- */

/* Every choice of one element from each of n vectors, (choices, n); of one vector, itself. */
TERN_API tern_tensor *tern_cartesian_prod(tern_tensor *const *tensors, int n);
/* Every choice of r elements of a vector in their order, (choices, r); with_replacement: also the
 * same one again. Reads from the device how many. */
TERN_API tern_tensor *tern_combinations(tern_tensor *x, int r, bool with_replacement);

/* ---- matrices made of others ----------------------------------------------------------------- */

/* Kronecker's product: a block x_ij y for each element of x. */
TERN_API tern_tensor *tern_kron(tern_tensor *x, tern_tensor *y);
/* n matrices, vectors (as rows) or numbers one below and beside the other, zeros elsewhere. */
TERN_API tern_tensor *tern_block_diag(tern_tensor *const *tensors, int n);
/* The powers 0 to n - 1 (n below 0: as many as elements) of a vector's elements as rows, from the
 * highest or (increasing) from the lowest. */
TERN_API tern_tensor *tern_vander(tern_tensor *x, int64_t n, bool increasing);

TERN_END_DECLS
#endif
