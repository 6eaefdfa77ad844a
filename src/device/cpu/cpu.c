/* cpu.c -- the host as a device: memory from the heap, kernels compiled with the library, launches
 * that are done when they return. */
#include "base/parallel.h"
#include "base/os.h"
#include "device/backend.h"
#include "device/cpu/cpu.h"
#include "device/cpu/user.h"
#include <stdio.h>
#include <string.h>

static void read_cpu_name(char *name, size_t bytes)
{
    char line[256];
    FILE *f = tern_os_fopen("/proc/cpuinfo", "r");
    snprintf(name, bytes, "cpu");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(name, bytes, "%s", strchr(line, ':') + 2);
            name[strcspn(name, "\n")] = '\0';
            break;
        }
    if (f)
        fclose(f);
}

static tern_status cpu_memory(tern_place *place, uint64_t *free_bytes, uint64_t *total)
{
    (void)place;
    tern_os_memory(free_bytes, total);
    return TERN_OK;
}

static tern_status cpu_enumerate(tern_found **found, int *n, tern_text *notes)
{
    static char name[128];
    if (!tern_cpu_level()) {
        tern_text_add(notes, "this processor has none of the instruction sets that tern was built "
                             "for (or TERN_CPU_ISA names another)");
        return notes->failed ? TERN_ERR_MEMORY : TERN_OK;
    }
    read_cpu_name(name, sizeof name);
    tern_found *one = tern_alloc(sizeof *one);
    if (!one)
        return TERN_ERR_MEMORY;
    one->info = (tern_device_info){
        .name = name,
        .vendor = "host",
        .platform = "tern",
        .driver = tern_cpu_level(),
        .type = TERN_DEVICE_CPU,
        .compute_units = tern_os_cores(),
        .has_f64 = true,
        .unified_memory = true,
        .exact = true,
    };
    one->synchronous = true;
    one->part_step = 64; /* a cache line */
    cpu_memory(NULL, &one->info.memory_free, &one->info.memory_total);
    *found = one;
    *n = 1;
    return TERN_OK;
}

static tern_status cpu_open(tern_place *place)
{
    (void)place;
    return TERN_OK;
}

static void cpu_close(tern_place *place)
{
    (void)place;
    tern_cpu_free_kernels();
}

static tern_status cpu_alloc(tern_place *place, tern_buffer *buffer)
{
    (void)place;
    void *block = tern_alloc_aligned(buffer->bytes);
    if (!block)
        return TERN_ERR_MEMORY;
    buffer->handle = buffer->host = block;
    buffer->address = (uint64_t)(uintptr_t)block;
    return TERN_OK;
}

static void cpu_free(tern_place *place, tern_buffer *buffer)
{
    (void)place;
    tern_free(buffer->handle);
}

static tern_status cpu_write(tern_place *place, const tern_buffer *to, size_t at, const void *from,
                             size_t bytes)
{
    (void)place;
    memcpy((char *)to->host + at, from, bytes);
    return TERN_OK;
}

static tern_status cpu_read(tern_place *place, const tern_buffer *from, size_t at, void *to,
                            size_t bytes)
{
    (void)place;
    memcpy(to, (const char *)from->host + at, bytes);
    return TERN_OK;
}

static tern_status cpu_copy(tern_place *place, const tern_buffer *from, size_t from_at,
                            const tern_buffer *to, size_t to_at, size_t bytes)
{
    (void)place;
    memcpy((char *)to->host + to_at, (const char *)from->host + from_at, bytes);
    return TERN_OK;
}

static tern_status cpu_peer(tern_place *from_place, const tern_buffer *from, size_t from_at,
                            tern_place *to_place, const tern_buffer *to, size_t to_at, size_t bytes)
{
    (void)to_place;
    return cpu_copy(from_place, from, from_at, to, to_at, bytes);
}

static tern_status cpu_zero(tern_place *place, const tern_buffer *to, size_t at, size_t bytes)
{
    (void)place;
    memset((char *)to->host + at, 0, bytes);
    return TERN_OK;
}

/* ---- interop: a handle is an address ---- */

static tern_status cpu_borrow(tern_place *place, void *memory, tern_buffer *buffer)
{
    (void)place;
    buffer->handle = buffer->host = memory;
    buffer->address = (uint64_t)(uintptr_t)memory;
    return TERN_OK;
}

static void cpu_unborrow(tern_place *place, tern_buffer *buffer)
{
    (void)place;
    (void)buffer;
}

static void cpu_handles(tern_place *place, tern_device_handles *handles)
{
    (void)place;
    *handles = (tern_device_handles){.index = -1};
}

static tern_status cpu_use_handles(tern_place *place, const tern_device_handles *handles)
{
    (void)place;
    (void)handles;
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "tern_device_set_handles: cpu has no context and no queue");
}

/* ---- kernels ----------------------------------------------------------------------------- */

static tern_status cpu_launch(tern_place *place, void *kernel, const tern_grid *grid,
                              const tern_arg *args, int n)
{
    void *pointers[n];
    (void)place;
    for (int i = 0; i < n; i++) {
        const tern_arg *a = &args[i];
        const void *p = a->buffer         ? (char *)a->buffer->host + (size_t)a->at * a->bytes
                        : a->by_reference ? a->value.data
                                          : (const void *)&a->value;
        memcpy(&pointers[i], &p, sizeof p);
    }
    int parts = tern_parallel_parts(grid->work);
    tern_cpu_run_parts(kernel, pointers, parts < grid->count ? parts : (int)grid->count);
    return TERN_OK;
}

static tern_status cpu_sync(tern_place *place)
{
    (void)place;
    return TERN_OK;
}

static tern_status cpu_event(tern_place *place, void **event)
{
    int64_t *copy = tern_alloc(sizeof *copy);
    (void)place;
    if (!copy)
        return TERN_ERR_MEMORY;
    *copy = tern_os_now();
    *event = copy;
    return TERN_OK;
}

static tern_status cpu_elapsed(tern_place *place, void *from, void *to, double *nanoseconds)
{
    const int64_t *a = from, *b = to;
    (void)place;
    *nanoseconds = (double)(*b - *a);
    return TERN_OK;
}

static void cpu_event_free(tern_place *place, void *event)
{
    (void)place;
    tern_free(event);
}

const tern_backend tern_cpu_backend = {
    .kind = "cpu",
    .enumerate = cpu_enumerate,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .write = cpu_write,
    .read = cpu_read,
    .copy = cpu_copy,
    .peer = cpu_peer,
    .zero = cpu_zero,
    .resolve = tern_cpu_resolve,
    .launch = cpu_launch,
    .gemm = tern_cpu_gemm,
    .sync = cpu_sync,
    .event = cpu_event,
    .elapsed = cpu_elapsed,
    .event_free = cpu_event_free,
    .memory = cpu_memory,
    .user_compile = tern_cpu_user_compile,
    .user_launch = tern_cpu_user_launch,
    .user_free = tern_cpu_user_free,
    .borrow = cpu_borrow,
    .unborrow = cpu_unborrow,
    .handles = cpu_handles,
    .use_handles = cpu_use_handles,
    .vendor = &tern_cpu_vendor,
    .chain = tern_cpu_chain,
};
