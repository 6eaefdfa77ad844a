/* matrix_kernels.c -- kernels over cl_kernels/matrix.h: products, convolutions and attention. */
#include "base/env.h"
#include "device/opencl/gemm.h"
#include <string.h>

static tern_status build(tern_place *place, const tern_matrix_variant *of,
                         const tern_matrix_source *source, void **compiled)
{
    tern_cl_kernel *kernel = NULL;
    const size_t group = (size_t)of->group;
    if (group > tern_cl_state_of(place)->group_limit)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s needs groups of %zu",
                         tern_place_info(place)->device, source->title, group);
    tern_status status =
        tern_cl_matrix_build(place, of->way, group, source->defines, of->family->file, source->name,
                             source->title, &kernel);
    *compiled = kernel;
    return status;
}

static void drop(void *compiled)
{
    tern_cl_kernel_free(compiled);
}

tern_matrix_kernels *tern_cl_matrix_kernels(tern_cl_gemm_state *state)
{
    static const tern_matrix_backend backend = {build, drop};
    state->matrix.backend = &backend;
    return &state->matrix;
}

tern_status tern_cl_matrix_prepare(tern_place *place, const tern_matrix_call *call,
                                   tern_matrix_kernel **found, bool *usable)
{
    const char *forced = tern_env(TERN_ENV_OPENCL_GEMM);
    TERN_TRY(tern_matrix_prepare(place, tern_cl_matrix_kernels(tern_cl_gemm_state_of(place)), call,
                                 found, usable));
    if (*usable || !forced || strncmp(forced, "matrix:", 7) != 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: kernels of %s do not work with TERN_OPENCL_GEMM=%s",
                     tern_place_info(place)->device, call->of->family->file, forced);
}
