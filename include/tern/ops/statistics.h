/* ops/statistics.h -- differences and areas, covariances, vectors, products of sets, samples: made
 * of other operations. Dims count from the end when negative. */
#ifndef TERN_OPS_STATISTICS_H
#define TERN_OPS_STATISTICS_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- differences and areas --------------------------------------------------------------- */
/* Each element less the one before, n times, along dim (PyTorch's defaults: 1, -1); of bools
 * whether they differ. prepend and append, or NULL, are joined to x first. */
TERN_API tern_tensor *tern_diff(tern_tensor *x, int64_t n, int dim, tern_tensor *prepend,
                                tern_tensor *append);
/* The area below y along dim by trapezoids, at the places x (of that dim, or of y's shape), or x
 * NULL and dx apart (PyTorch's defaults: dx 1, dim -1); all the areas up to each place. */
TERN_API tern_tensor *tern_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim);
TERN_API tern_tensor *tern_trapz(tern_tensor *y, tern_tensor *x, double dx, int dim);
TERN_API tern_tensor *tern_cumulative_trapezoid(tern_tensor *y, tern_tensor *x, double dx, int dim);

/* ---- covariances ------------------------------------------------------------------------- */
typedef struct tern_cov_options {
    tern_optional_int correction; /* default 1 */
    tern_tensor *fweights;        /* (n), integers: how often each observation is there */
    tern_tensor *aweights;        /* (n), floating point: how much it weighs */
    uint64_t reserved[4];
} tern_cov_options;
/* Of the rows of x (variables, observations) or (observations): (variables, variables), or a
 * number. Weights are read from the device to refuse negative ones. */
TERN_API tern_tensor *tern_cov(tern_tensor *x, const tern_cov_options *options);
/* The same over the products of their standard deviations, -1 to 1. */
TERN_API tern_tensor *tern_corrcoef(tern_tensor *x);

/* ---- vectors ----------------------------------------------------------------------------- */
/* The cross product along dim, which has size 3; without it, the first such dim. linalg_cross:
 * PyTorch's default is -1. */
TERN_API tern_tensor *tern_cross(tern_tensor *x, tern_tensor *y, tern_optional_int dim);
TERN_API tern_tensor *tern_linalg_cross(tern_tensor *x, tern_tensor *y, int dim);
/* The sum of products along dim (PyTorch's default: -1). */
TERN_API tern_tensor *tern_linalg_vecdot(tern_tensor *x, tern_tensor *y, int dim);
/* The p-norm of x - y. */
TERN_API tern_tensor *tern_dist(tern_tensor *x, tern_tensor *y, double p);
/* x, each entry of dim whose p-norm is above maxnorm scaled to that. */
TERN_API tern_tensor *tern_renorm(tern_tensor *x, double p, int dim, double maxnorm);

/* ---- products of sets and of matrices ---------------------------------------------------- */
/* Kronecker's product: a block x_ij y for each element of x. */
TERN_API tern_tensor *tern_kron(tern_tensor *x, tern_tensor *y);
/* n matrices, vectors (as rows) or numbers one below and beside the other, zeros elsewhere. */
TERN_API tern_tensor *tern_block_diag(tern_tensor *const *tensors, int n);
/* Every choice of one element from each of n vectors, (choices, n); of one vector, itself. */
TERN_API tern_tensor *tern_cartesian_prod(tern_tensor *const *tensors, int n);
/* Every choice of r elements of a vector in their order, (choices, r); with_replacement: also the
 * same one again. Reads from the device how many. */
TERN_API tern_tensor *tern_combinations(tern_tensor *x, int r, bool with_replacement);
/* The powers 0 to n - 1 (n below 0: as many as elements) of a vector's elements as rows, from the
 * highest or (increasing) from the lowest. */
TERN_API tern_tensor *tern_vander(tern_tensor *x, int64_t n, bool increasing);
/* Whether each element of x is among those of y, or (invert) is not. Not for bool. */
TERN_API tern_tensor *tern_isin(tern_tensor *x, tern_tensor *y, bool invert);
/* *out = the shape that n shapes broadcast to. */
TERN_API tern_status tern_broadcast_shapes(const tern_shape *shapes, int n, tern_shape *out);

/* ---- gamma functions --------------------------------------------------------------------- */
/* The n-th derivative of digamma: 0 and 1, others are TERN_ERR_UNSUPPORTED. */
TERN_API tern_tensor *tern_polygamma(int64_t n, tern_tensor *x);
/* log of the multivariate gamma function of dimension p. */
TERN_API tern_tensor *tern_mvlgamma(tern_tensor *x, int64_t p);

/* ---- samples ----------------------------------------------------------------------------- */
/* 1 with probability x, else 0, in x's floating type; numbers outside 0..1 count as the nearest of
 * these. In place: with probability p, of any type. No gradient. */
TERN_API tern_tensor *tern_bernoulli(tern_tensor *x);
TERN_API tern_tensor *tern_bernoulli_(tern_tensor *x, double p);
/* num_samples indices of each row of x (rows, n) or (n), which weighs them; replacement: an index
 * may come again. int64. Reads from the device whether the weights are ones. */
TERN_API tern_tensor *tern_multinomial(tern_tensor *x, int64_t num_samples, bool replacement);
/* From the normal distribution of each element's mean and std, which broadcast. Reads from the
 * device whether a std is negative. */
TERN_API tern_tensor *tern_normal(tern_tensor *mean, tern_tensor *std);
/* As tern_randint, of x's shape, dtype and device. */
TERN_API tern_tensor *tern_randint_like(const tern_tensor *x, int64_t low, int64_t high);

TERN_END_DECLS
#endif
