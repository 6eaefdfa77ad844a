/* fuse.h -- fusion: fewer launches than the graph has nodes.
 *
 * op.h says what an operation is, backward.c what a backward pass does. Both are complete without
 * this folder, and results differ by the rounding of sums at most. An operation that can be fused
 * has a tern_fusion; almost none has. The dispatcher (apply.c) calls the two functions at the end
 * of this header, the backward pass those of pass.h, and a Sequential those of chain.h. No other
 * code reads a tern_fusion.
 *
 * What is fused in a backward pass:
 *
 *   accumulate.c   A norm, a convolution or an embedding adds the gradient of its input to the
 *                  gradient that is there already, in the kernel that computes it
 *                  (accumulate_into).
 *   grad_out.c     A product writes the gradient of a weight into the weight's view of a bucket
 *   claim.c        (PyTorch's gradient_as_bucket_view). The pass claims the leaf until the leaf
 *                  is finished, so that no other pass writes there.
 *   deferred.c     The kernel of the norm before relu applies relu's mask (deferred relu
 *                  gradient), and a cast passes its gradient on in half precision.
 *   precision.c    A norm writes its gradient in half precision too, where the sum before it has
 *                  inputs of both types (half_copy). A product writes the gradient of a weight
 *                  that autocast cast in the weight's own type (f32_grad).
 *   batched.c      The casts of a module's weights have their gradients in one launch, at the
 *                  end of the pass (batched, deferred backward).
 *   seed.c         The number one that a pass begins with is written once and kept from pass to
 *                  pass. A loss that computed its gradient for dout = 1 in forward returns that
 *                  gradient instead of running backward (seed gradient).
 *   again.c        A product whose input is gelu's result does not save it: the kernel that
 *                  computes gelu's gradient recomputes it (again_with_gradient). The result of
 *                  relu that a norm computed with its own is not saved either: the kernel of the
 *                  norm's gradient recomputes its mask (relu_again).
 *   overwrite.c    A loss writes the gradient of its logits over them, if nothing else owns
 *                  them (may_overwrite).
 *
 * What is fused in forward:
 *
 *   speculative.c  A norm whose last result went to relu, or to a cast, computes that with its
 *                  result (speculative fused output); relu or the cast takes it from the node.
 *   mixes_dtypes   A sum of float32 and halves reads both as they are.
 *   chain.c        Linear, an activation and Linear of a Sequential are one operation.
 *
 * Beside this folder, amp/cast_weights.c casts the weights of a module in one launch, and
 * device/peephole.c makes one kernel of two in a recorded step.
 *
 * Fusions that save commands although recordings fuse commands themselves (device/chains.c):
 * bench/traffic counts the commands of a CUDA step, eager or recorded, with and without each.
 *
 *   speculative.c  d, eager: 62 and 66, ResNet-50: 325 and 358, GPT-2 under autocast: 312 and 337.
 *   mixes_dtypes   e under autocast, recorded: 106 and 130, GPT-2: 287 and 359.
 *   chain.c        b: 13 and 14, c: 33 and 34.
 *   peephole.c     e, recorded: 105 and 113, GPT-2 under autocast: 287 and 311.
 *
 * Conditions. Forward: on devices with work-groups, where each launch costs time, and not while
 * calls are traced, anomaly detection is on or the debug mode is on (tern_may_fuse). A speculative
 * output also needs a node that saves it, so there is none inside a checkpoint. Backward:
 * accumulation, buckets and seeds on all devices, the rest on devices with work-groups. A pass that
 * is recorded (create_graph) fuses nothing. A pass for tern_autograd_grad, or with anomaly
 * detection, fuses only what leaves each gradient visible. At an output with a hook or a retained
 * gradient nothing is deferred, and tern_fuse_settle computes the deferred gradient of an output
 * before it is read or added to.
 *
 * What is visible: values are the same. A profiler shows what ran, under the modules for which it
 * ran, and does not change what is fused. Counters show fewer launches; the test of bench/traffic.c
 * checks their numbers. */
#ifndef TERN_TENSOR_FUSE_H
#define TERN_TENSOR_FUSE_H
#include "tensor/op.h"

/* The ways in which an operation can be fused. A field that is zero means that it cannot. */
struct tern_fusion {
    /* backward can add the gradient of input 0 to tern_accumulate_into. */
    bool accumulates;
    /* Bit i: backward can write the gradient of input i to tern_grad_outs. */
    uint8_t grad_outs;
    /* is_relu: the gradient of input 0 is dout where output 0, which is saved, is above 0, and
     * 0 dout elsewhere. It is deferred to the operation that made input 0, if that operation takes
     * a deferred relu gradient. */
    bool is_relu, takes_deferred_relu;
    /* Recomputes relu of output 0 from the saved inputs, with the same bits. An operation that has
     * this function recomputes the mask of a deferred relu gradient, and relu does not keep a
     * speculative output. */
    tern_tensor *(*relu_again)(const tern_op *op, const void *attributes, tern_tensor *const *in);
    /* is_cast: the gradient of input 0 is dout in the type of input 0. It is deferred to the
     * operation that made input 0, if that operation takes a gradient of half precision although
     * its output 0 is float32. */
    bool is_cast, takes_half_grad;
    /* The number of the output that is relu of output 0, computed before relu is called. infer adds
     * it if tern_speculate returns true. */
    int speculative_output;
    /* The speculative output is not relu of output 0, but output 0 in half precision. */
    bool speculative_cast;
    /* The number of the output of a loss that is the gradient of input 0 for dout = 1. infer adds
     * it if it is worth it. */
    int seed_gradient;
    /* backward may write the gradient of input 0, which it saves, over it (tern_may_overwrite). */
    bool overwrites;
    /* The first recomputes output 0 from input 0 with the same bits; the second does so together
     * with the gradient of input 0 for dout. An operation that has them has no attributes and saves
     * input 0; operations that read its result need not keep that. */
    tern_tensor *(*again)(const tern_op *op, tern_tensor *x);
    tern_tensor *(*again_with_gradient)(const tern_op *op, tern_tensor *x, tern_tensor *dout,
                                        tern_tensor **dx);
    /* backward calls tern_made_again for input 0, after it has computed din[0]. */
    bool asks_again;
    /* Returns whether forward can read these inputs of different dtypes as they are. If NULL,
     * inputs are converted to their common type. */
    bool (*mixes_dtypes)(const tern_call *call);
    /* Computes backward of n nodes that have one input, a leaf, and one output, in one launch at
     * the end of a backward pass. */
    tern_status (*batched_backward)(void *const *attributes, tern_tensor *const *dout,
                                    tern_tensor **din, int n);
};

/* What backward may use, and what it returns in addition to din. Functions below access this. */
enum { TERN_MAX_GRAD_OUTS = 5 };
typedef struct tern_packed tern_packed; /* tensor/node.h */
struct tern_fused_gradient {
    tern_tensor *accumulate_into;
    bool accumulates_in_place, accumulated;
    tern_tensor *grad_out[TERN_MAX_GRAD_OUTS];
    tern_tensor *relu;
    bool finds_relu;
    tern_dtype half_copy_dtype;
    tern_tensor *half_copy;
    uint32_t f32_grads;
    bool may_overwrite;
    tern_packed *again;      /* input 0, which is recomputed */
    tern_tensor *again_din;  /* the gradient of the input of the operation that made input 0, for
                             * din[0] */
    tern_tensor **sum;       /* the address of the gradient that is accumulate_into */
    const tern_tensor *made; /* the gradient of input 0 */
};

/* ---- for the backward functions of operations ------------------------------------------------ */

/* Returns the gradient of input 0 that other nodes have already computed, dense and with the
 * input's shape and dtype, for an operation that accumulates; NULL if there is none. */
static inline tern_tensor *tern_accumulate_into(const tern_gradient *g)
{
    return g->fused ? g->fused->accumulate_into : NULL;
}
/* Returns the same if it has no other owner, so that backward may write to it. */
static inline tern_tensor *tern_accumulate_in_place(const tern_gradient *g)
{
    return g->fused && g->fused->accumulates_in_place ? g->fused->accumulate_into : NULL;
}
/* Records that din[0] is the sum of both. */
static inline void tern_accumulated(const tern_gradient *g)
{
    g->fused->accumulated = true;
}
static inline bool tern_is_accumulated(const tern_gradient *g)
{
    return g->fused && g->fused->accumulated;
}

/* Returns the tensors to which the gradients of inputs i, i + 1, ... are to be written (leaf.h);
 * din of each may be that tensor. NULL for a gradient that may be anywhere. */
static inline tern_tensor *const *tern_grad_outs(const tern_gradient *g, int i)
{
    static tern_tensor *const none[TERN_MAX_GRAD_OUTS];
    return g->fused ? &g->fused->grad_out[i] : none;
}

/* Returns the result of relu whose gradient was deferred: the gradient of output 0 is dout[0] where
 * that result is above 0, and 0 dout[0] elsewhere. NULL: it is dout[0]. */
static inline tern_tensor *tern_deferred_relu(const tern_gradient *g)
{
    return g->fused ? g->fused->relu : NULL;
}

/* Returns whether there is such a gradient and the result must be recomputed, for an operation with
 * relu_again. */
static inline bool tern_finds_deferred_relu(const tern_gradient *g)
{
    return g->fused && g->fused->finds_relu;
}

/* Returns the half precision dtype in which din[0] is needed too, if that costs nothing;
 * TERN_DTYPE_DEFAULT for none. The second function passes it on. */
static inline tern_dtype tern_half_copy_dtype(const tern_gradient *g)
{
    return g->fused ? g->fused->half_copy_dtype : TERN_DTYPE_DEFAULT;
}
static inline void tern_give_half_copy(const tern_gradient *g, tern_tensor *half)
{
    g->fused->half_copy = half;
}
/* Returns whether din[i], which is half precision, may be float32, to which it would be converted
 * next. */
static inline bool tern_takes_f32_grad(const tern_gradient *g, int i)
{
    return g->fused && g->fused->f32_grads >> i & 1;
}

/* Returns whether the node is the only owner of input 0's memory, and releases it now: backward may
 * write there, and increments its version. */
static inline bool tern_may_overwrite(const tern_gradient *g)
{
    return g->fused && g->fused->may_overwrite;
}

/* The first returns whether input 0 is not saved but recomputed by the second. The second returns
 * input 0, dense, in any case, in backward of an operation with asks_again; NULL after an error. */
static inline bool tern_is_made_again(const tern_gradient *g)
{
    return g->fused && g->fused->again;
}
tern_tensor *tern_made_again(const tern_gradient *g);

/* ---- what forward of an operation asks ------------------------------------------------------- */

/* Returns whether several operations may be one on the place: launches take time there, and no
 * trace, anomaly detection or debug mode needs each operation. A profiler makes no difference, as
 * it shows what ran. */
bool tern_may_fuse(const tern_place *place);
/* Returns the dtype of the speculative output of a call with that weight; TERN_DTYPE_DEFAULT if the
 * call has none. */
tern_dtype tern_speculate(const tern_call *call, tern_tensor *weight);

/* ---- what the dispatcher asks (apply.c) ------------------------------------------------------ */

/* Returns whether the result was computed with the input; it is call->out[0] then. */
bool tern_take_speculative(tern_call *call);
/* Returns whether forward need not run. */
static inline bool tern_fuse_forward(tern_call *call)
{
    const tern_fusion *fusion = call->op->fusion;
    return fusion && (fusion->is_relu || fusion->is_cast) && tern_take_speculative(call);
}

/* Returns whether forward of the call reads its inputs of different types as they are. */
static inline bool tern_fuse_mixes_dtypes(const tern_call *call)
{
    const tern_fusion *fusion = call->op->fusion;
    return fusion && fusion->mixes_dtypes && fusion->mixes_dtypes(call);
}

/* ---- what the graph asks (saved.c) ----------------------------------------------------------- */

/* x is to be saved as input 0 of node. If x is the unchanged result of another node and is to be
 * recomputed from that node's input 0, the first function returns that node, and the second one
 * recomputes x. NULL: x is to be saved (again.c). */
const tern_node *tern_fuse_maker(const tern_node *node, const tern_tensor *x);
tern_tensor *tern_fuse_again(const tern_op *maker, tern_tensor *x);
/* Returns whether the call is relu of the result of a node that recomputes relu's result
 * (relu_again); the edges of `node` are set. The second function recomputes that result. */
bool tern_fuse_finds_relu(const tern_node *node, const tern_call *call);
tern_tensor *tern_fuse_relu_again(const tern_node *maker);

#endif
