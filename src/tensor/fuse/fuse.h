/* fuse.h -- operations that are fused, for speed alone. */
#ifndef TERN_TENSOR_FUSE_H
#define TERN_TENSOR_FUSE_H
#include "tensor/op.h"

/* What an operation can do beyond its value and its gradient, so that it is fused with others. All zeros: nothing. */
struct tern_fusion {
    /* backward adds the gradient of input 0 to the gradient that is there already (accumulate_into). */
    bool accumulates;
    /* Bit i: backward writes the gradient of input i into the memory that is given for it (grad_out). */
    uint8_t grad_outs;
    /* The gradient of input 0 is dout where output 0, which is saved, is above 0, and 0 dout elsewhere: it may be deferred
     * to the operation that made input 0, if that one takes a deferred relu gradient. */
    bool is_relu, takes_deferred_relu;
    /* The gradient of input 0 is dout in the type of input 0: it may be deferred to an operation that takes a gradient of
     * half precision although its output 0 is float32. */
    bool is_cast, takes_half_grad;
    /* The output, if it is there, that is relu of output 0, made before anybody asked for it; 0: there is none. */
    int speculative_output;
    /* The speculative output is not relu of output 0, but output 0 in half precision. */
    bool speculative_cast;
    /* Of a loss: the output, if it is there, that is the gradient of input 0 for dout = 1; 0: there is none. */
    int seed_gradient;
    /* forward takes these inputs of different types as they are. NULL: they are brought to their common type. */
    bool (*mixes_dtypes)(const tern_call *call);
    /* backward of n nodes that have one input, a leaf, and one output, in one launch at the end of a backward pass; NULL:
     * each node has its own. */
    tern_status (*batched_backward)(void *const *attributes, tern_tensor *const *dout,
                                    tern_tensor **din, int n);
};

/* ---- what the dispatcher asks (apply.c) ------------------------------------------------------ */

/* Whether the call takes its inputs, which are of different types, as they are. */
static inline bool tern_fuse_mixes_dtypes(const tern_call *call)
{
    const tern_fusion *fusion = call->op->fusion;
    return fusion && fusion->mixes_dtypes && fusion->mixes_dtypes(call);
}

#endif
