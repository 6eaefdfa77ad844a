/* node.h -- the graph of autograd: nodes, edges and saved tensors. */
#ifndef TERN_TENSOR_NODE_H
#define TERN_TENSOR_NODE_H
#include "tensor/fuse/state.h"
#include "tensor/history.h"
#include "tensor/op.h"

/* The destination of the gradient of an input: output `output` of a node, or a leaf. If both are
 * NULL, the input needs no gradient. */
typedef struct tern_edge {
    tern_node *node;
    tern_tensor *leaf;
    int output;
} tern_edge;

/* A tensor saved for backward, and the version of its storage at that time. A saved output is
 * detached, because its history would hold the node that saved it. In a checkpoint, tensor is NULL
 * and version is -1 - the number of the tensor in the node's frame. */
typedef struct tern_saved {
    tern_tensor *tensor;
    int64_t version;
    struct tern_packed *packed; /* how backward obtains the tensor; NULL: `tensor` is saved */
} tern_saved;

/* A saved tensor that is replaced by another tensor or recomputed (saved.c). */
typedef struct tern_packed {
    /* The operation that recomputes the tensor from `held`, or recomputes relu's result from its
     * own saved inputs (`held` is empty then). NULL: `held` is the result of the pack hook. */
    const tern_op *maker;
    tern_saved held;
    tern_saved_tensors_hooks hooks;
    tern_dtype dtype;
    tern_shape shape;
} tern_packed;

/* What a node stores about one of its outputs; the output tensor may be freed before backward. */
typedef struct tern_node_output {
    tern_dtype dtype;
    bool differentiable;
    tern_tensor *dout;       /* the sum of the gradients that arrived in this pass */
    tern_fused_output fused; /* deferred part of dout, if it is fused (fuse/state.h) */
    tern_hook *hooks;        /* the hooks of the output tensor */
    tern_tensor *retainer;   /* the output tensor while it exists and retains its gradient; not
                              * owned */
} tern_node_output;

/* One run of a checkpointed function (frame.h). */
typedef struct tern_frame tern_frame;

struct tern_node {
    atomic_int refs;
    const tern_op *op;
    tern_place *place;
    uint64_t serial; /* greater than those of the inputs; nodes run by descending serial */
    int n_in, n_out;
    bool freed;      /* the saved tensors were released */
    bool queued;     /* the node is in the heap of a pass */
    uint8_t urgency; /* in a pass that counts (dependencies.c): greater urgency runs first */
    int awaited;     /* in such a pass: the number of edges by which gradients may still arrive */
    tern_edge *edge;
    tern_saved *saved; /* n_in inputs, then n_out outputs */
    tern_shape *in_shape;
    tern_node_output *output;
    void *attributes;
    char *where;       /* labels open in forward, if anomaly detection was on; else NULL */
    tern_frame *frame; /* the frame of the checkpoint that recomputes the saved tensors, or NULL */
    tern_modules_running modules; /* the modules that ran in forward */
    tern_node *inner; /* copy_slices: the node of the operation that wrote to the view */
    union {
        tern_node *next_free;    /* in the list of nodes that are to be freed */
        unsigned long long pass; /* the number of the last pass that counted the node */
    };
};

/* Creates a node with space for n_in inputs and n_out outputs, and a copy of attributes. The edges
 * and saved tensors are empty. Returns NULL after TERN_ERR_MEMORY. */
tern_node *tern_node_new(const tern_op *op, tern_place *place, int n_in, int n_out,
                         const void *attributes, size_t attribute_bytes);
/* Returns the edge to x: its node or leaf, retained; empty if x requires no gradient. */
tern_edge tern_edge_to(tern_tensor *x);
/* Saves x, whose reference the function takes, in a slot of node. If x can be recomputed, or if the
 * program has set hooks, the slot is packed. */
tern_status tern_node_pack(tern_node *node, int slot, tern_tensor *x);
/* The first function sets the tensors of node's packed slots, except a tensor that backward obtains
 * itself (tern_made_again); the second releases those tensors. */
tern_status tern_node_unpack(tern_node *node, bool create);
void tern_node_repack(tern_node *node);
/* Returns the result of a hook of saved tensors for x, owned by the caller; NULL after an error. */
tern_tensor *tern_saved_hook(tern_tensor *(*hook)(tern_tensor *, void *), tern_tensor *x,
                             void *user, const char *name);
/* Does not save relu's result; tern_fuse_finds_relu must be true for it. */
tern_status tern_node_leave_relu(tern_node *node);
/* Returns an error if the saved tensors were released, or one was written in place since. */
tern_status tern_node_check_saved(const tern_node *node);
/* Returns the tensor from which maker recomputes; NULL if it was written in place since. */
tern_tensor *tern_packed_held(const tern_packed *packed);

/* Saves x, whose reference the function takes; in a checkpoint, x gets a number in the frame
 * instead. The node's edges must be set. */
tern_status tern_node_keep(tern_node *node, int slot, tern_tensor *x);
/* Sets edges, shapes and saved tensors of the node of a call that has run with the inputs `in`. */
tern_status tern_node_fill(tern_node *node, const tern_call *call, tern_tensor *const *in);
/* Releases the saved tensors. */
void tern_node_free_saved(tern_node *node);
/* Updates the saved version of the tensor in a slot, because the node's own operation wrote it. */
void tern_node_saved_written(tern_node *node, int slot, const tern_tensor *x);
/* Makes x output i of node; x retains node. */
tern_status tern_node_attach(tern_node *node, int i, tern_tensor *x);

/* ---- the backward pass (heap.c, backward.c) -------------------------------------------------- */
/* A heap of nodes, initially all zeros. The owner frees the array `node`. */
typedef struct tern_node_heap {
    tern_node **node;
    size_t count, capacity;
    bool counts; /* order by urgency, then serial; false: by serial (both descending) */
} tern_node_heap;
/* Adds a node and retains it; does nothing if the node is in a heap already. */
tern_status tern_heap_push(tern_node_heap *heap, tern_node *node);
/* Removes and returns the first node, whose reference the caller owns; there must be a node. */
tern_node *tern_heap_pop(tern_node_heap *heap);
/* Check a gradient against the tensor that it is for, or against an edge (gradient_checks.c). They
 * cast the gradient to the dtype of that tensor. A gradient on another device than place is an
 * error; place NULL: the device is not checked. */
tern_status tern_fit_gradient(tern_tensor **grad, tern_dtype dtype, const tern_place *place);
tern_status tern_fit_edge(tern_tensor **grad, const tern_edge *edge);
/* Returns an error if `other`, a hook's result for grad, differs in shape, dtype or device. */
tern_status tern_check_hooked(const tern_tensor *other, const tern_tensor *grad);
/* Returns an error if the leaf's shape has changed since forward. */
tern_status tern_check_leaf(const tern_tensor *grad, const tern_tensor *leaf);
/* Does the same as tern_autograd_grad with create_graph and allow_unused, but within another pass.
 * This pass does not run the nodes that computed the inputs, because the other pass may be running
 * them. */
tern_status tern_gradients_between(tern_tensor *const *outputs, tern_tensor *const *gradients,
                                   int n_outputs, tern_tensor *const *inputs, int n_inputs,
                                   tern_tensor **grads);

/* ---- checkpoints (checkpoint.c) ---------------------------------------------------------- */
/* Sets the tensors of the node's slots; if necessary, runs the checkpointed function again. */
tern_status tern_frame_unpack(tern_node *node);
void tern_frame_release(tern_frame *frame);
/* Returns whether the operation is a function of the program (function.c). */
bool tern_is_function(const tern_op *op);

/* ---- anomalies (anomaly.c) --------------------------------------------------------------- */
/* Sets *where to a text of the open labels, which the caller frees; NULL if no label is open. */
tern_status tern_anomaly_where(char **where);
/* Returns TERN_ERR_STATE if a gradient that the node's backward computed has a NaN. */
tern_status tern_anomaly_check_gradients(const tern_node *node, tern_tensor *const *dout,
                                         tern_tensor *const *din, const bool *needs);

#endif
