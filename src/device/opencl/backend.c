/* backend.c -- the opencl backend: opening, waiting, closing, and the table of its slots. */
#include "device/opencl/gemm.h"
#include <time.h>

static tern_status open_device(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_int code = CL_SUCCESS;
    struct tern_cl_tuning tuning;
    TERN_TRY(tern_cl_tuning_read(place, &tuning));
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)s->platform,
                                          0};
    /* The application may have handed in its own. */
    cl_context context =
        s->context ? s->context
                   : CL_NEW(code, CreateContext(properties, 1, &s->device, NULL, NULL, &code));
    if (code != CL_SUCCESS) {
        tern_free(tuning.routes);
        return tern_cl_check(place, code, "CreateContext");
    }
    /* No profiling: it slows every enqueue down. */
    cl_command_queue queue =
        s->queue ? s->queue : CL_NEW(code, CreateCommandQueue(context, s->device, 0, &code));
    if (code != CL_SUCCESS) {
        if (!s->context)
            tern_cl.ReleaseContext(context);
        tern_free(tuning.routes);
        return tern_cl_check(place, code, "CreateCommandQueue");
    }
    s->tuning = tuning;
    s->context = context;
    s->queue = queue;
    return TERN_OK;
}

/* The process ends, and the system takes back what it held. All that must be done is to wait: a
 * driver's worker may be compiling when its libraries are torn down. Nothing else is called, as
 * drivers may keep their state in thread-locals, which are gone by now. */
static void close_device(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    bool idle = atomic_load(&s->enqueued) == atomic_load(&s->finished);
    if (!idle && !atomic_load(&s->lost)) /* waiting for a dead device may take for ever */
        tern_cl.Finish(s->queue);
    if (s->copies && !atomic_load(&s->lost))
        tern_cl.Finish(s->copies);
}

static tern_status peer(tern_place *from_place, const tern_buffer *from, size_t from_at,
                        tern_place *to_place, const tern_buffer *to, size_t to_at, size_t bytes)
{
    /* Each device has a context of its own, and buffers do not cross contexts. */
    (void)from_place, (void)from, (void)from_at, (void)to_place, (void)to, (void)to_at, (void)bytes;
    return TERN_ERR_UNSUPPORTED;
}

/* A point in launch order is the time when the queue was empty: a queue that takes times of its own
 * would slow every launch, and events are rare. */
static tern_status event_new(tern_place *place, void **event)
{
    struct timespec *now = tern_alloc(sizeof *now);
    if (!now)
        return TERN_ERR_MEMORY;
    tern_status status = tern_cl_settle(place);
    if (status != TERN_OK) {
        tern_free(now);
        return status;
    }
    clock_gettime(CLOCK_MONOTONIC, now);
    *event = now;
    return TERN_OK;
}

static tern_status elapsed(tern_place *place, void *from, void *to, double *nanoseconds)
{
    const struct timespec *a = from, *b = to;
    (void)place;
    *nanoseconds = (double)(b->tv_sec - a->tv_sec) * 1e9 + (double)(b->tv_nsec - a->tv_nsec);
    return TERN_OK;
}

static void event_free(tern_place *place, void *event)
{
    (void)place;
    tern_free(event);
}

const tern_backend tern_opencl_backend = {
    .kind = "opencl",
    .enumerate = tern_cl_enumerate,
    .open = open_device,
    .close = close_device,
    .alloc = tern_cl_alloc,
    .free = tern_cl_free,
    .write = tern_cl_write,
    .read = tern_cl_read,
    .copy = tern_cl_copy,
    .peer = peer,
    .zero = tern_cl_zero,
    .resolve = tern_cl_resolve,
    .launch = tern_cl_launch,
    .gemm = tern_cl_gemm,
    .sync = tern_cl_settle,
    .flush = tern_cl_flush,
    .event = event_new,
    .elapsed = elapsed,
    .event_free = event_free,
    .memory = tern_cl_memory,
    .user_compile = tern_cl_user_compile,
    .user_launch = tern_cl_user_launch,
    .user_free = tern_cl_user_free,
    .borrow = tern_cl_borrow,
    .unborrow = tern_cl_unborrow,
    .handles = tern_cl_handles,
    .use_handles = tern_cl_use_handles,
    .transfers = &tern_cl_transfers,
};
