/* ops/reduce.h -- many numbers in, one out: over all elements, or over dims (TERN_DIMS(0, -1)).
 *
 * An empty list of dims means all. keepdim leaves reduced dims with size 1. NaN passes on. Integers
 * and bools sum to int64. https://pytorch.org/docs/stable/torch.html#reduction-ops */
#ifndef TERN_OPS_REDUCE_H
#define TERN_OPS_REDUCE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

TERN_API tern_tensor *tern_sum(tern_tensor *x);
TERN_API tern_tensor *tern_sum_dim(tern_tensor *x, tern_shape dims, bool keepdim);
TERN_API tern_tensor *tern_mean(tern_tensor *x);
TERN_API tern_tensor *tern_mean_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* correction 1 divides by n - 1 (PyTorch's default), 0 by n. */
TERN_API tern_tensor *tern_var(tern_tensor *x, int64_t correction);
TERN_API tern_tensor *tern_var_dim(tern_tensor *x, tern_shape dims, int64_t correction,
                                   bool keepdim);
TERN_API tern_tensor *tern_std(tern_tensor *x, int64_t correction);
TERN_API tern_tensor *tern_std_dim(tern_tensor *x, tern_shape dims, int64_t correction,
                                   bool keepdim);
/* The largest (smallest) of all; ties share the gradient evenly. Empty x is an error. */
TERN_API tern_tensor *tern_max(tern_tensor *x);
TERN_API tern_tensor *tern_min(tern_tensor *x);
/* Over dims, ties sharing the gradient. */
TERN_API tern_tensor *tern_amax(tern_tensor *x, tern_shape dims, bool keepdim);
TERN_API tern_tensor *tern_amin(tern_tensor *x, tern_shape dims, bool keepdim);
/* Values and where they stand (int64; the first of equals; the first NaN). The gradient goes to
 * that element. */
typedef struct tern_values_indices {
    tern_tensor *values, *indices;
} tern_values_indices;
TERN_API tern_status tern_max_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);
TERN_API tern_status tern_min_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);
/* Index in the flattened x; along dim. int64. */
TERN_API tern_tensor *tern_argmax(tern_tensor *x);
TERN_API tern_tensor *tern_argmax_dim(tern_tensor *x, int dim, bool keepdim);
TERN_API tern_tensor *tern_argmin(tern_tensor *x);
TERN_API tern_tensor *tern_argmin_dim(tern_tensor *x, int dim, bool keepdim);
/* bool results; uint8 of uint8, as in PyTorch. */
TERN_API tern_tensor *tern_all(tern_tensor *x);
TERN_API tern_tensor *tern_any(tern_tensor *x);
TERN_API tern_tensor *tern_all_dim(tern_tensor *x, int dim, bool keepdim);
TERN_API tern_tensor *tern_any_dim(tern_tensor *x, int dim, bool keepdim);
/* The smallest and the largest as out[0] and out[1]. */
TERN_API tern_status tern_aminmax(tern_tensor *x, tern_tensor *out[2]);
TERN_API tern_status tern_aminmax_dim(tern_tensor *x, int dim, bool keepdim, tern_tensor *out[2]);
/* out[0]: the variance (standard deviation); out[1]: the mean. */
TERN_API tern_status tern_var_mean(tern_tensor *x, int64_t correction, tern_tensor *out[2]);
TERN_API tern_status tern_var_mean_dim(tern_tensor *x, tern_shape dims, int64_t correction,
                                       bool keepdim, tern_tensor *out[2]);
TERN_API tern_status tern_std_mean(tern_tensor *x, int64_t correction, tern_tensor *out[2]);
TERN_API tern_status tern_std_mean_dim(tern_tensor *x, tern_shape dims, int64_t correction,
                                       bool keepdim, tern_tensor *out[2]);
/* Without the NaN: of nothing but NaN, 0 and NaN. */
TERN_API tern_tensor *tern_nansum(tern_tensor *x);
TERN_API tern_tensor *tern_nansum_dim(tern_tensor *x, tern_shape dims, bool keepdim);
TERN_API tern_tensor *tern_nanmean(tern_tensor *x);
TERN_API tern_tensor *tern_nanmean_dim(tern_tensor *x, tern_shape dims, bool keepdim);
/* How many are not 0: int64. NaN is not 0. */
TERN_API tern_tensor *tern_count_nonzero(tern_tensor *x);
TERN_API tern_tensor *tern_count_nonzero_dim(tern_tensor *x, tern_shape dims);
/* (sum |x|^p)^(1/p); p INFINITY: the largest |x|, -INFINITY: the smallest, 0: how many are not 0. 2
 * is the Euclidean (Frobenius) norm, whose gradient at 0 is 0. Floating point types only. Where p <
 * 0 or INFINITY, x must not be empty. */
TERN_API tern_tensor *tern_norm(tern_tensor *x, double p);
TERN_API tern_tensor *tern_norm_dim(tern_tensor *x, double p, tern_shape dims, bool keepdim);
TERN_API tern_tensor *tern_linalg_vector_norm(tern_tensor *x, double ord, tern_shape dims,
                                              bool keepdim);
/* log sum e^x, without overflow; -inf of nothing. Integers become float32. */
TERN_API tern_tensor *tern_logsumexp(tern_tensor *x, tern_shape dims, bool keepdim);
/* The product of all, or along one dim. Integers and bools multiply as int64. The gradient is right
 * where elements are zero, too. */
TERN_API tern_tensor *tern_prod(tern_tensor *x);
TERN_API tern_tensor *tern_prod_dim(tern_tensor *x, int dim, bool keepdim);
/* x summed to shape, from which it could have been broadcast. */
TERN_API tern_tensor *tern_sum_to_size(tern_tensor *x, tern_shape shape);

/* ---- running results along dim: element k is made of elements 0 to k ------------------------- */
/* Integers and bools sum and multiply as int64. */
TERN_API tern_tensor *tern_cumsum(tern_tensor *x, int dim);
TERN_API tern_tensor *tern_cumprod(tern_tensor *x, int dim);
/* log of the running sum of e^x; floating point types only. */
TERN_API tern_tensor *tern_logcumsumexp(tern_tensor *x, int dim);
/* The largest (smallest) so far and where it stands, the last of equals; NaN stays. */
TERN_API tern_status tern_cummax(tern_tensor *x, int dim, tern_values_indices *out);
TERN_API tern_status tern_cummin(tern_tensor *x, int dim, tern_values_indices *out);

TERN_END_DECLS
#endif
