/* leaf.h -- what DataParallel, DistributedDataParallel and sharding ask of leaves, beside hooks: a
 * place of its own for a gradient. What waits for the end of a pass is tern_await_backward
 * (base/thread.h); sums over processes are in tensor/ranks.h. */
#ifndef TERN_TENSOR_LEAF_H
#define TERN_TENSOR_LEAF_H
#include <tern/tensor.h>

/* From now on passes leave the gradient of leaf x in view, a view of a bucket that has x's shape,
 * dtype and device, whoever looks at it; zero_grad to none only forgets that it is there. Does not
 * move a gradient that there is: the next one is added to it in view. Backward passes with
 * create_graph leave it where it comes to be. NULL: anywhere again. */
tern_status tern_set_grad_bucket_view(tern_tensor *x, tern_tensor *view);
/* It, borrowed, or NULL. */
tern_tensor *tern_grad_bucket_view(const tern_tensor *x);

/* Whether the backward pass that runs on this thread leaves leaves alone (tern_autograd_grad). */
bool tern_pass_catches(void);

#endif
