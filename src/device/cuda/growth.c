/* growth.c -- address ranges for large blocks, of which only the used parts have memory
 * (cuMemMap). */
#include "device/cuda/cuda.h"

enum { STEP = 2 << 20 };

static CUdeviceptr address(const tern_buffer *segment, size_t at)
{
    return (CUdeviceptr)segment->address + at;
}

/* Returns twice the device's memory, as only some of the addresses between used blocks have memory;
 * 0 if the device can't map memory. */
static size_t most(tern_place *place)
{
    const tern_cuda_state *s = tern_cuda_state_of(place);
    int can = 0;
    CUdevice device = 0;
    if (tern_cuda.cuDeviceGet(&device, s->index) != 0 ||
        tern_cuda.cuDeviceGetAttribute(
            &can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) != 0 ||
        !can)
        return 0;
    return (size_t)tern_place_info(place)->memory_total / STEP * 2 * STEP;
}

/* Sets reach to the device itself and the devices that can access its memory, as collectives of
 * several devices in one process do. */
static void note_reach(tern_cuda_state *s)
{
    const int most = (int)(sizeof s->reach / sizeof *s->reach);
    int devices = 0, can = 0;
    s->reach[0] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, s->index},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    s->n_reach = 1;
    if (tern_cuda.cudaGetDeviceCount(&devices) != 0)
        devices = 0;
    for (int i = 0; i < devices && s->n_reach < most; i++)
        if (i != s->index && tern_cuda.cudaDeviceCanAccessPeer(&can, i, s->index) == 0 && can)
            s->reach[s->n_reach++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, i},
                                                       CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    tern_cuda.cudaGetLastError(); /* clears the error of a failed query */
}

static tern_status reserve_addresses(tern_place *place, tern_buffer *segment)
{
    CUdeviceptr base = 0;
    tern_status status = tern_cuda_enter(place);
    if (status != TERN_OK) /* TERN_ERR_MEMORY would mean that no error is recorded */
        return status == TERN_ERR_MEMORY ? TERN_ERR_DEVICE : status;
    if (tern_cuda.cuMemAddressReserve(&base, segment->bytes, 0, 0, 0) != 0)
        return TERN_ERR_MEMORY; /* blocks are then allocated one by one */
    note_reach(tern_cuda_state_of(place));
    segment->address = base;
    segment->handle = (void *)(uintptr_t)base; /* NOLINT: an address on the device */
    return TERN_OK;
}

/* Grants access to the devices in reach. If CUDA refuses, grants access to this device alone. */
static CUresult allow(const tern_cuda_state *s, CUdeviceptr from, size_t bytes)
{
    CUresult code = tern_cuda.cuMemSetAccess(from, bytes, s->reach, (size_t)s->n_reach);
    return code != 0 && s->n_reach > 1 ? tern_cuda.cuMemSetAccess(from, bytes, s->reach, 1) : code;
}

static tern_status map(tern_place *place, const tern_buffer *segment, size_t at, size_t bytes,
                       void **memory)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, s->index}};
    CUmemGenericAllocationHandle handle = 0;
    tern_status status = tern_cuda_enter(place);
    if (status != TERN_OK)
        return status == TERN_ERR_MEMORY ? TERN_ERR_DEVICE : status;
    const char *call = "cuMemCreate";
    CUresult code = tern_cuda.cuMemCreate(&handle, bytes, &what, 0);
    const bool created = code == 0;
    if (code == 0) {
        call = "cuMemMap";
        code = tern_cuda.cuMemMap(address(segment, at), bytes, 0, handle, 0);
    }
    if (code == 0) {
        call = "cuMemSetAccess";
        code = allow(s, address(segment, at), bytes);
        if (code != 0)
            tern_cuda.cuMemUnmap(address(segment, at), bytes);
    }
    if (code != 0 && created)
        tern_cuda.cuMemRelease(handle);
    if (code == CUDA_ERROR_OUT_OF_MEMORY)
        return TERN_ERR_MEMORY;
    TERN_TRY(tern_cuda_check_driver(place, code, call));
    *memory = (void *)(uintptr_t)handle; /* NOLINT: a handle, which is a number */
    atomic_fetch_add(&s->live, bytes);
    return TERN_OK;
}

/* Waits for the device's streams before the memory is freed. No other stream uses the memory: a
 * communicator's collective holds its blocks until it has ended, and streams that graphs were
 * captured on do not run. */
static void unmap(tern_place *place, const tern_buffer *segment, size_t at, size_t bytes,
                  void *memory)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    atomic_fetch_sub(&s->live, bytes);
    if (atomic_load(&s->lost) || tern_cuda.cudaSetDevice(s->index) != 0)
        return; /* the memory of a lost context is already gone */
    tern_cuda.cudaStreamSynchronize(s->stream);
    if (s->copies)
        tern_cuda.cudaStreamSynchronize(s->copies);
    tern_cuda.cuMemUnmap(address(segment, at), bytes);
    tern_cuda.cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)memory);
}

const tern_memory_growth tern_cuda_growth = {
    .step = STEP, .most = most, .reserve = reserve_addresses, .map = map, .unmap = unmap};

tern_status tern_cuda_part(tern_place *place, const tern_buffer *whole, size_t at,
                           tern_buffer *part)
{
    (void)place;
    part->handle = (char *)whole->handle + at;
    part->address = whole->address + at;
    return TERN_OK;
}
