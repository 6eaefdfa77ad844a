/* backend.c -- the cuda backend: opening, closing and waiting, and the table of its functions. */
#include "device/cuda/cuda.h"
#include <stdlib.h>

static tern_status open_device(tern_place *place)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaFree(NULL)); /* makes the context, which loading programs needs */
    if (!s->stream)                  /* the application may have set its own */
        CUDA_TRY(place, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    return TERN_OK;
}

/* Waits for the device's streams at the end of the process; the driver frees what the process
 * had. */
static void close_device(tern_place *place)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (atomic_load(&s->lost) || tern_cuda.cudaSetDevice(s->index) != 0)
        return;
    tern_cuda.cudaStreamSynchronize(s->stream);
    if (s->copies)
        tern_cuda.cudaStreamSynchronize(s->copies);
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
    .attention_plan = tern_cuda_attention_plan,
    .attention = tern_cuda_attention,
    .attends_wide = tern_cuda_attends_wide,
    .epilogue_fits = tern_cuda_epilogue_fits,
    .wants_multiples = tern_cuda_wants_multiples,
    .accumulates_convolutions = true,
    .leaves_bias = true,
    .collectives = tern_cuda_collectives,
    .communicators = &tern_cuda_communicators,
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
    .part = tern_cuda_part,
    .growth = &tern_cuda_growth,
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
    .borrow = tern_cuda_borrow,
    .unborrow = tern_cuda_unborrow,
    .handles = tern_cuda_handles,
    .use_handles = tern_cuda_use_handles,
    .vendor = &vendor,
    .transfers = &tern_cuda_transfers,
    .resolve_index32 = tern_cuda_resolve_index32,
    .prebuild = tern_cuda_prebuild,
    .prebuild_gemm = tern_cuda_prebuild_gemm,
    .chain = tern_cuda_chain,
};
