/* runtime.c -- the stand-in's cudart: devices, memory, streams, events. */
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_HANDLE = 400 };

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/cudart.def"
#undef X

static _Thread_local cudaError_t last;

static cudaError_t answer(cudaError_t code)
{
    if (code)
        last = code;
    return code;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    FAULT(cudaDriverGetVersion);
    *version = 13000;
    return 0;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    FAULT(cudaRuntimeGetVersion);
    *version = 13000;
    return 0;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : error == cudaErrorNoDevice       ? "cudaErrorNoDevice"
           : error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress"
                                              : "cudaErrorOfTheStandIn";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "of the stand-in";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = last;
    last = 0;
    return code;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    FAULT(cudaGetDeviceCount);
    *count = standin_devices();
    return answer(*count ? 0 : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    FAULT(cudaSetDevice);
    if (device < 0 || device >= standin_devices())
        return answer(INVALID_DEVICE);
    standin_set_current(device);
    return 0;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const char *compute = getenv("TERN_STANDIN_COMPUTE");
    int capability = compute ? atoi(compute) : 90;
    FAULT(cudaDeviceGetAttribute);
    if (device < 0 || device >= standin_devices())
        return answer(INVALID_DEVICE);
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = 48 << 10;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = 2;
        break;
    case cudaDevAttrIntegrated:
        *value = 0;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = capability / 10;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = capability % 10;
        break;
    default:
        return answer(INVALID_VALUE);
    }
    return 0;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    FAULT(cudaDeviceGetPCIBusId);
    snprintf(text, (size_t)bytes, "0000:%02x:00.0", device);
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------ */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    size_t used;
    FAULT(cudaMemGetInfo);
    if (standin_current() < 0)
        return answer(INVALID_DEVICE);
    standin_usage(standin_current(), &used, total);
    *free_bytes = *total - used;
    return 0;
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    FAULT(cudaMalloc);
    if (standin_current() < 0)
        return answer(INVALID_DEVICE);
    *address = standin_alloc(standin_current(), bytes);
    return answer(*address ? 0 : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *address)
{
    FAULT(cudaFree);
    return answer(!address || standin_free(address) ? 0 : INVALID_VALUE);
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    (void)flags;
    FAULT(cudaHostAlloc);
    *address = malloc(bytes);
    return answer(*address ? 0 : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *address)
{
    free(address);
    FAULT(cudaFreeHost);
    return 0;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    FAULT(cudaPointerGetAttributes);
    int owner = standin_owner(address, 1);
    *attributes = (struct cudaPointerAttributes){.type = owner >= 0 ? 2 : 0, .device = owner};
    return 0;
}

typedef struct transfer {
    void *to;
    const void *from;
    size_t bytes;
    int value;
} transfer;

static void do_copy(void *data)
{
    const transfer *t = data;
    memcpy(t->to, t->from, t->bytes);
}

static void do_set(void *data)
{
    const transfer *t = data;
    memset(t->to, t->value, t->bytes);
}

/* The ends must lie where the kind says. */
static bool kind_fits(enum cudaMemcpyKind kind, int to, int from)
{
    if (kind == cudaMemcpyHostToDevice)
        return to >= 0 && from == -1;
    if (kind == cudaMemcpyDeviceToHost)
        return to == -1 && from >= 0;
    return to >= 0 && to == from;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    FAULT(cudaMemcpyAsync);
    if (!kind_fits(kind, standin_owner(to, bytes), standin_owner(from, bytes)))
        return answer(INVALID_VALUE);
    if (kind != cudaMemcpyDeviceToDevice && standin_is_recording(stream))
        return answer(cudaErrorStreamCaptureUnsupported); /* the host's memory may be gone later */
    transfer t = {to, from, bytes, 0};
    return answer(standin_command(stream, do_copy, &t, sizeof t) ? 0 : INVALID_HANDLE);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    FAULT(cudaMemcpyPeerAsync);
    if (standin_owner(to, bytes) != to_device || standin_owner(from, bytes) != from_device)
        return answer(INVALID_VALUE);
    transfer t = {to, from, bytes, 0};
    return answer(standin_command(stream, do_copy, &t, sizeof t) ? 0 : INVALID_HANDLE);
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
    FAULT(cudaMemsetAsync);
    if (standin_owner(address, bytes) < 0)
        return answer(INVALID_VALUE);
    transfer t = {address, NULL, bytes, value};
    return answer(standin_command(stream, do_set, &t, sizeof t) ? 0 : INVALID_HANDLE);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    FAULT(cudaDeviceCanAccessPeer);
    *can = device != peer;
    return 0;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    FAULT(cudaDeviceEnablePeerAccess);
    (void)peer, (void)flags;
    return 0;
}

/* ---- streams and events ------------------------------------------------------------------ */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    (void)flags;
    FAULT(cudaStreamCreateWithFlags);
    *stream = standin_stream_new();
    return answer(*stream ? 0 : cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    standin_stream_free(stream);
    FAULT(cudaStreamDestroy);
    return 0;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (standin_is_recording(stream))
        return answer(cudaErrorStreamCaptureUnsupported);
    unsigned code = standin_drain(stream);
    FAULT(cudaStreamSynchronize); /* copies to host memory do not come later all the same */
    return answer(code);
}

/* Shared by its owner and by the waits that are still queued. */
struct CUevent_st {
    standin_point point;
    struct timespec time;
    int holders;
};

static void let_go(cudaEvent_t event)
{
    standin_lock();
    bool last_one = --event->holders == 0;
    standin_unlock();
    if (last_one)
        free(event);
}

static void do_wait(void *data)
{
    const standin_point *point = data;
    standin_run_until(*point);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    (void)flags;
    FAULT(cudaEventCreateWithFlags);
    *event = calloc(1, sizeof **event);
    if (*event)
        (*event)->holders = 1;
    return answer(*event ? 0 : cudaErrorMemoryAllocation);
}

static void do_stamp(void *data)
{
    cudaEvent_t event;
    memcpy(&event, data, sizeof event);
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    let_go(event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    FAULT(cudaEventRecord);
    standin_lock();
    event->holders++;
    standin_unlock();
    if (!standin_enqueue(stream, do_stamp, &event, sizeof event)) {
        let_go(event);
        return answer(INVALID_HANDLE);
    }
    event->point = standin_now(stream);
    return 0;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    (void)flags;
    FAULT(cudaStreamWaitEvent);
    standin_point point = event->point;
    if (!point.stream)
        return 0; /* never recorded: nothing to wait for */
    return answer(standin_enqueue(stream, do_wait, &point, sizeof point) ? 0 : INVALID_HANDLE);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    FAULT(cudaEventQuery);
    bool passed = !event->point.stream || standin_passed(event->point);
    return answer(passed ? 0 : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    FAULT(cudaEventSynchronize);
    if (event->point.stream)
        standin_run_until(event->point);
    return 0;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    FAULT(cudaEventElapsedTime);
    if (!from->time.tv_sec || !to->time.tv_sec)
        return answer(cudaErrorNotReady);
    *milliseconds = (float)((double)(to->time.tv_sec - from->time.tv_sec) * 1e3 +
                            (double)(to->time.tv_nsec - from->time.tv_nsec) * 1e-6);
    return 0;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    let_go(event);
    FAULT(cudaEventDestroy);
    return 0;
}

/* ---- graphs ------------------------------------------------------------------------------ */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    FAULT(cudaStreamBeginCapture);
    if (mode != cudaStreamCaptureModeRelaxed)
        return answer(INVALID_VALUE);
    return answer(standin_record(stream) ? 0 : cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = standin_recorded(stream);
    FAULT(cudaStreamEndCapture);
    return answer(*graph ? 0 : cudaErrorStreamCaptureUnsupported);
}

/* An executable graph is the graph, held once more. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags)
{
    FAULT(cudaGraphInstantiate);
    if (flags)
        return answer(INVALID_VALUE);
    standin_hold(graph);
    *executable = (cudaGraphExec_t)(void *)graph;
    return 0;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    FAULT(cudaGraphLaunch);
    return answer(standin_replay(stream, (void *)executable) ? 0 : INVALID_HANDLE);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    standin_drop((void *)executable);
    FAULT(cudaGraphExecDestroy);
    return 0;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    standin_drop(graph);
    FAULT(cudaGraphDestroy);
    return 0;
}
