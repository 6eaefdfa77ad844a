/* memory.c -- buffers, and copies to and from them in the order of the device's stream. */
#include "device/cuda/cuda.h"
#include "base/lock.h"
#include <string.h>

enum { STAGING = 4 << 20, SMALL = 256 << 10, ALIGNMENT = 64 };

static void *address(const tern_buffer *buffer, size_t at)
{
    return (char *)buffer->handle + at;
}

tern_status tern_cuda_alloc(tern_place *place, tern_buffer *buffer)
{
    tern_status status = tern_cuda_enter(place);
    if (status != TERN_OK) /* TERN_ERR_MEMORY would mean that no error is recorded */
        return status == TERN_ERR_MEMORY ? TERN_ERR_DEVICE : status;
    void *memory = NULL;
    cudaError_t code = tern_cuda.cudaMalloc(&memory, buffer->bytes);
    if (code == cudaErrorMemoryAllocation) {
        tern_cuda.cudaGetLastError(); /* clears the error, which the runtime keeps */
        return TERN_ERR_MEMORY;
    }
    TERN_TRY(tern_cuda_check(place, code, "cudaMalloc"));
    buffer->handle = memory;
    buffer->address = (uint64_t)(uintptr_t)memory;
    atomic_fetch_add(&tern_cuda_state_of(place)->live, buffer->bytes);
    return TERN_OK;
}

void tern_cuda_free(tern_place *place, tern_buffer *buffer)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    atomic_fetch_sub(&s->live, buffer->bytes);
    if (atomic_load(&s->lost) || tern_cuda.cudaSetDevice(s->index) != 0)
        return; /* the memory of a lost context is already gone */
    tern_cuda.cudaStreamSynchronize(s->stream);
    tern_cuda.cudaFree(buffer->handle);
}

tern_status tern_cuda_memory(tern_place *place, uint64_t *free_bytes, uint64_t *total)
{
    size_t free_now = 0, all = 0;
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaMemGetInfo(&free_now, &all));
    *free_bytes = free_now;
    *total = all;
    return TERN_OK;
}

/* ---- to the device ----------------------------------------------------------------------- */

/* Sets *staging to `bytes` bytes of the pinned block, which the stream reads later. If the block is
 * full, waits for the stream and starts again at the beginning. The caller holds staging_lock. */
static tern_status stage(tern_place *place, size_t bytes, char **staging)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (!s->staging) {
        void *pinned = NULL;
        CUDA_TRY(place, cudaHostAlloc(&pinned, STAGING, 0));
        s->staging = pinned;
        s->staged = 0;
    }
    if (s->staged + bytes > STAGING) {
        CUDA_TRY(place, cudaStreamSynchronize(s->stream));
        s->staged = 0;
    }
    *staging = s->staging + s->staged;
    s->staged += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return TERN_OK;
}

static tern_status write_small(tern_place *place, const tern_buffer *to, size_t at,
                               const void *from, size_t bytes)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    char *staging;
    tern_mutex_lock(&s->staging_lock);
    tern_status status = stage(place, bytes, &staging);
    if (status == TERN_OK) {
        memcpy(staging, from, bytes);
        status = tern_cuda_check(place,
                                 tern_cuda.cudaMemcpyAsync(address(to, at), staging, bytes,
                                                           cudaMemcpyHostToDevice, s->stream),
                                 "cudaMemcpyAsync");
    }
    tern_mutex_unlock(&s->staging_lock);
    return status;
}

tern_status tern_cuda_write(tern_place *place, const tern_buffer *to, size_t at, const void *from,
                            size_t bytes)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    TERN_TRY(tern_cuda_enter(place));
    if (bytes <= SMALL)
        return write_small(place, to, at, from, bytes);
    CUDA_TRY(place,
             cudaMemcpyAsync(address(to, at), from, bytes, cudaMemcpyHostToDevice, s->stream));
    CUDA_TRY(place, cudaStreamSynchronize(s->stream));
    return TERN_OK;
}

/* ---- pinned memory ----------------------------------------------------------------------- */

tern_status tern_cuda_host_alloc(tern_place *place, size_t bytes, void **memory)
{
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaHostAlloc(memory, bytes, cudaHostAllocPortable));
    return TERN_OK;
}

void tern_cuda_host_free(tern_place *place, void *memory)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (!atomic_load(&s->lost) && tern_cuda.cudaSetDevice(s->index) == 0)
        tern_cuda.cudaFreeHost(memory);
}

tern_status tern_cuda_write_later(tern_place *place, const tern_buffer *to, size_t at,
                                  const void *from, size_t bytes)
{
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaMemcpyAsync(address(to, at), from, bytes, cudaMemcpyHostToDevice,
                                    tern_cuda_stream(place)));
    return TERN_OK;
}

/* Returns whether the event has completed; true for a lost device, which reads nothing any more.
 * Returns false if the query fails: a caller that needs the event then waits. */
bool tern_cuda_has_passed(tern_place *place, void *event)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (atomic_load(&s->lost))
        return true;
    cudaError_t code = tern_cuda.cudaSetDevice(s->index);
    if (code == 0)
        code = tern_cuda.cudaEventQuery(event);
    if (code != 0)
        tern_cuda.cudaGetLastError(); /* clears the error, which the runtime keeps */
    return code == 0;
}

/* ---- from the device, and on it ---------------------------------------------------------- */

tern_status tern_cuda_read(tern_place *place, const tern_buffer *from, size_t at, void *to,
                           size_t bytes)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place,
             cudaMemcpyAsync(to, address(from, at), bytes, cudaMemcpyDeviceToHost, s->stream));
    CUDA_TRY(place, cudaStreamSynchronize(s->stream));
    return TERN_OK;
}

tern_status tern_cuda_copy(tern_place *place, const tern_buffer *from, size_t from_at,
                           const tern_buffer *to, size_t to_at, size_t bytes)
{
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaMemcpyAsync(address(to, to_at), address(from, from_at), bytes,
                                    cudaMemcpyDeviceToDevice, tern_cuda_stream(place)));
    return TERN_OK;
}

tern_status tern_cuda_zero(tern_place *place, const tern_buffer *to, size_t at, size_t bytes)
{
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaMemsetAsync(address(to, at), 0, bytes, tern_cuda_stream(place)));
    return TERN_OK;
}

/* ---- between devices --------------------------------------------------------------------- */

/* Enables access of `from` to the memory of `to`, once, where the hardware can. The copy works
 * either way. */
static void enable_peer(tern_cuda_state *from, const tern_cuda_state *to)
{
    int can = 0;
    if (to->index >= 256 || from->peers[to->index / 64] >> (to->index % 64) & 1)
        return;
    from->peers[to->index / 64] |= UINT64_C(1) << (to->index % 64);
    if (tern_cuda.cudaDeviceCanAccessPeer(&can, from->index, to->index) == 0 && can)
        tern_cuda.cudaDeviceEnablePeerAccess(to->index, 0);
    tern_cuda.cudaGetLastError();
}

/* Makes later launches on `later` wait for what is now on the stream of `earlier`. */
static tern_status order(tern_place *earlier, tern_place *later)
{
    cudaEvent_t event;
    enum { NO_TIMING = 2 };
    TERN_TRY(tern_cuda_enter(earlier));
    CUDA_TRY(earlier, cudaEventCreateWithFlags(&event, NO_TIMING));
    tern_status status = tern_cuda_check(
        earlier, tern_cuda.cudaEventRecord(event, tern_cuda_state_of(earlier)->stream),
        "cudaEventRecord");
    if (status == TERN_OK)
        status = tern_cuda_enter(later);
    if (status == TERN_OK)
        status = tern_cuda_check(
            later, tern_cuda.cudaStreamWaitEvent(tern_cuda_state_of(later)->stream, event, 0),
            "cudaStreamWaitEvent");
    tern_cuda.cudaEventDestroy(event); /* CUDA frees the event once it has completed */
    return status;
}

tern_status tern_cuda_peer(tern_place *from_place, const tern_buffer *from, size_t from_at,
                           tern_place *to_place, const tern_buffer *to, size_t to_at, size_t bytes)
{
    tern_cuda_state *f = tern_cuda_state_of(from_place), *t = tern_cuda_state_of(to_place);
    TERN_TRY(order(to_place, from_place));
    TERN_TRY(tern_cuda_enter(from_place));
    enable_peer(f, t);
    CUDA_TRY(from_place, cudaMemcpyPeerAsync(address(to, to_at), t->index, address(from, from_at),
                                             f->index, bytes, f->stream));
    return order(from_place, to_place);
}
