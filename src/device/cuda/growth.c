/* growth.c -- segments of addresses of which only what is used has memory behind it (cuMemMap), for
 * large blocks. */
#include "device/cuda/cuda.h"

enum { STEP = 2 << 20 };

static CUdeviceptr address(const tern_buffer *segment, size_t at)
{
    return (CUdeviceptr)segment->address + at;
}

/* Twice the memory that there is: of the addresses between blocks that are in use only some have
 * memory. */
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

/* The device itself, and those that may reach into its memory: collectives of several devices in
 * one process do. */
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
    tern_cuda.cudaGetLastError(); /* the runtime keeps what a question met */
}

static tern_status reserve_addresses(tern_place *place, tern_buffer *segment)
{
    CUdeviceptr base = 0;
    tern_status status = tern_cuda_enter(place);
    if (status != TERN_OK) /* recorded: who is to try again would leave it */
        return status == TERN_ERR_MEMORY ? TERN_ERR_DEVICE : status;
    if (tern_cuda.cuMemAddressReserve(&base, segment->bytes, 0, 0, 0) != 0)
        return TERN_ERR_MEMORY; /* blocks are allocated without it */
    note_reach(tern_cuda_state_of(place));
    segment->address = base;
    segment->handle = (void *)(uintptr_t)base; /* NOLINT: an address of the device's */
    return TERN_OK;
}

/* Where a device refuses others in spite of what it said, it has the memory alone. */
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
    *memory = (void *)(uintptr_t)handle; /* NOLINT: a number */
    atomic_fetch_add(&s->live, bytes);
    return TERN_OK;
}

/* Other streams are through with memory before it is free: a link's collective holds it until it is
 * over, and what graphs were made on does not run. */
static void unmap(tern_place *place, const tern_buffer *segment, size_t at, size_t bytes,
                  void *memory)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    atomic_fetch_sub(&s->live, bytes);
    if (atomic_load(&s->lost) || tern_cuda.cudaSetDevice(s->index) != 0)
        return; /* a dead context's memory is gone with it */
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
