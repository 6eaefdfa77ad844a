/* convolution.h -- what is kept of a convolution through cuDNN. */
#ifndef TERN_DEVICE_CUDA_CONVOLUTION_H
#define TERN_DEVICE_CUDA_CONVOLUTION_H
#include "device/cuda/cuda.h"
#include "types_host.h"
#include "shapes.h"

/* What the answer depends on; compared byte by byte. */
typedef struct tern_cuda_conv_key {
    tern_conv_shape shape;
    int32_t pass, dtype, tf32, deterministic, channels_last, benchmark;
} tern_cuda_conv_key;

typedef struct tern_cuda_conv_plan {
    tern_cuda_conv_key of;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    unsigned algorithm;
    size_t scratch;
    bool used, usable;
    bool untried;    /* to be measured, once no graph is being made */
    bool unmeasured; /* none could be: to be told */
} tern_cuda_conv_plan;

/* Where an argument begins. */
static inline void *tern_cuda_arg(const tern_arg *a)
{
    return (char *)a->buffer->handle + (size_t)a->at * a->bytes;
}

/* An algorithm with at most so many bytes of scratch memory for what p describes, on the tensors of c; p is not usable where
 * there is none. measures: in benchmark mode they are tried, and the answer is kept on disk. */
cudnnStatus_t tern_cuda_conv_choose(tern_place *place, cudnnHandle_t handle, tern_cuda_conv_plan *p,
                                    const tern_convolution *c, size_t most, bool measures);
/* Launch it; adds: a gradient of x is added to what is there. */
cudnnStatus_t tern_cuda_conv_run(cudnnHandle_t handle, const tern_cuda_conv_plan *p, void *x,
                                 void *w, void *y, void *scratch, bool adds);

#endif
