/* convolution.h -- the plans that are kept for convolutions through cuDNN. */
#ifndef TERN_DEVICE_CUDA_CONVOLUTION_H
#define TERN_DEVICE_CUDA_CONVOLUTION_H
#include "device/cuda/dnn_graph.h"
#include "types_host.h"
#include "shapes.h"

/* The key of a plan; compared byte by byte. */
typedef struct tern_cuda_conv_key {
    tern_conv_shape shape;
    int32_t pass, dtype, tf32, deterministic, channels_last, benchmark;
    int32_t graph, bias; /* graph: cuDNN's graphs are tried; bias: only they are */
} tern_cuda_conv_key;

typedef struct tern_cuda_conv_plan {
    tern_cuda_conv_key of;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    unsigned algorithm;   /* used if graph has no plan */
    tern_dnn_graph graph; /* its tensors 1 to 4 are x, weight, y and bias */
    size_t scratch;
    bool used, usable;
    bool recorded;   /* a CUDA graph runs kernels of graph's plan, so the plan stays */
    bool legacy;     /* a plan of graph refused to run */
    bool untried;    /* to be measured when no CUDA graph is being captured */
    bool unmeasured; /* measuring failed, which is to be reported */
} tern_cuda_conv_plan;

/* cuDNN's types for a dtype and for its sums. */
typedef struct tern_cuda_conv_type {
    cudnnDataType_t type, compute;
    bool known;
} tern_cuda_conv_type;
extern const tern_cuda_conv_type tern_cuda_conv_types[TERN_BF16 + 1];

/* Returns the number of spatial dims: 2, cuDNN's minimum, if the first of three has no effect. */
static inline int tern_cuda_conv_dims(const tern_conv_shape *s)
{
    return s->in[0] == 1 && s->out[0] == 1 && s->window[0] == 1 && s->padding[0] == 0 ? 2 : 3;
}

/* Sets at to the addresses of x, weight, y and bias, NULL for no bias. */
static inline void tern_cuda_conv_places(const tern_convolution *c, void *at[4])
{
    const tern_arg *const all[] = {&c->x, &c->weight, &c->y, &c->bias};
    for (int i = 0; i < 4; i++)
        at[i] = all[i]->buffer ? tern_cuda_memory_of(all[i]) : NULL;
}

/* Chooses an algorithm for p with at most `most` bytes of scratch memory. p->usable is false if
 * there is none. measures: in benchmark mode the algorithms are run on the tensors of c, and the
 * fastest is kept on disk. */
cudnnStatus_t tern_cuda_conv_choose(tern_place *place, cudnnHandle_t handle, tern_cuda_conv_plan *p,
                                    const tern_convolution *c, size_t most, bool measures);
/* Runs the plan on x, weight, y and bias. adds: a gradient of x is added to the values of x. */
cudnnStatus_t tern_cuda_conv_run(cudnnHandle_t handle, const tern_cuda_conv_plan *p,
                                 void *const at[4], void *scratch, bool adds);
/* Describes the convolution in g, which has a handle or a device, and makes g's plan. */
void tern_dnn_convolution(tern_dnn_graph *g, const tern_cuda_conv_key *k);

#endif
