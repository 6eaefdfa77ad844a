/* ops/sort.h -- sorting along a dim, medians and quantiles, searching in sorted tensors, unique
 * elements.
 *
 * tern_x is torch.x. Sorting is stable, and NaN counts as the largest number. Functions that also
 * return indices (int64) write to a tern_values_indices; the gradient of a value goes to the
 * element that its index names. A scalar counts as a tensor with one dim of size 1. Results belong
 * to the innermost scope; NULL or a status after an error.
 * https://pytorch.org/docs/stable/torch.html#comparison-ops */
#ifndef TERN_OPS_SORT_H
#define TERN_OPS_SORT_H
#include <tern/ops/reduce.h>

TERN_BEGIN_DECLS

/* ---- sorting --------------------------------------------------------------------------------- */

/* Sorts x along dim in ascending order, or with descending in descending order, and writes values
 * and indices to *out. */
TERN_API tern_status tern_sort(tern_tensor *x, int dim, bool descending, tern_values_indices *out);
/* Returns the indices of tern_sort alone. */
TERN_API tern_tensor *tern_argsort(tern_tensor *x, int dim, bool descending);
/* Returns the values of tern_sort along the first dim, in ascending order. */
TERN_API tern_tensor *tern_msort(tern_tensor *x);
/* Writes the k largest (or smallest) elements along dim and their indices to *out. They are sorted
 * even if sorted is false. Not for bool. PyTorch's defaults: dim -1, largest true, sorted true. */
TERN_API tern_status tern_topk(tern_tensor *x, int64_t k, int dim, bool largest, bool sorted,
                               tern_values_indices *out);

/* ---- medians and quantiles ------------------------------------------------------------------- */

/* Writes the k-th smallest element along dim, counted from 1, and its index to *out. Not for
 * bool. */
TERN_API tern_status tern_kthvalue(tern_tensor *x, int64_t k, int dim, bool keepdim,
                                   tern_values_indices *out);
/* Returns the median of all elements, the lower one of two; NaN if an element is NaN. That of no
 * elements is NaN, or for integers the smallest number of the dtype. Not for bool. */
TERN_API tern_tensor *tern_median(tern_tensor *x);
/* Writes the medians along dim and their indices to *out. */
TERN_API tern_status tern_median_dim(tern_tensor *x, int dim, bool keepdim,
                                     tern_values_indices *out);
/* Returns the median of all elements that are not NaN. */
TERN_API tern_tensor *tern_nanmedian(tern_tensor *x);
/* Writes the medians along dim without NaN and their indices to *out. */
TERN_API tern_status tern_nanmedian_dim(tern_tensor *x, int dim, bool keepdim,
                                        tern_values_indices *out);
/* Writes the most frequent value along dim, the smallest of several, and the index of its last
 * occurrence to *out. */
TERN_API tern_status tern_mode(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);

typedef enum tern_interpolation {
    TERN_INTERPOLATION_LINEAR = 0,
    TERN_INTERPOLATION_LOWER,
    TERN_INTERPOLATION_HIGHER,
    TERN_INTERPOLATION_MIDPOINT,
    TERN_INTERPOLATION_NEAREST
} tern_interpolation;
typedef struct tern_quantile_options {
    tern_optional_int dim; /* absent: over all elements */
    bool keepdim;
    tern_interpolation interpolation; /* how to interpolate between two neighbouring elements */
    uint64_t reserved[4];
} tern_quantile_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_quantile_options tern_quantile_defaults(void);
/* Returns the element at position q (n - 1) of n sorted elements, for each q of a tensor () or (k)
 * in [0, 1], which has x's dtype (float32 or float64). A dim of k comes before the other dims. NaN
 * if an element is NaN. Waits for the device to check q. */
TERN_API tern_tensor *tern_quantile(tern_tensor *x, tern_tensor *q,
                                    const tern_quantile_options *options);
/* Does what tern_quantile does, without the elements that are NaN. */
TERN_API tern_tensor *tern_nanquantile(tern_tensor *x, tern_tensor *q,
                                       const tern_quantile_options *options);
/* Does what tern_quantile does, for a number q. */
TERN_API tern_tensor *tern_quantile_scalar(tern_tensor *x, double q,
                                           const tern_quantile_options *options);
/* Does what tern_nanquantile does, for a number q. */
TERN_API tern_tensor *tern_nanquantile_scalar(tern_tensor *x, double q,
                                              const tern_quantile_options *options);

/* ---- searching in sorted tensors ------------------------------------------------------------- */

typedef enum tern_side {
    TERN_SIDE_LEFT = 0, /* before equal elements */
    TERN_SIDE_RIGHT     /* after equal elements */
} tern_side;
/* Returns the index at which each of values would be inserted into the sorted boundaries (n), or
 * into those of its row, (*, n) for values (*, m). The result is int64 in the shape of values,
 * without a gradient. */
TERN_API tern_tensor *tern_searchsorted(tern_tensor *boundaries, tern_tensor *values,
                                        tern_side side);
/* Does the same for boundaries (n) only; right means TERN_SIDE_RIGHT. */
TERN_API tern_tensor *tern_bucketize(tern_tensor *values, tern_tensor *boundaries, bool right);
/* Does what tern_searchsorted does, for a number and boundaries (n); the result is a scalar (). */
TERN_API tern_tensor *tern_searchsorted_scalar(tern_tensor *boundaries, tern_scalar value,
                                               tern_side side);
/* Does what tern_bucketize does, for a number; the result is a scalar (). */
TERN_API tern_tensor *tern_bucketize_scalar(tern_scalar value, tern_tensor *boundaries, bool right);

/* ---- unique elements ------------------------------------------------------------------------- */

typedef struct tern_unique_result {
    tern_tensor *output;  /* (m): each value once */
    tern_tensor *inverse; /* of x's shape, int64: the index in output of each element */
    tern_tensor *counts;  /* (m), int64: how often each value occurs */
} tern_unique_result;
/* Writes the different values of x, sorted, to *out. Every NaN counts as a value of its own. No
 * gradient. Waits for the device, because the host reads how many there are. */
TERN_API tern_status tern_unique(tern_tensor *x, tern_unique_result *out);
/* Does the same, but removes only repetitions of neighbours in the flattened x, and keeps their
 * order. */
TERN_API tern_status tern_unique_consecutive(tern_tensor *x, tern_unique_result *out);
/* Writes the different entries along dim, in lexicographic order, to *out; inverse has one element
 * for each entry. An entry with a NaN differs from all others. */
TERN_API tern_status tern_unique_dim(tern_tensor *x, int dim, tern_unique_result *out);
/* Does the same, but removes only repetitions of neighbours along dim, and keeps their order. */
TERN_API tern_status tern_unique_consecutive_dim(tern_tensor *x, int dim, tern_unique_result *out);

TERN_END_DECLS
#endif
