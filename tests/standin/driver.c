/* driver.c -- the stand-in's libcuda: names, programs that are names of the host's kernels,
 * launches; and programs of users, which the machine's C++ compiler made. */
#include "standin.h"
#include "userprogram.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 1, NOT_FOUND = 500, INVALID_HANDLE = 400, INVALID_IMAGE = 200 };

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/driver.def"
#undef X

CUresult cuInit(unsigned int flags)
{
    (void)flags;
    FAULT(cuInit);
    return 0;
}

CUresult cuDriverGetVersion(int *version)
{
    FAULT(cuDriverGetVersion);
    *version = 13000;
    return 0;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    *text =
        error == cudaErrorLaunchFailure ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OF_THE_STAND_IN";
    return 0;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    (void)error;
    *text = "of the stand-in";
    return 0;
}

CUresult cuDeviceGet(CUdevice *device, int index)
{
    FAULT(cuDeviceGet);
    *device = index;
    return index < standin_devices() ? 0 : INVALID_VALUE;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    FAULT(cuDeviceGetName);
    snprintf(name, (size_t)bytes, "stand-in %d for an NVIDIA GPU", device);
    return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    size_t used;
    FAULT(cuDeviceTotalMem_v2);
    standin_usage(device, &used, bytes);
    return 0;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    FAULT(cuDeviceGetUuid_v2);
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(device * 16 + 0xa0 + i);
    return 0;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    const char *old = getenv("TERN_STANDIN_NO_VMM");
    FAULT(cuDeviceGetAttribute);
    if (attribute != CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
        device >= standin_devices())
        return INVALID_VALUE;
    *value = !old;
    return 0;
}

/* ---- memory behind addresses ------------------------------------------------------------- */

enum { GRANULARITY = 2 << 20, OUT_OF_MEMORY = 2 };

/* A handle of memory: its bytes and device, one number. */
typedef struct memory {
    size_t bytes;
    int device;
} memory;

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    FAULT(cuMemAddressReserve);
    if (bytes % GRANULARITY || alignment || wanted || flags)
        return INVALID_VALUE;
    void *base = standin_reserve(bytes, GRANULARITY);
    *address = (CUdeviceptr)(uintptr_t)base;
    return base ? 0 : OUT_OF_MEMORY;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *made, size_t bytes,
                     const CUmemAllocationProp *what, unsigned long long flags)
{
    FAULT(cuMemCreate);
    if (!bytes || bytes % GRANULARITY || flags || what->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        what->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        what->location.id >= standin_devices())
        return INVALID_VALUE;
    memory *m = calloc(1, sizeof *m);
    if (!m || !standin_take(what->location.id, bytes)) {
        free(m);
        return OUT_OF_MEMORY;
    }
    *m = (memory){.bytes = bytes, .device = what->location.id};
    *made = (CUmemGenericAllocationHandle)(uintptr_t)m;
    return 0;
}

/* What is still mapped would live on; who releases it here has unmapped it. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    memory *m = (memory *)(uintptr_t)handle;
    if (!m)
        return INVALID_VALUE;
    standin_give(m->device, m->bytes);
    free(m);
    return 0;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t at, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    const memory *m = (const memory *)(uintptr_t)handle;
    FAULT(cuMemMap);
    if (!m || at || flags || bytes != m->bytes || address % GRANULARITY)
        return INVALID_VALUE;
    return standin_map(m->device, (void *)(uintptr_t)address, bytes) ? 0 : INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    return standin_unmap((void *)(uintptr_t)address, bytes) ? 0 : INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    FAULT(cuMemSetAccess);
    for (size_t i = 0; i < n; i++)
        if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
            access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            access[i].location.id >= standin_devices())
            return INVALID_VALUE;
    return standin_owner((void *)(uintptr_t)address, bytes) >= 0 ? 0 : INVALID_VALUE;
}

/* ---- programs ---------------------------------------------------------------------------- */

struct CUfunc_st {
    const standin_kernel *kernel;
    const user_kernel *user;
    int device, n;
    unsigned sizes[MOST_PARAMETERS];
};
struct CUmod_st {
    struct CUfunc_st function;
    user_program *user;
    int device;
};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    FAULT(cuModuleLoadData);
    if (standin_current() < 0)
        return INVALID_HANDLE;
    const char *text = image;
    CUmodule made = calloc(1, sizeof *made);
    if (!made)
        return cudaErrorMemoryAllocation;
    made->device = standin_current();
    made->user = user_program_load(text);
    if (!made->user && strncmp(text, "standin-library", 15) != 0) {
        free(made);
        return INVALID_IMAGE;
    }
    *module = made;
    return 0;
}

CUresult cuModuleUnload(CUmodule module)
{
    user_program_unload(module->user);
    free(module);
    FAULT(cuModuleUnload);
    return 0;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    FAULT(cuModuleGetFunction);
    struct CUfunc_st *f = &module->function;
    *f = (struct CUfunc_st){.device = module->device};
    if (module->user) {
        f->user = user_program_find(module->user, name);
        for (f->n = 0; f->user && f->user->sizes[f->n]; f->n++)
            f->sizes[f->n] = f->user->sizes[f->n];
    } else {
        f->kernel = standin_find(name);
        if (f->kernel)
            f->kernel->run(&(standin_grid){0, 1}, NULL, f->sizes);
        while (f->n < MOST_PARAMETERS && f->sizes[f->n])
            f->n++;
    }
    *function = f;
    return f->kernel || f->user ? 0 : NOT_FOUND;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    FAULT(cuFuncGetAttribute);
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return 0;
}

/* ---- launches ---------------------------------------------------------------------------- */

typedef struct launch {
    const struct CUfunc_st *function;
    unsigned grid[3], block[3];
    _Alignas(16) char values[4096];
} launch;

/* A grid of blocks as a few parts, the last first: nothing may depend on their order. */
static void run(void *data)
{
    launch *l = data;
    void *args[MOST_PARAMETERS];
    size_t at = 0;
    for (int i = 0; i < l->function->n; i++) {
        args[i] = l->values + at;
        at += (l->function->sizes[i] + 15u) / 16 * 16;
    }
    if (l->function->user) {
        l->function->user->run(l->grid, l->block, args);
        return;
    }
    int parts = l->grid[0] < 3 ? (int)l->grid[0] : 3;
    for (int part = parts - 1; part >= 0; part--)
        l->function->kernel->run(&(standin_grid){part, parts}, args, NULL);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **parameters, void **extra)
{
    FAULT(cuLaunchKernel);
    (void)shared_bytes, (void)extra;
    launch l = {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {0}};
    size_t at = 0;
    if (function->device != standin_current() || !grid_x || !grid_y || !grid_z || !block_x ||
        !block_y || !block_z || block_x * block_y * block_z > 1024)
        return INVALID_VALUE;
    for (int i = 0; i < function->n; i++) {
        if (at + function->sizes[i] > sizeof l.values)
            return INVALID_VALUE;
        memcpy(l.values + at, parameters[i], function->sizes[i]);
        at += (function->sizes[i] + 15u) / 16 * 16;
    }
    return standin_command(stream, run, &l, sizeof l) ? 0 : INVALID_HANDLE;
}

/* ---- the table of the host's kernels ----------------------------------------------------- */

extern const standin_kernel *const __start_standin_kernels[] __attribute__((visibility("hidden")));
extern const standin_kernel *const __stop_standin_kernels[] __attribute__((visibility("hidden")));

const standin_kernel *standin_find(const char *name)
{
    for (const standin_kernel *const *k = __start_standin_kernels; k < __stop_standin_kernels; k++)
        if (strcmp((*k)->name, name) == 0)
            return *k;
    return NULL;
}
