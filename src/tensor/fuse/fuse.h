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

/* What backward may use, and what it gives beside din. Operations read it by the functions below. */
enum { TERN_MAX_GRAD_OUTS = 5 };
struct tern_fused_gradient {
    tern_tensor *accumulate_into;
    bool accumulates_in_place, accumulated;
    tern_tensor *grad_out[TERN_MAX_GRAD_OUTS];
    tern_tensor *relu;
    tern_dtype half_copy_dtype;
    tern_tensor *half_copy;
    uint32_t f32_grads;
    tern_tensor **sum;       /* where accumulate_into is from */
    const tern_tensor *made; /* the gradient of input 0 */
};

/* ---- for operations ------------------------------------------------------------------------------ */

/* Of an operation that accumulates: the gradient of input 0 that is there already, dense and of its shape and type; NULL
 * for none. */
static inline tern_tensor *tern_accumulate_into(const tern_gradient *g)
{
    return g->fused ? g->fused->accumulate_into : NULL;
}
/* The same, where nobody else holds it: it may be written. */
static inline tern_tensor *tern_accumulate_in_place(const tern_gradient *g)
{
    return g->fused && g->fused->accumulates_in_place ? g->fused->accumulate_into : NULL;
}
/* din[0] is the sum of both. */
static inline void tern_accumulated(const tern_gradient *g)
{
    g->fused->accumulated = true;
}
static inline bool tern_is_accumulated(const tern_gradient *g)
{
    return g->fused && g->fused->accumulated;
}

/* Where the gradients of inputs i, i + 1, ... are to lie in the end (leaf.h): din of each may be that tensor, written. NULL
 * for those that may lie anywhere. */
static inline tern_tensor *const *tern_grad_outs(const tern_gradient *g, int i)
{
    static tern_tensor *const none[TERN_MAX_GRAD_OUTS];
    return g->fused ? &g->fused->grad_out[i] : none;
}

/* Of an operation that takes a deferred relu gradient: dout[0] is that where this is above 0, and 0 dout elsewhere; or NULL. */
static inline tern_tensor *tern_deferred_relu(const tern_gradient *g)
{
    return g->fused ? g->fused->relu : NULL;
}

/* Of an operation that takes a gradient of half precision: the type of half precision that din[0] is wanted in too, to be
 * given where that costs nothing. TERN_DTYPE_DEFAULT: none. */
static inline tern_dtype tern_half_copy_dtype(const tern_gradient *g)
{
    return g->fused ? g->fused->half_copy_dtype : TERN_DTYPE_DEFAULT;
}
static inline void tern_give_half_copy(const tern_gradient *g, tern_tensor *half)
{
    g->fused->half_copy = half;
}
/* Whether din[i], of half precision, may be float32, which is what becomes of it. */
static inline bool tern_takes_f32_grad(const tern_gradient *g, int i)
{
    return g->fused && g->fused->f32_grads >> i & 1;
}

/* Whether several operations may be one on the place: its launches have their price, and nobody looks at each. A profiler
 * does not count: it shows what ran. */
bool tern_may_fuse(const tern_place *place);
/* The dtype that the result of a call with that weight is to be made in too, as relu or a cast is to follow;
 * TERN_DTYPE_DEFAULT: in none. */
tern_dtype tern_speculate(const tern_call *call, tern_tensor *weight);

/* ---- what the dispatcher asks (apply.c) ------------------------------------------------------ */

/* Whether the result was made with the input: call->out[0] is that then, and forward need not run. */
bool tern_take_speculative(tern_call *call);
static inline bool tern_fuse_forward(tern_call *call)
{
    const tern_fusion *fusion = call->op->fusion;
    return fusion && (fusion->is_relu || fusion->is_cast) && tern_take_speculative(call);
}

/* Whether the call takes its inputs, which are of different types, as they are. */
static inline bool tern_fuse_mixes_dtypes(const tern_call *call)
{
    const tern_fusion *fusion = call->op->fusion;
    return fusion && fusion->mixes_dtypes && fusion->mixes_dtypes(call);
}

#endif
