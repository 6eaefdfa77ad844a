/* matrix_kernels.c -- kernels over cl_kernels/matrix.h on tensor cores, from compute capability 8.0
 * on: products, convolutions and attention, where NVIDIA's libraries do not compute them. */
#include "device/cuda/cuda.h"

enum { FIRST_COMPUTE = 80, LARGE = 128, SMALL = 64, SMALL_DEPTH = 32 };

static tern_status build(tern_place *place, const tern_matrix_variant *of,
                         const tern_matrix_source *from, void **compiled)
{
    tern_cuda_kernel *kernel = NULL;
    tern_text text = {0};
    tern_cuda_matrix_text(&text, from->defines, of->family->file, from->name);
    const tern_cuda_source source = {text.data, from->title, from->name, true};
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cuda_build(place, &source, &kernel);
    tern_text_free(&text);
    TERN_TRY(status);
    kernel->block = of->group;
    *compiled = kernel;
    return TERN_OK;
}

static void drop(void *compiled)
{
    tern_cuda_kernel_free(compiled);
}

int tern_cuda_matrix_way(const tern_place *place, tern_dtype dtype)
{
    const int compute = tern_cuda_state_of(place)->compute;
    return tern_matrix_wanted(compute < FIRST_COMPUTE ? TERN_MATRIX_PLAIN : TERN_MATRIX_MMA, dtype);
}

tern_cuda_tile tern_cuda_matrix_tile(tern_place *place, int way, int64_t m, int64_t n,
                                     int64_t count)
{
    const int64_t tiles = (m + LARGE - 1) / LARGE * ((n + LARGE - 1) / LARGE) * count;
    const bool large = way != TERN_MATRIX_PLAIN && m >= LARGE && n >= LARGE &&
                       tiles >= tern_place_info(place)->compute_units;
    return large ? (tern_cuda_tile){LARGE, tern_matrix_depth(way)}
                 : (tern_cuda_tile){SMALL, SMALL_DEPTH};
}

tern_matrix_kernels *tern_cuda_matrix_kernels(tern_place *place)
{
    static const tern_matrix_backend backend = {build, drop};
    tern_matrix_kernels *kernels = &tern_cuda_state_of(place)->own;
    kernels->backend = &backend;
    return kernels;
}

tern_status tern_cuda_matrix_prepare(tern_place *place, const tern_matrix_call *call,
                                     tern_matrix_kernel **found, bool *usable)
{
    tern_mutex *lock = &tern_cuda_state_of(place)->own_lock;
    tern_mutex_lock(lock);
    tern_status status =
        tern_matrix_prepare(place, tern_cuda_matrix_kernels(place), call, found, usable);
    tern_mutex_unlock(lock);
    return status;
}
