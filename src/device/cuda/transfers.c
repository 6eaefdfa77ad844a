/* transfers.c -- copies on a stream of their own, and events in the order of both streams. */
#include "device/cuda/cuda.h"
#include "base/lock.h"

enum { NO_TIMING = 2 };

static tern_status copies_stream(tern_place *place, cudaStream_t *stream)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    cudaError_t code = 0;
    TERN_TRY(tern_cuda_enter(place));
    tern_mutex_lock(&s->staging_lock);
    if (!s->copies)
        code = tern_cuda.cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking);
    *stream = s->copies;
    tern_mutex_unlock(&s->staging_lock);
    return tern_cuda_check(place, code, "cudaStreamCreateWithFlags");
}

static tern_status host_alloc(tern_place *place, tern_buffer *buffer)
{
    TERN_TRY(tern_cuda_host_alloc(place, buffer->bytes, &buffer->host));
    buffer->handle = buffer->host;
    return TERN_OK;
}

static void host_free(tern_place *place, tern_buffer *buffer)
{
    tern_cuda_host_free(place, buffer->host);
}

static tern_status write_later(tern_place *place, const tern_buffer *to, size_t at,
                               const void *from, size_t bytes)
{
    cudaStream_t stream;
    TERN_TRY(copies_stream(place, &stream));
    CUDA_TRY(place,
             cudaMemcpyAsync((char *)to->handle + at, from, bytes, cudaMemcpyHostToDevice, stream));
    return TERN_OK;
}

static tern_status read_later(tern_place *place, const tern_buffer *from, size_t at, void *to,
                              size_t bytes)
{
    cudaStream_t stream;
    TERN_TRY(copies_stream(place, &stream));
    CUDA_TRY(place, cudaMemcpyAsync(to, (const char *)from->handle + at, bytes,
                                    cudaMemcpyDeviceToHost, stream));
    return TERN_OK;
}

static tern_status mark(tern_place *place, bool transfers, void **made)
{
    cudaStream_t stream = tern_cuda_state_of(place)->stream;
    cudaEvent_t event;
    *made = NULL;
    TERN_TRY(tern_cuda_enter(place));
    if (transfers)
        TERN_TRY(copies_stream(place, &stream));
    CUDA_TRY(place, cudaEventCreateWithFlags(&event, NO_TIMING));
    cudaError_t code = tern_cuda.cudaEventRecord(event, stream);
    if (code == 0)
        *made = event;
    else
        tern_cuda.cudaEventDestroy(event);
    return tern_cuda_check(place, code, "cudaEventRecord");
}

static tern_status after(tern_place *place, bool transfers, void *waited)
{
    cudaStream_t stream = tern_cuda_state_of(place)->stream;
    TERN_TRY(tern_cuda_enter(place));
    if (transfers)
        TERN_TRY(copies_stream(place, &stream));
    CUDA_TRY(place, cudaStreamWaitEvent(stream, waited, 0));
    return TERN_OK;
}

static tern_status await(tern_place *place, void *waited)
{
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaEventSynchronize(waited));
    return TERN_OK;
}

static void unmark(tern_place *place, void *waited)
{
    (void)place;
    tern_cuda.cudaEventDestroy(waited);
}

static void drain(tern_place *place)
{
    if (tern_cuda_enter(place) == TERN_OK)
        tern_cuda.cudaStreamSynchronize(tern_cuda_state_of(place)->copies);
}

const tern_transfers tern_cuda_transfers = {
    .host_alloc = host_alloc,
    .host_free = host_free,
    .write_later = write_later,
    .read_later = read_later,
    .mark = mark,
    .after = after,
    .has_passed = tern_cuda_has_passed,
    .await = await,
    .unmark = unmark,
    .drain = drain,
};
