/* scan.h -- what prod and the running results share. */
#ifndef TERN_SRC_OPS_SCAN_H
#define TERN_SRC_OPS_SCAN_H
#include "tensor/op.h"

/* The type that sums and products of dtype are kept in. */
static inline tern_dtype tern_kept_in(tern_dtype dtype)
{
    return dtype == TERN_F64 ? dtype : tern_dtype_is_floating_point(dtype) ? TERN_F32 : TERN_I64;
}

/* Running products along dim of x (f32, f64 or i64), from the end where reverse, one step behind:
 * each element gets the product of those before it. Differentiable. */
tern_tensor *tern_exclusive_cumprod(tern_tensor *x, int dim, bool reverse);

#endif
