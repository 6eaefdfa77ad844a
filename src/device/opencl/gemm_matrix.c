/* gemm_matrix.c -- matrix products of halves on matrix units: which kernel of gemm_matrix.cl. */
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/matrix_trial.h"
#include "device/opencl/gemm.h"

tern_status tern_cl_matrix_gemm(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g,
                                int way, const tern_cl_tile *tile, bool *done)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    const int layout = tern_gemm_layout(g);
    const tern_cl_matrix_kernel u = {.file = tern_cl_gemm_file,
                                     .tile = *tile,
                                     .dtype = g->dtype,
                                     .way = way,
                                     .layout = layout,
                                     .odd = tern_gemm_odd(g, layout),
                                     .narrow =
                                         tern_fits_index32(args, sizeof args / sizeof *args, 0)};
    tern_cl_kernel *kernel;
    TERN_TRY(tern_cl_matrix_find(place, state, &u, &kernel));
    *done = kernel != NULL;
    return kernel ? tern_cl_matrix_launch(place, kernel, g, tile) : TERN_OK;
}
