/* attention.c -- half-precision attention on a GPU's matrix unit, with few kernels for each width;
 * attention_tiles.cl computes all other attention. */
#include "device/attention_matrix.h"
#include "device/opencl/gemm.h"

static tern_status launch(tern_place *place, const tern_matrix_kernel *k, int64_t groups,
                          const tern_arg *args, int n)
{
    const size_t group = (size_t)k->of.group, global = (size_t)groups * group;
    return tern_cl_enqueue(place, k->compiled, 1, &global, &group, args, n, true);
}

static tern_attention_backend backend_of(tern_cl_gemm_state *state)
{
    return (tern_attention_backend){tern_cl_matrix_kernels(state), launch};
}

static int way_of(tern_place *place, tern_dtype dtype)
{
    return tern_cl_state_of(place)->cpu_form ? TERN_MATRIX_NONE
                                             : tern_cl_matrix_wanted(place, dtype);
}

bool tern_cl_attends_wide(tern_place *place, tern_dtype dtype)
{
    return way_of(place, dtype) != TERN_MATRIX_NONE;
}

tern_status tern_cl_attention_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                   bool *taken)
{
    tern_cl_gemm_state *state;
    a->way = way_of(place, a->dtype);
    *taken = false;
    if (a->way == TERN_MATRIX_NONE)
        return TERN_OK;
    if (!(state = tern_cl_gemm_state_of(place)))
        return TERN_ERR_MEMORY;
    tern_mutex_lock(&state->lock);
    const tern_attention_backend backend = backend_of(state);
    tern_status status = tern_attention_matrix_plan(place, &backend, a, scratch, taken);
    tern_mutex_unlock(&state->lock);
    return status;
}

tern_status tern_cl_attention(tern_place *place, const tern_attention *a, bool *taken)
{
    tern_cl_gemm_state *state = tern_cl_gemm_state_of(place);
    *taken = true;
    tern_mutex_lock(&state->lock);
    const tern_attention_backend backend = backend_of(state);
    tern_status status = tern_attention_matrix_run(place, &backend, a);
    tern_mutex_unlock(&state->lock);
    return status;
}
