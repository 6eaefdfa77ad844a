/* test_opencl_shared.c -- a program that has its own OpenCL context, queue and buffers: tern works in them, a buffer goes
 * to and fro without a copy, and what belongs to another context is refused. Each state is a child's. */
#include "device/opencl/opencl.h"
#include "rerun.h"
#include <tern/dlpack.h>

/* The application's: of the device that tern calls opencl:0. */
static cl_context context, foreign;
static cl_command_queue queue, other_queue, unordered;

static bool make(void)
{
    tern_device_handles found = {.index = 0};
    if (tern_device_count("opencl") == 0)
        return false;
    /* the device of a name, without opening it: its number is asked for by its handle below */
    cl_platform_id platforms[16];
    cl_uint n = 0;
    tern_cl.GetPlatformIDs(16, platforms, &n);
    for (cl_uint p = 0; p < n && p < 16; p++) {
        cl_device_id devices[16];
        cl_uint m = 0;
        if (tern_cl.GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &m) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < m && d < 16; d++) {
            const tern_device_handles one = {.device = devices[d], .index = -1};
            const char *name = tern_device_from_handles("opencl", &one);
            if (name && strcmp(name, "opencl:0") == 0)
                found = (tern_device_handles){.platform = platforms[p], .device = devices[d]};
        }
    }
    tern_clear_error();
    if (!found.device)
        return false;
    cl_device_id device = found.device;
    cl_int code;
    context = tern_cl.CreateContext(NULL, 1, &device, NULL, NULL, &code);
    foreign = tern_cl.CreateContext(NULL, 1, &device, NULL, NULL, &code);
    queue = tern_cl.CreateCommandQueue(context, device, 0, &code);
    other_queue = tern_cl.CreateCommandQueue(foreign, device, 0, &code);
    unordered =
        tern_cl.CreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    return context && foreign && queue && other_queue;
}

static void say(const char *what, tern_status status)
{
    printf("%s %d %s\n", what, status, status == TERN_OK ? "" : tern_last_error());
    tern_clear_error();
}

static void end(void *user)
{
    ++*(int *)user;
}

/* Handed in before the device is used: the application writes, tern computes, the application reads, all in one
 * queue, and nobody waits in between. */
static int one_queue(void)
{
    if (!make())
        return 1;
    const tern_device_handles mine = {.context = context, .queue = queue};
    say("set", tern_device_set_handles("opencl:0", &mine));
    tern_device_handles shown;
    say("get", tern_device_get_handles("opencl:0", &shown));
    printf("same %d\n", shown.context == context && shown.queue == queue);
    float numbers[1000], out[1000] = {0};
    for (int i = 0; i < 1000; i++)
        numbers[i] = (float)i;
    cl_int code;
    int ended = 0;
    cl_mem memory = tern_cl.CreateBuffer(context, CL_MEM_READ_WRITE, sizeof numbers, NULL, &code);
    tern_cl.EnqueueWriteBuffer(queue, memory, CL_FALSE, 0, sizeof numbers, numbers, 0, NULL, NULL);
    TERN_SCOPE {
        const tern_from_blob_options options = {
            .device = "opencl:0", .offset = 100, .deleter = end, .user = &ended};
        tern_tensor *x = tern_from_blob(memory, TERN_SHAPE(900), TERN_F32, &options);
        tern_cl.ReleaseMemObject(memory); /* tern keeps it */
        tern_add_(x, tern_mul(x, x));
        DLManagedTensorVersioned *lent = tern_to_dlpack(tern_narrow(x, 0, 10, 5));
        printf("lent %d %d %d\n", lent->dl_tensor.data == (void *)memory,
               (int)lent->dl_tensor.byte_offset, (int)lent->dl_tensor.device.device_type);
        lent->deleter(lent);
        tern_cl.EnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL);
        printf("ended %d\n", ended);
    }
    printf("ended %d values %g %g %g\n", ended, (double)out[99], (double)out[100],
           (double)out[999]);
    const tern_device_handles late = {.context = foreign};
    say("late", tern_device_set_handles("opencl:0", &late));
    const tern_device_handles out_of_order = {.queue = unordered};
    if (unordered)
        say("order", tern_device_set_handles("opencl:0", &out_of_order));
    const tern_device_handles mixed = {.context = context, .queue = other_queue};
    say("mixed", tern_device_set_handles("opencl:0", &mixed));
    return 0;
}

/* Without: a buffer of the application's context is not tern's. */
static int two_contexts(void)
{
    if (!make())
        return 1;
    cl_int code;
    cl_mem memory = tern_cl.CreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &code);
    const tern_from_blob_options options = {.device = "opencl:0"};
    tern_tensor *x = tern_from_blob(memory, TERN_SHAPE(4), TERN_F32, &options);
    say("foreign", x ? TERN_OK : tern_last_status());
    tern_cl.ReleaseMemObject(memory);
    return 0;
}

static const scenario scenarios[] = {{"one_queue", one_queue}, {"two_contexts", two_contexts}};

static void needs_a_device(void)
{
    if (!tern_device_is_available("opencl:0")) {
        printf("SKIP: there is no OpenCL device: %s\n", tern_device_notes("opencl"));
        skip();
    }
}

static void work_goes_through_the_applications_queue(void **state)
{
    (void)state;
    needs_a_device();
    const char *output = RUN("one_queue", "TERN_WARN");
    assert_non_null(strstr(output, "set 0 \nget 0 \nsame 1\n"));
    assert_non_null(strstr(output, "lent 1 440 4\nended 0\n"));
    assert_non_null(strstr(output, "ended 1 values 99 10100 999000\n"));
    assert_non_null(strstr(output, "opencl:0 was used already, and its tensors belong to another"));
    assert_non_null(
        strstr(output, "mixed 4 tern_device_set_handles: the queue is of another context"));
}

static void a_buffer_of_another_context_is_refused(void **state)
{
    (void)state;
    needs_a_device();
    assert_non_null(strstr(RUN("two_contexts", "TERN_WARN"),
                           "the cl_mem belongs to a context that is not this device's: hand"));
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(work_goes_through_the_applications_queue),
        TEST(a_buffer_of_another_context_is_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
