/* loss.h -- what losses share. */
#ifndef TERN_SRC_OPS_LOSS_SRC_H
#define TERN_SRC_OPS_LOSS_SRC_H
#include "tensor/op.h"
#include <tern/ops.h>

/* Two tensors are there and the reduction is one. */
tern_status tern_loss_check(const tern_tensor *input, const tern_tensor *target,
                            tern_reduction reduction, const char *function);
/* Halves as float32, which losses are computed in; others as they are. */
tern_tensor *tern_loss_wide(tern_tensor *x);
/* The mean, the sum, or loss itself, in the type that a and b have in common
 * where that is a half. */
tern_tensor *tern_loss_reduce(tern_tensor *loss, tern_reduction reduction, const tern_tensor *a,
                              const tern_tensor *b);
/* log(1 + e^x), without overflow. */
tern_tensor *tern_loss_softplus(tern_tensor *x);
/* max(0, x); the gradient at 0 is 1, as that of clamp. */
tern_tensor *tern_loss_positive(tern_tensor *x);

static inline double tern_or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value == TERN_ZERO ? 0 : value;
}

#endif
