/* gumbel_softmax.c -- differentiable samples of a categorical distribution given by logits. */
#include "device/device.h"
#include "tensor/op.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* y = softmax((x + g) / tau) with Gumbel noise g = -log(-log(u)), u uniform: argmax(x + g) is a
 * sample of softmax(x), and the softmax is its differentiable relaxation (Jang et al. 2017). With
 * `hard` the result is one_hot(argmax y) - y without gradient, plus y: its value is the one-hot
 * sample, its gradient that of y (straight-through). */
tern_tensor *tern_gumbel_softmax(tern_tensor *x, double tau, bool hard, int dim)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *noise = NULL, *choice = NULL;
    TERN_NO_GRAD {
        noise = tern_neg(tern_log(tern_neg(tern_log(tern_rand_like(x)))));
    }
    tern_tensor *soft =
        tern_softmax(tern_div_scalar(tern_add(x, noise), tern_scalar_real(tau)), dim);
    if (!hard || !soft)
        return soft;
    TERN_NO_GRAD {
        tern_tensor *largest = tern_argmax_dim(soft, dim, true);
        choice = tern_sub(tern_scatter_scalar(tern_zeros_like(soft), dim, largest,
                                              tern_scalar_real(1), TERN_REDUCE_NONE),
                          soft);
    }
    return tern_add(choice, soft);
}
