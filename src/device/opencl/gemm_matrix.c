/* gemm_matrix.c -- half-precision matrix products on matrix units: which kernel of
 * gemm_matrix.cl. */
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/opencl/gemm.h"

static tern_status launch(tern_place *place, void *kernel, const tern_gemm_variant *v,
                          const tern_gemm *g)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    args[5] = tern_arg_f32((float)g->alpha);
    args[6] = tern_arg_f32((float)g->beta);
    int64_t tiles = (g->m + v->rows - 1) / v->rows * ((g->n + v->columns - 1) / v->columns);
    tern_grid grid =
        tern_groups(g->count[0] * g->count[1] * tiles, (int64_t)v->rows * v->columns * g->k);
    return tern_cl_launch(place, kernel, &grid, args, sizeof args / sizeof *args);
}

const tern_gemm_backend tern_cl_gemm_backend = {tern_cl_matrix_prepare, launch, false};

tern_status tern_cl_matrix_gemm(tern_place *place, const tern_gemm *g, int way,
                                const tern_cl_tile *tile, bool *done)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    const int layout = tern_gemm_layout(g);
    const tern_gemm_variant v = {.dtype = g->dtype,
                                 .way = way,
                                 .layout = layout,
                                 .odd = tern_gemm_odd(g, layout),
                                 .rows = tile->m,
                                 .columns = tile->n,
                                 .depth = tile->k,
                                 .narrow = tern_fits_index32(args, sizeof args / sizeof *args, 0)};
    const char *why = tile->m ? tern_cl_matrix_tile_check(tile, s->local_memory, s->group_limit)
                              : tern_cl_matrix_tile_read("0", &(tern_cl_tile){0});
    void *kernel;
    if (why) /* TERN_OPENCL_GEMM names the tile */
        return tern_fail(TERN_ERR_ARGUMENT, "%s: tile %dx%dx%d %s", tern_place_info(place)->device,
                         tile->m, tile->n, tile->k, why);
    TERN_TRY(tern_gemm_find(place, &tern_cl_gemm_backend, &v, &kernel));
    *done = kernel != NULL;
    return kernel ? launch(place, kernel, &v, g) : TERN_OK;
}
