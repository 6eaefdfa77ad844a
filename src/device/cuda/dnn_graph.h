/* dnn_graph.h -- a graph of operations for cuDNN's backend API, which is described step by step,
 * and the execution plan that cuDNN makes for it. */
#ifndef TERN_DEVICE_CUDA_DNN_GRAPH_H
#define TERN_DEVICE_CUDA_DNN_GRAPH_H
#include "device/cuda/cuda.h"

enum { TERN_DNN_DESCRIPTORS = 128, TERN_DNN_OPERATIONS = 32, TERN_DNN_CANDIDATES = 4 };

typedef struct tern_dnn_graph {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device; /* GPU of the plan if handle is NULL; nothing is run */
    cudnnBackendDescriptor_t made[TERN_DNN_DESCRIPTORS], operations[TERN_DNN_OPERATIONS], plan;
    int n_made, n_operations;
    int64_t first;      /* index of the heuristics' first candidate to try; then of the plan's */
    int64_t offered;    /* engines that the heuristics returned */
    int64_t scratch;    /* bytes that a run of the plan needs */
    cudnnStatus_t code; /* first error, after which nothing more is described */
    const char *call;   /* function that returned code */
} tern_dnn_graph;

/* A virtual tensor is never in memory. A tensor by value is read from the host when the plan runs.
 * The tensors of a matrix product outside of attention need three dims. */
typedef struct tern_dnn_tensor {
    cudnnDataType_t type;
    int64_t id, ndim, dims[5], strides[5];
    bool is_virtual, by_value;
} tern_dnn_tensor;

/* Parameters of a convolution for each of its n spatial dims. */
typedef struct tern_dnn_window {
    int64_t n, dilation[3], stride[3], padding[3];
} tern_dnn_window;

/* Kinds of operations. The operands are x, b, t and y, NULL where a kind has none. */
typedef enum tern_dnn_kind {
    TERN_DNN_POINTWISE,
    TERN_DNN_PRODUCT,
    TERN_DNN_REDUCTION,
    TERN_DNN_RESHAPE,
    TERN_DNN_CONVOLUTION,       /* x, b: weight; its gradients follow as in tern_conv_pass */
    TERN_DNN_CONVOLUTION_X,     /* dy, weight */
    TERN_DNN_CONVOLUTION_WEIGHT /* x, dy */
} tern_dnn_kind;
typedef struct tern_dnn_operation {
    tern_dnn_kind kind;
    int mode;     /* CUDNN_POINTWISE_*, CUDNN_REDUCE_TENSOR_* or CUDNN_CROSS_CORRELATION */
    int64_t axis; /* for CUDNN_POINTWISE_GEN_INDEX */
    cudnnDataType_t precision;
    cudnnBackendDescriptor_t operands[4];
    const tern_dnn_window *window; /* of a convolution, else NULL */
} tern_dnn_operation;

cudnnBackendDescriptor_t tern_dnn_tensor_new(tern_dnn_graph *g, const tern_dnn_tensor *tensor);
void tern_dnn_add(tern_dnn_graph *g, const tern_dnn_operation *operation);
/* Makes the plan of the first of the heuristics' candidates, from g->first on, that cuDNN does not
 * refuse. Sets g->plan to its descriptor and g->first to the candidate's index. */
void tern_dnn_make_plan(tern_dnn_graph *g);
/* Runs the plan in the handle's stream. Tensor ids[i] is at at[i]. */
cudnnStatus_t tern_dnn_run(const tern_dnn_graph *g, int n, const int64_t *ids, void *const *at,
                           void *scratch);
/* Destroys all descriptors and clears g. */
void tern_dnn_clear(tern_dnn_graph *g);

/* ---- plans that are kept: under dnn_lock ----------------------------------------------------- */
/* A plan; the key that it was made for follows it in memory and is compared byte by byte. */
typedef struct tern_dnn_plan {
    tern_dnn_graph graph;
    bool used, usable;
    bool recorded; /* a CUDA graph runs its kernels, so the plan stays */
} tern_dnn_plan;

/* Returns the plan with the key `of` from the table of n. Otherwise returns a plan that is not
 * `used`, for the caller to make, in a free entry or in place of another plan. Returns NULL if all
 * entries are recorded plans. */
tern_dnn_plan *tern_dnn_plan_of(void *table, int n, const void *of, size_t bytes);

#endif
