/* history.h -- the data of tensors in the autograd graph. */
#ifndef TERN_TENSOR_HISTORY_H
#define TERN_TENSOR_HISTORY_H
#include "tensor/fields.h"
#include <tern/autograd.h>

typedef struct tern_node tern_node;

typedef struct tern_hook {
    struct tern_hook *next;
    int id;
    union {
        tern_grad_hook call;
        tern_post_accumulate_grad_hook post; /* for the list `post` of a leaf */
    };
    void *user;
} tern_hook;

/* The data of leaves that are trained on several devices or by several processes. */
typedef struct tern_leaf {
    tern_hook *post;          /* hooks that run after the gradient is accumulated */
    tern_tensor *bucket_view; /* where gradients are written (leaf.h); NULL: anywhere */
    const void *writer;       /* the pass that writes a gradient in place there, or NULL */
    struct tern_ranks *ranks;
} tern_leaf;

/* The data of a tensor in the autograd graph. */
struct tern_history {
    tern_node *node; /* the node that computed the tensor; NULL for leaves */
    int output;      /* the number of the tensor among the node's outputs */
    tern_tensor *grad;
    tern_hook *hooks;
    int last_hook;
    bool retains_grad;
    atomic_size_t arrival; /* of a leaf: its index in the leaves of the last pass that reached it */
    tern_leaf *leaf;       /* NULL for most leaves */
    /* Of a differentiable view: its base, and the value of the base's `writes` for which `node` is
     * valid. */
    tern_tensor *base;
    int64_t base_writes;
    bool multi_view; /* one of several views that one call created: writes in place are refused */
    bool untracked;  /* a view created while gradients were disabled: recorded writes are refused */
    int64_t writes;  /* of a base: the number of recorded writes in place to it or its views */
};

/* Returns the history of x, and creates it if there is none; NULL after TERN_ERR_MEMORY. */
tern_history *tern_history_of(tern_tensor *x);
/* Replaces x.grad by grad, which may be NULL and must have been checked. */
tern_status tern_history_set_grad(tern_tensor *x, tern_tensor *grad);

/* Backward passes count dependencies (dependency_reasons.c) if there is a post hook, or once a copy
 * between devices was recorded. The first function adds n to the number of post hooks, the second
 * reports such a copy, the third returns whether passes count. */
void tern_passes_count(int n);
void tern_passes_cross(void);
bool tern_passes_do_count(void);

#endif
