/* api.c -- libOpenCL, opened at run time, and the meaning of its result codes. */
#include "base/dynlib.h"
#include "device/opencl/opencl.h"
#include <stdio.h>
#include <string.h>

tern_cl_api tern_cl;
static atomic_ullong calls, failing;

bool tern_cl_load(char *reason, size_t bytes)
{
    void *library = tern_dynlib_open(TERN_LIBRARY_OPENCL, reason, bytes);
    if (!library)
        return false;
    void *address;
#define OPTIONAL(NAME)                                                                             \
    address = tern_dynlib_symbol(library, "cl" #NAME);                                             \
    memcpy(&tern_cl.NAME, &address, sizeof address);
#define X(NAME)                                                                                    \
    OPTIONAL(NAME)                                                                                 \
    if (!address) {                                                                                \
        snprintf(reason, bytes, "libOpenCL has no cl" #NAME ", of OpenCL 1.2");                    \
        return false;                                                                              \
    }
#include "device/opencl/opencl.def"
#undef X
#undef OPTIONAL
    return true;
}

bool tern_cl_gate(void)
{
    if (atomic_load_explicit(&failing, memory_order_relaxed) != 0 && !tern_thread.works_ahead) {
        uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
        if (call == atomic_load_explicit(&failing, memory_order_relaxed))
            return true;
    }
    tern_foreign_enter();
    return false;
}

cl_int tern_cl_code(cl_int code)
{
    tern_foreign_leave();
    return code;
}

void *tern_cl_object(void *object)
{
    tern_foreign_leave();
    return object;
}

uint64_t tern_opencl_fail_at(uint64_t n)
{
    atomic_store(&failing, n);
    return atomic_exchange(&calls, 0);
}

const char *tern_cl_code_name(cl_int code)
{
    switch (code) {
#define X(NAME)                                                                                    \
    case NAME:                                                                                     \
        return #NAME;
#include "device/opencl/codes.def"
#undef X
    }
    return "unknown code";
}

/* Returns whether nothing works on the device after code. -9999 is NVIDIA's "illegal access". */
static bool is_fatal(cl_int code)
{
    return code == CL_DEVICE_NOT_AVAILABLE || code == CL_INVALID_COMMAND_QUEUE ||
           code == CL_INVALID_CONTEXT || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ||
           code == -9999;
}

tern_status tern_cl_check(tern_place *place, cl_int code, const char *call)
{
    if (code == CL_SUCCESS)
        return TERN_OK;
    const char *device = tern_place_info(place)->device;
    int name = (int)strcspn(call, "("); /* "Finish(queue)": the length of the function's name */
    if (is_fatal(code)) {
        atomic_store(&tern_cl_state_of(place)->lost, true);
        return tern_fail(TERN_ERR_DEVICE_LOST,
                         "%s: the device is lost: cl%.*s gave %s (%d). A kernel crashed, or the "
                         "driver did; restart the program",
                         device, name, call, tern_cl_code_name(code), code);
    }
    /* Drivers allocate memory when it is first used, so any call may run out of it. */
    bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                  code == CL_OUT_OF_HOST_MEMORY;
    return tern_fail(memory ? TERN_ERR_MEMORY : TERN_ERR_DEVICE, "%s: %scl%.*s gave %s (%d)",
                     device, memory ? "out of memory: " : "", name, call, tern_cl_code_name(code),
                     code);
}

bool tern_cl_has_extension(cl_device_id device, const char *name)
{
    char all[8192] = "";
    if (CL(GetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof all - 1, all, NULL)) != CL_SUCCESS)
        return false;
    size_t n = strlen(name);
    for (const char *p = all; (p = strstr(p, name)); p += n)
        if ((p == all || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}
