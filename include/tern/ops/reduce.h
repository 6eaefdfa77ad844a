/* ops/reduce.h -- many numbers in, one out: over all elements, or over dims (TERN_DIMS(0, -1)).
 *
 * tern_x is torch.x, tern_x_dim its form over dims: an empty list of dims means all, keepdim leaves
 * reduced dims with size 1. NaN passes on. Integers and bools sum and multiply as int64. Results
 * belong to the innermost scope; NULL after an error: TERN_ERR_ARGUMENT for a dim that is not
 * there, TERN_ERR_SHAPE for the largest of nothing, TERN_ERR_DTYPE. Medians, quantiles and the like
 * are in ops/sort.h. https://pytorch.org/docs/stable/torch.html#reduction-ops */
#ifndef TERN_OPS_REDUCE_H
#define TERN_OPS_REDUCE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- sums and means -------------------------------------------------------------------------- */

/* The sum of all. */
TERN_API tern_tensor *tern_sum(tern_tensor *x);
/* Over dims. */
TERN_API tern_tensor *tern_sum_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* The mean of all; floating point types only. */
TERN_API tern_tensor *tern_mean(tern_tensor *x);
/* Over dims. */
TERN_API tern_tensor *tern_mean_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* The sum without the NaN: 0 of nothing else. */
TERN_API tern_tensor *tern_nansum(tern_tensor *x);
/* Over dims. */
TERN_API tern_tensor *tern_nansum_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* The mean without the NaN: NaN of nothing else. */
TERN_API tern_tensor *tern_nanmean(tern_tensor *x);
/* Over dims. */
TERN_API tern_tensor *tern_nanmean_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* The product of all. The gradient is right where elements are zero, too. */
TERN_API tern_tensor *tern_prod(tern_tensor *x);
/* Along one dim. */
TERN_API tern_tensor *tern_prod_dim(tern_tensor *x, int dim, bool keepdim);
/* x summed to shape, from which it could have been broadcast. */
TERN_API tern_tensor *tern_sum_to_size(tern_tensor *x, tern_shape shape);
/* log sum e^x over dims, without overflow; -inf of nothing. Integers become float32. */
TERN_API tern_tensor *tern_logsumexp(tern_tensor *x, tern_shape dims, bool keepdim);

/* ---- spread: correction 1 divides by n - 1 (PyTorch's default), 0 by n, c by n - c ----------- */

/* The variance of all. */
TERN_API tern_tensor *tern_var(tern_tensor *x, double correction);
/* Over dims. */
TERN_API tern_tensor *tern_var_dim(tern_tensor *x, tern_shape dims, double correction,
                                   bool keepdim);
/* The standard deviation of all. */
TERN_API tern_tensor *tern_std(tern_tensor *x, double correction);
/* Over dims. */
TERN_API tern_tensor *tern_std_dim(tern_tensor *x, tern_shape dims, double correction,
                                   bool keepdim);
/* out[0]: the variance; out[1]: the mean. */
TERN_API tern_status tern_var_mean(tern_tensor *x, double correction, tern_tensor *out[2]);
/* Over dims. */
TERN_API tern_status tern_var_mean_dim(tern_tensor *x, tern_shape dims, double correction,
                                       bool keepdim, tern_tensor *out[2]);
/* out[0]: the standard deviation; out[1]: the mean. */
TERN_API tern_status tern_std_mean(tern_tensor *x, double correction, tern_tensor *out[2]);
/* Over dims. */
TERN_API tern_status tern_std_mean_dim(tern_tensor *x, tern_shape dims, double correction,
                                       bool keepdim, tern_tensor *out[2]);

/* ---- the largest and the smallest ------------------------------------------------------------ */

/* The largest of all; ties share the gradient evenly. */
TERN_API tern_tensor *tern_max(tern_tensor *x);
/* The smallest, likewise. */
TERN_API tern_tensor *tern_min(tern_tensor *x);
/* The largest over dims; ties share the gradient evenly. */
TERN_API tern_tensor *tern_amax(tern_tensor *x, tern_shape dims, bool keepdim);
/* The smallest, likewise. */
TERN_API tern_tensor *tern_amin(tern_tensor *x, tern_shape dims, bool keepdim);
/* Values and where they stand along a dim (int64). */
typedef struct tern_values_indices {
    tern_tensor *values, *indices;
} tern_values_indices;
/* The largest along dim, and where the first of equals stands, or the first NaN. The gradient goes
 * to that element. */
TERN_API tern_status tern_max_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);
/* The smallest, likewise. */
TERN_API tern_status tern_min_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);
/* out[0]: the smallest of all, out[1]: the largest. */
TERN_API tern_status tern_aminmax(tern_tensor *x, tern_tensor *out[2]);
/* Along dim. */
TERN_API tern_status tern_aminmax_dim(tern_tensor *x, int dim, bool keepdim, tern_tensor *out[2]);
/* Where the largest stands in the flattened x (int64). */
TERN_API tern_tensor *tern_argmax(tern_tensor *x);
/* Where it stands along dim. */
TERN_API tern_tensor *tern_argmax_dim(tern_tensor *x, int dim, bool keepdim);
/* Where the smallest stands in the flattened x. */
TERN_API tern_tensor *tern_argmin(tern_tensor *x);
/* Where it stands along dim. */
TERN_API tern_tensor *tern_argmin_dim(tern_tensor *x, int dim, bool keepdim);

/* ---- what is not 0: NaN is not 0 ------------------------------------------------------------- */

/* Whether no element is 0: bool, uint8 of uint8, as in PyTorch. */
TERN_API tern_tensor *tern_all(tern_tensor *x);
/* Along dim. */
TERN_API tern_tensor *tern_all_dim(tern_tensor *x, int dim, bool keepdim);
/* Along these dims; along none: of each element by itself. */
TERN_API tern_tensor *tern_all_dims(tern_tensor *x, tern_shape dims, bool keepdim);
/* Whether one is not. */
TERN_API tern_tensor *tern_any(tern_tensor *x);
/* Along dim. */
TERN_API tern_tensor *tern_any_dim(tern_tensor *x, int dim, bool keepdim);
/* As tern_all_dims. */
TERN_API tern_tensor *tern_any_dims(tern_tensor *x, tern_shape dims, bool keepdim);
/* How many are not: int64. */
TERN_API tern_tensor *tern_count_nonzero(tern_tensor *x);
/* Over dims. */
TERN_API tern_tensor *tern_count_nonzero_dim(tern_tensor *x, tern_shape dims);

/* ---- lengths --------------------------------------------------------------------------------- */

/* (sum |x|^p)^(1/p) of all; p INFINITY: the largest |x|, -INFINITY: the smallest, 0: how many are
 * not 0. 2 is the Euclidean (Frobenius) norm, whose gradient at 0 is 0. Floating point types only.
 * Where p < 0 or INFINITY, x must not be empty. */
TERN_API tern_tensor *tern_norm(tern_tensor *x, double p);
/* Over dims. */
TERN_API tern_tensor *tern_norm_dim(tern_tensor *x, double p, tern_shape dims, bool keepdim);
/* tern_norm_dim (torch.linalg.vector_norm). */
TERN_API tern_tensor *tern_linalg_vector_norm(tern_tensor *x, double ord, tern_shape dims,
                                              bool keepdim);

TERN_END_DECLS
#endif
