/* transfers.c -- copies on a queue of their own, and events in the order of both queues. */
#include "device/opencl/opencl.h"
#include "base/lock.h"

static tern_status copies_queue(tern_place *place, cl_command_queue *queue)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_int code = CL_SUCCESS;
    TERN_TRY(tern_cl_alive(place));
    tern_mutex_lock(&s->staged_lock);
    if (!s->copies)
        s->copies = CL_NEW(code, CreateCommandQueue(s->context, s->device, 0, &code));
    *queue = s->copies;
    tern_mutex_unlock(&s->staged_lock);
    return tern_cl_check(place, code, "CreateCommandQueue");
}

/* Drivers pin the memory of the host that they allocate themselves. */
static tern_status host_alloc(tern_place *place, tern_buffer *buffer)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_command_queue queue;
    cl_int code = CL_SUCCESS;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
    TERN_TRY(copies_queue(place, &queue));
    cl_mem memory = CL_NEW(code, CreateBuffer(s->context, flags, buffer->bytes, NULL, &code));
    TERN_TRY(tern_cl_check(place, code, "CreateBuffer"));
    buffer->host = CL_NEW(code, EnqueueMapBuffer(queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                 0, buffer->bytes, 0, NULL, NULL, &code));
    if (code != CL_SUCCESS) {
        CL_END(ReleaseMemObject(memory));
        return tern_cl_check(place, code, "EnqueueMapBuffer");
    }
    buffer->handle = memory;
    return TERN_OK;
}

static void host_free(tern_place *place, tern_buffer *buffer)
{
    tern_cl_state *s = tern_cl_state_of(place);
    if (atomic_load(&s->lost))
        return;
    CL_END(EnqueueUnmapMemObject(s->copies, buffer->handle, buffer->host, 0, NULL, NULL));
    CL_END(ReleaseMemObject(buffer->handle));
}

static tern_status write_later(tern_place *place, const tern_buffer *to, size_t at,
                               const void *from, size_t bytes)
{
    cl_command_queue queue;
    TERN_TRY(copies_queue(place, &queue));
    CL_TRY(place, EnqueueWriteBuffer(queue, to->handle, CL_FALSE, at, bytes, from, 0, NULL, NULL));
    return TERN_OK;
}

static tern_status read_later(tern_place *place, const tern_buffer *from, size_t at, void *to,
                              size_t bytes)
{
    cl_command_queue queue;
    TERN_TRY(copies_queue(place, &queue));
    CL_TRY(place, EnqueueReadBuffer(queue, from->handle, CL_FALSE, at, bytes, to, 0, NULL, NULL));
    return TERN_OK;
}

/* The queue is flushed, as another queue that waits for the event would wait until then. */
static tern_status mark(tern_place *place, bool transfers, void **made)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_command_queue queue = s->queue;
    cl_event event;
    *made = NULL;
    TERN_TRY(tern_cl_alive(place));
    if (!transfers && tern_cl_is_idle(s))
        return TERN_OK;
    if (transfers)
        TERN_TRY(copies_queue(place, &queue));
    CL_TRY(place, EnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    *made = event;
    if (!transfers)
        tern_cl_note_enqueued(s);
    CL_TRY(place, Flush(queue));
    return TERN_OK;
}

static tern_status after(tern_place *place, bool transfers, void *waited)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_command_queue queue = s->queue;
    cl_event event = waited;
    TERN_TRY(tern_cl_alive(place));
    if (transfers)
        TERN_TRY(copies_queue(place, &queue));
    CL_TRY(place, EnqueueBarrierWithWaitList(queue, 1, &event, NULL));
    if (!transfers)
        tern_cl_note_enqueued(s);
    return TERN_OK;
}

/* A command that failed has completed, too: a wait for it returns the error. */
static bool has_passed(tern_place *place, void *waited)
{
    cl_int status = CL_COMPLETE;
    if (atomic_load(&tern_cl_state_of(place)->lost))
        return true;
    cl_int code = tern_cl.GetEventInfo(waited, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                                       &status, NULL);
    return code == CL_SUCCESS && status <= CL_COMPLETE; /* unknown counts as not completed */
}

static tern_status await(tern_place *place, void *waited)
{
    cl_event event = waited;
    TERN_TRY(tern_cl_alive(place));
    CL_TRY(place, WaitForEvents(1, &event));
    return TERN_OK;
}

static void unmark(tern_place *place, void *waited)
{
    (void)place;
    CL_END(ReleaseEvent(waited));
}

static void drain(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    if (!atomic_load(&s->lost))
        CL_END(Finish(s->copies));
}

const tern_transfers tern_cl_transfers = {
    .host_alloc = host_alloc,
    .host_free = host_free,
    .write_later = write_later,
    .read_later = read_later,
    .mark = mark,
    .after = after,
    .has_passed = has_passed,
    .await = await,
    .unmark = unmark,
    .drain = drain,
};
