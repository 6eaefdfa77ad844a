/* chain.h -- the stages of a Sequential: operations, each of which takes the result of the
 * operation before, which nothing else uses. The modules describe their stages; chain.c decides
 * which stages are one operation. */
#ifndef TERN_TENSOR_FUSE_CHAIN_H
#define TERN_TENSOR_FUSE_CHAIN_H
#include "base/thread.h"

typedef struct tern_stage tern_stage;

/* The kind of a stage: a product, or an activation that a product can apply as its epilogue. */
typedef struct tern_stage_kind {
    /* Of a product: computes this stage of *x, the activation after it and the product after that
     * in one operation. Returns NULL without an error if the device has no such operation. *x may
     * be replaced by its cast under autocast. */
    tern_tensor *(*with_epilogue)(tern_tensor **x, const tern_stage *stages);
    bool is_epilogue; /* an activation that a product can apply as its epilogue */
    int variant;      /* the number of the activation (matmul/linear_relu.c) */
} tern_stage_kind;

/* The kinds, which are defined in ops (matmul/linear_relu.c). */
extern const tern_stage_kind tern_stage_linear, tern_stage_relu, tern_stage_gelu_tanh;

struct tern_stage {
    const tern_stage_kind *kind;
    struct tern_module *module;
    tern_module_ref ref; /* the module, for profiles and errors */
    /* Sets weight and bias of a product. It is called when they are needed. */
    void (*parameters)(tern_stage *stage);
    tern_tensor *weight, *bias;
};

enum { TERN_CHAIN_MOST = 3 }; /* the most stages that are one operation */

/* Computes the first stages (at most n) that can be one operation, of *x. Returns how many stages
 * it computed; 0 if there is no such operation. Sets *y to their result, NULL after an error. *x
 * may be replaced by its cast under autocast. */
int tern_fuse_chain(tern_stage *stages, int n, tern_tensor **x, tern_tensor **y);

#endif
