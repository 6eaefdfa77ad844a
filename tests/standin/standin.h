/* standin.h -- a stand-in for NVIDIA's libraries, for tests on machines without a GPU.
 *
 * It is stricter than a GPU where that finds mistakes: streams run nothing before something waits
 * for them, new memory is garbage, freed memory is gone at once, a launch on a device that is not
 * the calling thread's is refused. It shows that tern's host side is right, and nothing about speed
 * or about what NVIDIA's compiler and hardware do.
 *
 *   TERN_STANDIN_DEVICES   how many devices there are (1)
 *   TERN_STANDIN_MEMORY    bytes of each (1 GiB)
 *   TERN_STANDIN_COMPUTE   compute capability (90)
 *   TERN_STANDIN_CUDNN     version of its cuDNN (91900)
 *   TERN_STANDIN_IDLE      1: commands are counted and not run, memory is not filled: for
 *                          standin_commands of steps that would take hours
 *   TERN_STANDIN_FAIL      function:n:code, the n-th call of a function answers code; more after
 *                          commas
 *   TERN_STANDIN_TEXT      set: every kernel is made of the text that NVRTC is given, none is the host's
 *   TERN_STANDIN_MATRIX    refused: kernels over matrix.h do not build; wrong: its mma puts sums in
 *                          other lanes
 *   TERN_STANDIN_COUNT     set: at the end each process tells how many collectives of NCCL's it began
 *
 * Tests in the same process use faults/points.h instead. */
#ifndef TERN_TESTS_STANDIN_H
#define TERN_TESTS_STANDIN_H
#include "device/cuda/types.h"
#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

enum { MAX_DEVICES = 8 };

/* All state of the stand-in is behind this lock. */
void standin_lock(void);
void standin_unlock(void);
/* The code that the function's call is told to answer, 0 for none. With or without the lock. */
unsigned standin_fault(const char *function);
#define FAULT(NAME)                                                                                \
    do {                                                                                           \
        unsigned fault = standin_fault(#NAME);                                                     \
        if (fault)                                                                                 \
            return fault;                                                                          \
    } while (0)

int standin_devices(void);
/* The calling thread's device, -1 before it chose one. */
int standin_current(void);
void standin_set_current(int device);

/* ---- memory ------------------------------------------------------------------------------ */
/* NULL when the device has no more. */
void *standin_alloc(int device, size_t bytes);
bool standin_free(void *memory);
/* The device that [at, at + bytes) belongs to; -1 for host memory, -2 for a range that leaves its
 * block. */
int standin_owner(const void *at, size_t bytes);
/* Addresses without memory; memory of a device that is taken, and put behind some of them. */
void *standin_reserve(size_t bytes, size_t alignment);
bool standin_take(int device, size_t bytes);
void standin_give(int device, size_t bytes);
bool standin_map(int device, void *at, size_t bytes);
bool standin_unmap(void *at, size_t bytes);
void standin_usage(int device, size_t *used, size_t *total);

/* ---- numbers ----------------------------------------------------------------------------- */
double standin_load(const void *from, int64_t at, cudaDataType type);
void standin_save(void *to, int64_t at, cudaDataType type, double value);
/* With 10 bits of mantissa, nearest, ties to even. */
double standin_tf32(double value);

/* ---- streams ----------------------------------------------------------------------------- */
typedef void (*standin_work)(void *data);
/* Put work at the stream's end, with a copy of data; false for a stream of another device. */
bool standin_enqueue(cudaStream_t stream, standin_work work, const void *data, size_t bytes);
/* The same of a command, which a GPU would have a launch for: kernels, products, convolutions,
 * copies. */
bool standin_command(cudaStream_t stream, standin_work work, const void *data, size_t bytes);
/* How many there were. */
EXPORT unsigned long standin_commands(void);
bool standin_is_idle(void);
cudaStream_t standin_stream_new(void);
/* Run what is in the stream; the code of a failure that it met, which then stays. */
unsigned standin_drain(cudaStream_t stream);
/* A stream that runs by itself up to what is busy in it: one more of that, or one less. */
void standin_busy(cudaStream_t stream, int more);
/* Run what is in it, and forget it. */
void standin_stream_free(cudaStream_t stream);
/* A point in a stream, and running everything before it. */
typedef struct standin_point {
    cudaStream_t stream;
    uint64_t at;
} standin_point;
standin_point standin_now(cudaStream_t stream);
void standin_run_until(standin_point point);
bool standin_passed(standin_point point);

/* ---- graphs: what a stream was given between two calls ------------------------------------- */
typedef struct CUgraph_st standin_graph;
/* False while it records already. */
bool standin_record(cudaStream_t stream);
/* The end of that; NULL when it did not record. */
standin_graph *standin_recorded(cudaStream_t stream);
bool standin_is_recording(cudaStream_t stream);
bool standin_replay(cudaStream_t stream, standin_graph *graph);
void standin_hold(standin_graph *graph);
void standin_drop(standin_graph *graph);

/* ---- kernels: the host's, once more, with the sizes of their parameters ------------------- */
enum { MOST_PARAMETERS = 128 };
typedef struct standin_grid {
    int32_t part, parts;
} standin_grid;
typedef struct standin_kernel {
    const char *name;
    /* Runs; or, where sizes is not NULL, only tells the size of each parameter. */
    void (*run)(const standin_grid *grid, void *const *args, unsigned *sizes);
} standin_kernel;
const standin_kernel *standin_find(const char *name);

#endif
