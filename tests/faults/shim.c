/* shim.c -- an OpenCL driver that stands before another (TERN_SHIM_DRIVER, or PoCL's): each entry
 * point that tern and CLBlast call is counted, may be told to fail, and is then passed on.
 *
 * A loader calls a driver through the table that the first word of each of its objects points to.
 * The shim is such a driver: it loads the other, hands out its platforms, and puts its own functions
 * into the table, so that all objects come by here. A test names the folder of the shim's .icd in
 * OCL_ICD_VENDORS.
 *
 * It may stand for a smaller device. TERN_SHIM_LIMITS is a list of words: "group=64" (work-items of a
 * work-group), "local=32768" (bytes of local memory), "alloc=16777216" (bytes of a buffer), "no_fp64",
 * "no_int64_atomics", "no_subgroups", "base_align=8192" (bytes at whose multiples sub-buffers may begin); or the name of a family of GPUs (profiles). It reports these, and refuses what is
 * beyond: programs that say double or use 64-bit atomics do not compile.
 *
 * Where these say "no_chain", programs of TERN_KERNEL(chain_...) do not compile: kernels that tern writes at run time. Where they
 * say "no_slot", those do not that have such a chain in another kernel. "chain_items=16": these run in work-groups of so many at most.
 *
 * And for a driver whose optimizer is wrong: of TERN_SHIM_FAULTS, "crash:softmax hang:sort wrong:relu!", each word is what
 * happens to kernels whose names begin so, unless they were built with -cl-opt-disable; with ! then too. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "faults/points.h"
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static cl_icd_dispatch real; /* the driver's own table */

/* ---- entry points ------------------------------------------------------------------------ */

/* A call that answers a code: it fails without being made. */
#define PASS(NAME, PARAMETERS, ...)                                                                \
    static cl_int CL_API_CALL shim_##NAME PARAMETERS                                               \
    {                                                                                              \
        int code = fault_point(#NAME);                                                             \
        return code ? code : real.NAME(__VA_ARGS__);                                               \
    }
/* One that makes an object, and puts its code into the last parameter. */
#define MAKE(TYPE, NAME, PARAMETERS, ...)                                                          \
    static TYPE CL_API_CALL shim_##NAME PARAMETERS                                                 \
    {                                                                                              \
        int fault = fault_point(#NAME);                                                            \
        if (fault && code)                                                                         \
            *code = fault;                                                                         \
        return fault ? NULL : real.NAME(__VA_ARGS__);                                              \
    }
typedef void(CL_CALLBACK *on_context)(const char *, const void *, size_t, void *);
typedef void(CL_CALLBACK *on_program)(cl_program, void *);
#define INFO size_t n, void *to, size_t *needed
#define WAIT cl_uint n, const cl_event *events, cl_event *event

PASS(clGetPlatformInfo, (cl_platform_id x, cl_platform_info what, INFO), x, what, n, to, needed)
PASS(clGetDeviceIDs,
     (cl_platform_id x, cl_device_type type, cl_uint n, cl_device_id *to, cl_uint *needed), x, type,
     n, to, needed)
PASS(clGetDeviceInfo, (cl_device_id x, cl_device_info what, INFO), x, what, n, to, needed)
MAKE(cl_context, clCreateContext,
     (const cl_context_properties *p, cl_uint n, const cl_device_id *d, on_context call, void *user,
      cl_int *code),
     p, n, d, call, user, code)
PASS(clReleaseContext, (cl_context x), x)
MAKE(cl_command_queue, clCreateCommandQueue,
     (cl_context x, cl_device_id d, cl_command_queue_properties p, cl_int *code), x, d, p, code)
PASS(clGetCommandQueueInfo, (cl_command_queue x, cl_command_queue_info what, INFO), x, what, n, to,
     needed)
PASS(clReleaseCommandQueue, (cl_command_queue x), x)
MAKE(cl_mem, clCreateBuffer, (cl_context x, cl_mem_flags flags, size_t n, void *host, cl_int *code),
     x, flags, n, host, code)
MAKE(cl_mem, clCreateSubBuffer,
     (cl_mem x, cl_mem_flags flags, cl_buffer_create_type type, const void *what, cl_int *code), x,
     flags, type, what, code)
PASS(clGetMemObjectInfo, (cl_mem x, cl_mem_info what, INFO), x, what, n, to, needed)
PASS(clReleaseMemObject, (cl_mem x), x)
PASS(clEnqueueReadBuffer,
     (cl_command_queue q, cl_mem x, cl_bool wait, size_t at, size_t bytes, void *to, WAIT), q, x,
     wait, at, bytes, to, n, events, event)
PASS(clEnqueueWriteBuffer,
     (cl_command_queue q, cl_mem x, cl_bool wait, size_t at, size_t bytes, const void *from, WAIT),
     q, x, wait, at, bytes, from, n, events, event)
PASS(clEnqueueCopyBuffer,
     (cl_command_queue q, cl_mem from, cl_mem to, size_t a, size_t b, size_t bytes, WAIT), q, from,
     to, a, b, bytes, n, events, event)
PASS(clEnqueueFillBuffer,
     (cl_command_queue q, cl_mem x, const void *pattern, size_t p, size_t at, size_t bytes, WAIT),
     q, x, pattern, p, at, bytes, n, events, event)
MAKE(cl_program, clCreateProgramWithSource,
     (cl_context x, cl_uint n, const char **text, const size_t *lengths, cl_int *code), x, n, text,
     lengths, code)
MAKE(cl_program, clCreateProgramWithBinary,
     (cl_context x, cl_uint n, const cl_device_id *d, const size_t *lengths,
      const unsigned char **binaries, cl_int *codes, cl_int *code),
     x, n, d, lengths, binaries, codes, code)
PASS(clBuildProgram,
     (cl_program x, cl_uint n, const cl_device_id *d, const char *options, on_program call,
      void *user),
     x, n, d, options, call, user)
PASS(clGetProgramInfo, (cl_program x, cl_program_info what, INFO), x, what, n, to, needed)
PASS(clGetProgramBuildInfo, (cl_program x, cl_device_id d, cl_program_build_info what, INFO), x, d,
     what, n, to, needed)
PASS(clRetainProgram, (cl_program x), x)
PASS(clReleaseProgram, (cl_program x), x)
MAKE(cl_kernel, clCreateKernel, (cl_program x, const char *name, cl_int *code), x, name, code)
PASS(clGetKernelInfo, (cl_kernel x, cl_kernel_info what, INFO), x, what, n, to, needed)
PASS(clGetKernelWorkGroupInfo, (cl_kernel x, cl_device_id d, cl_kernel_work_group_info what, INFO),
     x, d, what, n, to, needed)
PASS(clSetKernelArg, (cl_kernel x, cl_uint i, size_t bytes, const void *value), x, i, bytes, value)
PASS(clReleaseKernel, (cl_kernel x), x)
PASS(clEnqueueNDRangeKernel,
     (cl_command_queue q, cl_kernel x, cl_uint dims, const size_t *offset, const size_t *global,
      const size_t *local, WAIT),
     q, x, dims, offset, global, local, n, events, event)
PASS(clWaitForEvents, (cl_uint n, const cl_event *events), n, events)
PASS(clReleaseEvent, (cl_event x), x)
PASS(clFlush, (cl_command_queue q), q)
PASS(clGetEventProfilingInfo,
     (cl_event x, cl_profiling_info what, size_t bytes, void *to, size_t *got), x, what, bytes, to,
     got)
PASS(clFinish, (cl_command_queue q), q)

static void *CL_API_CALL shim_clSVMAlloc(cl_context x, cl_svm_mem_flags flags, size_t bytes,
                                         cl_uint alignment)
{
    return fault_point("clSVMAlloc") ? NULL : real.clSVMAlloc(x, flags, bytes, alignment);
}

/* ---- a smaller device -------------------------------------------------------------------- */

/* What the least device of a family has, or less. */
static const struct {
    const char *name, *limits;
} profiles[] = {
    {"arc", "group=512 local=65536 alloc=268435456 no_fp64"},
    {"mali", "group=128 local=32768 alloc=67108864 no_fp64 no_int64_atomics no_subgroups"},
    {"rdna", "group=64 local=32768 alloc=268435456"},
    {"nvidia-opencl", "group=1024 local=49152 alloc=268435456 no_subgroups"},
};

static const char *all_limits(void)
{
    const char *limits = getenv("TERN_SHIM_LIMITS");
    for (size_t i = 0; limits && i < sizeof profiles / sizeof *profiles; i++)
        if (strcmp(limits, profiles[i].name) == 0)
            return profiles[i].limits;
    return limits;
}

/* The number of a word of the limits, where it is less than the device's own. */
static uint64_t limit(const char *word, uint64_t own)
{
    const char *limits = all_limits(), *at = limits ? strstr(limits, word) : NULL;
    if (!at)
        return own;
    at += strlen(word);
    uint64_t value = *at == '=' ? strtoull(at + 1, NULL, 10) : 0;
    return value < own ? value : own;
}

static void lower(void *to, const char *word)
{
    uint64_t value; /* as size_t and cl_ulong are */
    memcpy(&value, to, sizeof value);
    value = limit(word, value);
    memcpy(to, &value, sizeof value);
}

/* The number of bytes at whose multiples sub-buffers may begin; 0: as the driver has it. */
static uint64_t base_align(void)
{
    return limit("base_align", UINT64_MAX) == UINT64_MAX ? 0 : limit("base_align", UINT64_MAX);
}

/* Blanks where an extension's name was. */
static void leave_out(char *extensions, const char *name)
{
    for (char *at; (at = strstr(extensions, name));)
        memset(at, ' ', strlen(name));
}

static cl_int CL_API_CALL limited_clGetDeviceInfo(cl_device_id x, cl_device_info what, INFO)
{
    cl_int code = shim_clGetDeviceInfo(x, what, n, to, needed);
    if (code != CL_SUCCESS || !to)
        return code;
    if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE)
        lower(to, "group");
    if (what == CL_DEVICE_LOCAL_MEM_SIZE)
        lower(to, "local");
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        lower(to, "alloc");
    if (what == CL_DEVICE_DOUBLE_FP_CONFIG)
        lower(to, "no_fp64");
    if (what == CL_DEVICE_MEM_BASE_ADDR_ALIGN && base_align()) {
        const cl_uint bits = (cl_uint)(8 * base_align());
        memcpy(to, &bits, sizeof bits);
    }
    if (what == CL_DEVICE_EXTENSIONS && !limit("no_fp64", 1))
        leave_out(to, "cl_khr_fp64");
    if (what == CL_DEVICE_EXTENSIONS && !limit("no_int64_atomics", 1)) {
        leave_out(to, "cl_khr_int64_base_atomics");
        leave_out(to, "cl_khr_int64_extended_atomics");
    }
    if (what == CL_DEVICE_EXTENSIONS && !limit("no_subgroups", 1)) {
        leave_out(to, "cl_khr_subgroups");
        leave_out(to, "cl_intel_subgroups");
    }
    return code;
}

static cl_int CL_API_CALL limited_clGetKernelWorkGroupInfo(cl_kernel x, cl_device_id d,
                                                           cl_kernel_work_group_info what, INFO)
{
    cl_int code = shim_clGetKernelWorkGroupInfo(x, d, what, n, to, needed);
    char name[64] = "";
    if (code == CL_SUCCESS && to && what == CL_KERNEL_WORK_GROUP_SIZE) {
        lower(to, "group");
        real.clGetKernelInfo(x, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
        if (strncmp(name, "chain_", 6) == 0)
            lower(to, "chain_items");
    }
    return code;
}

/* As of a driver of which nothing is known: what tern does for PoCL alone it does not do. */
static cl_int CL_API_CALL limited_clGetPlatformInfo(cl_platform_id x, cl_platform_info what, INFO)
{
    cl_int code = shim_clGetPlatformInfo(x, what, n, to, needed);
    if (code == CL_SUCCESS && to && what == CL_PLATFORM_NAME && !limit("no_name", 1))
        memset(to, '?', strlen(to));
    return code;
}

/* Words that the device lacks are no words. */
static cl_program CL_API_CALL limited_clCreateProgramWithSource(cl_context x, cl_uint n,
                                                                const char **text,
                                                                const size_t *lengths, cl_int *code)
{
    enum { MOST = 16 };
    const char *all[MOST + 1] = {""};
    size_t sizes[MOST + 1] = {0};
    static const char doubles[] = "#define double this_device_has_no_double\n";
    static const char atomics[] = "#define atom_cmpxchg this_device_has_no_64_bit_atomics\n"
                                  "#define atom_add this_device_has_no_64_bit_atomics\n";
    static const char both[] = "#define double this_device_has_no_double\n"
                               "#define atom_cmpxchg this_device_has_no_64_bit_atomics\n";
    bool f64 = limit("no_fp64", 1), i64 = limit("no_int64_atomics", 1);
    for (cl_uint i = 0; i < n; i++)
        if ((!limit("no_chain", 1) && strstr(text[i], "TERN_KERNEL(chain_")) ||
            (!limit("no_slot", 1) && strstr(text[i], "#undef CHAIN_PARAMETERS"))) {
            const char *refused = "#error this device has no chains\n";
            return shim_clCreateProgramWithSource(x, 1, &refused, NULL, code);
        }
    if (n > MOST || (f64 && i64))
        return shim_clCreateProgramWithSource(x, n, text, lengths, code);
    all[0] = !f64 && !i64 ? both : !f64 ? doubles : atomics;
    for (cl_uint i = 0; i < n; i++) {
        all[i + 1] = text[i];
        sizes[i + 1] = lengths ? lengths[i] : 0;
    }
    return shim_clCreateProgramWithSource(x, n + 1, all, sizes, code);
}

static cl_mem CL_API_CALL limited_clCreateBuffer(cl_context x, cl_mem_flags flags, size_t n,
                                                 void *host, cl_int *code)
{
    if (n <= limit("alloc", UINT64_MAX))
        return shim_clCreateBuffer(x, flags, n, host, code);
    if (code)
        *code = CL_INVALID_BUFFER_SIZE;
    return NULL;
}

static cl_mem CL_API_CALL limited_clCreateSubBuffer(cl_mem x, cl_mem_flags flags,
                                                    cl_buffer_create_type type, const void *what,
                                                    cl_int *code)
{
    const cl_buffer_region *region = what;
    if (!base_align() || region->origin % base_align() == 0)
        return shim_clCreateSubBuffer(x, flags, type, what, code);
    if (code)
        *code = CL_MISALIGNED_SUB_BUFFER_OFFSET;
    return NULL;
}

/* What TERN_SHIM_FAULTS says of a kernel: 'c', 'h' or 'w'; 0: nothing. */
static char fault_of(cl_kernel x, cl_device_id device)
{
    const char *faults = getenv("TERN_SHIM_FAULTS");
    char name[256] = "", options[512] = "";
    cl_program program = NULL;
    if (!faults)
        return 0;
    real.clGetKernelInfo(x, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    real.clGetKernelInfo(x, CL_KERNEL_PROGRAM, sizeof program, &program, NULL);
    real.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof options, options,
                               NULL);
    bool plain = strstr(options, "-cl-opt-disable") != NULL;
    for (const char *w = faults; *w; w += strcspn(w, " "), w += strspn(w, " ")) {
        const char *colon = strchr(w, ':');
        size_t n = colon ? strcspn(colon + 1, " !") : 0;
        if (n && strncmp(name, colon + 1, n) == 0 && (!plain || colon[1 + n] == '!'))
            return *w;
    }
    return 0;
}

static cl_int CL_API_CALL limited_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel x,
                                                         cl_uint dims, const size_t *offset,
                                                         const size_t *global, const size_t *local,
                                                         WAIT)
{
    cl_device_id device = NULL;
    cl_ulong used = 0;
    size_t items = 1;
    for (cl_uint i = 0; local && i < dims; i++)
        items *= local[i];
    if (items > limit("group", UINT64_MAX))
        return CL_INVALID_WORK_GROUP_SIZE;
    real.clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    real.clGetKernelWorkGroupInfo(x, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof used, &used, NULL);
    if (used > limit("local", UINT64_MAX))
        return CL_OUT_OF_RESOURCES;
    char fault = fault_of(x, device);
    if (fault == 'c')
        abort();
    while (fault == 'h')
        pause();
    if (fault == 'w')
        return event ? real.clEnqueueMarkerWithWaitList(q, n, events, event) : CL_SUCCESS;
    return shim_clEnqueueNDRangeKernel(q, x, dims, offset, global, local, n, events, event);
}

static void *CL_API_CALL limited_clSVMAlloc(cl_context x, cl_svm_mem_flags flags, size_t bytes,
                                            cl_uint alignment)
{
    return bytes > limit("alloc", UINT64_MAX) ? NULL : shim_clSVMAlloc(x, flags, bytes, alignment);
}

/* ---- in front of the driver -------------------------------------------------------------- */

typedef void *(CL_API_CALL *find_function)(const char *name);
typedef cl_int(CL_API_CALL *find_platforms)(cl_uint n, cl_platform_id *to, cl_uint *needed);
static find_function find_real;

static void load_driver(void)
{
    const char *path = getenv("TERN_SHIM_DRIVER");
    void *library = find_real ? NULL : dlopen(path ? path : "libpocl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&find_real = dlsym(library, "clGetExtensionFunctionAddress");
}

static void stand_before(cl_icd_dispatch *table)
{
    if (table->clFinish == shim_clFinish)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)table & ~(page - 1);
    uintptr_t to = ((uintptr_t)(table + 1) + page - 1) & ~(page - 1);
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) != 0) {
        perror("shim: mprotect");
        abort();
    }
    real = *table;
#define X(NAME) table->NAME = shim_##NAME;
#include "faults/shim.def"
#undef X
    if (!getenv("TERN_SHIM_LIMITS") && !getenv("TERN_SHIM_FAULTS"))
        return;
    table->clGetPlatformInfo = limited_clGetPlatformInfo;
    table->clGetDeviceInfo = limited_clGetDeviceInfo;
    table->clGetKernelWorkGroupInfo = limited_clGetKernelWorkGroupInfo;
    table->clCreateBuffer = limited_clCreateBuffer;
    table->clCreateSubBuffer = limited_clCreateSubBuffer;
    table->clCreateProgramWithSource = limited_clCreateProgramWithSource;
    table->clEnqueueNDRangeKernel = limited_clEnqueueNDRangeKernel;
    table->clSVMAlloc = limited_clSVMAlloc;
}

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *to, cl_uint *needed);
cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *to, cl_uint *needed)
{
    cl_platform_id platform;
    cl_uint there = 0;
    int code = fault_point("clIcdGetPlatformIDsKHR");
    load_driver();
    if (code || !find_real)
        return code ? code : CL_PLATFORM_NOT_FOUND_KHR;
    find_platforms find;
    *(void **)&find = find_real("clIcdGetPlatformIDsKHR");
    if (find && find(1, &platform, &there) == CL_SUCCESS && there > 0)
        stand_before(*(cl_icd_dispatch **)platform);
    return find ? find(n, to, needed) : CL_PLATFORM_NOT_FOUND_KHR;
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name);
void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    void *address;
    cl_int(CL_API_CALL * own)(cl_uint, cl_platform_id *, cl_uint *) = clIcdGetPlatformIDsKHR;
    load_driver();
    memcpy(&address, &own, sizeof address);
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        return address;
    return find_real ? find_real(name) : NULL;
}
