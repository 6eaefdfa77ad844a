/* interop.c -- device memory and streams that the application shares with tern. */
#include "device/cuda/cuda.h"

enum { DEVICE_MEMORY = 2, MANAGED_MEMORY = 3 };

tern_status tern_cuda_borrow(tern_place *place, void *memory, tern_buffer *buffer)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    struct cudaPointerAttributes is = {.type = 0};
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaPointerGetAttributes(&is, memory));
    if (is.type != MANAGED_MEMORY && (is.type != DEVICE_MEMORY || is.device != s->index))
        return tern_fail(TERN_ERR_DEVICE, "%s: the memory is %s, not this device's",
                         tern_place_info(place)->device,
                         is.type == DEVICE_MEMORY ? "another CUDA device's" : "the host's");
    buffer->handle = memory;
    buffer->address = (uint64_t)(uintptr_t)memory;
    return TERN_OK;
}

void tern_cuda_unborrow(tern_place *place, tern_buffer *buffer)
{
    (void)place;
    (void)buffer;
}

void tern_cuda_handles(tern_place *place, tern_device_handles *handles)
{
    const tern_cuda_state *s = tern_cuda_state_of(place);
    *handles = (tern_device_handles){.queue = s->stream, .index = s->index};
}

/* Waits for the present stream, so that work on the new stream comes after earlier work. */
tern_status tern_cuda_use_handles(tern_place *place, const tern_device_handles *handles)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (!handles->queue)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_device_set_handles: no stream for %s",
                         tern_place_info(place)->device);
    TERN_TRY(tern_cuda_enter(place));
    if (s->stream)
        CUDA_TRY(place, cudaStreamSynchronize(s->stream));
    s->stream = handles->queue;
    return TERN_OK;
}
