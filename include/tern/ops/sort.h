/* ops/sort.h -- order: sorting along a dim, places in the order, equals.
 *
 * tern_x is torch.x. Sorting is stable, NaN counts as the largest. Results with indices fill a
 * tern_values_indices: the gradient of the values goes to where the int64 indices point. A scalar
 * counts as one dim of size 1. Results belong to the innermost scope; NULL or a status after an
 * error. https://pytorch.org/docs/stable/torch.html#comparison-ops */
#ifndef TERN_OPS_SORT_H
#define TERN_OPS_SORT_H
#include <tern/ops/reduce.h>

TERN_BEGIN_DECLS

/* ---- sorting --------------------------------------------------------------------------------- */

/* x along dim from the smallest to the largest, or the other way. */
TERN_API tern_status tern_sort(tern_tensor *x, int dim, bool descending, tern_values_indices *out);
/* Its indices alone. */
TERN_API tern_tensor *tern_argsort(tern_tensor *x, int dim, bool descending);
/* Its values along the first dim. */
TERN_API tern_tensor *tern_msort(tern_tensor *x);
/* The k largest (smallest) along dim; they come sorted also where sorted is false. Not for bool.
 * PyTorch's defaults: dim -1, largest, sorted. */
TERN_API tern_status tern_topk(tern_tensor *x, int64_t k, int dim, bool largest, bool sorted,
                               tern_values_indices *out);

/* ---- places in the order --------------------------------------------------------------------- */

/* The k-th smallest along dim, counting from 1. Not for bool. */
TERN_API tern_status tern_kthvalue(tern_tensor *x, int64_t k, int dim, bool keepdim,
                                   tern_values_indices *out);
/* The lower of the middle elements; NaN where there is one. Of nothing: NaN. Not for bool. */
TERN_API tern_tensor *tern_median(tern_tensor *x);
/* Along dim. */
TERN_API tern_status tern_median_dim(tern_tensor *x, int dim, bool keepdim,
                                     tern_values_indices *out);
/* tern_median without the NaN. */
TERN_API tern_tensor *tern_nanmedian(tern_tensor *x);
/* Along dim. */
TERN_API tern_status tern_nanmedian_dim(tern_tensor *x, int dim, bool keepdim,
                                        tern_values_indices *out);
/* The most frequent value along dim, the smallest of several, and where it stands last. */
TERN_API tern_status tern_mode(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out);

typedef enum tern_interpolation {
    TERN_INTERPOLATION_LINEAR = 0,
    TERN_INTERPOLATION_LOWER,
    TERN_INTERPOLATION_HIGHER,
    TERN_INTERPOLATION_MIDPOINT,
    TERN_INTERPOLATION_NEAREST
} tern_interpolation;
typedef struct tern_quantile_options {
    tern_optional_int dim; /* absent: of all elements */
    bool keepdim;
    tern_interpolation interpolation; /* between the two elements next to a rank */
    uint64_t reserved[4];
} tern_quantile_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_quantile_options tern_quantile_defaults(void);
/* The element at q (n - 1) of n sorted ones, for q () or (k) in [0, 1], of x's type (float32 or
 * float64); (k) comes in front of the other dims. NaN where there is one. Waits for the device to
 * check q. */
TERN_API tern_tensor *tern_quantile(tern_tensor *x, tern_tensor *q,
                                    const tern_quantile_options *options);
/* The same without the NaN. */
TERN_API tern_tensor *tern_nanquantile(tern_tensor *x, tern_tensor *q,
                                       const tern_quantile_options *options);
/* tern_quantile for a number q. */
TERN_API tern_tensor *tern_quantile_scalar(tern_tensor *x, double q,
                                           const tern_quantile_options *options);
/* The same without the NaN. */
TERN_API tern_tensor *tern_nanquantile_scalar(tern_tensor *x, double q,
                                              const tern_quantile_options *options);

/* ---- where values would go ------------------------------------------------------------------- */

typedef enum tern_side {
    TERN_SIDE_LEFT = 0, /* before its equals */
    TERN_SIDE_RIGHT     /* after them */
} tern_side;
/* Where each of values would go into the sorted boundaries (n), or (*, n) with values (*, m).
 * int64, of the shape of values. No gradient. */
TERN_API tern_tensor *tern_searchsorted(tern_tensor *boundaries, tern_tensor *values,
                                        tern_side side);
/* The same for boundaries (n); right: TERN_SIDE_RIGHT. */
TERN_API tern_tensor *tern_bucketize(tern_tensor *values, tern_tensor *boundaries, bool right);
/* tern_searchsorted for a number and boundaries (n): a place (). */
TERN_API tern_tensor *tern_searchsorted_scalar(tern_tensor *boundaries, tern_scalar value,
                                               tern_side side);
/* tern_bucketize for a number: a place (). */
TERN_API tern_tensor *tern_bucketize_scalar(tern_scalar value, tern_tensor *boundaries, bool right);

/* ---- equals ---------------------------------------------------------------------------------- */

typedef struct tern_unique_result {
    tern_tensor *output;  /* (m): each value once */
    tern_tensor *inverse; /* of x's shape, int64: where in output each element went */
    tern_tensor *counts;  /* (m), int64: how many there were */
} tern_unique_result;
/* The different values of x, sorted; every NaN is one of its own. No gradient. Waits for the
 * device, which must say how many there are. */
TERN_API tern_status tern_unique(tern_tensor *x, tern_unique_result *out);
/* The same of neighbours in the flattened x alone, in their order. */
TERN_API tern_status tern_unique_consecutive(tern_tensor *x, tern_unique_result *out);
/* The different entries of dim, in the order of their elements; inverse has an element for each
 * entry. Entries with a NaN are different from all. */
TERN_API tern_status tern_unique_dim(tern_tensor *x, int dim, tern_unique_result *out);
/* The same of neighbours along dim, in their order. */
TERN_API tern_status tern_unique_consecutive_dim(tern_tensor *x, int dim, tern_unique_result *out);

TERN_END_DECLS
#endif
