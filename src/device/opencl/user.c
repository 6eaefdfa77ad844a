/* user.c -- the user's own kernels: text, arguments and grids. */
#include "device/opencl/opencl.h"
#include "device/user_source.h"
#include <stdio.h>
#include <string.h>

tern_status tern_cl_user_compile(tern_place *place, const char *source, const char *name,
                                 void **kernel)
{
    tern_cl_state *s = tern_cl_state_of(place);
    char title[192];
    TERN_TRY(tern_cl_alive(place));
    snprintf(title, sizeof title, "tern_kernel_compile: the source of \"%s\"", name);
    /* PoCL's best code is for a work-group size that it sees at the launch, and PoCL keeps it. */
    bool keep = tern_place_info(place)->type != TERN_DEVICE_CPU;
    tern_cl_source text = {source, "", title, keep ? s->keep : TERN_CL_KEEP_NOT};
    cl_program program;
    tern_cl_kernel *made;
    TERN_TRY(tern_cl_build(place, &text, &program));
    TERN_TRY(tern_cl_kernel_make(place, program, name, &made));
    *kernel = made;
    return TERN_OK;
}

/* Checks the local memory of the arguments: PoCL aborts the process if there is not enough. */
static tern_status check_local(tern_place *place, const tern_cl_kernel *k, const tern_arg *args,
                               int n)
{
    tern_cl_state *s = tern_cl_state_of(place);
    uint64_t asked = 0;
    for (int i = 0; i < n; i++)
        if (!args[i].buffer && args[i].by_reference && !args[i].value.data)
            asked += args[i].bytes;
    if (asked + k->own_local <= s->local_memory)
        return TERN_OK;
    return tern_fail(
        TERN_ERR_ARGUMENT,
        "tern_kernel_launch: kernel %s is given %llu bytes of local memory and has %llu "
        "of its own, but %s has only %llu",
        k->name, (unsigned long long)asked, (unsigned long long)k->own_local,
        tern_place_info(place)->device, (unsigned long long)s->local_memory);
}

static tern_status check_group(tern_place *place, const tern_cl_kernel *k, const size_t *local)
{
    size_t limit = 0, fixed[3] = {0}, n = local[0] * local[1] * local[2];
    tern_cl_state *s = tern_cl_state_of(place);
    CL_TRY(place, GetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE,
                                         sizeof limit, &limit, NULL));
    CL_TRY(place, GetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                         sizeof fixed, fixed, NULL));
    if (n > limit)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_kernel_launch: a group of %zu work-items is too large: kernel %s on %s "
            "takes %zu",
            n, k->name, tern_place_info(place)->device, limit);
    if (fixed[0] && memcmp(fixed, local, sizeof fixed) != 0)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_kernel_launch: kernel %s requires groups of %zux%zux%zu, not %zux%zux%zu",
            k->name, fixed[0], fixed[1], fixed[2], local[0], local[1], local[2]);
    return TERN_OK;
}

/* Chooses a group: 64 work-items along x, or the size that the kernel's text requires. */
static tern_status choose_group(tern_place *place, const tern_cl_kernel *k,
                                const tern_kernel_grid *grid, size_t *local)
{
    tern_cl_state *s = tern_cl_state_of(place);
    size_t limit = 1, fixed[3] = {0};
    CL_TRY(place, GetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE,
                                         sizeof limit, &limit, NULL));
    CL_TRY(place, GetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                         sizeof fixed, fixed, NULL));
    for (int i = 0; i < 3; i++)
        local[i] = fixed[0] ? fixed[i] : 1;
    if (fixed[0])
        return TERN_OK;
    while (local[0] < 64 && local[0] * 2 <= limit && (int64_t)local[0] < grid->items[0])
        local[0] *= 2;
    return TERN_OK;
}

tern_status tern_cl_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                const tern_arg *args, int n)
{
    tern_cl_kernel *k = kernel;
    size_t global[3], local[3];
    TERN_TRY(tern_cl_alive(place));
    if ((cl_uint)n != k->arguments)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: kernel %s takes %u arguments, %d were given", k->name,
                         k->arguments, n);
    TERN_TRY(check_local(place, k, args, n));
    if (grid->group[0] == 0)
        TERN_TRY(choose_group(place, k, grid, local));
    else
        for (int i = 0; i < 3; i++)
            local[i] = grid->group[i] > 0 ? (size_t)grid->group[i] : 1;
    TERN_TRY(check_group(place, k, local));
    for (int i = 0; i < 3; i++)
        global[i] = ((size_t)grid->items[i] + local[i] - 1) / local[i] * local[i];
    return tern_cl_enqueue(place, k, (cl_uint)tern_user_dims(grid), global, local, args, n, false);
}

void tern_cl_user_free(tern_place *place, void *kernel)
{
    if (tern_cl_alive(place) == TERN_OK)
        CL_END(Finish(tern_cl_state_of(place)->queue));
    tern_cl_kernel_free(kernel);
}
