/* ops/scan.h -- cumulative sums, products, maxima and minima along a dim: element k of the result
 * depends on elements 0 to k of x.
 *
 * tern_x is torch.x. Results have x's shape and belong to the innermost scope; NULL or a status
 * after an error. A negative dim counts from the end. */
#ifndef TERN_OPS_SCAN_H
#define TERN_OPS_SCAN_H
#include <tern/ops/reduce.h>

TERN_BEGIN_DECLS

/* Returns the cumulative sums along dim; those of integers and bools are int64. */
TERN_API tern_tensor *tern_cumsum(tern_tensor *x, int dim);
/* Returns the cumulative products along dim; those of integers and bools are int64. */
TERN_API tern_tensor *tern_cumprod(tern_tensor *x, int dim);
/* Returns the logarithm of the cumulative sums of e^x along dim; floating point types only. */
TERN_API tern_tensor *tern_logcumsumexp(tern_tensor *x, int dim);
/* Writes the largest element so far and its index along dim to *out; of equal elements the last one
 * counts. After a NaN all are NaN. */
TERN_API tern_status tern_cummax(tern_tensor *x, int dim, tern_values_indices *out);
/* Writes the smallest element so far and its index along dim to *out, in the same way. */
TERN_API tern_status tern_cummin(tern_tensor *x, int dim, tern_values_indices *out);

TERN_END_DECLS
#endif
