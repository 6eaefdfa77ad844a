/* fuse.h -- what exists for speed alone: fewer launches than the graph has nodes.
 *
 * op.h says what an operation is, backward.c what a backward pass does. Both are complete without
 * this folder, and results differ by the rounding of sums at most. An operation that can do more
 * says so in a tern_fusion, which almost none has. The dispatcher (apply.c) asks this folder two
 * questions, at the end of this header; the backward pass calls the functions of pass.h; a
 * Sequential calls chain.h. Nobody else reads a tern_fusion.
 *
 * What is fused in a backward pass:
 *
 *   accumulate.c   A norm, a convolution or an embedding adds the gradient of its input to the
 *                  gradient that is there already, in the kernel that computes it
 *                  (accumulate_into).
 *   grad_out.c     A product writes the gradient of a weight into the weight's view of a bucket
 *   claim.c        (PyTorch's gradient_as_bucket_view). The pass claims the leaf until the leaf
 *                  is finished, so that no other pass writes there.
 *   deferred.c     Relu leaves its mask to the kernel of the norm before it, and a cast leaves
 *                  its gradient in half precision (deferred relu gradient).
 *   precision.c    A norm writes its gradient in half precision too, where the sum before it has
 *                  inputs of both types (half_copy). A product writes the gradient of a weight
 *                  that autocast cast in the weight's own type (f32_grad).
 *   batched.c      The casts of a module's weights have their gradients in one launch, at the
 *                  end of the pass (batched, deferred backward).
 *   seed.c         The number one that a pass begins with is written once and kept from pass to
 *                  pass. A loss that computed its gradient for dout = 1 with its value gives that
 *                  away instead of running backward (seed gradient).
 *   again.c        A product whose input is gelu's result has that made again, by the kernel that
 *                  computes gelu's gradient (again_with_gradient): it is not kept. Neither is
 *                  the result of relu that a norm computed with its own: the kernel of the norm's
 *                  gradient finds its mask again (relu_again).
 *   overwrite.c    A loss whose logits nobody else holds writes their gradient over them
 *                  (may_overwrite).
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
 * When it may be. In forward: on devices with work-groups, where each launch has its price, and
 * not while calls are traced, anomalies are looked for or the debug mode is on (tern_may_fuse). A
 * speculative output also needs a node that saves, so none is made inside a checkpoint. In
 * backward: accumulation, buckets and seeds on all devices, the rest on devices with work-groups.
 * Nothing of a pass that is recorded (create_graph) is fused, and of one that catches gradients
 * (tern_autograd_grad) or looks for anomalies only what leaves each gradient to be seen. A hook or
 * a retained gradient on an output stops what would pass it: nothing is deferred there, and
 * tern_fuse_settle computes the gradient that an output stands for before anybody sees it or adds
 * to it.
 *
 * Who notices: nobody by values. A profiler shows what ran, under the modules that it ran for, and
 * changes nothing by running. Counters show fewer launches; bench/traffic.c and its test hold
 * their numbers. */
#ifndef TERN_TENSOR_FUSE_H
#define TERN_TENSOR_FUSE_H
#include "tensor/op.h"

/* What an operation can do beyond its value and its gradient. A field that is zero says that the
 * operation cannot. */
struct tern_fusion {
    /* backward adds the gradient of input 0 to tern_accumulate_into. */
    bool accumulates;
    /* Bit i says that backward writes the gradient of input i into tern_grad_outs. */
    uint8_t grad_outs;
    /* is_relu: the gradient of input 0 is dout where output 0, which is saved, is above 0, and
     * 0 dout elsewhere. It is deferred to the operation that made input 0, if that operation takes
     * a deferred relu gradient. */
    bool is_relu, takes_deferred_relu;
    /* Returns relu of output 0, made again of the inputs that are saved, with the same bits. An
     * operation that has it finds the mask of a deferred relu gradient again, and relu does not
     * keep a speculative output. */
    tern_tensor *(*relu_again)(const tern_op *op, const void *attributes, tern_tensor *const *in);
    /* is_cast: the gradient of input 0 is dout in the type of input 0. It is deferred to the
     * operation that made input 0, if that operation takes a gradient of half precision although
     * its output 0 is float32. */
    bool is_cast, takes_half_grad;
    /* The number of the output that is relu of output 0, computed before relu is called. infer
     * makes it where tern_speculate says so. */
    int speculative_output;
    /* The speculative output is not relu of output 0, but output 0 in half precision. */
    bool speculative_cast;
    /* The number of the output of a loss that is the gradient of input 0 for dout = 1. infer makes
     * it where that is worth it. */
    int seed_gradient;
    /* backward may write the gradient of input 0, which it saves, over it (tern_may_overwrite). */
    bool overwrites;
    /* Returns output 0, made again of input 0 with the same bits, and the same with the gradient of
     * input 0 for dout. An operation that has them, without attributes, saves input 0; what is made
     * of its result need not keep that. */
    tern_tensor *(*again)(const tern_op *op, tern_tensor *x);
    tern_tensor *(*again_with_gradient)(const tern_op *op, tern_tensor *x, tern_tensor *dout,
                                        tern_tensor **dx);
    /* backward asks tern_made_again for input 0, once din[0] is there. */
    bool asks_again;
    /* Returns whether forward reads these inputs of different types as they are. Without it inputs
     * are brought to their common type. */
    bool (*mixes_dtypes)(const tern_call *call);
    /* Computes backward of n nodes that have one input, a leaf, and one output, in one launch at
     * the end of a backward pass. */
    tern_status (*batched_backward)(void *const *attributes, tern_tensor *const *dout,
                                    tern_tensor **din, int n);
};

/* What backward may use and gives beside din, for the functions below. */
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
    tern_packed *again;      /* input 0, which is to be made again */
    tern_tensor *again_din;  /* the gradient before what made it, for din[0] */
    tern_tensor **sum;       /* where accumulate_into is from */
    const tern_tensor *made; /* the gradient of input 0 */
};

/* ---- what backward of an operation reads and gives ------------------------------------------- */

/* Returns the gradient of input 0 that other nodes left already, dense and of the input's shape and
 * type, for an operation that accumulates; NULL for none. */
static inline tern_tensor *tern_accumulate_into(const tern_gradient *g)
{
    return g->fused ? g->fused->accumulate_into : NULL;
}
/* Returns the same if nobody else holds it, so that backward may write into it. */
static inline tern_tensor *tern_accumulate_in_place(const tern_gradient *g)
{
    return g->fused && g->fused->accumulates_in_place ? g->fused->accumulate_into : NULL;
}
/* Says that din[0] is the sum of both. */
static inline void tern_accumulated(const tern_gradient *g)
{
    g->fused->accumulated = true;
}
static inline bool tern_is_accumulated(const tern_gradient *g)
{
    return g->fused && g->fused->accumulated;
}

/* Returns the tensors in which the gradients of inputs i, i + 1, ... are to lie (leaf.h): din of
 * each may be that tensor, written. A gradient that may lie anywhere has NULL. */
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

/* Returns the same of a result that is not there, for an operation with relu_again. */
static inline bool tern_finds_deferred_relu(const tern_gradient *g)
{
    return g->fused && g->fused->finds_relu;
}

/* Returns the type of half precision in which din[0] is wanted too, where that costs nothing;
 * TERN_DTYPE_DEFAULT for none. The second function gives it. */
static inline tern_dtype tern_half_copy_dtype(const tern_gradient *g)
{
    return g->fused ? g->fused->half_copy_dtype : TERN_DTYPE_DEFAULT;
}
static inline void tern_give_half_copy(const tern_gradient *g, tern_tensor *half)
{
    g->fused->half_copy = half;
}
/* Returns whether din[i], of half precision, may be float32, to which it would be cast next. */
static inline bool tern_takes_f32_grad(const tern_gradient *g, int i)
{
    return g->fused && g->fused->f32_grads >> i & 1;
}

/* Returns whether nobody holds the memory of input 0 but the node, which lets go of it now:
 * backward may write there, and raises its version. */
static inline bool tern_may_overwrite(const tern_gradient *g)
{
    return g->fused && g->fused->may_overwrite;
}

/* Returns whether input 0 is not there, but is made again by the other function, dense. That
 * returns input 0 in any case, in backward of an operation that asks_again; NULL after an error. */
static inline bool tern_is_made_again(const tern_gradient *g)
{
    return g->fused && g->fused->again;
}
tern_tensor *tern_made_again(const tern_gradient *g);

/* ---- what forward of an operation asks ------------------------------------------------------- */

/* Returns whether several operations may be one on the place: its launches have their price, and
 * nobody looks at each operation. A profiler does not count, as it shows what ran. */
bool tern_may_fuse(const tern_place *place);
/* Returns the dtype of the speculative output of a call with that weight; TERN_DTYPE_DEFAULT where
 * there is to be none. */
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

/* Returns the node that x, which the other one is to save as input 0, is the unchanged result of,
 * if that is to be made again of the node's own input 0; NULL: it is to be kept (again.c). The
 * second function makes it. */
const tern_node *tern_fuse_maker(const tern_node *node, const tern_tensor *x);
tern_tensor *tern_fuse_again(const tern_op *maker, tern_tensor *x);
/* Returns whether the call is relu of what a node made that finds relu's result again; edges are
 * there. The second function makes that result. */
bool tern_fuse_finds_relu(const tern_node *node, const tern_call *call);
tern_tensor *tern_fuse_relu_again(const tern_node *maker);

#endif
