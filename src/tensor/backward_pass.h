/* backward_pass.h -- a backward pass, for the files that make it. */
#ifndef TERN_TENSOR_BACKWARD_PASS_H
#define TERN_TENSOR_BACKWARD_PASS_H
#include "tensor/node.h"
#include "base/lock.h"

/* The gradient that arrived at a leaf; NULL before, and once the leaf has it. */
typedef struct tern_arrival {
    tern_tensor *leaf, *grad;
    int awaited;  /* in a pass that counts: edges that more may come by */
    bool claimed; /* this pass alone writes its gradient in place (fuse/claim.c) */
} tern_arrival;

typedef struct tern_backward_pass {
    tern_node_heap heap;  /* of nodes that a gradient came to */
    tern_arrival *leaves; /* in order of first arrival */
    size_t n_leaves, leaf_capacity;
    bool retain, create;
    /* tern_autograd_grad: where to catch gradients instead of leaving them in leaves. */
    tern_tensor *const *wanted;
    tern_tensor **caught; /* owned */
    int n_wanted;
    uint64_t failures;       /* of the thread before it began */
    bool ends;               /* at the wanted ones: what is before them is left alone */
    bool first;              /* there was no other pass when it began */
    unsigned long long turn; /* how many began before it */
    tern_node_heap stack;    /* nodes in hand while edges are counted, or taken off */
    tern_fused_pass fused;   /* for speed alone (fuse/state.h) */
} tern_backward_pass;

/* ---- leaves.c ---------------------------------------------------------------------------- */
/* *sum += grad, where *sum is owned and grad borrowed. */
tern_status tern_pass_gather(tern_tensor **sum, tern_tensor *grad);
/* Hooks of a tensor on its gradient; *grad is owned. */
tern_status tern_pass_hooks(tern_backward_pass *w, tern_hook *const *list, tern_tensor **grad);
/* x.grad = grad, which is borrowed. */
tern_status tern_pass_set_grad(tern_backward_pass *w, tern_tensor *x, tern_tensor *grad);
/* x.grad += grad, of one that is no leaf and keeps it. */
tern_status tern_pass_retain(tern_backward_pass *w, tern_tensor *x, tern_tensor *grad);
/* Around a pass. */
void tern_pass_begin(tern_backward_pass *w);
void tern_pass_end(tern_backward_pass *w);
tern_status tern_pass_to_leaf(tern_backward_pass *w, tern_tensor *leaf, tern_tensor *grad);
/* The leaf's line in the list, of which there is one from now on; valid until the next. NULL: no
 * memory. */
tern_arrival *tern_pass_leaf(tern_backward_pass *w, tern_tensor *leaf);
/* Give a leaf, or whoever wants it, the gradient that arrived, if one did; the same of all
 * leaves. */
tern_status tern_pass_finish_leaf(tern_backward_pass *w, tern_arrival *a);
tern_status tern_pass_finish_leaves(tern_backward_pass *w);

/* ---- leaf.c ------------------------------------------------------------------------------ */
/* Locks the leaf, in which several threads may leave gradients, and returns the lock: the caller
 * unlocks it. */
tern_mutex *tern_leaf_lock(const tern_tensor *leaf);

/* ---- dependencies.c -------------------------------------------------------------------------- */
/* Count the edges of what the pass can reach from the nodes in its heap, if there is a reason. */
tern_status tern_pass_count(tern_backward_pass *w);
/* After node has run: gradients that were waited for by its edges have come. Nodes and leaves for
 * which no more can come have their turn. */
tern_status tern_pass_settle(tern_backward_pass *w, tern_node *node);

#endif
