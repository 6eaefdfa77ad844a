/* gemm_kernel.h -- the arguments and the grid of the product kernel of matmul.cl, which every
 * device can run. */
#ifndef TERN_DEVICE_GEMM_KERNEL_H
#define TERN_DEVICE_GEMM_KERNEL_H
#include "device/device.h"
#include "types_host.h"
#include "shapes.h"

static inline tern_gemm_matrix tern_gemm_strides(const tern_matrix *m)
{
    return (tern_gemm_matrix){m->row, m->col, {m->batch[0], m->batch[1]}};
}

/* Returns which operands are in column-major order, as bits: 1 for A, 2 for B. */
static inline int tern_gemm_layout(const tern_gemm *g)
{
    return (g->a.row == 1 && g->a.col != 1) + 2 * (g->b.row == 1 && g->b.col != 1);
}

static inline tern_gemm_shape tern_gemm_shape_of(const tern_gemm *g)
{
    return (tern_gemm_shape){.m = g->m,
                             .n = g->n,
                             .k = g->k,
                             .count = {g->count[0], g->count[1]},
                             .a = tern_gemm_strides(&g->a),
                             .b = tern_gemm_strides(&g->b),
                             .c = tern_gemm_strides(&g->c),
                             .has_bias = g->bias != NULL};
}

/* The arguments of the kernel "gemm" for g; s points to the tern_gemm_shape of g. */
#define TERN_GEMM_ARGS(g, s)                                                                       \
    {                                                                                              \
        tern_arg_buffer(TERN_ROLE_OUT, (g)->dtype, (g)->c.buffer, (g)->c.at),                      \
            tern_arg_buffer(TERN_ROLE_IN, (g)->dtype, (g)->a.buffer, (g)->a.at),                   \
            tern_arg_buffer(TERN_ROLE_IN, (g)->dtype, (g)->b.buffer, (g)->b.at),                   \
            (g)->bias ? tern_arg_buffer(TERN_ROLE_IN, (g)->dtype, (g)->bias, (g)->bias_at)         \
                      : tern_arg_buffer(TERN_ROLE_UNUSED, (g)->dtype, (g)->a.buffer, 0),           \
            TERN_ARG_STRUCT(tern_gemm_shape, s), tern_arg_real((g)->dtype, (g)->alpha),            \
            tern_arg_real((g)->dtype, (g)->beta)                                                   \
    }

/* Returns the grid: a work-group for each tile of C. */
static inline tern_grid tern_gemm_grid(const tern_gemm *g)
{
    const int64_t tile = TERN_GEMM_TILE;
    int64_t tiles = ((g->m + tile - 1) / tile) * ((g->n + tile - 1) / tile);
    return tern_groups(g->count[0] * g->count[1] * tiles, tile * tile * g->k);
}

#endif
