/* loss.h -- functions shared by the losses. */
#ifndef TERN_SRC_OPS_LOSS_SRC_H
#define TERN_SRC_OPS_LOSS_SRC_H
#include "base/option.h"
#include "tensor/op.h"
#include <tern/ops.h>

/* Checks that neither tensor is NULL and that the reduction is a value of the enum. */
tern_status tern_loss_check(const tern_tensor *input, const tern_tensor *target,
                            tern_reduction reduction, const char *function);
/* Warns, as PyTorch does, if the shapes differ, so that the tensors broadcast. */
void tern_loss_warn_shapes(const tern_tensor *input, const tern_tensor *target,
                           const char *function);
/* Returns half precision as float32, in which losses are computed, and x itself for other
 * dtypes. */
tern_tensor *tern_loss_wide(tern_tensor *x);
/* Returns the mean, the sum, or loss itself, cast to half precision if that is the common dtype of
 * a and b. */
tern_tensor *tern_loss_reduce(tern_tensor *loss, tern_reduction reduction, const tern_tensor *a,
                              const tern_tensor *b);
/* infer of a gradient operation with inputs dout, x, ...: the result has the shape and dtype of
 * x. */
tern_status tern_loss_infer_dx(tern_call *call);
/* Returns log(1 + e^x), without overflow. */
tern_tensor *tern_loss_softplus(tern_tensor *x);
/* Returns whether autocast is on for the device of x. */
bool tern_loss_is_cast(const tern_tensor *x);
/* Returns max(0, x), whose gradient at 0 is 1, as clamp's. */
tern_tensor *tern_loss_positive(tern_tensor *x);

#endif
