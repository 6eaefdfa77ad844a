/* dnn_attention.h -- attention as a graph for cuDNN: forward and its gradients, causal or not, in
 * half precision. */
#ifndef TERN_DEVICE_CUDA_DNN_ATTENTION_H
#define TERN_DEVICE_CUDA_DNN_ATTENTION_H
#include "device/cuda/dnn_graph.h"

/* The caller's matrices, in the order of tern_dnn_problem's strides. */
enum {
    TERN_DNN_Q,
    TERN_DNN_K,
    TERN_DNN_V,
    TERN_DNN_OUT,
    TERN_DNN_DOUT,
    TERN_DNN_DQ,
    TERN_DNN_DK,
    TERN_DNN_DV,
    TERN_DNN_MATRICES
};

/* The key of a plan; compared byte by byte. */
typedef struct tern_dnn_problem {
    int64_t count[2], queries, keys, width, value_width;
    int64_t strides[TERN_DNN_MATRICES][3]; /* of two batch dims and rows; columns are contiguous */
    int32_t dtype;
    bool gradient, causal;
    bool lower_right; /* causal mask aligned lower right: the last query is at the last key */
} tern_dnn_problem;

/* Addresses of the matrices and of the log-sum-exp of each row. The sums of a gradient follow
 * cuDNN's own memory in scratch. */
typedef struct tern_dnn_places {
    void *matrices[TERN_DNN_MATRICES], *sums, *scratch;
    float scale;
} tern_dnn_places;

/* Describes the attention in g, which has a handle or a device, and makes its plan. g->code is 0,
 * or says why there is no plan. */
void tern_dnn_attention(tern_dnn_graph *g, const tern_dnn_problem *p);
/* Returns the bytes of scratch memory for a run. */
size_t tern_dnn_attention_scratch(const tern_dnn_graph *g, const tern_dnn_problem *p);
cudnnStatus_t tern_dnn_attend(const tern_dnn_graph *g, const tern_dnn_problem *p,
                              const tern_dnn_places *places);

#endif
