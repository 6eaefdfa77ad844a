/* leaf.h -- bucket views: the memory in which DataParallel, DistributedDataParallel and sharding
 * want the gradient of a leaf. Functions that run at the end of a pass: tern_await_backward
 * (base/thread.h); sums over processes: tensor/ranks.h. */
#ifndef TERN_TENSOR_LEAF_H
#define TERN_TENSOR_LEAF_H
#include <tern/tensor.h>

/* Sets the tensor into which later passes write the gradient of leaf x: a view of a bucket with x's
 * shape, dtype and device. They write there even if other tensors share the memory; zero_grad to
 * none only clears x.grad. An existing gradient is not moved: the next pass writes its sum with the
 * new gradient to view. Backward passes with create_graph do not use view. view NULL: gradients may
 * be anywhere again. */
tern_status tern_set_grad_bucket_view(tern_tensor *x, tern_tensor *view);
/* Returns that view, which is borrowed, or NULL. */
tern_tensor *tern_grad_bucket_view(const tern_tensor *x);

/* Returns whether the backward pass on this thread does not write gradients of leaves
 * (tern_autograd_grad). */
bool tern_pass_catches(void);

#endif
