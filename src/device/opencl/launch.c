/* launch.c -- arguments and geometry of a launch. */
#include "device/opencl/opencl.h"
#include "base/lock.h"
#include "types_host.h"
#include "shapes.h"
#include <stdio.h>

/* WORK_PER_GROUP: element-operations worth a work-group in the cpu form. GROUPS_PER_UNIT:
 * work-groups in flight that fill a compute unit of a GPU. */
enum { WORK_PER_GROUP = 8192, GROUPS_PER_UNIT = 64, MOST_GROUPS = 65535 };
/* MOST_QUEUED: drivers may queue without limit, and keep a few hundred bytes of each command. */
enum { MOST_QUEUED = 4096 };

static cl_int set_any(tern_cl_kernel *kernel, cl_uint index, size_t bytes, const void *value)
{
    if (index < TERN_CL_SETS)
        kernel->set[index].bytes = 0;
    return CL(SetKernelArg(kernel->kernel, index, bytes, value));
}

/* Sets a number of up to 8 bytes if it differs from the last one. */
static cl_int set_number(tern_cl_kernel *kernel, cl_uint index, size_t bytes, uint64_t value)
{
    if (index >= TERN_CL_SETS)
        return set_any(kernel, index, bytes, &value);
    tern_cl_set *last = &kernel->set[index];
    if (last->bytes == bytes && last->value == value)
        return CL_SUCCESS;
    cl_int code = set_any(kernel, index, bytes, &value);
    if (code == CL_SUCCESS)
        *last = (tern_cl_set){value, bytes};
    return code;
}

static cl_int set_argument(tern_cl_kernel *kernel, cl_uint *index, const tern_arg *a,
                           bool with_offsets)
{
    if (a->buffer) {
        cl_mem memory = a->buffer->handle;
        cl_int code = set_any(kernel, (*index)++, sizeof memory, &memory);
        if (code == CL_SUCCESS && with_offsets && !a->without_offset)
            code = set_number(kernel, (*index)++, sizeof a->at, (uint64_t)a->at);
        return code;
    }
    if (!a->by_reference && a->bytes <= sizeof a->value)
        return set_number(kernel, (*index)++, a->bytes, a->value.u64);
    return set_any(kernel, (*index)++, a->bytes, a->by_reference ? a->value.data : &a->value);
}

tern_status tern_cl_enqueue(tern_place *place, tern_cl_kernel *kernel, cl_uint dims,
                            const size_t *global, const size_t *local, const tern_arg *args, int n,
                            bool with_offsets)
{
    tern_cl_state *s = tern_cl_state_of(place);
    TERN_TRY(tern_cl_alive(place));
    cl_int code = CL_SUCCESS;
    cl_uint index = 0;
    cl_event event = NULL;
    const char *call = "SetKernelArg";
    bool first = false;
    tern_mutex_lock(&s->lock);
    first = tern_cl_launch_is_first(s, kernel, dims, global, local);
    if (first)
        (void)CL(Finish(s->queue)); /* the event then waits for the compiler alone */
    for (int i = 0; i < n && code == CL_SUCCESS; i++)
        code = set_argument(kernel, &index, &args[i], with_offsets);
    if (code == CL_SUCCESS) {
        call = "EnqueueNDRangeKernel";
        code = CL(EnqueueNDRangeKernel(s->queue, kernel->kernel, dims, NULL, global, local, 0, NULL,
                                       first ? &event : NULL));
        tern_cl_note_enqueued(s);
    }
    tern_mutex_unlock(&s->lock);
    if (event)
        tern_cl_wait_for_code(place, kernel, event);
    if (code == CL_SUCCESS)
        return tern_cl_queued(s) < MOST_QUEUED ? TERN_OK : tern_cl_settle(place);
    if (!with_offsets && (code == CL_INVALID_ARG_SIZE || code == CL_INVALID_ARG_VALUE ||
                          code == CL_INVALID_MEM_OBJECT))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: argument %u of kernel %s is of another type or size "
                         "than the one given (%s)",
                         index - 1, kernel->name, tern_cl_code_name(code));
    char where[192];
    snprintf(where, sizeof where, "%s(kernel %s", call, kernel->name);
    return tern_cl_check(place, code, where);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the number of work-groups, at least one. */
static int64_t groups_for(tern_place *place, const tern_cl_kernel *kernel, const tern_grid *grid,
                          const tern_arg *args, int n)
{
    int units = tern_place_info(place)->compute_units;
    int64_t groups, size = (int64_t)kernel->group;
    if (tern_cl_state_of(place)->cpu_form) {
        groups = smaller((grid->work + WORK_PER_GROUP - 1) / WORK_PER_GROUP, 2 * (int64_t)units);
        groups = smaller(groups, grid->count);
    } else if (grid->groups) {
        int64_t teams = grid->groups > 1 ? size / TERN_TEAM(grid->groups, size) : 1;
        groups = (grid->count + teams - 1) / teams;
    } else {
        groups = tern_flat_groups(grid, args, n, size, (int64_t)units * GROUPS_PER_UNIT);
    }
    return (groups < 1 ? 1 : smaller(groups, MOST_GROUPS)) * (grid->sides ? grid->sides : 1);
}

tern_status tern_cl_launch(tern_place *place, void *kernel, const tern_grid *grid,
                           const tern_arg *args, int n)
{
    tern_cl_kernel *k = kernel;
    size_t local = k->group;
    size_t global = (size_t)groups_for(place, k, grid, args, n) * local;
    return tern_cl_enqueue(place, k, 1, &global, &local, args, n, true);
}
