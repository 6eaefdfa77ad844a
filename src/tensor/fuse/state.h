/* state.h -- what this folder keeps in the graph's outputs and in a backward pass. */
#ifndef TERN_TENSOR_FUSE_STATE_H
#define TERN_TENSOR_FUSE_STATE_H
#include "tensor/history.h"

/* Of an output of a node, while a gradient of it waits for the node to run. */
typedef struct tern_fused_output {
    tern_tensor *half_copy; /* the same gradient in half precision, where the kernel that made it
                               wrote both; or NULL */
    tern_tensor *din;       /* what the node's backward makes of the gradient, made already; or
                               NULL */
    tern_tensor *relu;      /* the gradient is still to be multiplied by the slope of this result of
                               relu; or NULL */
    bool finds_relu;        /* the same of a result that the node finds again (relu_again) */
} tern_fused_output;

/* A node that runs at the end of the backward pass, and the gradient of its output. */
typedef struct tern_batched_node {
    tern_node *node;
    tern_tensor *dout;
} tern_batched_node;

/* Of a backward pass. */
typedef struct tern_fused_pass {
    tern_tensor *seed; /* the gradient that the pass began with, unless it was given or the program
                          has seen it */
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
