/* launch.c -- finds or compiles a kernel by its name, and launches it. */
#include "device/builds.h"
#include "base/lock.h"
#include "device/index32.h"
#include "device/recording.h"
#include "device/registry.h"
#include "device/command.h"
#include "types_host.h"
#include <string.h>

#include "shapes.h"

int64_t tern_flat_groups(const tern_grid *grid, const tern_arg *args, int n, int64_t size,
                         int64_t fill)
{
    enum { TWO_VECTORS = 32 };
    int64_t widest = 1;
    for (int i = 0; i < n; i++)
        if (args[i].buffer && args[i].bytes > (size_t)widest)
            widest = (int64_t)args[i].bytes;
    const int64_t all = (grid->count + size - 1) / size;
    const int64_t once = (all * widest + TWO_VECTORS - 1) / TWO_VECTORS;
    const int64_t most = fill > once ? fill : once;
    return all < most ? all : most;
}

static size_t slot_of(const tern_kernel_ref *ref, tern_dtype dtype)
{
    uint64_t key = (uint64_t)(uintptr_t)ref / 8 * 16 + (uint64_t)dtype;
    return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % KERNEL_SLOTS;
}

static tern_resolved *look_up(tern_place *place, const tern_kernel_ref *ref, tern_dtype dtype,
                              size_t *slot)
{
    for (size_t i = slot_of(ref, dtype);; i = (i + 1) % KERNEL_SLOTS) {
        tern_resolved *r = atomic_load_explicit(&place->kernels[i], memory_order_acquire);
        *slot = i;
        if (!r || (r->ref == ref && r->dtype == dtype))
            return r;
    }
}

/* Returns the variant of the kernel (place.h) that a launch uses. */
static int build_for(const tern_place *place, const tern_grid *grid, const tern_arg *args, int n)
{
    if (!place->has_index32 || !tern_fits_index32(args, n, grid->count))
        return TERN_BUILD_WIDE;
    if (!grid->has_short || grid->groups < 2 || grid->groups > TERN_SHORT_ROW)
        return TERN_BUILD_NARROW;
    int build = TERN_BUILD_TEAMS;
    while (tern_build_lanes(build) < TERN_TEAM(grid->groups, TERN_SHORT_ROW))
        build++;
    return build;
}

/* Compiles a variant of the kernel; returns false after an error. The caller holds place->lock. */
static bool make(tern_place *place, tern_resolved *r, int build)
{
    void *compiled = atomic_load(&r->compiled[build]);
    const tern_backend *b = place->backend;
    const tern_kernel_ref *ref = r->ref;
    if (compiled)
        return true;
    tern_builds_expect(place, ref->file, ref->name, r->dtype);
    if ((build ? b->resolve_index32(place, ref->file, ref->name, r->dtype, tern_build_lanes(build),
                                    &compiled)
               : b->resolve(place, ref->file, ref->name, r->dtype, &compiled)) != TERN_OK)
        return false;
    atomic_store_explicit(&r->compiled[build], compiled, memory_order_release);
    return true;
}

/* Returns a new tern_resolved with this variant, or NULL after an error. The caller holds
 * place->lock. */
static tern_resolved *make_resolved(tern_place *place, const tern_kernel_ref *ref, tern_dtype dtype,
                                    int build)
{
    tern_kernel_parameter parameters[TERN_MOST_PARAMETERS];
    int n = tern_signature_read(parameters, ref->file, ref->name, dtype);
    tern_resolved *r = n < 0 ? NULL : tern_alloc(sizeof *r + sizeof *parameters * (size_t)n);
    if (!r)
        return NULL;
    r->ref = ref;
    r->dtype = dtype;
    r->n_parameters = n;
    memcpy(r->parameters, parameters, sizeof *parameters * (size_t)n);
    if (make(place, r, build))
        return r;
    tern_free(r);
    return NULL;
}

/* Finds or adds the kernel in place->kernels, with this variant; returns NULL after an error. */
static tern_resolved *resolve(tern_place *place, const tern_kernel_ref *ref, tern_dtype dtype,
                              int build)
{
    size_t slot;
    if (tern_registry_open(place) != TERN_OK)
        return NULL;
    tern_place_enter(place);
    tern_foreign_lock(&place->lock);
    tern_resolved *r = look_up(place, ref, dtype, &slot);
    if (r)
        r = make(place, r, build) ? r : NULL;
    else if ((r = make_resolved(place, ref, dtype, build)))
        atomic_store_explicit(&place->kernels[slot], r, memory_order_release);
    tern_mutex_unlock(&place->lock);
    tern_place_leave(place);
    return r;
}

static void *compiled_of(const tern_resolved *r, int build)
{
    return r ? atomic_load_explicit(&r->compiled[build], memory_order_acquire) : NULL;
}

tern_status tern_launch_prepare(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype)
{
    size_t slot;
    const int build = place->has_index32 ? TERN_BUILD_NARROW : TERN_BUILD_WIDE;
    bool there = compiled_of(look_up(place, kernel, dtype, &slot), build) ||
                 tern_listing_takes(place, kernel, dtype, 0) ||
                 resolve(place, kernel, dtype, build);
    return there ? TERN_OK : tern_last_status();
}

/* Records the command, or one command for it and the previous one, if a kernel computes both. */
static tern_status record(tern_graph *graph, const tern_command *command)
{
    tern_pair pair;
    if (graph->lists || !tern_place_is_grouped(graph->place) ||
        !tern_record_pair(graph, command, &pair))
        return tern_record_command(graph, command);
    tern_status status =
        tern_launch_grid(graph->place, pair.kernel, command->what.launch.kernel->dtype,
                         command->what.launch.grid, pair.args, pair.n);
    graph->failed |= status != TERN_OK; /* the previous command was removed */
    return status;
}

tern_status tern_launch_grid(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype,
                             const tern_grid *grid, const tern_arg *args, int n)
{
    if (grid->count == 0)
        return TERN_OK;
    size_t slot;
    const int build = build_for(place, grid, args, n);
    tern_resolved *r = look_up(place, kernel, dtype, &slot);
    void *compiled = compiled_of(r, build);
    if (!compiled && tern_listing_takes(place, kernel, dtype, tern_build_lanes(build)))
        return TERN_OK;
    if (!compiled) {
        if (!(r = resolve(place, kernel, dtype, build)))
            return tern_last_status();
        compiled = compiled_of(r, build);
    }
    if (!tern_parameters_take(r->parameters, r->n_parameters, args, n))
        return tern_signature_refuse(place, kernel->file, kernel->name, dtype, args, n);
    tern_command command = {
        .kind = TERN_COMMAND_KERNEL,
        .what.launch = {.kernel = r, .compiled = compiled, .grid = grid, .args = args, .n = n}};
    tern_graph *graph = tern_capture_of(place);
    return graph ? record(graph, &command) : tern_command_dispatch(place, &command, NULL);
}

tern_status tern_gemm_epilogue_fits(tern_place *place, const tern_gemm *gemm, bool *fits)
{
    const tern_vendor *vendor = place->backend->vendor;
    tern_gemm g = *gemm;
    *fits = false;
    if (!vendor || !vendor->epilogue_fits)
        return TERN_OK;
    g.tf32 = g.dtype == TERN_F32 && tern_allows_tf32();
    TERN_TRY(tern_registry_open(place));
    return vendor->epilogue_fits(place, &g, fits);
}

tern_status tern_launch_gemm(tern_place *place, const tern_gemm *gemm)
{
    tern_gemm g = *gemm;
    g.tf32 = g.dtype == TERN_F32 && tern_allows_tf32();
    return tern_command_dispatch(place, &(tern_command){.kind = TERN_COMMAND_GEMM, .what.gemm = &g},
                                 NULL);
}

tern_status tern_launch_user(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                             const tern_arg *args, int n)
{
    tern_command command = {
        .kind = TERN_COMMAND_USER,
        .what.launch = {.user_kernel = kernel, .user_grid = grid, .args = args, .n = n}};
    return tern_command_dispatch(place, &command, NULL);
}
