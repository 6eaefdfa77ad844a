/* ops/softmax.h -- softmax and related functions along a dim.
 *
 * tern_x is torch.nn.functional.x. Floating point types only (TERN_ERR_DTYPE); a negative dim
 * counts from the end. Results have x's shape and belong to the innermost scope; NULL after an
 * error. Where all elements along dim are -infinity the result is NaN, as in PyTorch. */
#ifndef TERN_OPS_SOFTMAX_H
#define TERN_OPS_SOFTMAX_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Returns e^x divided by the sum of e^x along dim. */
TERN_API tern_tensor *tern_softmax(tern_tensor *x, int dim);
/* Returns the logarithm of tern_softmax, computed without overflow. */
TERN_API tern_tensor *tern_log_softmax(tern_tensor *x, int dim);
/* Returns the softmax of -x. */
TERN_API tern_tensor *tern_softmin(tern_tensor *x, int dim);
/* Draws samples of the classes along dim whose logits are x, relaxed with temperature tau (Jang et
 * al. 2016). With hard the result is one-hot, and its gradient is that of the relaxed sample.
 * PyTorch's defaults: tau 1, dim -1. */
TERN_API tern_tensor *tern_gumbel_softmax(tern_tensor *x, double tau, bool hard, int dim);

TERN_END_DECLS
#endif
