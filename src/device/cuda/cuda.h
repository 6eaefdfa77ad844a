/* cuda.h -- what the files of the cuda backend share. */
#ifndef TERN_DEVICE_CUDA_CUDA_H
#define TERN_DEVICE_CUDA_CUDA_H
#include "device/backend.h"
#include "device/matrix_kernel.h"
#include "base/lock.h"
#include "device/cuda/types.h"
#include "device/user_source.h"
#include "base/thread.h"
#include <stdatomic.h>

/* ---- the libraries (libraries.c) ------------------------------------------------------------- */
typedef struct tern_cuda_api {
#define X(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS;
#include "device/cuda/driver.def"
#include "device/cuda/cudart.def"
#include "device/cuda/nvrtc.def"
#include "device/cuda/cublaslt.def"
#include "device/cuda/cudnn.def"
#include "device/cuda/cudnn_graph.def"
#include "device/cuda/nccl.def"
#undef X
    int major;      /* of the runtime, the compiler and cuBLASLt, which are of one version */
    bool has_lt;    /* cuBLASLt is optional */
    bool has_dnn;   /* and so are cuDNN */
    bool has_graph; /* its graphs, with what attention needs of them */
    bool has_nccl;  /* and NCCL */
    int nvrtc_major, nvrtc_minor;
} tern_cuda_api;
extern tern_cuda_api tern_cuda;
/* Open what there is; false where tern can't use CUDA, with the reason in notes. */
bool tern_cuda_load(tern_text *notes);

/* ---- a device ---------------------------------------------------------------------------- */
typedef struct tern_cuda_kernel tern_cuda_kernel;
typedef struct tern_cuda_gemm_state tern_cuda_gemm_state;
typedef struct tern_cuda_dnn_state tern_cuda_dnn_state;
typedef struct tern_cuda_attention_state tern_cuda_attention_state;

typedef struct tern_cuda_state {
    int index;                  /* CUDA's number of the device */
    int compute;                /* 90 for compute capability 9.0 */
    int shared_memory, threads; /* most of a block */
    cudaStream_t stream;
    cudaStream_t copies; /* of transfers; NULL before the first */
    tern_mutex recording_lock;
    cudaStream_t recording; /* what graphs are made on, one at a time; NULL before the first */
    atomic_bool lost;
    atomic_ullong live; /* bytes of buffers */

    tern_mutex staging_lock;
    char *staging; /* pinned; writes that are small go through it and need not wait */
    size_t staged;

    tern_mutex gemm_lock;
    tern_cuda_gemm_state *gemm;
    tern_mutex dnn_lock;
    tern_cuda_dnn_state *dnn;
    tern_cuda_attention_state *attention; /* under dnn_lock */
    tern_mutex own_lock;
    tern_matrix_kernels own;   /* matrix_kernels.c */
    uint64_t peers[4];         /* bit i: access to device i was tried */
    CUmemAccessDesc reach[64]; /* growth.c: who reads and writes the memory */
    int n_reach;
} tern_cuda_state;

/* A kernel of the library or of the user. */
struct tern_cuda_kernel {
    CUmodule module; /* owned */
    CUfunction function;
    int block; /* threads of a block, for the library's kernels */
    int shared, most_threads;
    tern_user_source source; /* of a user's kernel */
    char name[128];
};

static inline tern_cuda_state *tern_cuda_state_of(const tern_place *place)
{
    return tern_place_state(place);
}

/* The stream that a thread makes a graph on: its launches go there, those of others do not. */
/* Where the calling thread's work on the device goes. */
static inline cudaStream_t tern_cuda_stream(const tern_place *place)
{
    return tern_thread.recording_stream ? tern_thread.recording_stream
                                        : tern_cuda_state_of(place)->stream;
}

/* Make the device the calling thread's; TERN_ERR_DEVICE_LOST once it is dead. */
tern_status tern_cuda_enter(tern_place *place);
/* The status of a call's result; what is wrong is recorded. A dead device is remembered. */
tern_status tern_cuda_check(tern_place *place, cudaError_t code, const char *call);
tern_status tern_cuda_check_driver(tern_place *place, CUresult code, const char *call);
#define CUDA_TRY(PLACE, CALL)   TERN_TRY(tern_cuda_check(PLACE, tern_cuda.CALL, #CALL))
#define DRIVER_TRY(PLACE, CALL) TERN_TRY(tern_cuda_check_driver(PLACE, tern_cuda.CALL, #CALL))

/* ---- enumerate.c, memory.c, programs.c, launch.c, gemm.c, convolution.c, attention.c,
 * collective.c, graph.c, user.c --- */
tern_status tern_cuda_enumerate(tern_found **found, int *n, tern_text *notes);

tern_status tern_cuda_alloc(tern_place *place, tern_buffer *buffer);
void tern_cuda_free(tern_place *place, tern_buffer *buffer);
tern_status tern_cuda_part(tern_place *place, const tern_buffer *whole, size_t at,
                           tern_buffer *part);
extern const tern_memory_growth tern_cuda_growth; /* growth.c */
tern_status tern_cuda_write(tern_place *place, const tern_buffer *to, size_t at, const void *from,
                            size_t bytes);
tern_status tern_cuda_read(tern_place *place, const tern_buffer *from, size_t at, void *to,
                           size_t bytes);
tern_status tern_cuda_copy(tern_place *place, const tern_buffer *from, size_t from_at,
                           const tern_buffer *to, size_t to_at, size_t bytes);
tern_status tern_cuda_peer(tern_place *from_place, const tern_buffer *from, size_t from_at,
                           tern_place *to_place, const tern_buffer *to, size_t to_at, size_t bytes);
tern_status tern_cuda_zero(tern_place *place, const tern_buffer *to, size_t at, size_t bytes);
tern_status tern_cuda_host_alloc(tern_place *place, size_t bytes, void **memory);
void tern_cuda_host_free(tern_place *place, void *memory);
tern_status tern_cuda_write_later(tern_place *place, const tern_buffer *to, size_t at,
                                  const void *from, size_t bytes);
bool tern_cuda_has_passed(tern_place *place, void *event);
tern_status tern_cuda_memory(tern_place *place, uint64_t *free_bytes, uint64_t *total);

typedef struct tern_cuda_source {
    const char *text;
    const char *title; /* for messages: "kernel gelu_f32 of elementwise.cl" */
    const char *kernel;
    bool exact; /* no contraction: the library's kernels agree with other devices to the bit */
} tern_cuda_source;
/* programs.c: the text of a kernel over matrix.h, which begins with these definitions. */
void tern_cuda_matrix_text(tern_text *text, const char *defines, const char *file,
                           const char *kernel);
/* Compile, or load from the cache on disk. */
tern_status tern_cuda_build(tern_place *place, const tern_cuda_source *source,
                            tern_cuda_kernel **kernel);
void tern_cuda_kernel_free(tern_cuda_kernel *kernel);
tern_status tern_cuda_resolve(tern_place *place, const char *file, const char *name,
                              tern_dtype dtype, void **kernel);

tern_status tern_cuda_resolve_index32(tern_place *place, const char *file, const char *name,
                                      tern_dtype dtype, int lanes, void **kernel);
tern_status tern_cuda_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                            void **compiled);
void tern_cuda_prebuild(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                        int lanes);
void tern_cuda_prebuild_gemm(tern_place *place, const tern_gemm *gemm);

tern_status tern_cuda_launch(tern_place *place, void *kernel, const tern_grid *grid,
                             const tern_arg *args, int n);
/* The pointers to values that cuLaunchKernel takes; addresses is room for n. */
void tern_cuda_parameters(const tern_arg *args, int n, uint64_t *addresses, void **parameters);
tern_status tern_cuda_gemm(tern_place *place, const tern_gemm *gemm);
tern_status tern_cuda_epilogue_fits(tern_place *place, const tern_gemm *gemm, bool *fits);
bool tern_cuda_wants_multiples(const tern_place *place, const tern_gemm *gemm);
/* matrix_kernels.c: how products of this type go on tensor cores, of matrix_way.h. */
int tern_cuda_matrix_way(const tern_place *place, tern_dtype dtype);
typedef struct tern_cuda_tile {
    int size, depth; /* rows and columns; of halves */
} tern_cuda_tile;
/* Of `count` products of m x n: a large one where they are as many as there are
 * multiprocessors. */
tern_cuda_tile tern_cuda_matrix_tile(tern_place *place, int way, int64_t m, int64_t n,
                                     int64_t count);
/* The device's kernels, for who holds own_lock; and tern_matrix_prepare for who does not. */
tern_matrix_kernels *tern_cuda_matrix_kernels(tern_place *place);
tern_status tern_cuda_matrix_prepare(tern_place *place, const tern_matrix_call *call,
                                     tern_matrix_kernel **found, bool *usable);
/* gemm_own.c: the same by gemm_matrix.cl, where cuBLASLt's is not taken; with gemm_lock. */
tern_status tern_cuda_gemm_own(tern_place *place, const tern_gemm *gemm, bool *done);
/* Whether this product is for tensor cores, whatever its kernel turns out to be. */
bool tern_cuda_gemm_is_own(tern_place *place, const tern_gemm *gemm);
/* Whether it does this product with its end, or in float32. */
tern_status tern_cuda_gemm_own_fits(tern_place *place, const tern_gemm *gemm, bool *fits);
tern_status tern_cuda_convolution_plan(tern_place *place, tern_convolution *c, size_t *scratch,
                                       bool *taken);
tern_status tern_cuda_convolution(tern_place *place, const tern_convolution *c, bool *taken);
/* convolution_own.c: the same by convolution_matrix.cl, where cuDNN's is not taken. */
tern_status tern_cuda_convolution_own_plan(tern_place *place, const tern_convolution *c,
                                           size_t *scratch, bool *taken);
tern_status tern_cuda_convolution_own(tern_place *place, const tern_convolution *c, bool *taken);
/* cuDNN's handle, for the calling thread's stream; with dnn_lock. And whether a result of it is a
 * refusal. */
tern_status tern_cuda_dnn_open(tern_place *place, cudnnHandle_t *handle);
bool tern_cuda_dnn_refuses(cudnnStatus_t code);
tern_status tern_cuda_dnn_check(tern_place *place, cudnnStatus_t code, const char *call);
tern_status tern_cuda_attention_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                     bool *taken);
tern_status tern_cuda_attention(tern_place *place, const tern_attention *a, bool *taken);
/* attention_own.c: the same by attention_matrix.cl, where cuDNN's is not taken. */
tern_status tern_cuda_attention_own_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                         bool *taken);
tern_status tern_cuda_attention_own(tern_place *place, const tern_attention *a);
bool tern_cuda_attends_wide(tern_place *place, tern_dtype dtype);
tern_status tern_cuda_collectives(tern_place *const *places, int n, const tern_collective *list,
                                  int k, bool *taken);
static inline void *tern_cuda_memory_of(const tern_arg *x)
{
    return (char *)x->buffer->handle + (size_t)x->at * x->bytes;
}
/* With collective.c's tables: what NCCL has of it, and its call of device i. */
bool tern_cuda_collective_is_supported(const tern_collective *t);
ncclResult_t tern_cuda_collective_call(const tern_collective *t, int i, ncclComm_t comm,
                                       cudaStream_t stream);
tern_status tern_cuda_check_nccl(const tern_place *place, ncclResult_t code, const char *call);
extern const tern_communicators tern_cuda_communicators; /* communicators.c */
tern_status tern_cuda_graph_make(tern_place *place, tern_status (*record)(void *user), void *user,
                                 void **graph);
tern_status tern_cuda_graph_run(tern_place *place, void *graph);
void tern_cuda_graph_free(tern_place *place, void *graph);

extern const tern_transfers tern_cuda_transfers;
tern_status tern_cuda_borrow(tern_place *place, void *memory, tern_buffer *buffer);
void tern_cuda_unborrow(tern_place *place, tern_buffer *buffer);
void tern_cuda_handles(tern_place *place, tern_device_handles *handles);
tern_status tern_cuda_use_handles(tern_place *place, const tern_device_handles *handles);

tern_status tern_cuda_user_compile(tern_place *place, const char *source, const char *name,
                                   void **kernel);
tern_status tern_cuda_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                  const tern_arg *args, int n);
void tern_cuda_user_free(tern_place *place, void *kernel);

#endif
