/* user_elsewhere.c -- a user's kernel on the cpu without a compiler: an OpenCL device on the
 * processor computes it, on copies of the tensors. */
#include "device/cpu/user.h"
#include "device/registry.h"

static tern_place *find_device(void)
{
    int kind = tern_registry_kind("opencl", 6);
    tern_place *place;
    for (int64_t i = 0; kind >= 0 && (place = tern_registry_place(kind, i)); i++)
        if (tern_place_info(place)->type == TERN_DEVICE_CPU)
            return place;
    return NULL;
}

tern_status tern_cpu_elsewhere_compile(tern_cpu_user *k, const char *source, const char *name)
{
    tern_place *place = find_device();
    if (!place)
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "tern_kernel_compile: nothing here compiles \"%s\" for cpu: a C++ compiler "
            "does (c++, g++ or clang++ on the PATH, or the one that TERN_CXX names), and "
            "so does an OpenCL driver for the processor (Debian: pocl-opencl-icd)",
            name);
    TERN_TRY(tern_registry_open(place));
    TERN_TRY(place->backend->user_compile(place, source, name, &k->kernel));
    k->elsewhere = place;
    return TERN_OK;
}

/* The copies of the tensors. A buffer that is passed twice has one copy. */
typedef struct copies {
    const tern_buffer *from[TERN_USER_ARGUMENTS];
    tern_buffer to[TERN_USER_ARGUMENTS];
    int n;
} copies;

static tern_status copy_of(tern_place *place, copies *c, const tern_buffer *from,
                           const tern_buffer **to)
{
    int i = 0;
    while (i < c->n && c->from[i]->host != from->host)
        i++;
    *to = &c->to[i];
    if (i < c->n)
        return TERN_OK;
    c->from[i] = from;
    c->to[i] = (tern_buffer){.bytes = from->bytes};
    tern_status status = place->backend->alloc(place, &c->to[i]);
    if (status != TERN_OK)
        return tern_fail(status, "tern_kernel_launch: no %zu bytes on %s for a copy of a tensor",
                         from->bytes, tern_place_info(place)->device);
    c->n++;
    return place->backend->write(place, &c->to[i], 0, from->host, from->bytes);
}

static tern_status run(tern_cpu_user *k, const tern_kernel_grid *grid, const tern_arg *args, int n,
                       copies *c)
{
    tern_place *place = k->elsewhere;
    tern_arg there[TERN_USER_ARGUMENTS + 1];
    for (int i = 0; i < n; i++) {
        there[i] = args[i];
        if (args[i].buffer)
            TERN_TRY(copy_of(place, c, args[i].buffer, &there[i].buffer));
    }
    TERN_TRY(place->backend->user_launch(place, k->kernel, grid, there, n));
    for (int i = 0; i < c->n; i++)
        TERN_TRY(place->backend->read(place, &c->to[i], 0, c->from[i]->host, c->from[i]->bytes));
    return TERN_OK;
}

tern_status tern_cpu_elsewhere_launch(tern_cpu_user *k, const tern_kernel_grid *grid,
                                      const tern_arg *args, int n)
{
    copies c = {.n = 0};
    tern_status status = run(k, grid, args, n, &c);
    for (int i = 0; i < c.n; i++)
        k->elsewhere->backend->free(k->elsewhere, &c.to[i]);
    return status;
}

void tern_cpu_elsewhere_free(tern_cpu_user *k)
{
    if (k->elsewhere)
        k->elsewhere->backend->user_free(k->elsewhere, k->kernel);
}
