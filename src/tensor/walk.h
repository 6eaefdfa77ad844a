/* walk.h -- a walk back, for the files that make it. */
#ifndef TERN_TENSOR_WALK_H
#define TERN_TENSOR_WALK_H
#include "tensor/node.h"

/* The gradient that arrived at a leaf; NULL before, and once the leaf has it. */
typedef struct tern_arrival {
    tern_tensor *leaf, *grad;
    int awaited; /* in a walk that counts: edges that more may come by */
    bool writes; /* this walk is the writer of its home */
} tern_arrival;

/* A node that waits for the end of the walk, and the gradient that came to it. */
typedef struct tern_put_off {
    tern_node *node;
    tern_tensor *dout;
} tern_put_off;

typedef struct tern_walk {
    tern_node_heap heap;  /* of nodes that a gradient came to */
    tern_arrival *leaves; /* in order of first arrival */
    size_t n_leaves, leaf_capacity;
    bool retain, create;
    tern_tensor *one; /* what it began with, unless that was given; nobody outside has seen it */
    /* tern_autograd_grad: where to catch gradients instead of leaving them in leaves. */
    tern_tensor *const *wanted;
    tern_tensor **caught; /* owned */
    int n_wanted;
    uint64_t failures;       /* of the thread before it began */
    bool ends;               /* at the wanted ones: what is before them is left alone */
    bool first;              /* there was no other walk when it began */
    unsigned long long turn; /* how many began before it */
    tern_node_heap stack;    /* nodes in hand while edges are counted, or taken off */
    tern_put_off *later;
    int n_later, later_capacity;
} tern_walk;

/* ---- leaves.c ---------------------------------------------------------------------------- */
/* *sum += grad, where *sum is owned and grad borrowed. */
tern_status tern_walk_gather(tern_tensor **sum, tern_tensor *grad);
/* Hooks of a tensor on its gradient; *grad is owned. */
tern_status tern_walk_hooks(tern_walk *w, tern_hook *const *list, tern_tensor **grad);
/* x.grad = grad, which is borrowed. */
tern_status tern_walk_set_grad(tern_walk *w, tern_tensor *x, tern_tensor *grad);
/* x.grad += grad, of one that is no leaf and keeps it. */
tern_status tern_walk_retain(tern_walk *w, tern_tensor *x, tern_tensor *grad);
/* Around a walk. */
void tern_walk_begin(tern_walk *w);
void tern_walk_end(tern_walk *w);
tern_status tern_walk_to_leaf(tern_walk *w, tern_tensor *leaf, tern_tensor *grad);
/* The leaf's line in the list, of which there is one from now on; valid until the next. NULL: no memory. */
tern_arrival *tern_walk_leaf(tern_walk *w, tern_tensor *leaf);
/* Of several walks that come to a leaf, of threads or one within the other, one may write its home before its turn; until it is
 * finished. */
bool tern_walk_become_writer(const tern_walk *w, tern_tensor *x);
/* Give a leaf, or whoever wants it, the gradient that arrived, if one did; the same of all leaves. */
tern_status tern_walk_finish_leaf(tern_walk *w, tern_arrival *a);
tern_status tern_walk_finish_leaves(tern_walk *w);

/* ---- home.c -------------------------------------------------------------------------------- */
/* What the gradient of input i goes along: past a cast, of one that is wide. */
const tern_edge *tern_walk_edge(const tern_node *node, int i, uint32_t wide);
/* Where gradients of node's inputs may be made. */
void tern_walk_find_homes(tern_walk *w, const tern_node *node, tern_gradient *g);
/* After they were. */
void tern_walk_note_homes(const tern_gradient *g);

/* ---- masks.c ------------------------------------------------------------------------------- */
/* Whether the gradient that came to node, which masks or casts, went on as it is to what is before it, to be masked or cast
 * there. */
bool tern_walk_leave_mask(const tern_walk *w, tern_node *node);
/* out->dout is what it is from now on. */
tern_status tern_walk_unmask(tern_node_output *out);
/* The type of half precision that the gradient of node's input 0 is wanted in too; TERN_DTYPE_DEFAULT: none. */
tern_dtype tern_walk_also(const tern_walk *w, const tern_node *node);
/* The inputs that are casts of float32 leaves to half precision: their gradients may be of the leaf's type. A bit each. */
uint32_t tern_walk_wide(const tern_walk *w, const tern_node *node);
/* out->dout is another one now. */
void tern_walk_forget_half(tern_node_output *out);

/* ---- together.c ---------------------------------------------------------------------------- */
/* Whether node may wait, and then does: its gradient goes to its leaf with those of others. */
tern_status tern_walk_put_off(tern_walk *w, tern_node *node, bool *waits);
/* Those that wait, before leaves are finished. Let go of them, whether they ran or not. */
tern_status tern_walk_run_later(tern_walk *w);
void tern_walk_drop_later(tern_walk *w);

/* ---- ready.c ------------------------------------------------------------------------------ */
/* Count the edges of what the walk can reach from the nodes in its heap, if there is a reason. */
tern_status tern_walk_count(tern_walk *w);
/* After node has run: gradients that were waited for by its edges have come. Nodes and leaves for which
 * no more can come have their turn. */
tern_status tern_walk_settle(tern_walk *w, tern_node *node);

#endif
