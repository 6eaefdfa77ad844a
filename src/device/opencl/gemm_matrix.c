/* gemm_matrix.c -- matrix products of halves on matrix units: which kernel of gemm_matrix.cl. */
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/opencl/gemm.h"

/* ---- how operands lie -------------------------------------------------------------------- */

/* MATRIX_ODD of an operand: `length` elements lie together in each of `lines` lines, `step` apart.
 * */
static int oddness(const tern_gemm *g, const tern_matrix *x, int64_t length, int64_t lines,
                   int64_t unit, int64_t step)
{
    int64_t outer = g->count[0] > 1 ? x->batch[0] : 0, inner = g->count[1] > 1 ? x->batch[1] : 0;
    step = lines > 1 ? step : 0;
    if ((unit != 1 && length > 1) || ((step | outer | inner | x->at) & 7) || step < 0 ||
        outer < 0 || inner < 0)
        return 2;
    if (length % 8 == 0)
        return 0;
    int64_t last = x->at + (lines - 1) * step + (g->count[0] - 1) * outer +
                   (g->count[1] - 1) * inner + (length + 7) / 8 * 8;
    return (uint64_t)last * 2 <= x->buffer->bytes ? 1 : 2;
}

static int odd_of(const tern_gemm *g, int layout)
{
    int a = layout & 1 ? oddness(g, &g->a, g->m, g->k, g->a.row, g->a.col)
                       : oddness(g, &g->a, g->k, g->m, g->a.col, g->a.row);
    int b = layout & 2 ? oddness(g, &g->b, g->k, g->n, g->b.row, g->b.col)
                       : oddness(g, &g->b, g->n, g->k, g->b.col, g->b.row);
    return a > b ? a : b;
}

/* ---- a product --------------------------------------------------------------------------- */

tern_status tern_cl_matrix_gemm(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g,
                                int way, const tern_cl_tile *tile, bool *done)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    const int layout = tern_cl_layout(g);
    const tern_cl_matrix_kernel u = {.file = tern_cl_gemm_file,
                                     .tile = *tile,
                                     .dtype = g->dtype,
                                     .way = way,
                                     .layout = layout,
                                     .odd = odd_of(g, layout),
                                     .narrow =
                                         tern_fits_index32(args, sizeof args / sizeof *args, 0)};
    tern_cl_kernel *kernel;
    TERN_TRY(tern_cl_matrix_find(place, state, &u, &kernel));
    *done = kernel != NULL;
    return kernel ? tern_cl_matrix_launch(place, kernel, g, tile) : TERN_OK;
}
