/* enumerate.c -- lists every device of every platform; finding none is an ordinary state that the
 * notes explain. */
#define _GNU_SOURCE /* strcasestr */
#include "base/env.h"
#include "base/dynlib.h"
#include "base/os.h"
#include "base/warning.h"
#include "device/opencl/opencl.h"
#include <CL/cl_ext.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PLATFORMS = 32, MAX_DEVICES = 256 };
/* ENOUGH_LOCAL: the local memory that kernels of tiles need, such as attention_tiles.cl. */
enum { ENOUGH_LOCAL = 24 << 10 };

typedef struct entry {
    cl_platform_id platform;
    cl_device_id device;
} entry;

typedef struct list {
    entry of[MAX_DEVICES];
    int n;
} list;

static void note(tern_text *notes, const char *text)
{
    tern_text_add(notes, "%s%s", notes->length ? "; " : "", text);
}

/* ---- questions --------------------------------------------------------------------------- */

/* Returns a text that lives as long as the process: "" for none, NULL if memory is out. */
static const char *device_text(cl_device_id device, cl_device_info what)
{
    char buffer[512] = "";
    if (CL(GetDeviceInfo(device, what, sizeof buffer - 1, buffer, NULL)) != CL_SUCCESS)
        buffer[0] = '\0';
    size_t n = strlen(buffer);
    while (n > 0 && buffer[n - 1] == ' ')
        buffer[--n] = '\0';
    return tern_copy_text(buffer + strspn(buffer, " "));
}

static const char *platform_text(cl_platform_id platform, cl_platform_info what)
{
    char buffer[512] = "";
    if (CL(GetPlatformInfo(platform, what, sizeof buffer - 1, buffer, NULL)) != CL_SUCCESS)
        buffer[0] = '\0';
    return tern_copy_text(buffer);
}

static uint64_t device_number(cl_device_id device, cl_device_info what, size_t bytes)
{
    union {
        uint64_t large;
        uint32_t small;
    } value = {0};
    if (CL(GetDeviceInfo(device, what, bytes, &value, NULL)) != CL_SUCCESS)
        return 0;
    return bytes == sizeof value.small ? value.small : value.large;
}

/* Returns a number that every device has; *answers becomes false if this one does not report it. */
static uint64_t needed_number(cl_device_id device, cl_device_info what, size_t bytes, bool *answers)
{
    uint64_t value = device_number(device, what, bytes);
    *answers = *answers && value != 0;
    return value;
}

/* Returns whether two entries are one piece of hardware on two platforms: equal UUID or PCI id.
 * Devices of one platform never are (two PoCL devices look alike). */
static bool same_hardware(const entry *a, const entry *b)
{
    if (a->platform == b->platform)
        return false;
    static const struct {
        const char *extension;
        cl_device_info what;
        size_t bytes;
    } ids[] = {
        {"cl_khr_device_uuid", CL_DEVICE_UUID_KHR, CL_UUID_SIZE_KHR},
        {"cl_khr_pci_bus_info", CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(cl_device_pci_bus_info_khr)}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        unsigned char x[CL_UUID_SIZE_KHR], y[CL_UUID_SIZE_KHR];
        if (tern_cl_has_extension(a->device, ids[i].extension) &&
            tern_cl_has_extension(b->device, ids[i].extension) &&
            CL(GetDeviceInfo(a->device, ids[i].what, ids[i].bytes, x, NULL)) == CL_SUCCESS &&
            CL(GetDeviceInfo(b->device, ids[i].what, ids[i].bytes, y, NULL)) == CL_SUCCESS)
            if (memcmp(x, y, ids[i].bytes) == 0)
                return true;
    }
    return false;
}

/* ---- the list ---------------------------------------------------------------------------- */

static void add_device(list *devices, entry e, tern_text *notes)
{
    for (int i = 0; i < devices->n; i++)
        if (same_hardware(&devices->of[i], &e)) {
            char name[256] = "";
            CL(GetDeviceInfo(e.device, CL_DEVICE_NAME, sizeof name - 1, name, NULL));
            tern_text_add(notes, "%s%s is there through two platforms and listed once",
                          notes->length ? "; " : "", name);
            return;
        }
    if (devices->n < MAX_DEVICES)
        devices->of[devices->n++] = e;
}

static void add_platform(list *devices, cl_platform_id platform, tern_text *notes)
{
    cl_device_id ids[MAX_DEVICES];
    cl_uint n = 0;
    cl_int code = CL(GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &n));
    if (code != CL_SUCCESS || n == 0) {
        char name[256] = "";
        const char *pocl = tern_os_getenv("POCL_DEVICES");
        CL(GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL));
        tern_text_add(notes, "%splatform \"%s\" has no device", notes->length ? "; " : "", name);
        if (code != CL_SUCCESS && code != CL_DEVICE_NOT_FOUND)
            tern_text_add(notes, " (%s)", tern_cl_code_name(code));
        if (pocl && strstr(name, "Portable"))
            tern_text_add(notes, " (POCL_DEVICES=%s)", pocl);
        else if (strstr(name, "Portable"))
            tern_text_add(notes, " (it needs a folder it can write to: POCL_CACHE_DIR)");
        return;
    }
    for (cl_uint i = 0; i < n && i < MAX_DEVICES; i++)
        add_device(devices, (entry){platform, ids[i]}, notes);
}

/* Notes the limit of addresses: drivers that do not fit in it give messages that do not help. */
static void note_limit(tern_text *notes)
{
    const uint64_t limit = tern_os_address_limit();
    if (limit)
        tern_text_add(
            notes,
            "%sthis process may use %llu MiB of addresses (ulimit -v), and a driver with its "
            "compiler wants some GiB",
            notes->length ? "; " : "", (unsigned long long)limit >> 20);
}

static void find_all(list *devices, tern_text *notes)
{
    static const char advice[] =
        TERN_LIBRARY("install a driver: pocl-opencl-icd runs OpenCL on the processor, "
                     "GPUs need their vendor's or mesa-opencl-icd",
                     "macOS has it", "the driver of a GPU, by its vendor, installs it");
    char reason[512];
    if (!tern_cl_load(reason, sizeof reason)) {
        bool missing = tern_dynlib_is_absent(reason);
        tern_text_add(notes, "the OpenCL loader %s (%s)%s%s",
                      missing ? "is missing" : "cannot be loaded", reason,
                      missing ? TERN_LIBRARY("; install ocl-icd-libopencl1 and ", "; ", "; ") : "",
                      missing ? advice : "");
        note_limit(notes);
        return;
    }
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n = 0;
    cl_int code = CL(GetPlatformIDs(MAX_PLATFORMS, platforms, &n));
    if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && n == 0))
        note(notes, "OpenCL's loader found no platform");
    else if (code != CL_SUCCESS)
        tern_text_add(notes, "clGetPlatformIDs gave %s (%d)", tern_cl_code_name(code), code);
    for (cl_uint i = 0; code == CL_SUCCESS && i < n && i < MAX_PLATFORMS; i++)
        add_platform(devices, platforms[i], notes);
    bool installed = tern_cl_note_vendors(notes);
    if (devices->n == 0 && !installed)
        note(notes, advice);
    if (devices->n == 0)
        note_limit(notes);
}

static void device_name(cl_device_id device, char name[256])
{
    *name = '\0';
    CL(GetDeviceInfo(device, CL_DEVICE_NAME, 255, name, NULL));
}

/* Returns the index of the first device with the text in its name, or -1. */
static int number_of(const list *devices, const char *text, size_t length)
{
    char name[256], part[64];
    snprintf(part, sizeof part, "%.*s", (int)length, text);
    for (int i = 0; i < devices->n && *part; i++) {
        device_name(devices->of[i].device, name);
        if (tern_os_strcasestr(name, part))
            return i;
    }
    return -1;
}

/* Notes what is wrong with the first element that is no device's index, which indices exist, and
 * which one was probably meant: "opencl:1", "gpu0" and a part of a device's name stand for an
 * index. */
static void explain_mask(const char *mask, const list *devices, tern_text *notes)
{
    char element[64], name[256];
    size_t length;
    if (!tern_cl_mask_error(mask, devices->n, element, sizeof element))
        return;
    tern_text_add(notes, "; its element \"%s\" is %s; there %s", element,
                  strspn(element, "0123456789") && devices->n
                      ? "not the number of a device, or a repeat"
                      : "no number of a device",
                  devices->n == 0   ? "is none"
                  : devices->n == 1 ? "is"
                                    : "are");
    for (int i = 0; i < devices->n; i++) {
        device_name(devices->of[i].device, name);
        tern_text_add(notes, "%s %d (%.80s)", i ? "," : "", i, name);
    }
    if (devices->n == 0)
        return;
    length = strcspn(element, "0123456789");
    int meant = element[length] ? atoi(element + length) : number_of(devices, element, length);
    tern_text_add(notes, "; did you mean \"%d\"?", meant >= 0 && meant < devices->n ? meant : 0);
    tern_warn("environment", "TERN_OPENCL_VISIBLE_DEVICES",
              "\"%s\": its element \"%s\" names no device", mask, element);
}

static void apply_mask(list *devices, tern_text *notes)
{
    const char *mask = tern_env(TERN_ENV_OPENCL_VISIBLE_DEVICES);
    if (!mask)
        return;
    list chosen;
    int order[MAX_DEVICES];
    chosen.n = tern_cl_mask(mask, devices->n, order);
    for (int i = 0; i < chosen.n; i++)
        chosen.of[i] = devices->of[order[i]];
    if (chosen.n < devices->n)
        tern_text_add(notes, "%sTERN_OPENCL_VISIBLE_DEVICES=\"%s\" leaves %d of %d devices",
                      notes->length ? "; " : "", mask, chosen.n, devices->n);
    explain_mask(mask, devices, notes);
    *devices = chosen;
}

/* ---- what a device is -------------------------------------------------------------------- */

static bool use_cpu_form(tern_device_type type)
{
    const char *form = tern_env(TERN_ENV_OPENCL_FORM);
    if (form && strcmp(form, "gpu") == 0)
        return false;
    return (form && strcmp(form, "cpu") == 0) || type == TERN_DEVICE_CPU;
}

static tern_device_type type_of(cl_device_id device)
{
    uint64_t type = device_number(device, CL_DEVICE_TYPE, 8);
    return type & CL_DEVICE_TYPE_GPU   ? TERN_DEVICE_GPU
           : type & CL_DEVICE_TYPE_CPU ? TERN_DEVICE_CPU
                                       : TERN_DEVICE_ACCELERATOR;
}

/* Fills *found. Returns false if the device does not answer. */
static bool describe(const entry *e, tern_found *found)
{
    cl_device_id d = e->device;
    bool answers = true;
    uint64_t floats = device_number(d, CL_DEVICE_SINGLE_FP_CONFIG, 8);
    uint64_t rounded = CL_FP_DENORM | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    uint64_t total = needed_number(d, CL_DEVICE_GLOBAL_MEM_SIZE, 8, &answers);
    needed_number(d, CL_DEVICE_TYPE, 8, &answers);
    found->info = (tern_device_info){
        .name = device_text(d, CL_DEVICE_NAME),
        .vendor = device_text(d, CL_DEVICE_VENDOR),
        .platform = platform_text(e->platform, CL_PLATFORM_NAME),
        .driver = device_text(d, CL_DRIVER_VERSION),
        .type = type_of(d),
        .compute_units = (int)needed_number(d, CL_DEVICE_MAX_COMPUTE_UNITS, 4, &answers),
        .memory_total = total,
        .memory_free = total,
        .largest_allocation = needed_number(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8, &answers),
        .has_f64 = device_number(d, CL_DEVICE_DOUBLE_FP_CONFIG, 8) != 0,
        .has_native_f16 = tern_cl_has_extension(d, "cl_khr_fp16"),
        .unified_memory = device_number(d, CL_DEVICE_HOST_UNIFIED_MEMORY, 4) != 0,
        .exact = (floats & rounded) == rounded,
    };
    unsigned char uuid[CL_UUID_SIZE_KHR];
    if (tern_cl_has_extension(d, "cl_khr_device_uuid") &&
        CL(GetDeviceInfo(d, CL_DEVICE_UUID_KHR, sizeof uuid, uuid, NULL)) == CL_SUCCESS)
        tern_uuid_text(uuid, found->info.uuid);
    return answers;
}

void tern_cl_info_release(const tern_device_info *info, tern_cl_state *s)
{
    const char *texts[] = {info->name, info->vendor, info->platform, info->driver,
                           s->platform_version};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        tern_free((void *)(uintptr_t)texts[i]);
    tern_mutex_destroy(&s->lock);
    tern_mutex_destroy(&s->staged_lock);
}

static tern_cl_state *make_state(const entry *e, const tern_device_info *info, bool *answers)
{
    tern_cl_state *s = tern_alloc(sizeof *s);
    if (!s)
        return NULL;
    uint64_t floats = device_number(e->device, CL_DEVICE_SINGLE_FP_CONFIG, 8);
    uint64_t svm = device_number(e->device, CL_DEVICE_SVM_CAPABILITIES, 8);
    /* Shared virtual memory is for CPUs alone: a GPU needs to know beforehand of every block that a
     * kernel reaches through a table. The GPU form does not use it on any device. */
    bool can_svm = tern_cl.SVMAlloc && tern_cl.SVMFree && info->type == TERN_DEVICE_CPU;
    s->platform = e->platform;
    s->device = e->device;
    s->platform_version = platform_text(e->platform, CL_PLATFORM_VERSION);
    s->cpu_form = use_cpu_form(info->type);
    can_svm = can_svm && s->cpu_form;
    s->svm_fine = can_svm && svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
    s->svm = can_svm && (s->svm_fine || svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
    s->compiles_late = info->platform && strcmp(info->platform, "Portable Computing Language") == 0;
    s->is_lazy = s->cpu_form && s->compiles_late;
    /* A query for a binary makes PoCL compile every kernel of the program, 0.1 s each, to code that
     * no launch uses. */
    s->keep = s->is_lazy                                     ? TERN_CL_KEEP_LATER
              : s->cpu_form || info->type != TERN_DEVICE_CPU ? TERN_CL_KEEP
                                                             : TERN_CL_KEEP_NOT;
    s->atomics64 = tern_cl_has_extension(e->device, "cl_khr_int64_base_atomics");
    /* Intel's GPUs with matrix units can give a thread twice the registers. */
    s->has_large_registers =
        !s->cpu_form &&
        tern_cl_has_extension(e->device, "cl_intel_subgroup_matrix_multiply_accumulate");
    s->options = floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                     ? "-cl-std=CL1.2 -w -cl-fp32-correctly-rounded-divide-sqrt"
                     : "-cl-std=CL1.2 -w";
    /* PoCL 3 lets clang read 18,000 lines that declare all of OpenCL C before each program, which
     * takes longer than the rest of a kernel. The macro of their include guard prevents it. */
    bool reads_all = s->is_lazy && s->platform_version && strstr(s->platform_version, "PoCL 3.");
    snprintf(s->own_options, sizeof s->own_options, "%s%s", s->options,
             reads_all                              ? " -D_OPENCL_H_ -DTERN_DECLARES"
             : !s->cpu_form && (floats & CL_FP_FMA) ? " -DTERN_FAST_FMA"
                                                    : "");
    s->local_memory = needed_number(e->device, CL_DEVICE_LOCAL_MEM_SIZE, 8, answers);
    s->group_limit =
        (size_t)needed_number(e->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), answers);
    if (!s->cpu_form)
        s->matrix_way = tern_cl_matrix_claimed(e->device, info->name);
    tern_mutex_init(&s->lock);
    tern_mutex_init(&s->staged_lock);
    return s;
}

/* Returns the alignment of sub-buffers in bytes; the device reports bits. */
static size_t part_step(cl_device_id device)
{
    const size_t step = (size_t)device_number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4) / 8;
    return step > TERN_PART_STEP ? step : TERN_PART_STEP;
}

tern_status tern_cl_enumerate(tern_found **found, int *n, tern_text *notes)
{
    list devices = {.n = 0};
    find_all(&devices, notes);
    apply_mask(&devices, notes);
    if (notes->failed)
        return TERN_ERR_MEMORY;
    tern_found *all = tern_alloc(sizeof *all * (size_t)(devices.n + 1));
    if (!all)
        return TERN_ERR_MEMORY;
    int made = 0;
    for (int i = 0; i < devices.n; i++) {
        bool answers = describe(&devices.of[i], &all[made]);
        const tern_device_info *info = &all[made].info;
        tern_cl_state *s = make_state(&devices.of[i], info, &answers);
        all[made].state = s;
        all[made].lazy = s && s->is_lazy;
        all[made].part_step = part_step(devices.of[i].device);
        all[made].has_index32 = s && !s->cpu_form; /* CPUs are as fast with 64 bits */
        all[made].grouped = s && !s->cpu_form && s->local_memory >= ENOUGH_LOCAL;
        if (!s || !info->name || !info->vendor || !info->platform || !info->driver ||
            !s->platform_version) {
            tern_free(all); /* the texts leak: memory is out, and this runs once per process */
            return TERN_ERR_MEMORY;
        }
        if (answers) {
            made++;
            continue;
        }
        tern_text_add(notes, "%s%s does not answer", notes->length ? "; " : "",
                      *info->name ? info->name : "a device");
        tern_free(s);
    }
    *found = all;
    *n = made;
    return notes->failed ? TERN_ERR_MEMORY : TERN_OK;
}
