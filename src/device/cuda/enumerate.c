/* enumerate.c -- the devices that the driver reports. The driver itself applies
 * CUDA_VISIBLE_DEVICES. */
#include "device/cuda/cuda.h"
#include "base/os.h"
#include "base/lock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Attributes of a device. */
typedef struct numbers {
    int major, minor, shared_memory, threads, units, integrated;
} numbers;

/* Reads the attributes of the device. Returns false if the runtime fails. */
static bool ask_numbers(int device, numbers *n)
{
    const struct {
        enum cudaDeviceAttr what;
        int *value;
    } questions[] = {{cudaDevAttrComputeCapabilityMajor, &n->major},
                     {cudaDevAttrComputeCapabilityMinor, &n->minor},
                     {cudaDevAttrMaxSharedMemoryPerBlock, &n->shared_memory},
                     {cudaDevAttrMaxThreadsPerBlock, &n->threads},
                     {cudaDevAttrMultiProcessorCount, &n->units},
                     {cudaDevAttrIntegrated, &n->integrated}};
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (tern_cuda.cudaDeviceGetAttribute(questions[i].value, questions[i].what, device) != 0) {
            tern_cuda.cudaGetLastError();
            return false;
        }
    return true;
}

/* Returns a new state, which the caller owns, or NULL if memory is out. */
static tern_cuda_state *make_state(int index, const numbers *number)
{
    tern_cuda_state *s = tern_alloc(sizeof *s);
    if (!s)
        return NULL;
    s->index = index;
    s->compute = number->major * 10 + number->minor;
    s->shared_memory = number->shared_memory;
    s->threads = number->threads;
    tern_mutex_init(&s->staging_lock);
    tern_mutex_init(&s->recording_lock);
    tern_mutex_init(&s->gemm_lock);
    tern_mutex_init(&s->dnn_lock);
    tern_mutex_init(&s->own_lock);
    return s;
}

/* Fills *found for the device. Sets *answers to false, with a note, if the driver does not describe
 * the device. */
static tern_status describe(int index, tern_found *found, tern_text *notes, bool *answers)
{
    CUdevice device;
    char name[256] = "", platform[32];
    size_t total = 0;
    int version = 0;
    CUuuid uuid;
    numbers number;
    tern_cuda.cuDriverGetVersion(&version);
    CUresult code = tern_cuda.cuDeviceGet(&device, index);
    if (code == 0)
        code = tern_cuda.cuDeviceGetName(name, sizeof name - 1, device);
    if (code == 0)
        code = tern_cuda.cuDeviceTotalMem_v2(&total, device);
    if (code == 0)
        code = tern_cuda.cuDeviceGetUuid_v2(&uuid, device);
    *answers = code == 0 && ask_numbers(index, &number);
    if (!*answers) {
        const char *text = NULL;
        tern_cuda.cuGetErrorName(code, &text);
        tern_text_add(notes, "%sdevice %d does not answer (%s)", notes->length ? "; " : "", index,
                      text ? text : "unknown error");
        return notes->failed ? TERN_ERR_MEMORY : TERN_OK;
    }
    snprintf(platform, sizeof platform, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    char *own_name = tern_copy_text(name), *driver = own_name ? tern_copy_text(platform) : NULL;
    found->state = driver ? make_state(index, &number) : NULL;
    if (!found->state) {
        tern_free(own_name);
        tern_free(driver);
        return TERN_ERR_MEMORY;
    }
    found->info = (tern_device_info){
        .name = own_name,
        .vendor = "NVIDIA",
        .platform = "CUDA",
        .driver = driver,
        .type = TERN_DEVICE_GPU,
        .compute_units = number.units,
        .memory_total = total,
        .memory_free = total,
        .has_f64 = true,
        .has_native_f16 = true,
        .unified_memory = number.integrated != 0,
        .exact = true,
        .capability_major = number.major,
        .capability_minor = number.minor,
    };
    tern_uuid_text(uuid.bytes, found->info.uuid);
    found->grouped = true;
    found->has_index32 = true;
    return TERN_OK;
}

/* Notes why there is no device. cuInit's code comes first: after it fails, the runtime reports only
 * that there is no device. */
static void note_none(CUresult init, cudaError_t code, tern_text *notes)
{
    const char *mask = tern_os_getenv("CUDA_VISIBLE_DEVICES"), *name = NULL,
               *text = "no CUDA device";
    const char *comma = notes->length ? "; " : "";
    if (init) {
        tern_cuda.cuGetErrorName(init, &name);
        tern_cuda.cuGetErrorString(init, &text);
        tern_text_add(notes, "%scuInit gave %s (%u): %s", comma, name ? name : "an unknown code",
                      init, text ? text : "");
    } else {
        tern_text_add(notes, "%s%s", comma, code ? tern_cuda.cudaGetErrorString(code) : text);
    }
    if (mask)
        tern_text_add(notes, " (CUDA_VISIBLE_DEVICES=\"%s\")", mask);
}

tern_status tern_cuda_enumerate(tern_found **found, int *n, tern_text *notes)
{
    int count = 0, made = 0;
    bool loaded = tern_cuda_load(notes);
    if (notes->failed)
        return TERN_ERR_MEMORY;
    if (loaded) {
        CUresult init = tern_cuda.cuInit(0);
        cudaError_t code = init ? cudaErrorNoDevice : tern_cuda.cudaGetDeviceCount(&count);
        if (code != 0 || count == 0) {
            tern_cuda.cudaGetLastError();
            note_none(init, code, notes);
            count = 0;
        }
    }
    tern_found *all = tern_alloc(sizeof *all * (size_t)(count + 1));
    if (!all)
        return TERN_ERR_MEMORY;
    tern_status status = notes->failed ? TERN_ERR_MEMORY : TERN_OK;
    /* Indices are CUDA's, so the list ends at the first device that does not answer. */
    for (bool answers = true; status == TERN_OK && made < count && answers; made += answers)
        status = describe(made, &all[made], notes, &answers);
    if (status != TERN_OK) { /* texts of earlier devices leak: memory is out, devices are few */
        tern_free(all);
        return status;
    }
    *found = all;
    *n = made;
    return TERN_OK;
}
