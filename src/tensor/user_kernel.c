/* user_kernel.c -- kernels of the program: compiling them, and launching them on tensors. */
#include "base/handle.h"
#include "device/registry.h"
#include "device/user_source.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <string.h>
#include <tern/kernel.h>

enum { MAX_ARGUMENTS = 128 };

struct tern_kernel {
    tern_handle handle; /* first */
    tern_place *place;
    void *compiled; /* owned by the backend */
    char name[64];
    bool has_signature; /* false if the source does not show the parameters, although the
                         * driver may compile the kernel */
    tern_user_parameters parameters;
};

static tern_handles handles = TERN_HANDLES("kernel", tern_kernel);

tern_kernel *tern_kernel_compile(const char *device, const char *source, const char *name)
{
    static const char function[] = "tern_kernel_compile";
    if (!source || !name) {
        tern_fail_argument_null(function, source ? "name" : "source");
        return NULL;
    }
    tern_place *place = tern_place_find(device, function);
    tern_kernel *kernel = place ? tern_object_new(&handles) : NULL;
    if (!kernel)
        return NULL;
    kernel->place = place;
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    tern_status read =
        tern_user_parameters_read(&kernel->parameters, source, name, &(const char *){NULL});
    kernel->has_signature = read == TERN_OK;
    if (read != TERN_ERR_MEMORY &&
        place->backend->user_compile(place, source, name, &kernel->compiled) == TERN_OK)
        return kernel;
    tern_object_end(&handles, &kernel->handle);
    return NULL;
}

void tern_kernel_free(tern_kernel *kernel)
{
    if (!TERN_GIVEN(kernel, "kernel", "tern_kernel_free"))
        return;
    kernel->place->backend->user_free(kernel->place, kernel->compiled);
    tern_handle_describe(&kernel->handle, "%s", kernel->name);
    tern_object_end(&handles, &kernel->handle);
}

/* ---- arguments --------------------------------------------------------------------------- */

tern_kernel_arg tern_kernel_arg_tensor(tern_tensor *x)
{
    return (tern_kernel_arg){.kind = TERN_KERNEL_ARG_TENSOR, .tensor = x};
}

tern_kernel_arg tern_kernel_arg_int(int32_t value)
{
    return (tern_kernel_arg){.kind = TERN_KERNEL_ARG_INTEGER, .bytes = 4, .value.i32 = value};
}

tern_kernel_arg tern_kernel_arg_long(int64_t value)
{
    return (tern_kernel_arg){.kind = TERN_KERNEL_ARG_INTEGER, .bytes = 8, .value.i64 = value};
}

tern_kernel_arg tern_kernel_arg_float(float value)
{
    return (tern_kernel_arg){.kind = TERN_KERNEL_ARG_REAL, .bytes = 4, .value.f32 = value};
}

tern_kernel_arg tern_kernel_arg_double(double value)
{
    return (tern_kernel_arg){.kind = TERN_KERNEL_ARG_REAL, .bytes = 8, .value.f64 = value};
}

tern_kernel_arg tern_kernel_arg_local(size_t bytes)
{
    uint32_t most = UINT32_MAX; /* more than any device has, so the launch fails */
    return (tern_kernel_arg){.kind = TERN_KERNEL_ARG_LOCAL,
                             .bytes = bytes < most ? (uint32_t)bytes : most};
}

static tern_status tensor_argument(const tern_kernel *kernel, const tern_kernel_arg *from, int i,
                                   tern_arg *arg)
{
    const tern_tensor *x = from->tensor;
    if (!x) {
        if (tern_last_status() != TERN_OK)
            return tern_last_status();
        return tern_fail(TERN_ERR_ARGUMENT, "tern_kernel_launch: argument %d is a NULL tensor", i);
    }
    if (!tern_given(x, "tern_kernel_launch", "a tensor"))
        return TERN_ERR_STATE;
    if (x->storage->place != kernel->place)
        return tern_fail(TERN_ERR_DEVICE,
                         "tern_kernel_launch: argument %d is on %s, the kernel was compiled for %s",
                         i, x->storage->place->text, kernel->place->text);
    if (!x->contiguous)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_kernel_launch: argument %d is not contiguous; tern_contiguous makes a "
            "copy that is",
            i);
    if (x->offset != 0)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_kernel_launch: argument %d is a view that starts at element %lld of its "
            "storage; tern_clone makes a copy that starts at 0",
            i, (long long)x->offset);
    if (x->numel == 0)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_kernel_launch: argument %d has no elements, so there is no memory to "
            "pass",
            i);
    *arg = tern_arg_tensor(x);
    return TERN_OK;
}

static tern_status argument(const tern_kernel *kernel, const tern_kernel_arg *from, int i,
                            tern_arg *arg)
{
    static const uint8_t types[] = {
        [TERN_KERNEL_ARG_INTEGER] = TERN_TYPE_i64, [TERN_KERNEL_ARG_REAL] = TERN_TYPE_f64};
    switch (from->kind) {
    case TERN_KERNEL_ARG_TENSOR:
        return tensor_argument(kernel, from, i, arg);
    case TERN_KERNEL_ARG_BYTES:
    case TERN_KERNEL_ARG_INTEGER:
    case TERN_KERNEL_ARG_REAL:
        *arg = (tern_arg){.bytes = from->bytes, .type = types[from->kind]};
        if (from->bytes == 4 || from->bytes == 8) {
            memcpy(&arg->value, &from->value, from->bytes);
            return TERN_OK;
        }
        break;
    case TERN_KERNEL_ARG_LOCAL:
        *arg = (tern_arg){.bytes = from->bytes, .by_reference = true};
        if (from->bytes > 0)
            return TERN_OK;
        break;
    }
    return tern_fail(TERN_ERR_ARGUMENT,
                     "tern_kernel_launch: argument %d is malformed (kind %d, %u bytes)", i,
                     (int)from->kind, from->bytes);
}

/* ---- grids ------------------------------------------------------------------------------- */

tern_kernel_grid tern_kernel_grid_1d(int64_t items)
{
    return (tern_kernel_grid){.items = {items, 1, 1}};
}

tern_kernel_grid tern_kernel_grid_1d_grouped(int64_t items, int64_t group)
{
    return (tern_kernel_grid){.items = {items, 1, 1}, .group = {group, 1, 1}};
}

tern_kernel_grid tern_kernel_grid_2d(int64_t x, int64_t y)
{
    return (tern_kernel_grid){.items = {x, y, 1}};
}

/* Checks the grid. Sets *empty to whether there is nothing to launch. */
static tern_status check_grid(const tern_kernel_grid *grid, bool *empty)
{
    const int64_t most = INT64_C(1) << 40;
    *empty = false;
    for (int i = 0; i < 3; i++) {
        if (grid->items[i] < 0 || grid->items[i] > most || grid->group[i] < 0 ||
            grid->group[i] > most)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_kernel_launch: dimension %d of the grid is %lld work-items in "
                             "groups of %lld",
                             i, (long long)grid->items[i], (long long)grid->group[i]);
        *empty = *empty || grid->items[i] == 0;
    }
    return TERN_OK;
}

tern_status tern_kernel_launch_args(tern_kernel *kernel, tern_kernel_grid grid,
                                    const tern_kernel_arg *args, int n)
{
    tern_arg list[MAX_ARGUMENTS];
    bool empty;
    if (kernel && !TERN_GIVEN(kernel, "kernel", "tern_kernel_launch"))
        return TERN_ERR_STATE;
    if (!kernel)
        return tern_fail_argument_null("tern_kernel_launch", "kernel");
    if (n > 0 && !args)
        return tern_fail_argument_null("tern_kernel_launch", "args");
    if (n < 0 || n > MAX_ARGUMENTS)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_kernel_launch: %d arguments (0 to %d)", n,
                         MAX_ARGUMENTS);
    TERN_TRY(tern_registry_open(kernel->place));
    TERN_TRY(check_grid(&grid, &empty));
    if (empty)
        return TERN_OK;
    for (int i = 0; i < n; i++)
        TERN_TRY(argument(kernel, &args[i], i, &list[i]));
    if (kernel->has_signature)
        TERN_TRY(tern_user_check(&kernel->parameters, kernel->name, list, n));
    tern_place *place = kernel->place;
    TERN_TRY(tern_launch_user(place, kernel->compiled, &grid, list, n));
    for (int i = 0; i < n; i++)
        if (args[i].kind == TERN_KERNEL_ARG_TENSOR)
            tern_bump_version(args[i].tensor);
    return TERN_OK;
}
