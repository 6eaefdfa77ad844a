/* history.h -- what only tensors in the autograd graph have. */
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
        tern_post_accumulate_grad_hook post; /* of the list `post` of a leaf */
    };
    void *user;
} tern_hook;

/* What only leaves have that devices or processes train together. */
typedef struct tern_leaf {
    tern_hook *post;          /* called once the gradient is in its place */
    tern_tensor *bucket_view; /* where it is to lie (leaf.h); NULL: anywhere */
    const void *writer;       /* the pass that makes a gradient there; NULL: none does */
    struct tern_ranks *ranks;
} tern_leaf;

/* What only tensors in the autograd graph have. */
struct tern_history {
    tern_node *node; /* what made it; NULL for leaves */
    int output;      /* which of the node's outputs */
    tern_tensor *grad;
    tern_hook *hooks;
    int last_hook;
    bool retains_grad;
    atomic_size_t arrival; /* of a leaf: its place in the list of the pass that came last */
    tern_leaf *leaf;       /* NULL for most */
    /* A differentiable view: the tensor it looks into, and the base's count of in-place writes for
     * which `node` is right. */
    tern_tensor *base;
    int64_t base_writes;
    bool multi_view; /* one of several views that one call made: no in-place writes */
    bool untracked;  /* a view made while nothing was recorded: none that are */
    int64_t writes;  /* of a base: in-place writes recorded through it or its views */
};

/* The history of x, made if need be; NULL after TERN_ERR_MEMORY. */
tern_history *tern_history_of(tern_tensor *x);
/* x keeps grad, which has been checked, or NULL, in place of the one before. */
tern_status tern_history_set_grad(tern_tensor *x, tern_tensor *grad);

/* Backward passes count dependencies while there are reasons (dependency_reasons.c), which are post
 * hooks, of which there are n more, and copies between devices: from the first that is recorded
 * on. */
void tern_passes_count(int n);
void tern_passes_cross(void);
bool tern_passes_do_count(void);

#endif
