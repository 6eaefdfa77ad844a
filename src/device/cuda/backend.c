/* backend.c -- the cuda backend: opening, waiting, what result codes mean, and
 * the table of slots. */
#include "device/cuda/cuda.h"
#include <stdlib.h>
#include <string.h>

/* ---- results ----------------------------------------------------------------------------- */

/* Codes after which the context answers nothing else: a kernel or the device failed. */
static bool is_fatal(unsigned code)
{
    return code == cudaErrorECCUncorrectable || code == cudaErrorIllegalAddress ||
           (code >= 702 && code <= 703) || (code >= 708 && code <= 719);
}

static tern_status failed(tern_place *place, unsigned code, const char *name, const char *text,
                          const char *call)
{
    const char *device = tern_place_info(place)->device;
    int n = (int)strcspn(call, "("); /* "cudaFree(x)": the function */
    name = name ? name : "unknown code";
    text = text ? text : "";
    if (code == cudaErrorMemoryAllocation)
        return tern_fail(TERN_ERR_MEMORY, "%s: out of memory: %.*s gave %s (%u)", device, n, call,
                         name, code);
    if (!is_fatal(code))
        return tern_fail(TERN_ERR_DEVICE, "%s: %.*s gave %s (%u): %s", device, n, call, name, code,
                         text);
    atomic_store(&tern_cuda_state_of(place)->lost, true);
    return tern_fail(TERN_ERR_DEVICE_LOST,
                     "%s: the device is lost: %.*s gave %s (%u): %s. A kernel launched earlier "
                     "failed; restart the program",
                     device, n, call, name, code, text);
}

tern_status tern_cuda_check(tern_place *place, cudaError_t code, const char *call)
{
    if (code == 0)
        return TERN_OK;
    tern_cuda.cudaGetLastError();
    return failed(place, code, tern_cuda.cudaGetErrorName(code), tern_cuda.cudaGetErrorString(code),
                  call);
}

tern_status tern_cuda_check_driver(tern_place *place, CUresult code, const char *call)
{
    if (code == 0)
        return TERN_OK;
    const char *name = NULL, *text = NULL;
    tern_cuda.cuGetErrorName(code, &name);
    tern_cuda.cuGetErrorString(code, &text);
    return failed(place, code, name, text, call);
}

tern_status tern_cuda_enter(tern_place *place)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (atomic_load_explicit(&s->lost, memory_order_relaxed))
        return tern_fail(TERN_ERR_DEVICE_LOST,
                         "%s: the device was lost earlier; restart the program",
                         tern_place_info(place)->device);
    cudaError_t code = tern_cuda.cudaSetDevice(s->index);
    return code == 0 ? TERN_OK : tern_cuda_check(place, code, "cudaSetDevice");
}

/* ---- life -------------------------------------------------------------------------------- */

static tern_status open_device(tern_place *place)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaFree(NULL)); /* makes the context, which loading programs needs */
    CUDA_TRY(place, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    return TERN_OK;
}

/* The process ends, and the driver takes back what it held; a stream that still
 * runs is waited for. */
static void close_device(tern_place *place)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (!atomic_load(&s->lost) && tern_cuda.cudaSetDevice(s->index) == 0)
        tern_cuda.cudaStreamSynchronize(s->stream);
}

static tern_status synchronize(tern_place *place)
{
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaStreamSynchronize(tern_cuda_state_of(place)->stream));
    return TERN_OK;
}

static tern_status event_new(tern_place *place, void **event)
{
    cudaEvent_t made;
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaEventCreateWithFlags(&made, 0));
    cudaError_t code = tern_cuda.cudaEventRecord(made, tern_cuda_state_of(place)->stream);
    if (code != 0) {
        tern_cuda.cudaEventDestroy(made);
        return tern_cuda_check(place, code, "cudaEventRecord");
    }
    *event = made;
    return TERN_OK;
}

static tern_status elapsed(tern_place *place, void *from, void *to, double *nanoseconds)
{
    float milliseconds = 0;
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaEventSynchronize(from));
    CUDA_TRY(place, cudaEventSynchronize(to));
    CUDA_TRY(place, cudaEventElapsedTime(&milliseconds, from, to));
    *nanoseconds = (double)milliseconds * 1e6;
    return TERN_OK;
}

static void event_free(tern_place *place, void *event)
{
    (void)place;
    tern_cuda.cudaEventDestroy(event);
}

static const tern_vendor vendor = {
    .convolution = tern_cuda_convolution,
    .convolution_plan = tern_cuda_convolution_plan,
    .leaves_bias = true,
    .all_reduce = tern_cuda_all_reduce,
    .host_alloc = tern_cuda_host_alloc,
    .host_free = tern_cuda_host_free,
    .write_later = tern_cuda_write_later,
    .has_passed = tern_cuda_has_passed,
    .graph_make = tern_cuda_graph_make,
    .graph_run = tern_cuda_graph_run,
    .graph_free = tern_cuda_graph_free,
};

const tern_backend tern_cuda_backend = {
    .kind = "cuda",
    .enumerate = tern_cuda_enumerate,
    .open = open_device,
    .close = close_device,
    .alloc = tern_cuda_alloc,
    .free = tern_cuda_free,
    .write = tern_cuda_write,
    .read = tern_cuda_read,
    .copy = tern_cuda_copy,
    .peer = tern_cuda_peer,
    .zero = tern_cuda_zero,
    .resolve = tern_cuda_resolve,
    .launch = tern_cuda_launch,
    .gemm = tern_cuda_gemm,
    .sync = synchronize,
    .event = event_new,
    .elapsed = elapsed,
    .event_free = event_free,
    .memory = tern_cuda_memory,
    .user_compile = tern_cuda_user_compile,
    .user_launch = tern_cuda_user_launch,
    .user_free = tern_cuda_user_free,
    .vendor = &vendor,
};
