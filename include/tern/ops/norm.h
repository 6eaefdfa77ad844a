/* ops/norm.h -- normalisation over a batch (layer norm is in ops/functional.h).
 *
 * Floating point types only. Weights, biases and running statistics hold a number for each channel
 * and are of x's type, or float32 where x is f16 or bf16; any may be NULL. */
#ifndef TERN_OPS_NORM_H
#define TERN_OPS_NORM_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* x (N, C, *): (x - mean) / sqrt(var + eps) weight + bias for each of the C channels (Ioffe,
 * Szegedy 2015). Training: by the statistics of x over all other dims; the running ones, where
 * given, move in place by `momentum` (PyTorch's default is 0.1) towards the mean and the unbiased
 * variance. Else by the running ones, both of which must be there. eps: PyTorch's default is 1e-5.
 * Errors: TERN_ERR_SHAPE for one value a channel when training. */
TERN_API tern_tensor *tern_batch_norm(tern_tensor *x, tern_tensor *running_mean,
                                      tern_tensor *running_var, tern_tensor *weight,
                                      tern_tensor *bias, bool training, double momentum,
                                      double eps);

TERN_END_DECLS
#endif
