/* state.h -- the fields of this folder in the outputs of nodes and in a backward pass. */
#ifndef TERN_TENSOR_FUSE_STATE_H
#define TERN_TENSOR_FUSE_STATE_H
#include "tensor/history.h"

/* The fields of an output of a node, while the gradient of that output waits for the node to run.
 * */
typedef struct tern_fused_output {
    tern_tensor *half_copy; /* the gradient in half precision, if the kernel wrote it in both types;
                             * else NULL */
    tern_tensor *din;       /* the gradient of the node's input 0, if it is computed already; else
                             * NULL */
    tern_tensor *relu;      /* the deferred relu gradient: the gradient is still to be multiplied by
                             * the slope of this result of relu; else NULL */
    bool finds_relu;        /* the same for a result that the node recomputes (relu_again) */
} tern_fused_output;

/* A node that runs at the end of the backward pass, and the gradient of its output. */
typedef struct tern_batched_node {
    tern_node *node;
    tern_tensor *dout;
} tern_batched_node;

/* The fields of a backward pass. */
typedef struct tern_fused_pass {
    tern_tensor *seed; /* the gradient with which the pass began; NULL if the caller gave it or the
                        * program has seen it */
    tern_batched_node *batched;
    int n_batched, batched_capacity;
} tern_fused_pass;

static inline void tern_fused_output_clear(tern_fused_output *out)
{
    tern_release(out->half_copy);
    tern_release(out->relu);
    tern_release(out->din);
    out->half_copy = out->relu = out->din = NULL;
    out->finds_relu = false;
}

#endif
