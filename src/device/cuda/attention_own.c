/* attention_own.c -- attention of halves by attention_matrix.cl on tensor cores, from compute
 * capability 8.0 on, where cuDNN does not compute it. */
#include "device/cuda/cuda.h"

enum { FIRST_COMPUTE = 80 };

static tern_status build(tern_place *place, tern_attention_kernel *k)
{
    tern_cuda_kernel *kernel = NULL;
    tern_text text = {0};
    tern_cuda_matrix_text(&text, k->defines, k->file, k->name);
    const tern_cuda_source source = {text.data, k->title, k->name, true};
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cuda_build(place, &source, &kernel);
    tern_text_free(&text);
    TERN_TRY(status);
    kernel->block = (int)k->group;
    k->made = kernel;
    return TERN_OK;
}

static tern_status launch(tern_place *place, const tern_attention_kernel *k, int64_t groups,
                          const tern_arg *args, int n)
{
    const tern_grid grid = {.count = groups, .groups = 1};
    return tern_cuda_launch(place, k->made, &grid, args, n);
}

static void drop(void *made)
{
    tern_cuda_kernel_free(made);
}

static const tern_attention_backend backend = {build, launch, drop};

static int way_of(tern_place *place, tern_dtype dtype)
{
    const int compute = tern_cuda_state_of(place)->compute;
    return tern_matrix_wanted(compute < FIRST_COMPUTE ? TERN_MATRIX_PLAIN : TERN_MATRIX_MMA, dtype);
}

bool tern_cuda_attends_wide(tern_place *place, tern_dtype dtype)
{
    return way_of(place, dtype) != TERN_MATRIX_NONE;
}

tern_status tern_cuda_attention_own_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                         bool *taken)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    *taken = false;
    a->way = way_of(place, a->dtype);
    if (a->way == TERN_MATRIX_NONE)
        return TERN_OK;
    tern_mutex_lock(&device->own_lock);
    device->own.backend = &backend;
    tern_status status = tern_attention_matrix_plan(place, &device->own, a, scratch, taken);
    tern_mutex_unlock(&device->own_lock);
    return status;
}

tern_status tern_cuda_attention_own(tern_place *place, const tern_attention *a)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    tern_mutex_lock(&device->own_lock);
    tern_status status = tern_attention_matrix_run(place, &device->own, a);
    tern_mutex_unlock(&device->own_lock);
    return status;
}
