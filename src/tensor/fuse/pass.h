/* pass.h -- where the backward pass calls this folder (backward.c, leaves.c). fuse.h says what is
 * fused. */
#ifndef TERN_TENSOR_FUSE_PASS_H
#define TERN_TENSOR_FUSE_PASS_H
#include "tensor/fuse/fuse.h"
#include "tensor/backward_pass.h"

/* Returns the gradient that the pass begins with at root, ones (seed.c); NULL after an error. */
tern_tensor *tern_fuse_seed(tern_backward_pass *w, tern_tensor *root);
/* Is called before the program gets to see grad, which it may keep. */
void tern_fuse_shown(tern_backward_pass *w, const tern_tensor *grad);

/* Makes out->dout, of an output of node, the gradient that it stands for, as deferred relu and
 * casts say (deferred.c). */
tern_status tern_fuse_settle(const tern_node *node, tern_node_output *out);
/* Sets *deferred where node need not run now: its gradient went on to *next, which is to run, or
 * the node runs at the end of the pass, and *next is NULL. */
tern_status tern_fuse_defer(tern_backward_pass *w, tern_node *node, bool *deferred,
                            tern_node **next);

/* Is called before node's backward: fills what that may use, in fused, to which g->fused points.
 * Returns whether the gradients are there already, so that backward need not run. */
bool tern_fuse_begin(tern_backward_pass *w, const tern_node *node, tern_gradient *g,
                     tern_fused_gradient *fused);
/* Is called after node's backward: a gradient that was added to another one takes its place, and
 * one that was written in place counts as a write. */
void tern_fuse_end(const tern_gradient *g);
/* Returns where the gradient of input i goes; g->din[i] may become its copy in half precision. */
const tern_edge *tern_fuse_route(const tern_node *node, const tern_gradient *g, int i);
/* Is called once all gradients of node's inputs went there. */
void tern_fuse_routed(const tern_node *node, const tern_gradient *g);

/* Runs the nodes that wait for the end of the pass, before leaves are finished (batched.c). */
tern_status tern_fuse_run_batched(tern_backward_pass *w);
/* Returns whether another pass writes the gradient of leaf in place now (claim.c). */
bool tern_fuse_is_claimed(const tern_backward_pass *w, const tern_leaf *leaf);
/* Ends the claim of this pass to the leaf of a, if it has one. */
void tern_fuse_unclaim(const tern_backward_pass *w, tern_arrival *a);
/* Frees what the folder keeps of the pass, however that ended. */
void tern_fuse_free(tern_backward_pass *w);

#endif
