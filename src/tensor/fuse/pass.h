/* pass.h -- where the backward pass calls this folder (backward.c, leaves.c). fuse.h says what is fused. */
#ifndef TERN_TENSOR_FUSE_PASS_H
#define TERN_TENSOR_FUSE_PASS_H
#include "tensor/fuse/fuse.h"
#include "tensor/walk.h"

/* The gradient that the pass begins with at root: ones (seed.c). NULL after an error. */
tern_tensor *tern_fuse_seed(tern_walk *w, tern_tensor *root);
/* The program gets to see grad, and may keep it. */
void tern_fuse_shown(tern_walk *w, const tern_tensor *grad);

/* Makes out->dout the gradient that it stands for: deferred relu and casts are done (deferred.c). */
tern_status tern_fuse_settle(tern_node_output *out);
/* Whether node need not run: its gradient was deferred to *next, which is to run then, or the node runs at the end of the
 * pass (*next is NULL). */
tern_status tern_fuse_defer(tern_walk *w, tern_node *node, bool *deferred, tern_node **next);

/* Before backward of node: fills what backward may use (g->fused, which is `fused`). Whether the gradients are there
 * already, so that backward need not run. */
bool tern_fuse_begin(tern_walk *w, const tern_node *node, tern_gradient *g,
                     tern_fused_gradient *fused);
/* After it: gradients that were added to those that are there, or written in place, are what they became. */
void tern_fuse_end(const tern_gradient *g);
/* Where the gradient of input i goes; g->din[i] may become its copy in half precision. */
const tern_edge *tern_fuse_route(const tern_node *node, const tern_gradient *g, int i);
/* After all gradients went where they go. */
void tern_fuse_routed(const tern_node *node, const tern_gradient *g);

/* Before leaves are finished: runs the nodes that wait for the end of the pass (batched.c). */
tern_status tern_fuse_run_batched(tern_walk *w);
/* Whether another pass writes the gradient of leaf in place now (claim.c); this one lets go of leaf. */
bool tern_fuse_is_claimed(const tern_walk *w, const tern_leaf *leaf);
void tern_fuse_unclaim(const tern_walk *w, tern_arrival *a);
/* The pass is over, however it ended. */
void tern_fuse_free(tern_walk *w);

#endif
