/* pass.h -- the functions of this folder that the backward pass calls (backward.c, leaves.c).
 * fuse.h describes what is fused. */
#ifndef TERN_TENSOR_FUSE_PASS_H
#define TERN_TENSOR_FUSE_PASS_H
#include "tensor/fuse/fuse.h"
#include "tensor/backward_pass.h"

/* Returns the gradient with which the pass begins at root: ones (seed.c). NULL after an error. */
tern_tensor *tern_fuse_seed(tern_backward_pass *w, tern_tensor *root);
/* Called before the program sees grad, which it may keep. */
void tern_fuse_shown(tern_backward_pass *w, const tern_tensor *grad);

/* Computes the deferred gradient of relu or of a cast in out->dout, of an output of node
 * (deferred.c). */
tern_status tern_fuse_settle(const tern_node *node, tern_node_output *out);
/* Sets *deferred to true if node need not run now. Either its gradient went on unchanged to the
 * node *next, which is to run, or node runs at the end of the pass, and *next is NULL. */
tern_status tern_fuse_defer(tern_backward_pass *w, tern_node *node, bool *deferred,
                            tern_node **next);

/* Called before node's backward: fills *fused, which backward may use, and sets g->fused to it.
 * Returns whether the gradients are computed already, so that backward need not run. */
bool tern_fuse_begin(tern_backward_pass *w, const tern_node *node, tern_gradient *g,
                     tern_fused_gradient *fused);
/* Called after node's backward. A gradient that backward added to another one replaces that one,
 * and a gradient that it wrote in place counts as a write. */
void tern_fuse_end(const tern_gradient *g);
/* Returns the edge along which the gradient of input i is passed on. g->din[i] may be replaced by
 * its copy in half precision. */
const tern_edge *tern_fuse_route(const tern_node *node, const tern_gradient *g, int i);
/* Called when all gradients of node's inputs were passed on along these edges. */
void tern_fuse_routed(const tern_node *node, const tern_gradient *g);

/* Runs the nodes that wait for the end of the pass, before leaves are finished (batched.c). */
tern_status tern_fuse_run_batched(tern_backward_pass *w);
/* Returns whether another pass writes the gradient of leaf in place now (claim.c). */
bool tern_fuse_is_claimed(const tern_backward_pass *w, const tern_leaf *leaf);
/* Ends the claim that this pass has to the leaf of a, if it has one. */
void tern_fuse_unclaim(const tern_backward_pass *w, tern_arrival *a);
/* Frees the fields of this folder in the pass, also if the pass failed. */
void tern_fuse_free(tern_backward_pass *w);

#endif
