/* chain.h -- operations one after another, each on the result of the one before, which nobody else
 * sees: what a Sequential runs. The modules say what each stage is; chain.c decides which stages
 * are one operation. */
#ifndef TERN_TENSOR_FUSE_CHAIN_H
#define TERN_TENSOR_FUSE_CHAIN_H
#include "base/thread.h"

typedef struct tern_stage tern_stage;

/* What a stage may be, for the operation that takes it in. */
typedef struct tern_stage_kind {
    /* Of a product: computes this stage, an epilogue and another product of *x in one operation.
     * NULL without an error: the device has none for these. *x may have become what autocast casts
     * it to. */
    tern_tensor *(*with_epilogue)(tern_tensor **x, const tern_stage *stages);
    bool is_epilogue; /* an activation, which a product may compute on its way */
    int variant;      /* which one */
} tern_stage_kind;

/* The kinds that there are belong to ops (matmul/linear_relu.c). */
extern const tern_stage_kind tern_stage_linear, tern_stage_relu, tern_stage_gelu_tanh;

struct tern_stage {
    const tern_stage_kind *kind;
    struct tern_module *module;
    tern_module_ref ref; /* of the module, for profiles and errors */
    /* Fills weight and bias of a product; called once they are needed. */
    void (*parameters)(tern_stage *stage);
    tern_tensor *weight, *bias;
};

enum { TERN_CHAIN_MOST = 3 }; /* more stages are never one operation */

/* Computes as many of n stages from *x on as can be one operation. Returns how many those were, 0
 * for none; *y is their result, NULL after an error. *x may have become a cast of it, as autocast
 * asks. */
int tern_fuse_chain(tern_stage *stages, int n, tern_tensor **x, tern_tensor **y);

#endif
