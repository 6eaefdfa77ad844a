/* recompute.h -- gradients for create_graph by the differentiable operations of which an operation
 * is composed. */
#ifndef TERN_TENSOR_RECOMPUTE_H
#define TERN_TENSOR_RECOMPUTE_H
#include "tensor/op.h"

/* Computes out from in like the operation of g, with differentiable operations only. */
typedef tern_status (*tern_composition)(const tern_gradient *g, tern_tensor *const *in,
                                        tern_tensor **out);

/* Fills g->din with the gradients of the first n_out outputs: runs compose again, and a backward
 * pass through it. All inputs must be saved. For use if g->recorded. */
tern_status tern_recompute(tern_gradient *g, int n_out, tern_composition compose);

#endif
