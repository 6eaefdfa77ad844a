/* ops/softmax.h -- softmax and its like, over a dim.
 *
 * tern_x is torch.nn.functional.x. Floating point types only (TERN_ERR_DTYPE); a negative dim
 * counts from the end. Results have x's shape and belong to the innermost scope; NULL after an
 * error. Where all of a dim is -inf the result is NaN, as in PyTorch. */
#ifndef TERN_OPS_SOFTMAX_H
#define TERN_OPS_SOFTMAX_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* e^x over its sum along dim. */
TERN_API tern_tensor *tern_softmax(tern_tensor *x, int dim);
/* Its logarithm, without overflow. */
TERN_API tern_tensor *tern_log_softmax(tern_tensor *x, int dim);
/* softmax of -x. */
TERN_API tern_tensor *tern_softmin(tern_tensor *x, int dim);
/* A sample of the classes along dim that x are logits of, relaxed by temperature tau; hard:
 * one-hot, with the gradient of the relaxed one (Jang et al. 2016). PyTorch's defaults: tau 1, dim
 * -1. */
TERN_API tern_tensor *tern_gumbel_softmax(tern_tensor *x, double tau, bool hard, int dim);

TERN_END_DECLS
#endif
