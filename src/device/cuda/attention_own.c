/* attention_own.c -- half-precision attention by attention_matrix.cl, where cuDNN does not compute
 * it. */
#include "device/attention_matrix.h"
#include "device/cuda/cuda.h"

static tern_status launch(tern_place *place, const tern_matrix_kernel *k, int64_t groups,
                          const tern_arg *args, int n)
{
    const tern_grid grid = {.count = groups, .groups = 1};
    return tern_cuda_launch(place, k->compiled, &grid, args, n);
}

bool tern_cuda_attends_wide(tern_place *place, tern_dtype dtype)
{
    return tern_cuda_matrix_way(place, dtype) != TERN_MATRIX_NONE;
}

tern_status tern_cuda_attention_own_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                         bool *taken)
{
    tern_mutex *lock = &tern_cuda_state_of(place)->own_lock;
    *taken = false;
    a->way = tern_cuda_matrix_way(place, a->dtype);
    if (a->way == TERN_MATRIX_NONE)
        return TERN_OK;
    tern_mutex_lock(lock);
    const tern_attention_backend backend = {tern_cuda_matrix_kernels(place), launch};
    tern_status status = tern_attention_matrix_plan(place, &backend, a, scratch, taken);
    tern_mutex_unlock(lock);
    return status;
}

tern_status tern_cuda_attention_own(tern_place *place, const tern_attention *a)
{
    tern_mutex *lock = &tern_cuda_state_of(place)->own_lock;
    tern_mutex_lock(lock);
    const tern_attention_backend backend = {tern_cuda_matrix_kernels(place), launch};
    tern_status status = tern_attention_matrix_run(place, &backend, a);
    tern_mutex_unlock(lock);
    return status;
}
