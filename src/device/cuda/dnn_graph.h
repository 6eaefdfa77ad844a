/* dnn_graph.h -- a graph of operations for cuDNN's backend API, described step by step, and the plan that it makes of it. */
#ifndef TERN_DEVICE_CUDA_DNN_GRAPH_H
#define TERN_DEVICE_CUDA_DNN_GRAPH_H
#include "device/cuda/cuda.h"

enum { TERN_DNN_DESCRIPTORS = 128, TERN_DNN_OPERATIONS = 32 };

typedef struct tern_dnn_graph {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t
        device; /* without a handle: the GPU that a plan is made for, nothing is run */
    cudnnBackendDescriptor_t made[TERN_DNN_DESCRIPTORS], operations[TERN_DNN_OPERATIONS], plan;
    int n_made, n_operations;
    int64_t offered;    /* engines that its heuristics named */
    int64_t scratch;    /* bytes that a run of the plan needs */
    cudnnStatus_t code; /* the first that was not 0, after which nothing else is described */
    const char *call;   /* what gave it */
} tern_dnn_graph;

/* Four dims. Virtual tensors are never in memory; one by value is read from the host when the plan runs. */
typedef struct tern_dnn_tensor {
    cudnnDataType_t type;
    int64_t id, dims[4], strides[4];
    bool is_virtual, by_value;
    bool is_matrix; /* the last three dims alone, which a product that is not attention's wants */
} tern_dnn_tensor;

/* What is done, with what, and which operands it has: x, b, t and y, NULL where it has none. */
typedef enum tern_dnn_kind {
    TERN_DNN_POINTWISE,
    TERN_DNN_PRODUCT,
    TERN_DNN_REDUCTION,
    TERN_DNN_RESHAPE,
    TERN_DNN_POINTWISE_BACK /* x is dy, b is x, and y is dx */
} tern_dnn_kind;
typedef struct tern_dnn_operation {
    tern_dnn_kind kind;
    int mode;     /* a CUDNN_POINTWISE_ or a CUDNN_REDUCE_TENSOR_ */
    int64_t axis; /* of CUDNN_POINTWISE_GEN_INDEX */
    cudnnDataType_t precision;
    cudnnBackendDescriptor_t operands[4];
} tern_dnn_operation;

cudnnBackendDescriptor_t tern_dnn_tensor_new(tern_dnn_graph *g, const tern_dnn_tensor *tensor);
void tern_dnn_add(tern_dnn_graph *g, const tern_dnn_operation *operation);
/* A product that ends with gelu by erf or its gradient (dnn_gelu.c), and the plan. */
void tern_dnn_gelu(tern_dnn_graph *g, const tern_gemm *of);
/* The first of its heuristics' plans that it does not refuse to make; its descriptor is g->plan. */
void tern_dnn_make_plan(tern_dnn_graph *g);
/* Run the plan with tensors by their ids, in the order of the handle's stream. */
cudnnStatus_t tern_dnn_run(const tern_dnn_graph *g, int n, const int64_t *ids, void *const *at,
                           void *scratch);
/* All descriptors; g is as it was before the first. */
void tern_dnn_clear(tern_dnn_graph *g);

#endif
