/* dnn_graph.h -- a graph of operations for cuDNN's backend API, described step by step, and the
 * plan that it makes of it. */
#ifndef TERN_DEVICE_CUDA_DNN_GRAPH_H
#define TERN_DEVICE_CUDA_DNN_GRAPH_H
#include "device/cuda/cuda.h"

enum { TERN_DNN_DESCRIPTORS = 128, TERN_DNN_OPERATIONS = 32, TERN_DNN_CANDIDATES = 4 };

typedef struct tern_dnn_graph {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t
        device; /* without a handle: the GPU that a plan is made for, nothing is run */
    cudnnBackendDescriptor_t made[TERN_DNN_DESCRIPTORS], operations[TERN_DNN_OPERATIONS], plan;
    int n_made, n_operations;
    int64_t
        first; /* of its heuristics' candidates, the one that a plan is made of, or where it refuses
                  the next */
    int64_t offered;    /* engines that its heuristics named */
    int64_t scratch;    /* bytes that a run of the plan needs */
    cudnnStatus_t code; /* the first that was not 0, after which nothing else is described */
    const char *call;   /* what gave it */
} tern_dnn_graph;

/* Virtual tensors are never in memory; one by value is read from the host when the plan runs. A
 * product that is not attention's wants three dims. */
typedef struct tern_dnn_tensor {
    cudnnDataType_t type;
    int64_t id, ndim, dims[5], strides[5];
    bool is_virtual, by_value;
} tern_dnn_tensor;

/* What a convolution has for each of its n dims. */
typedef struct tern_dnn_window {
    int64_t n, dilation[3], stride[3], padding[3];
} tern_dnn_window;

/* What is done, with what, and which operands it has: x, b, t and y, NULL where it has none. */
typedef enum tern_dnn_kind {
    TERN_DNN_POINTWISE,
    TERN_DNN_PRODUCT,
    TERN_DNN_REDUCTION,
    TERN_DNN_RESHAPE,
    TERN_DNN_CONVOLUTION,       /* of x and b, the weight; and by the numbers of tern_conv_pass its
                             gradients: */
    TERN_DNN_CONVOLUTION_X,     /* of dy and the weight */
    TERN_DNN_CONVOLUTION_WEIGHT /* of x and dy */
} tern_dnn_kind;
typedef struct tern_dnn_operation {
    tern_dnn_kind kind;
    int mode;     /* a CUDNN_POINTWISE_ or a CUDNN_REDUCE_TENSOR_, CUDNN_CROSS_CORRELATION of
                 convolutions */
    int64_t axis; /* of CUDNN_POINTWISE_GEN_INDEX */
    cudnnDataType_t precision;
    cudnnBackendDescriptor_t operands[4];
    const tern_dnn_window *window; /* of a convolution */
} tern_dnn_operation;

cudnnBackendDescriptor_t tern_dnn_tensor_new(tern_dnn_graph *g, const tern_dnn_tensor *tensor);
void tern_dnn_add(tern_dnn_graph *g, const tern_dnn_operation *operation);
/* The first of its heuristics' plans, from g->first on, that it does not refuse to make; its
 * descriptor is g->plan, and g->first says which it is. */
void tern_dnn_make_plan(tern_dnn_graph *g);
/* Run the plan with tensors by their ids, in the order of the handle's stream. */
cudnnStatus_t tern_dnn_run(const tern_dnn_graph *g, int n, const int64_t *ids, void *const *at,
                           void *scratch);
/* All descriptors; g is as it was before the first. */
void tern_dnn_clear(tern_dnn_graph *g);

/* ---- plans that are kept: under dnn_lock ----------------------------------------------------- */
/* What it is of follows it in memory, and is compared byte by byte. */
typedef struct tern_dnn_plan {
    tern_dnn_graph graph;
    bool used, usable;
    bool recorded; /* a CUDA graph runs its kernels: it stays */
} tern_dnn_plan;

/* The plan of a table of n that is of these bytes; else one that is not `used`, to be made, in a
 * free place or that of another. NULL: all places are those of recorded ones. */
tern_dnn_plan *tern_dnn_plan_of(void *table, int n, const void *of, size_t bytes);

#endif
