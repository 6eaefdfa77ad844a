/* ops/reduce.h -- reductions over all elements, or over some dims (TERN_DIMS(0, -1)).
 *
 * tern_x is torch.x; tern_x_dim reduces over dims: an empty list means all dims, and with keepdim
 * the reduced dims stay with size 1. NaN is propagated. Sums and products of integers and bools are
 * int64. Results belong to the innermost scope; NULL after an error: TERN_ERR_ARGUMENT for a dim
 * that does not exist, TERN_ERR_SHAPE for the maximum or minimum of no elements, TERN_ERR_DTYPE.
 * ops/sort.h has medians and quantiles. https://pytorch.org/docs/stable/torch.html#reduction-ops */
#ifndef TERN_OPS_REDUCE_H
#define TERN_OPS_REDUCE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- sums and means -------------------------------------------------------------------------- */

/* Returns the sum of all elements. */
TERN_API tern_tensor *tern_sum(tern_tensor *x);
/* Returns the sum over dims. */
TERN_API tern_tensor *tern_sum_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* Returns the mean of all elements; floating point types only. */
TERN_API tern_tensor *tern_mean(tern_tensor *x);
/* Returns the mean over dims. */
TERN_API tern_tensor *tern_mean_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* Returns the sum of all elements that are not NaN; 0 if there are none. */
TERN_API tern_tensor *tern_nansum(tern_tensor *x);
/* Returns the sum over dims without NaN. */
TERN_API tern_tensor *tern_nansum_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* Returns the mean of all elements that are not NaN; NaN if there are none. */
TERN_API tern_tensor *tern_nanmean(tern_tensor *x);
/* Returns the mean over dims without NaN. */
TERN_API tern_tensor *tern_nanmean_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* Returns the product of all elements. The gradient is also right where elements are zero. */
TERN_API tern_tensor *tern_prod(tern_tensor *x);
/* Returns the product along one dim. */
TERN_API tern_tensor *tern_prod_dim(tern_tensor *x, int dim, bool keepdim);
/* Returns x summed to a shape that can be broadcast to the shape of x. */
TERN_API tern_tensor *tern_sum_to_size(tern_tensor *x, tern_shape shape);
/* Returns log(sum(e^x)) over dims, without overflow; -infinity for no elements. Integers are
 * converted to the default dtype. */
TERN_API tern_tensor *tern_logsumexp(tern_tensor *x, tern_shape dims, bool keepdim);

/* ---- variance: the divisor is n - correction; PyTorch's default of correction is 1 ----------- */

/* Returns the variance of all elements. */
TERN_API tern_tensor *tern_var(tern_tensor *x, double correction);
/* Returns the variance over dims. */
TERN_API tern_tensor *tern_var_dim(tern_tensor *x, tern_shape dims, double correction,
                                   bool keepdim);
/* Returns the standard deviation of all elements. */
TERN_API tern_tensor *tern_std(tern_tensor *x, double correction);
/* Returns the standard deviation over dims. */
TERN_API tern_tensor *tern_std_dim(tern_tensor *x, tern_shape dims, double correction,
                                   bool keepdim);
/* Writes the variance of all elements to out[0] and their mean to out[1]. */
TERN_API tern_status tern_var_mean(tern_tensor *x, double correction, tern_tensor *out[2]);
/* Writes the variance over dims to out[0] and the mean to out[1]. */
TERN_API tern_status tern_var_mean_dim(tern_tensor *x, tern_shape dims, double correction,
                                       bool keepdim, tern_tensor *out[2]);
/* Writes the standard deviation of all elements to out[0] and their mean to out[1]. */
TERN_API tern_status tern_std_mean(tern_tensor *x, double correction, tern_tensor *out[2]);
/* Writes the standard deviation over dims to out[0] and the mean to out[1]. */
TERN_API tern_status tern_std_mean_dim(tern_tensor *x, tern_shape dims, double correction,
                                       bool keepdim, tern_tensor *out[2]);

/* ---- maximum and minimum --------------------------------------------------------------------- */

/* Returns the largest element; equal ones share the gradient evenly. */
TERN_API tern_tensor *tern_max(tern_tensor *x);
/* Returns the smallest element; equal ones share the gradient evenly. */
TERN_API tern_tensor *tern_min(tern_tensor *x);
/* Returns the largest element over dims; equal ones share the gradient evenly. */
TERN_API tern_tensor *tern_amax(tern_tensor *x, tern_shape dims, bool keepdim);
/* Returns the smallest element over dims; equal ones share the gradient evenly. */
TERN_API tern_tensor *tern_amin(tern_tensor *x, tern_shape dims, bool keepdim);
/* Values, and their indices along a dim (int64). */
typedef struct tern_values_indices {
    tern_tensor *values, *indices;
} tern_values_indices;
/* Writes the largest elements along dim and their indices to *out: the index of the first NaN, else
 * of the first of equal elements. The gradient goes to that element. */
TERN_API tern_status tern_max_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);
/* Writes the smallest elements along dim and their indices to *out, in the same way. */
TERN_API tern_status tern_min_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);
/* Writes the smallest element to out[0] and the largest to out[1]. */
TERN_API tern_status tern_aminmax(tern_tensor *x, tern_tensor *out[2]);
/* Writes the smallest elements along dim to out[0] and the largest to out[1]. */
TERN_API tern_status tern_aminmax_dim(tern_tensor *x, int dim, bool keepdim, tern_tensor *out[2]);
/* Returns the index of the largest element in the flattened x (int64). */
TERN_API tern_tensor *tern_argmax(tern_tensor *x);
/* Returns the indices of the largest elements along dim. */
TERN_API tern_tensor *tern_argmax_dim(tern_tensor *x, int dim, bool keepdim);
/* Returns the index of the smallest element in the flattened x (int64). */
TERN_API tern_tensor *tern_argmin(tern_tensor *x);
/* Returns the indices of the smallest elements along dim. */
TERN_API tern_tensor *tern_argmin_dim(tern_tensor *x, int dim, bool keepdim);

/* ---- elements that are not 0; NaN counts as such --------------------------------------------- */

/* Returns whether all elements are not 0: a bool, or uint8 if x is uint8, as in PyTorch. */
TERN_API tern_tensor *tern_all(tern_tensor *x);
/* Returns whether all elements along dim are not 0. */
TERN_API tern_tensor *tern_all_dim(tern_tensor *x, int dim, bool keepdim);
/* Returns whether all elements over dims are not 0. Here an empty list means no dims: each element
 * is tested alone. */
TERN_API tern_tensor *tern_all_dims(tern_tensor *x, tern_shape dims, bool keepdim);
/* Returns whether at least one element is not 0, as tern_all. */
TERN_API tern_tensor *tern_any(tern_tensor *x);
/* Returns whether at least one element along dim is not 0. */
TERN_API tern_tensor *tern_any_dim(tern_tensor *x, int dim, bool keepdim);
/* Returns whether at least one element over dims is not 0; an empty list means no dims, as in
 * tern_all_dims. */
TERN_API tern_tensor *tern_any_dims(tern_tensor *x, tern_shape dims, bool keepdim);
/* Returns how many elements are not 0 (int64). */
TERN_API tern_tensor *tern_count_nonzero(tern_tensor *x);
/* Returns how many elements over dims are not 0. */
TERN_API tern_tensor *tern_count_nonzero_dim(tern_tensor *x, tern_shape dims);

/* ---- norms ----------------------------------------------------------------------------------- */

/* Returns the p-norm (sum |x|^p)^(1/p) of all elements. p INFINITY is the largest |x|, -INFINITY
 * the smallest, and 0 the number of elements that are not 0. p 2 is the Euclidean (Frobenius) norm,
 * whose gradient at 0 is 0. Floating point types only. x must not be empty if p is below 0 or
 * INFINITY. */
TERN_API tern_tensor *tern_norm(tern_tensor *x, double p);
/* Returns the p-norm over dims. */
TERN_API tern_tensor *tern_norm_dim(tern_tensor *x, double p, tern_shape dims, bool keepdim);
/* Another name of tern_norm_dim (torch.linalg.vector_norm). */
TERN_API tern_tensor *tern_linalg_vector_norm(tern_tensor *x, double ord, tern_shape dims,
                                              bool keepdim);

TERN_END_DECLS
#endif
