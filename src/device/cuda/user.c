/* user.c -- kernels of the user's own: their arguments, their grids. */
#include "device/cuda/cuda.h"
#include <stdio.h>

tern_status tern_cuda_user_compile(tern_place *place, const char *source, const char *name,
                                   void **kernel)
{
    char title[192], entry[128];
    tern_text text = {0};
    int arguments;
    uint64_t locals;
    tern_cuda_kernel *made = NULL;
    snprintf(title, sizeof title, "tern_kernel_compile: the source of \"%s\"", name);
    snprintf(entry, sizeof entry, "tern_entry_%s", name);
    tern_status status = tern_cuda_translate(&text, source, name, &arguments, &locals);
    if (status == TERN_OK) {
        tern_cuda_source from = {text.data, title, entry, false};
        status = tern_cuda_build(place, &from, &made);
    }
    tern_text_free(&text);
    TERN_TRY(status);
    made->arguments = arguments;
    made->locals = locals;
    snprintf(made->name, sizeof made->name, "%s", name);
    *kernel = made;
    return TERN_OK;
}

static bool is_local(const tern_arg *a)
{
    return !a->buffer && a->by_reference && !a->value.data;
}

/* Local memory becomes offsets into the block's shared memory; *bytes of it in all. */
static tern_status place_locals(tern_place *place, const tern_cuda_kernel *k, const tern_arg *args,
                                int n, tern_arg *placed, unsigned *bytes)
{
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        placed[i] = args[i];
        bool local = is_local(&args[i]), wanted = i < 64 && (k->locals >> i & 1);
        if (local != wanted)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_kernel_launch: argument %d of kernel %s is %s local memory", i,
                             k->name, wanted ? "" : "not");
        if (!local)
            continue;
        placed[i] = (tern_arg){.bytes = 4, .value.i32 = (int32_t)*bytes};
        *bytes += (args[i].bytes + 15u) / 16u * 16u;
    }
    int most = tern_cuda_state_of(place)->shared_memory;
    if ((uint64_t)*bytes + (uint64_t)k->shared > (uint64_t)most)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: kernel %s is given %u bytes of local memory and has "
                         "%d of its own, but %s has only %d",
                         k->name, *bytes, k->shared, tern_place_info(place)->device, most);
    return TERN_OK;
}

static tern_status choose_block(tern_place *place, const tern_cuda_kernel *k,
                                const tern_kernel_grid *grid, unsigned block[3])
{
    int64_t all = 1;
    for (int i = 0; i < 3; i++)
        block[i] = grid->group[0] && grid->group[i] > 0 ? (unsigned)grid->group[i] : 1;
    while (grid->group[0] == 0 && block[0] < 64 && (int64_t)block[0] < grid->items[0])
        block[0] *= 2;
    for (int i = 0; i < 3; i++)
        all *= block[i];
    if (all <= k->most_threads)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT,
                     "tern_kernel_launch: a group of %lld work-items is too large: kernel %s on %s "
                     "takes %d",
                     (long long)all, k->name, tern_place_info(place)->device, k->most_threads);
}

tern_status tern_cuda_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                  const tern_arg *args, int n)
{
    tern_cuda_kernel *k = kernel;
    tern_arg placed[n + 1];
    uint64_t addresses[n + 1];
    void *parameters[n + 1];
    unsigned shared, block[3], blocks[3];
    TERN_TRY(tern_cuda_enter(place));
    if (n != k->arguments)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_launch: kernel %s takes %d arguments, %d were given", k->name,
                         k->arguments, n);
    TERN_TRY(place_locals(place, k, args, n, placed, &shared));
    TERN_TRY(choose_block(place, k, grid, block));
    for (int i = 0; i < 3; i++)
        blocks[i] = (unsigned)((grid->items[i] + block[i] - 1) / block[i]);
    tern_cuda_parameters(placed, n, addresses, parameters);
    CUresult code =
        tern_cuda.cuLaunchKernel(k->function, blocks[0], blocks[1], blocks[2], block[0], block[1],
                                 block[2], shared, tern_cuda_stream(place), parameters, NULL);
    return tern_cuda_check_driver(place, code, k->name);
}

void tern_cuda_user_free(tern_place *place, void *kernel)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    tern_cuda_kernel *k = kernel;
    if (atomic_load(&s->lost) || tern_cuda.cudaSetDevice(s->index) != 0) {
        tern_free(k);
        return;
    }
    tern_cuda.cudaStreamSynchronize(s->stream);
    tern_cuda_kernel_free(k);
}
