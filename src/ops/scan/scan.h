/* scan.h -- functions shared by prod and the cumulative operations. */
#ifndef TERN_SRC_OPS_SCAN_H
#define TERN_SRC_OPS_SCAN_H
#include "tensor/op.h"

/* Returns the dtype in which sums and products of `dtype` are accumulated. */
static inline tern_dtype tern_kept_in(tern_dtype dtype)
{
    return dtype == TERN_F64 ? dtype : tern_dtype_is_floating_point(dtype) ? TERN_F32 : TERN_I64;
}

/* Returns exclusive cumulative products along dim of x (f32, f64 or i64): each element is the
 * product of those before it, or with `reverse` of those after it. Differentiable. */
tern_tensor *tern_exclusive_cumprod(tern_tensor *x, int dim, bool reverse);

#endif
