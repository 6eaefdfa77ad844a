/* loss.h -- what losses share. */
#ifndef TERN_SRC_OPS_LOSS_SRC_H
#define TERN_SRC_OPS_LOSS_SRC_H
#include "base/option.h"
#include "tensor/op.h"
#include <tern/ops.h>

/* Neither tensor is NULL and the reduction is one of the enum. */
tern_status tern_loss_check(const tern_tensor *input, const tern_tensor *target,
                            tern_reduction reduction, const char *function);
/* A warning where they have different shapes and so broadcast, which PyTorch gives too. */
void tern_loss_warn_shapes(const tern_tensor *input, const tern_tensor *target,
                           const char *function);
/* Half precision as float32, which losses are computed in; other dtypes as they are. */
tern_tensor *tern_loss_wide(tern_tensor *x);
/* The mean, the sum, or loss itself; where the common dtype of a and b is half precision, in
 * that. */
tern_tensor *tern_loss_reduce(tern_tensor *loss, tern_reduction reduction, const tern_tensor *a,
                              const tern_tensor *b);
/* infer of a gradient's own operation, whose inputs are dout, x, ...: it is like x. */
tern_status tern_loss_infer_dx(tern_call *call);
/* log(1 + e^x), without overflow. */
tern_tensor *tern_loss_softplus(tern_tensor *x);
/* Whether autocast is on where x is. */
bool tern_loss_is_cast(const tern_tensor *x);
/* max(0, x); the gradient at 0 is 1, as that of clamp. */
tern_tensor *tern_loss_positive(tern_tensor *x);

#endif
