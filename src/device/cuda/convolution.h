/* convolution.h -- what is kept of a convolution through cuDNN. */
#ifndef TERN_DEVICE_CUDA_CONVOLUTION_H
#define TERN_DEVICE_CUDA_CONVOLUTION_H
#include "device/cuda/dnn_graph.h"
#include "types_host.h"
#include "shapes.h"

/* What the answer depends on; compared byte by byte. */
typedef struct tern_cuda_conv_key {
    tern_conv_shape shape;
    int32_t pass, dtype, tf32, deterministic, channels_last, benchmark;
    int32_t graph,
        bias; /* through cuDNN's graphs, if they take it; with a bias through them alone */
} tern_cuda_conv_key;

typedef struct tern_cuda_conv_plan {
    tern_cuda_conv_key of;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    unsigned algorithm;   /* where graph has no plan */
    tern_dnn_graph graph; /* its tensors by the numbers 1 to 4: x, weight, y, bias */
    size_t scratch;
    bool used, usable;
    bool recorded;   /* a CUDA graph runs kernels of its graph's plan: it stays */
    bool legacy;     /* a plan of its graph refused to run */
    bool untried;    /* to be measured, once no graph is being made */
    bool unmeasured; /* none could be: to be reported */
} tern_cuda_conv_plan;

/* What cuDNN calls a dtype, and what it adds up in. */
typedef struct tern_cuda_conv_type {
    cudnnDataType_t type, compute;
    bool known;
} tern_cuda_conv_type;
extern const tern_cuda_conv_type tern_cuda_conv_types[TERN_BF16 + 1];

/* Spatial dims: 2, cuDNN's fewest, where the first of three does nothing. */
static inline int tern_cuda_conv_dims(const tern_conv_shape *s)
{
    return s->in[0] == 1 && s->out[0] == 1 && s->window[0] == 1 && s->padding[0] == 0 ? 2 : 3;
}

/* Where x, weight, y and bias begin; NULL for none. */
static inline void tern_cuda_conv_places(const tern_convolution *c, void *at[4])
{
    const tern_arg *const all[] = {&c->x, &c->weight, &c->y, &c->bias};
    for (int i = 0; i < 4; i++)
        at[i] = all[i]->buffer ? tern_cuda_memory_of(all[i]) : NULL;
}

/* An algorithm with at most so many bytes of scratch memory for what p describes, on the tensors of
 * c; p is not usable where there is none. measures: in benchmark mode they are tried, and the
 * answer is kept on disk. */
cudnnStatus_t tern_cuda_conv_choose(tern_place *place, cudnnHandle_t handle, tern_cuda_conv_plan *p,
                                    const tern_convolution *c, size_t most, bool measures);
/* Launch it on x, weight, y and bias; adds: a gradient of x is added to what is there. */
cudnnStatus_t tern_cuda_conv_run(cudnnHandle_t handle, const tern_cuda_conv_plan *p,
                                 void *const at[4], void *scratch, bool adds);
/* Its graph in g, which has a handle or a device, and the plan (dnn_convolution.c). */
void tern_dnn_convolution(tern_dnn_graph *g, const tern_cuda_conv_key *k);

#endif
