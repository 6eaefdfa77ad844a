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
    int major;      /* major version of the CUDA runtime, NVRTC and cuBLASLt */
    bool has_lt;    /* whether cuBLASLt was found */
    bool has_dnn;   /* whether cuDNN was found */
    bool has_graph; /* whether cuDNN has the graph API, as attention needs it */
    bool has_nccl;  /* whether NCCL was found */
    int nvrtc_major, nvrtc_minor;
} tern_cuda_api;
extern tern_cuda_api tern_cuda;
/* Opens CUDA's libraries. Returns false, with the reason in notes, if tern can't use CUDA. */
bool tern_cuda_load(tern_text *notes);

/* ---- a device ---------------------------------------------------------------------------- */
typedef struct tern_cuda_kernel tern_cuda_kernel;
typedef struct tern_cuda_gemm_state tern_cuda_gemm_state;
typedef struct tern_cuda_dnn_state tern_cuda_dnn_state;
typedef struct tern_cuda_attention_state tern_cuda_attention_state;

typedef struct tern_cuda_state {
    int index;                  /* CUDA's ordinal of the device */
    int compute;                /* compute capability: 90 for 9.0 */
    int shared_memory, threads; /* limits of a block: bytes of shared memory, threads */
    cudaStream_t stream;
    cudaStream_t copies; /* stream of transfers.c; NULL before the first copy */
    tern_mutex recording_lock;
    cudaStream_t recording; /* stream for capturing graphs, one at a time; NULL before the first */
    atomic_bool lost;
    atomic_ullong live; /* bytes of all buffers */

    tern_mutex staging_lock;
    char *staging; /* pinned memory for small writes, which then need not wait */
    size_t staged;

    tern_mutex gemm_lock;
    tern_cuda_gemm_state *gemm;
    tern_mutex dnn_lock;
    tern_cuda_dnn_state *dnn;
    tern_cuda_attention_state *attention; /* guarded by dnn_lock */
    tern_mutex own_lock;
    tern_matrix_kernels own;   /* kernels of matrix_kernels.c */
    uint64_t peers[4];         /* bit i: peer access to device i was tried */
    CUmemAccessDesc reach[64]; /* devices that may access this device's memory (growth.c) */
    int n_reach;
} tern_cuda_state;

/* A kernel of the library or of the user. */
struct tern_cuda_kernel {
    CUmodule module; /* owned by this struct */
    CUfunction function;
    int block; /* threads of a block, for the library's kernels */
    int shared, most_threads;
    tern_user_source source; /* source of a user's kernel */
    char name[128];
};

static inline tern_cuda_state *tern_cuda_state_of(const tern_place *place)
{
    return tern_place_state(place);
}

/* Returns the stream for the calling thread's work: the one it captures a graph on, else the
 * device's. */
static inline cudaStream_t tern_cuda_stream(const tern_place *place)
{
    return tern_thread.recording_stream ? tern_thread.recording_stream
                                        : tern_cuda_state_of(place)->stream;
}

/* Makes the device current in the calling thread; TERN_ERR_DEVICE_LOST if the device is lost. */
tern_status tern_cuda_enter(tern_place *place);
/* Returns the status for CUDA's result code of `call`, and records the error. A fatal code marks
 * the device as lost. */
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
    bool exact; /* compiled without FMA contraction, for the same bits as on other devices */
} tern_cuda_source;
/* programs.c: adds the text of a kernel over matrix.h, beginning with the definitions `defines`. */
void tern_cuda_matrix_text(tern_text *text, const char *defines, const char *file,
                           const char *kernel);
/* Loads the kernel from the cache on disk, or compiles it. The caller frees *kernel. */
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
/* Sets parameters to the pointers that cuLaunchKernel takes. addresses has n elements for them. */
void tern_cuda_parameters(const tern_arg *args, int n, uint64_t *addresses, void **parameters);
tern_status tern_cuda_gemm(tern_place *place, const tern_gemm *gemm);
tern_status tern_cuda_epilogue_fits(tern_place *place, const tern_gemm *gemm, bool *fits);
bool tern_cuda_wants_multiples(const tern_place *place, const tern_gemm *gemm);
/* matrix_kernels.c: returns the way (matrix_way.h) of tensor cores to multiply matrices of
 * dtype. */
int tern_cuda_matrix_way(const tern_place *place, tern_dtype dtype);
typedef struct tern_cuda_tile {
    int size, depth; /* rows and columns; depth in elements of 16 bits */
} tern_cuda_tile;
/* Returns the tile for `count` products of m x n: a large tile if there are at least as many large
 * tiles as multiprocessors. */
tern_cuda_tile tern_cuda_matrix_tile(tern_place *place, int way, int64_t m, int64_t n,
                                     int64_t count);
/* Returns the device's kernels; the caller holds own_lock. tern_cuda_matrix_prepare takes that lock
 * and calls tern_matrix_prepare. */
tern_matrix_kernels *tern_cuda_matrix_kernels(tern_place *place);
tern_status tern_cuda_matrix_prepare(tern_place *place, const tern_matrix_call *call,
                                     tern_matrix_kernel **found, bool *usable);
/* gemm_own.c: computes the product by gemm_matrix.cl, for what cuBLASLt does not compute. The
 * caller holds gemm_lock. */
tern_status tern_cuda_gemm_own(tern_place *place, const tern_gemm *gemm, bool *done);
/* Returns whether tensor cores are to compute the product, even if its kernel does not build. */
bool tern_cuda_gemm_is_own(tern_place *place, const tern_gemm *gemm);
/* Sets *fits to whether gemm_own.c has the product's epilogue, or its float32 results. */
tern_status tern_cuda_gemm_own_fits(tern_place *place, const tern_gemm *gemm, bool *fits);
tern_status tern_cuda_convolution_plan(tern_place *place, tern_convolution *c, size_t *scratch,
                                       bool *taken);
tern_status tern_cuda_convolution(tern_place *place, const tern_convolution *c, bool *taken);
/* convolution_own.c: convolutions by convolution_matrix.cl, for what cuDNN does not compute. */
tern_status tern_cuda_convolution_own_plan(tern_place *place, const tern_convolution *c,
                                           size_t *scratch, bool *taken);
tern_status tern_cuda_convolution_own(tern_place *place, const tern_convolution *c, bool *taken);
/* tern_cuda_dnn_open sets *handle to cuDNN's handle, for the calling thread's stream; the caller
 * holds dnn_lock. tern_cuda_dnn_refuses returns whether cuDNN's code means "not supported". */
tern_status tern_cuda_dnn_open(tern_place *place, cudnnHandle_t *handle);
bool tern_cuda_dnn_refuses(cudnnStatus_t code);
tern_status tern_cuda_dnn_check(tern_place *place, cudnnStatus_t code, const char *call);
tern_status tern_cuda_attention_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                     bool *taken);
tern_status tern_cuda_attention(tern_place *place, const tern_attention *a, bool *taken);
/* attention_own.c: attention by attention_matrix.cl, for what cuDNN does not compute. */
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
/* collective.c: returns whether NCCL supports t; calls NCCL for device i of t. */
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
