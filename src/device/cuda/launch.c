/* launch.c -- arguments and geometry of a launch. */
#include "device/cuda/cuda.h"
#include "types_host.h"
#include "shapes.h"

/* BLOCKS_PER_UNIT: blocks in flight that fill a multiprocessor, for kernels over single items. */
enum { BLOCKS_PER_UNIT = 16, MOST_BLOCKS = 1 << 20 };

void tern_cuda_parameters(const tern_arg *args, int n, uint64_t *addresses, void **parameters)
{
    for (int i = 0; i < n; i++) {
        const tern_arg *a = &args[i];
        if (a->buffer) {
            addresses[i] = (uint64_t)(uintptr_t)a->buffer->handle + (uint64_t)a->at * a->bytes;
            parameters[i] = &addresses[i];
        } else {
            union {
                const void *in;
                void *out;
            } value = {a->by_reference ? a->value.data : &a->value};
            parameters[i] = value.out;
        }
    }
}

static int64_t blocks_for(tern_place *place, const tern_cuda_kernel *kernel, const tern_grid *grid,
                          const tern_arg *args, int n)
{
    int64_t blocks;
    if (grid->groups) {
        int64_t teams =
            grid->groups > 1 ? kernel->block / TERN_TEAM(grid->groups, kernel->block) : 1;
        blocks = (grid->count + teams - 1) / teams;
    } else {
        blocks = tern_flat_groups(grid, args, n, kernel->block,
                                  (int64_t)tern_place_info(place)->compute_units * BLOCKS_PER_UNIT);
    }
    return (blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS) * (grid->sides ? grid->sides : 1);
}

tern_status tern_cuda_launch(tern_place *place, void *kernel, const tern_grid *grid,
                             const tern_arg *args, int n)
{
    tern_cuda_kernel *k = kernel;
    uint64_t addresses[n + 1];
    void *parameters[n + 1];
    TERN_TRY(tern_cuda_enter(place));
    tern_cuda_parameters(args, n, addresses, parameters);
    CUresult code = tern_cuda.cuLaunchKernel(
        k->function, (unsigned)blocks_for(place, k, grid, args, n), 1, 1, (unsigned)k->block, 1, 1,
        0, tern_cuda_stream(place), parameters, NULL);
    return code == 0 ? TERN_OK : tern_cuda_check_driver(place, code, k->name);
}
