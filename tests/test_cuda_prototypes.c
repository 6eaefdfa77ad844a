/* test_cuda_prototypes.c -- the prototypes and constants that tern declares for CUDA's libraries
 * against NVIDIA's own headers, where these are installed: a wrong one does not compile. */
#include "support.h"
#include <stdio.h>

#ifdef TERN_CUDA_HEADERS
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvrtc.h>
#ifdef TERN_CUDNN_HEADERS
#include <cudnn.h>
#if CUDNN_VERSION >= 90800 /* of the backend API, plans for a GPU that is not there came with it */
#include <cudnn_graph.h>
#define TERN_CUDNN_GRAPH_HEADERS
#endif
#endif
#ifdef TERN_NCCL_HEADERS
#ifndef __CUDA_BF16_TYPES_EXIST__
#define __CUDA_BF16_TYPES_EXIST__ /* NCCL 2.18 hides ncclBfloat16 from C without it */
#endif
#include <nccl.h>
#endif

#define X(RESULT, NAME, PARAMETERS)                                                                \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&NAME), RESULT(*) PARAMETERS),          \
                   #NAME " has another prototype");
#include "device/cuda/cublaslt.def"
#include "device/cuda/cudart.def"
#include "device/cuda/driver.def"
#include "device/cuda/nvrtc.def"
#ifdef TERN_CUDNN_HEADERS
#include "device/cuda/cudnn.def"
#endif
#ifdef TERN_CUDNN_GRAPH_HEADERS
#include "device/cuda/cudnn_graph.def"
#endif
#ifdef TERN_NCCL_HEADERS
#include "device/cuda/nccl.def"
#endif
#undef X

#define SAME(NAME, VALUE)      _Static_assert((int)NAME == (VALUE), #NAME " has another value");
#define ATTRIBUTE(NAME, VALUE) SAME(NAME, VALUE)
#define KIND(NAME, VALUE)      SAME(NAME, VALUE)
#define MODE(NAME, VALUE)      SAME(NAME, VALUE)
#define X(NAME, VALUE)         SAME(NAME, VALUE)
#include "device/cuda/constants.def"
#ifdef TERN_CUDNN_HEADERS
#include "device/cuda/cudnn_constants.def"
#endif
#ifdef TERN_CUDNN_GRAPH_HEADERS
#include "device/cuda/cudnn_graph_constants.def"
#endif
#ifdef TERN_NCCL_HEADERS
#include "device/cuda/nccl_constants.def"
#endif

/* What types.h makes of enumerations and structs. */
#define SIZE(TYPE, BYTES) _Static_assert(sizeof(TYPE) == (BYTES), #TYPE " has another size");
SIZE(cudaError_t, 4)
SIZE(CUresult, 4)
SIZE(nvrtcResult, 4)
SIZE(cublasStatus_t, 4)
SIZE(cublasComputeType_t, 4)
SIZE(cudaDataType, 4)
SIZE(CUdevice, 4)
SIZE(CUuuid, 16)
SIZE(CUmemAllocationProp, 32)
SIZE(CUmemAccessDesc, 12)
_Static_assert(offsetof(CUmemAllocationProp, location) == 8, "moved");
SIZE(cublasLtMatmulAlgo_t, 64)
SIZE(cublasLtMatmulHeuristicResult_t, 96)
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64, "moved");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "moved");
#ifdef TERN_NCCL_HEADERS
SIZE(ncclResult_t, 4)
SIZE(ncclDataType_t, 4)
SIZE(ncclRedOp_t, 4)
SIZE(ncclUniqueId, 128)
_Static_assert(offsetof(ncclConfig_t, version) == 12 && offsetof(ncclConfig_t, blocking) == 16,
               "moved");
#endif
#ifdef TERN_CUDNN_HEADERS
SIZE(cudnnStatus_t, 4)
SIZE(cudnnDataType_t, 4)
SIZE(cudnnTensorFormat_t, 4)
SIZE(cudnnConvolutionMode_t, 4)
SIZE(cudnnMathType_t, 4)
#ifdef TERN_CUDNN_GRAPH_HEADERS
SIZE(cudnnBackendDescriptorType_t, 4)
SIZE(cudnnBackendAttributeName_t, 4)
SIZE(cudnnBackendAttributeType_t, 4)
SIZE(cudnnBackendDescriptor_t, 8)
#endif
SIZE(cudnnConvolutionFwdAlgo_t, 4)
SIZE(cudnnConvolutionBwdDataAlgo_t, 4)
SIZE(cudnnConvolutionBwdFilterAlgo_t, 4)
#define PERF(TYPE)                                                                                 \
    SIZE(TYPE, 48)                                                                                 \
    _Static_assert(offsetof(TYPE, status) == 4, "moved");                                          \
    _Static_assert(offsetof(TYPE, memory) == 16, "moved");                                         \
    _Static_assert(offsetof(TYPE, determinism) == 24, "moved");                                    \
    _Static_assert(offsetof(TYPE, mathType) == 28, "moved");
PERF(cudnnConvolutionFwdAlgoPerf_t)
PERF(cudnnConvolutionBwdDataAlgoPerf_t)
PERF(cudnnConvolutionBwdFilterAlgoPerf_t)
#endif
#endif

int main(void)
{
#ifdef TERN_CUDA_HEADERS
    printf("CUDA %d.%d: prototypes and constants agree\n", CUDA_VERSION / 1000,
           CUDA_VERSION % 1000 / 10);
#ifdef TERN_CUDNN_HEADERS
    printf("cuDNN %d.%d: prototypes and constants agree\n", CUDNN_MAJOR, CUDNN_MINOR);
#endif
#ifndef TERN_CUDNN_GRAPH_HEADERS
    puts("SKIPPED: no headers of cuDNN 9.8 or later: its backend API is not checked");
#endif
    return 0;
#else
    puts("SKIP: no CUDA headers: prototypes are not checked");
    return 77;
#endif
}
