/* recompute.h -- a gradient for create_graph from the differentiable operations that an operation
 * stands for. */
#ifndef TERN_TENSOR_RECOMPUTE_H
#define TERN_TENSOR_RECOMPUTE_H
#include "tensor/op.h"

/* out = what the operation of g makes of in, by differentiable operations only. */
typedef tern_status (*tern_composition)(const tern_gradient *g, tern_tensor *const *in,
                                        tern_tensor **out);

/* Fill g->din with the gradients of the first n_out outputs by running compose again and going
 * back through it. All inputs must be saved. For g->recorded. */
tern_status tern_recompute(tern_gradient *g, int n_out, tern_composition compose);

#endif
