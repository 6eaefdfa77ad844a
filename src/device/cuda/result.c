/* result.c -- the statuses of result codes of the runtime and of the driver, and lost devices. */
#include "device/cuda/cuda.h"
#include <string.h>

/* Returns whether a kernel or the device failed, so that every later call in the context fails. */
static bool is_fatal(unsigned code)
{
    static const struct {
        unsigned from, to;
    } fatal[] = {{cudaErrorECCUncorrectable, cudaErrorECCUncorrectable},
                 {cudaErrorNvlinkUncorrectable, cudaErrorNvlinkUncorrectable},
                 {cudaErrorContained, cudaErrorContained},
                 {cudaErrorIllegalAddress, cudaErrorIllegalAddress},
                 {702, 703},
                 {708, cudaErrorLaunchFailure},
                 {cudaErrorTensorMemoryLeak, cudaErrorTensorMemoryLeak}};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (code >= fatal[i].from && code <= fatal[i].to)
            return true;
    return false;
}

static tern_status failed(tern_place *place, unsigned code, const char *name, const char *text,
                          const char *call)
{
    const char *device = tern_place_info(place)->device;
    int n = (int)strcspn(call, "("); /* "cudaFree(x)": the length of the function's name */
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
