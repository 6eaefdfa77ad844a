/* node.h -- the inside of the graph: nodes, edges, saved tensors. */
#ifndef TERN_TENSOR_NODE_H
#define TERN_TENSOR_NODE_H
#include "tensor/fuse/state.h"
#include "tensor/history.h"
#include "tensor/op.h"

/* Where a gradient goes: output `output` of a node, or a leaf. Neither: nowhere. */
typedef struct tern_edge {
    tern_node *node;
    tern_tensor *leaf;
    int output;
} tern_edge;

/* A tensor kept for backward, and the version its storage had then. Saved outputs are detached:
 * with their history they would hold their own node. In a checkpoint there is no tensor, and the
 * version is -1 - its number in the node's frame. */
typedef struct tern_saved {
    tern_tensor *tensor;
    int64_t version;
    struct tern_packed *packed; /* how the tensor is had while it is wanted; NULL: it is kept */
} tern_saved;

/* A saved tensor that is not kept (saved.c). */
typedef struct tern_packed {
    const tern_op *maker; /* makes it again of `held`, or relu's result of what it saved itself;
                             NULL: hooks turned it into that */
    tern_saved held;
    tern_saved_tensors_hooks hooks;
    tern_dtype dtype;
    tern_shape shape;
} tern_packed;

/* What a node keeps of one of its outputs, which may be gone by the time of backward. */
typedef struct tern_node_output {
    tern_dtype dtype;
    bool differentiable;
    tern_tensor *dout;       /* gathered during a pass */
    tern_fused_output fused; /* what dout stands for, where it is fused (fuse/state.h) */
    tern_hook *hooks;        /* of the output tensor */
    tern_tensor *retainer;   /* the output tensor while it lives and retains its grad; not owned */
} tern_node_output;

/* One run of a checkpointed function (frame.h). */
typedef struct tern_frame tern_frame;

struct tern_node {
    atomic_int refs;
    const tern_op *op;
    tern_place *place;
    uint64_t serial; /* inputs have smaller ones: the order of the backward pass */
    int n_in, n_out;
    bool freed;      /* saved tensors are gone */
    bool queued;     /* in the heap of a pass */
    uint8_t urgency; /* in a pass that counts (dependencies.c): before those of less */
    int awaited;     /* in such a pass: edges that gradients may still come by */
    tern_edge *edge;
    tern_saved *saved; /* n_in inputs, then n_out outputs */
    tern_shape *in_shape;
    tern_node_output *output;
    void *attributes;
    char *where;       /* its forward was called, if anomalies were looked for; or NULL */
    tern_frame *frame; /* of a checkpoint: whom to ask for the saved tensors */
    tern_modules_running modules; /* in the forward */
    tern_node *inner; /* copy_slices: the operation whose result was written into a view */
    union {
        tern_node *next_free;    /* in the list of nodes to free */
        unsigned long long pass; /* the number of the pass that counted the node last */
    };
};

/* A node with room for everything; nothing retained yet. NULL after TERN_ERR_MEMORY. */
tern_node *tern_node_new(const tern_op *op, tern_place *place, int n_in, int n_out,
                         const void *attributes, size_t attribute_bytes);
/* Where gradients of x go. */
tern_edge tern_edge_to(tern_tensor *x);
/* Fill slot with x, which is given away, packed where it is not to be kept. */
tern_status tern_node_pack(tern_node *node, int slot, tern_tensor *x);
/* Have the tensors of node's slots that are packed, but for one that its backward asks for itself
 * (tern_made_again); let go of them again. */
tern_status tern_node_unpack(tern_node *node, bool create);
void tern_node_repack(tern_node *node);
/* A hook's answer to x, in no scope; NULL after an error. */
tern_tensor *tern_saved_hook(tern_tensor *(*hook)(tern_tensor *, void *), tern_tensor *x,
                             void *user, const char *name);
/* Leave out relu's result, of which tern_fuse_finds_relu is true. */
tern_status tern_node_leave_relu(tern_node *node);
/* An error where saved tensors were freed, or written in place since. */
tern_status tern_node_check_saved(const tern_node *node);
/* The input of the operation that makes it again. */
tern_tensor *tern_packed_held(const tern_packed *packed);

/* Save x, which is given away, or let go of it in a checkpoint. After the edges are there. */
tern_status tern_node_keep(tern_node *node, int slot, tern_tensor *x);
/* Edges, shapes and saved tensors of a call that was run, its inputs being `in`. */
tern_status tern_node_fill(tern_node *node, const tern_call *call, tern_tensor *const *in);
/* Let go of the saved tensors. */
void tern_node_free_saved(tern_node *node);
/* The tensor in a slot was written by the node itself, and is saved as it is now. */
void tern_node_saved_written(tern_node *node, int slot, const tern_tensor *x);
/* Make x output i of node (retains node). */
tern_status tern_node_attach(tern_node *node, int i, tern_tensor *x);

/* ---- the backward pass (heap.c, backward.c) -------------------------------------------------- */
/* All zeros at first; its owner frees node. */
typedef struct tern_node_heap {
    tern_node **node;
    size_t count, capacity;
    bool counts; /* the most urgent first; and of those, as of all otherwise, the largest serial */
} tern_node_heap;
/* Retains a node that is not in it yet. */
tern_status tern_heap_push(tern_node_heap *heap, tern_node *node);
/* The first node, whose reference is the caller's; there must be one. */
tern_node *tern_heap_pop(tern_node_heap *heap);
/* Gradients fit what they are of (gradient_checks.c). Those that came out of an operation or from
 * outside are cast; a device they do not change (place NULL: nothing is known of it). */
tern_status tern_fit_gradient(tern_tensor **grad, tern_dtype dtype, const tern_place *place);
tern_status tern_fit_edge(tern_tensor **grad, const tern_edge *edge);
/* What a hook returned instead of grad has its shape, type and device. */
tern_status tern_check_hooked(const tern_tensor *other, const tern_tensor *grad);
/* A leaf has the shape that it had in forward. */
tern_status tern_check_leaf(const tern_tensor *grad, const tern_tensor *leaf);
/* As tern_autograd_grad with create_graph and allow_unused, inside of another pass: this one ends
 * at the inputs, as that one may be at work on what made them. */
tern_status tern_gradients_between(tern_tensor *const *outputs, tern_tensor *const *gradients,
                                   int n_outputs, tern_tensor *const *inputs, int n_inputs,
                                   tern_tensor **grads);

/* ---- checkpoints (checkpoint.c) ---------------------------------------------------------- */
/* Fill the node's slots, computing them again if need be. */
tern_status tern_frame_unpack(tern_node *node);
void tern_frame_release(tern_frame *frame);
/* Whether the operation is a function of the program's (function.c). */
bool tern_is_function(const tern_op *op);

/* ---- anomalies (anomaly.c) --------------------------------------------------------------- */
/* The labels that are open now, to be freed; *where is NULL for none. */
tern_status tern_anomaly_where(char **where);
/* TERN_ERR_STATE when one of the gradients that node's backward made has a NaN in it. */
tern_status tern_anomaly_check_gradients(const tern_node *node, tern_tensor *const *dout,
                                         tern_tensor *const *din, const bool *needs);

#endif
