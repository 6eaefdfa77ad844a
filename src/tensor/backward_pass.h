/* backward_pass.h -- the state of a backward pass, for the files that run it. */
#ifndef TERN_TENSOR_BACKWARD_PASS_H
#define TERN_TENSOR_BACKWARD_PASS_H
#include "tensor/node.h"
#include "base/lock.h"

/* The gradient that arrived at a leaf; NULL before it arrives and once it is stored in the leaf. */
typedef struct tern_arrival {
    tern_tensor *leaf, *grad;
    int awaited;  /* in a pass that counts: edges by which gradients may still arrive */
    bool claimed; /* only this pass writes the leaf's gradient in place (fuse/claim.c) */
} tern_arrival;

typedef struct tern_backward_pass {
    tern_node_heap heap;  /* the nodes that have received a gradient */
    tern_arrival *leaves; /* in order of first arrival */
    size_t n_leaves, leaf_capacity;
    bool retain, create;
    /* tern_autograd_grad: the tensors whose gradients it returns, instead of storing them in
     * leaves. */
    tern_tensor *const *wanted;
    tern_tensor **caught; /* owned */
    int n_wanted;
    uint64_t failures; /* tern_failures() when the pass began */
    bool ends;  /* the pass ends at the wanted tensors and does not run the nodes before them */
    bool first; /* no other pass ran when this one began */
    unsigned long long number; /* number of the pass: 1, 2, ... in the order of their beginnings */
    tern_node_heap stack;      /* the nodes to be visited while edges are counted or removed */
    tern_fused_pass fused;     /* the fields of fusion (fuse/state.h) */
} tern_backward_pass;

/* ---- leaves.c ---------------------------------------------------------------------------- */
/* Computes *sum += grad; *sum is owned, grad is borrowed. */
tern_status tern_pass_gather(tern_tensor **sum, tern_tensor *grad);
/* Calls the hooks of a tensor with its gradient *grad, which is owned; they may replace it. */
tern_status tern_pass_hooks(tern_backward_pass *w, tern_hook *const *list, tern_tensor **grad);
/* Sets x.grad to grad, which is borrowed. */
tern_status tern_pass_set_grad(tern_backward_pass *w, tern_tensor *x, tern_tensor *grad);
/* Adds grad to x.grad of an x that is no leaf and retains its gradient. */
tern_status tern_pass_retain(tern_backward_pass *w, tern_tensor *x, tern_tensor *grad);
/* The first function is called before a pass, the second after it. */
void tern_pass_begin(tern_backward_pass *w);
void tern_pass_end(tern_backward_pass *w);
/* Adds grad to the gradient that arrived at the leaf. */
tern_status tern_pass_to_leaf(tern_backward_pass *w, tern_tensor *leaf, tern_tensor *grad);
/* Returns the leaf's entry in w->leaves, and adds one if there is none; valid until the next call.
 * NULL: out of memory. */
tern_arrival *tern_pass_leaf(tern_backward_pass *w, tern_tensor *leaf);
/* Stores the gradient that arrived, if there is one, in the leaf, or returns it to the caller of
 * tern_autograd_grad; the second function does so for all leaves. */
tern_status tern_pass_finish_leaf(tern_backward_pass *w, tern_arrival *a);
tern_status tern_pass_finish_leaves(tern_backward_pass *w);

/* ---- leaf.c ------------------------------------------------------------------------------ */
/* Locks the leaf, because several threads may write its gradient. The caller unlocks the mutex that
 * the function returns. */
tern_mutex *tern_leaf_lock(const tern_tensor *leaf);

/* ---- dependencies.c -------------------------------------------------------------------------- */
/* Counts the edges of all nodes that the pass can reach from the nodes in its heap, if there is a
 * reason to run nodes in another order than by serial number. */
tern_status tern_pass_count(tern_backward_pass *w);
/* Called after node has run: the gradients that go by its edges have arrived. Nodes that wait for
 * no other gradient enter the heap, and such leaves are finished. */
tern_status tern_pass_settle(tern_backward_pass *w, tern_node *node);

#endif
