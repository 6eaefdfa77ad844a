/* types.h -- CUDA's types and constants as far as tern uses them, so that no header of CUDA's is
 * needed. A test compares them with the real headers where these are installed. */
#ifndef TERN_DEVICE_CUDA_TYPES_H
#define TERN_DEVICE_CUDA_TYPES_H
#include <stddef.h>
#include <stdint.h>

/* Enumerations are unsigned ints in the ABI, except CUDA's data types, which cannot be negative
 * either. */
typedef unsigned int cudaError_t, CUresult, nvrtcResult, cublasStatus_t;
typedef unsigned int cublasComputeType_t, cudaDataType_t, cudaDataType;
typedef unsigned int cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
    cublasLtMatmulPreferenceAttributes_t;
typedef unsigned int cudnnStatus_t, cudnnDataType_t, cudnnTensorFormat_t, cudnnConvolutionMode_t,
    cudnnMathType_t, cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t,
    cudnnConvolutionBwdFilterAlgo_t;
typedef unsigned int cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t,
    cudnnBackendAttributeType_t;
typedef void *cudnnBackendDescriptor_t;
typedef unsigned int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef unsigned int CUdevice_attribute, CUfunction_attribute;
typedef int CUdevice;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream, *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct _nvrtcProgram *nvrtcProgram;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct tern_lt_matmul_desc *cublasLtMatmulDesc_t;
typedef struct tern_lt_matrix_layout *cublasLtMatrixLayout_t;
typedef struct tern_lt_preference *cublasLtMatmulPreference_t;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef struct CUmemLocation_st {
    unsigned int type;
    int id;
} CUmemLocation;
typedef struct CUmemAllocationProp_st {
    unsigned int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;
typedef struct CUmemAccessDesc_st {
    CUmemLocation location;
    unsigned int flags;
} CUmemAccessDesc;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;
typedef struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef struct ncclComm *ncclComm_t;
typedef struct tern_nccl_id {
    char internal[128]; /* TERN_COMMUNICATOR_ID bytes */
} ncclUniqueId;
typedef struct
    tern_nccl_config { /* fields of NCCL 2.14; fields of later versions are at their defaults */
    size_t size;
    unsigned int magic, version;
    int blocking;
} ncclConfig_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;
typedef struct tern_cudnn_perf { /* the same for the three kinds of algorithm */
    unsigned int algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    unsigned int determinism;
    cudnnMathType_t mathType;
    int reserved[3];
} cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionBwdDataAlgoPerf_t,
    cudnnConvolutionBwdFilterAlgoPerf_t;

struct cudaPointerAttributes {
    unsigned int type; /* 0 and 1: host memory, 2: device memory, 3: managed memory */
    int device;
    void *devicePointer, *hostPointer;
    long reserved[8]; /* from CUDA 13 on */
};

enum cudaDeviceAttr {
#define ATTRIBUTE(NAME, VALUE) NAME = VALUE,
#define KIND(NAME, VALUE)
#define MODE(NAME, VALUE)
#define X(NAME, VALUE)
#include "device/cuda/constants.def"
#undef ATTRIBUTE
#undef KIND
};
enum cudaMemcpyKind {
#define ATTRIBUTE(NAME, VALUE)
#define KIND(NAME, VALUE) NAME = VALUE,
#include "device/cuda/constants.def"
#undef KIND
#undef MODE
};
enum cudaStreamCaptureMode {
#define KIND(NAME, VALUE)
#define MODE(NAME, VALUE) NAME = VALUE,
#include "device/cuda/constants.def"
#undef MODE
#undef X
};
enum {
#define MODE(NAME, VALUE)
#define X(NAME, VALUE) NAME = VALUE,
#include "device/cuda/constants.def"
#include "device/cuda/cudnn_constants.def"
#include "device/cuda/cudnn_graph_constants.def"
#include "device/cuda/nccl_constants.def"
#undef ATTRIBUTE
#undef KIND
#undef MODE
#undef X
};

#endif
