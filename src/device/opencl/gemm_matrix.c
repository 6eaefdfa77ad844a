/* gemm_matrix.c -- matrix products of halves on matrix units: tiles and launches of gemm_matrix.cl. */
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/opencl/gemm.h"
#include <stdlib.h>
#include <string.h>

const char *tern_cl_matrix_tile_read(const char *text, tern_cl_tile *tile)
{
    unsigned long sizes[3];
    for (int i = 0; i < 3; i++) {
        char *end;
        sizes[i] = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
        if (sizes[i] == 0 || sizes[i] > 256 || *end != (i < 2 ? 'x' : '\0'))
            return "is not ROWSxCOLUMNSxDEPTH";
        text = end + 1;
    }
    if (sizes[0] % 64 || sizes[1] % 64 || sizes[2] % 16 || (sizes[2] > 32 && sizes[2] % 64))
        return "has rows or columns that are no multiples of 64, or a depth that is not 16, 32, 64";
    *tile =
        (tern_cl_tile){.m = (uint16_t)sizes[0], .n = (uint16_t)sizes[1], .k = (uint16_t)sizes[2]};
    return NULL;
}

size_t tern_cl_matrix_group(const tern_cl_tile *tile)
{
    return (size_t)tile->m * tile->n / 64;
}

const char *tern_cl_matrix_tile_check(const tern_cl_tile *t, uint64_t local_memory,
                                      size_t group_limit)
{
    uint64_t operands = (uint64_t)(t->m + t->n) * t->k * 2, sums = (uint64_t)t->m * (t->n + 4);
    if (tern_cl_matrix_group(t) > group_limit)
        return "wants larger work-groups than the device has";
    if (operands > local_memory || sums > local_memory)
        return "wants more local memory than the device has";
    return NULL;
}

tern_cl_tile tern_cl_matrix_tile(tern_place *place, int way, const tern_gemm *g)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    tern_cl_tile large = {.m = 128, .n = 128, .k = (uint16_t)tern_matrix_depth(way)};
    const tern_cl_tile small = {.m = 64, .n = 64, .k = 32};
    int64_t tiles = (g->m + 127) / 128 * ((g->n + 127) / 128) * g->count[0] * g->count[1];
    bool enough = g->m >= 128 && g->n >= 128 && tiles >= tern_place_info(place)->compute_units;
    bool fits = !tern_cl_matrix_tile_check(&large, s->local_memory, s->group_limit);
    return enough && fits && way != TERN_MATRIX_PLAIN ? large : small;
}

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

tern_status tern_cl_matrix_launch(tern_place *place, tern_cl_kernel *kernel, const tern_gemm *g,
                                  const tern_cl_tile *tile)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    args[5] = tern_arg_f32((float)g->alpha);
    args[6] = tern_arg_f32((float)g->beta);
    int64_t tiles = (g->m + tile->m - 1) / tile->m * ((g->n + tile->n - 1) / tile->n);
    tern_grid grid =
        tern_groups(g->count[0] * g->count[1] * tiles, (int64_t)tile->m * tile->n * g->k);
    return tern_cl_launch(place, kernel, &grid, args, sizeof args / sizeof *args);
}

tern_status tern_cl_matrix_gemm(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g,
                                int way, const tern_cl_tile *tile, bool *done)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    const int layout = tern_cl_layout(g);
    const tern_cl_matrix_kernel u = {
        .file = tern_cl_gemm_file,
        .tile = *tile,
        .dtype = g->dtype,
        .way = way,
        .layout = layout,
        .odd = odd_of(g, layout),
        .narrow = tern_fits_index32(args, sizeof args / sizeof *args, 0)};
    tern_cl_kernel *kernel;
    TERN_TRY(tern_cl_matrix_find(place, state, &u, &kernel));
    *done = kernel != NULL;
    return kernel ? tern_cl_matrix_launch(place, kernel, g, tile) : TERN_OK;
}
