/* ops/scan.h -- running results along a dim: element k is made of elements 0 to k.
 *
 * tern_x is torch.x. Results have x's shape and belong to the innermost scope; NULL or a status
 * after an error. A negative dim counts from the end. */
#ifndef TERN_OPS_SCAN_H
#define TERN_OPS_SCAN_H
#include <tern/ops/reduce.h>

TERN_BEGIN_DECLS

/* Sums; integers and bools as int64. */
TERN_API tern_tensor *tern_cumsum(tern_tensor *x, int dim);
/* Products; integers and bools as int64. */
TERN_API tern_tensor *tern_cumprod(tern_tensor *x, int dim);
/* log of the running sum of e^x; floating point types only. */
TERN_API tern_tensor *tern_logcumsumexp(tern_tensor *x, int dim);
/* The largest so far and where it stands, the last of equals; NaN stays. */
TERN_API tern_status tern_cummax(tern_tensor *x, int dim, tern_values_indices *out);
/* The smallest, likewise. */
TERN_API tern_status tern_cummin(tern_tensor *x, int dim, tern_values_indices *out);

TERN_END_DECLS
#endif
