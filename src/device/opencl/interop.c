/* interop.c -- buffers, contexts and queues that the application shares with tern. */
#include "device/opencl/opencl.h"

tern_status tern_cl_borrow(tern_place *place, void *memory, tern_buffer *buffer)
{
    const char *device = tern_place_info(place)->device;
    cl_context context = NULL;
    cl_mem_object_type type = 0;
    size_t bytes = 0;
    TERN_TRY(tern_cl_alive(place));
    CL_TRY(place, GetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL));
    CL_TRY(place, GetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, NULL));
    CL_TRY(place, GetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL));
    if (context != tern_cl_state_of(place)->context)
        return tern_fail(TERN_ERR_DEVICE,
                         "%s: the cl_mem belongs to a context that is not this device's: hand "
                         "yours in before the device is first used (tern_device_set_handles), or "
                         "make the cl_mem in tern's (tern_device_get_handles)",
                         device);
    if (type != CL_MEM_OBJECT_BUFFER)
        return tern_fail(TERN_ERR_DEVICE, "%s: the cl_mem is an image, not a buffer", device);
    if (bytes < buffer->bytes)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: the tensor's elements reach to byte %zu, and the cl_mem has %zu",
                         device, buffer->bytes, bytes);
    CL_TRY(place, RetainMemObject(memory));
    *buffer = (tern_buffer){.handle = memory, .bytes = bytes};
    return TERN_OK;
}

void tern_cl_unborrow(tern_place *place, tern_buffer *buffer)
{
    (void)place;
    CL_END(ReleaseMemObject(buffer->handle));
}

void tern_cl_handles(tern_place *place, tern_device_handles *handles)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    *handles = (tern_device_handles){.platform = s->platform,
                                     .device = s->device,
                                     .context = s->context,
                                     .queue = s->queue,
                                     .index = -1};
}

/* ---- set by the application ---------------------------------------------------------------- */

static tern_status check_queue(tern_place *place, cl_command_queue queue, cl_context *context)
{
    const char *name = tern_place_info(place)->device;
    cl_context own = NULL;
    cl_device_id device = NULL;
    cl_command_queue_properties properties = 0;
    CL_TRY(place, GetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof own, &own, NULL));
    CL_TRY(place, GetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL));
    CL_TRY(place,
           GetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
    if (!*context)
        *context = own;
    if (own != *context || device != tern_cl_state_of(place)->device)
        return tern_fail(TERN_ERR_DEVICE,
                         "tern_device_set_handles: the queue is of another %s than %s's",
                         own != *context ? "context" : "device", name);
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_device_set_handles: the queue for %s is out of order, and tern's "
                         "work is in order",
                         name);
    return TERN_OK;
}

static tern_status check_context(tern_place *place, cl_context context)
{
    enum { MOST = 64 };
    cl_device_id devices[MOST];
    size_t bytes = 0;
    CL_TRY(place, GetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes));
    for (size_t i = 0; i < bytes / sizeof *devices; i++)
        if (devices[i] == tern_cl_state_of(place)->device)
            return TERN_OK;
    return tern_fail(TERN_ERR_DEVICE, "tern_device_set_handles: %s is no device of the context",
                     tern_place_info(place)->device);
}

tern_status tern_cl_use_handles(tern_place *place, const tern_device_handles *handles)
{
    tern_cl_state *s = tern_cl_state_of(place);
    cl_context context = handles->context ? handles->context : s->context;
    if (!handles->context && !handles->queue)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_device_set_handles: neither a context nor a queue for %s",
                         tern_place_info(place)->device);
    if (handles->queue)
        TERN_TRY(check_queue(place, handles->queue, &context));
    TERN_TRY(check_context(place, context));
    if (s->context && context != s->context)
        return tern_fail(TERN_ERR_STATE,
                         "tern_device_set_handles: %s was used already, and its tensors belong to "
                         "another context: hand yours in first",
                         tern_place_info(place)->device);
    if (s->queue && handles->queue)
        TERN_TRY(tern_cl_settle(place));
    if (!s->context) {
        CL_TRY(place, RetainContext(context));
        s->context = context;
    }
    if (handles->queue) {
        CL_TRY(place, RetainCommandQueue(handles->queue));
        if (s->queue)
            CL_END(ReleaseCommandQueue(s->queue));
        s->queue = handles->queue;
        s->shares_queue = true;
    }
    return TERN_OK;
}
