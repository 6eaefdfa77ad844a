/* backend.c -- the opencl backend: opening, waiting, closing, and the table of its functions. */
#include "device/opencl/gemm.h"
#include "base/os.h"

static tern_status open_device(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_int code = CL_SUCCESS;
    struct tern_cl_tuning tuning;
    TERN_TRY(tern_cl_tuning_read(place, &tuning));
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)s->platform,
                                          0};
    /* The application may have set its own context. */
    cl_context context =
        s->context ? s->context
                   : CL_NEW(code, CreateContext(properties, 1, &s->device, NULL, NULL, &code));
    if (code != CL_SUCCESS) {
        tern_free(tuning.routes);
        return tern_cl_check(place, code, "CreateContext");
    }
    /* The queue has no profiling, which slows every enqueue down. */
    cl_command_queue queue =
        s->queue ? s->queue : CL_NEW(code, CreateCommandQueue(context, s->device, 0, &code));
    if (code != CL_SUCCESS) {
        if (!s->context)
            CL_END(ReleaseContext(context));
        tern_free(tuning.routes);
        return tern_cl_check(place, code, "CreateCommandQueue");
    }
    s->tuning = tuning;
    s->context = context;
    s->queue = queue;
    tern_cl_doctor_read(place);
    return TERN_OK;
}

/* Waits for the device at the end of the process; the system frees the rest. The wait is needed as
 * a driver's thread may be compiling when its libraries are unloaded. Nothing else is called, as
 * drivers may keep their state in thread-locals, which are destroyed by now. */
static void close_device(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    bool idle = atomic_load(&s->enqueued) == atomic_load(&s->finished);
    if (!idle && !atomic_load(&s->lost)) /* a lost device may never finish */
        CL_END(Finish(s->queue));
    if (s->copies && !atomic_load(&s->lost))
        CL_END(Finish(s->copies));
}

/* Releases the objects of the device in the reverse order of their creation. */
static void release(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    tern_cl_gemm_release(place);
    tern_cl_forget_programs(place);
    for (tern_cl_kernel *next, *k = s->kernels; k; k = next) {
        next = k->next;
        tern_cl_kernel_free(k);
    }
    if (s->copies)
        CL_END(ReleaseCommandQueue(s->copies));
    if (s->queue)
        CL_END(ReleaseCommandQueue(s->queue));
    if (s->context)
        CL_END(ReleaseContext(s->context));
    tern_cl_staged_free(s);
    tern_free(s->tuning.routes);
    tern_free(s->doctor.ways);
    tern_cl_info_release(tern_place_info(place), s);
    tern_free(s);
}

static tern_status peer(tern_place *from_place, const tern_buffer *from, size_t from_at,
                        tern_place *to_place, const tern_buffer *to, size_t to_at, size_t bytes)
{
    /* Each device has its own context, and a buffer is of no use in another context. */
    (void)from_place, (void)from, (void)from_at, (void)to_place, (void)to, (void)to_at, (void)bytes;
    return TERN_ERR_UNSUPPORTED;
}

/* An event in launch order: a marker of a queue with profiling, or the time when the queue was
 * empty. Profiling would slow every launch, so only a profiler's queue has it. */
typedef struct launch_event {
    cl_event event; /* NULL: the time is `at` */
    int64_t at;
} launch_event;

static tern_status event_new(tern_place *place, void **event)
{
    tern_cl_state *s = tern_cl_state_of(place);
    launch_event *p = tern_alloc(sizeof *p);
    if (!p)
        return TERN_ERR_MEMORY;
    tern_status status = TERN_OK;
    if (s->takes_times)
        status = tern_cl_check(place, CL(EnqueueMarkerWithWaitList(s->queue, 0, NULL, &p->event)),
                               "EnqueueMarker");
    else
        status = tern_cl_settle(place);
    if (status != TERN_OK) {
        tern_free(p);
        return status;
    }
    p->at = tern_os_now();
    *event = p;
    return TERN_OK;
}

static tern_status time_of(tern_place *place, const launch_event *p, cl_ulong *ns)
{
    CL_TRY(place, WaitForEvents(1, &p->event));
    CL_TRY(place, GetEventProfilingInfo(p->event, CL_PROFILING_COMMAND_END, sizeof *ns, ns, NULL));
    return TERN_OK;
}

static tern_status elapsed(tern_place *place, void *from, void *to, double *nanoseconds)
{
    const launch_event *a = from, *b = to;
    cl_ulong begin, end;
    *nanoseconds = (double)(b->at - a->at);
    if (!a->event || !b->event)
        return TERN_OK;
    TERN_TRY(time_of(place, a, &begin));
    TERN_TRY(time_of(place, b, &end));
    *nanoseconds = end > begin ? (double)(end - begin) : 0;
    return TERN_OK;
}

static void event_free(tern_place *place, void *event)
{
    launch_event *p = event;
    (void)place;
    if (p->event)
        CL_END(ReleaseEvent(p->event));
    tern_free(p);
}

/* Turns profiling on or off with a new queue, unless the queue is the application's. */
static tern_status profile(tern_place *place, bool on)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_int code = CL_SUCCESS;
    if (s->shares_queue || s->takes_times == on)
        return TERN_OK;
    cl_command_queue queue = CL_NEW(
        code, CreateCommandQueue(s->context, s->device, on ? CL_QUEUE_PROFILING_ENABLE : 0, &code));
    if (code != CL_SUCCESS)
        return tern_cl_check(place, code, "CreateCommandQueue");
    CL_END(ReleaseCommandQueue(s->queue));
    s->queue = queue;
    s->takes_times = on;
    return TERN_OK;
}

const tern_backend tern_opencl_backend = {
    .kind = "opencl",
    .enumerate = tern_cl_enumerate,
    .open = open_device,
    .close = close_device,
    .alloc = tern_cl_alloc,
    .free = tern_cl_free,
    .part = tern_cl_part,
    .unpart = tern_cl_unpart,
    .chain = tern_cl_chain,
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
    .profile = profile,
    .resolve_index32 = tern_cl_resolve_index32,
    .keep_programs = tern_cl_keep_programs,
    .prebuild = tern_cl_prebuild,
    .prebuild_gemm = tern_cl_prebuild_gemm,
    .memory = tern_cl_memory,
    .user_compile = tern_cl_user_compile,
    .user_launch = tern_cl_user_launch,
    .user_free = tern_cl_user_free,
    .borrow = tern_cl_borrow,
    .unborrow = tern_cl_unborrow,
    .handles = tern_cl_handles,
    .use_handles = tern_cl_use_handles,
    .vendor = &tern_cl_vendor,
    .transfers = &tern_cl_transfers,
    .release = release,
};
