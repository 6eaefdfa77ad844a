/* matrix_unit.c -- the way of cl_kernels/matrix.h in which a device multiplies half-precision
 * matrices. */
#include "base/lock.h"
#include "device/opencl/gemm.h"

enum { NOT_TRIED = TERN_CL_NOT_TRIED, RIGHT = TERN_CL_RIGHT, WRONG = TERN_CL_WRONG };

void tern_cl_describe(tern_place *place, tern_device_info *info)
{
    static const signed char shown[] = {[NOT_TRIED] = 0, [RIGHT] = 1, [WRONG] = -1};
    tern_cl_state *s = tern_cl_state_of(place);
    if (s->matrix_way == TERN_MATRIX_PLAIN)
        return;
    info->matrix_unit = tern_matrix_name(s->matrix_way);
    info->matrix_f16 = shown[atomic_load(&s->matrix_tried[0])];
    info->matrix_bf16 = shown[atomic_load(&s->matrix_tried[1])];
}

/* Returns the result of the trial of a small product's kernel, which warns if the trial fails.
 * Errors are dropped, as TERN_OPENCL_GEMM may name another tile. */
static int try(tern_place *place, int way, tern_dtype dtype)
{
    const tern_gemm_variant small = {
        .dtype = dtype, .way = way, .rows = 64, .columns = 64, .depth = 32, .narrow = true};
    void *kernel = NULL;
    char why[800] = "";
    tern_error_hold hold;
    if (tern_error_hold_begin(&hold) != TERN_OK)
        return NOT_TRIED;
    tern_status status = tern_gemm_find(place, &tern_cl_gemm_backend, &small, &kernel);
    tern_error_hold_end(&hold, why, sizeof why);
    return kernel                                                  ? RIGHT
           : status == TERN_ERR_MEMORY || status == TERN_ERR_STATE ? NOT_TRIED
                                                                   : WRONG;
}

int tern_cl_matrix_wanted(tern_place *place, tern_dtype dtype)
{
    return tern_matrix_wanted(tern_cl_state_of(place)->matrix_way, dtype);
}

int tern_cl_matrix_way(tern_place *place, tern_dtype dtype)
{
    const int way = tern_cl_matrix_wanted(place, dtype);
    if (way == TERN_MATRIX_NONE || way == TERN_MATRIX_PLAIN)
        return way;
    atomic_int *tried = &tern_cl_state_of(place)->matrix_tried[dtype == TERN_BF16];
    if (atomic_load(tried) == NOT_TRIED) {
        tern_cl_gemm_state *state = tern_cl_gemm_state_of(place);
        if (!state)
            return TERN_MATRIX_NONE;
        tern_mutex_lock(&state->lock);
        if (atomic_load(tried) == NOT_TRIED)
            atomic_store(tried, try(place, way, dtype));
        tern_mutex_unlock(&state->lock);
    }
    return atomic_load(tried) == RIGHT ? way : TERN_MATRIX_NONE;
}
