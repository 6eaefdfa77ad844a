/* ops/collective.h -- what several devices of one process do together. */
#ifndef TERN_OPS_COLLECTIVE_H
#define TERN_OPS_COLLECTIVE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* x[0] to x[n - 1], contiguous, of one shape and dtype, become their sum, in place: each on a
 * device of its own, of any kind, as the gradients of a model's copies are
 * (torch.cuda.nccl.all_reduce). Distinct "cuda" devices do it through NCCL where it is installed,
 * in the order of each one's work and without waiting; else the others' are copied to x[0]'s
 * device, added there in their order, and the sum is copied back. Outside of autograd. Errors,
 * nothing being changed: TERN_ERR_ARGUMENT without tensors or where one is not contiguous,
 * TERN_ERR_SHAPE and TERN_ERR_DTYPE where they differ, or are bools; TERN_ERR_STATE in a
 * capture. */
TERN_API tern_status tern_all_reduce_(tern_tensor *const *x, int n);

TERN_END_DECLS
#endif
