/* gemm_own.c -- half-precision products, and float32 ones where TensorFloat-32 is allowed, by
 * gemm_matrix.cl, where cuBLASLt does not compute them. */
#include "device/cuda/cuda.h"
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/matrix_trial.h"
#include <string.h>

enum { ARGS = 9 };

/* ---- which kernel ------------------------------------------------------------------------- */

/* Returns the way of matrix_way.h for this product, or TERN_MATRIX_NONE if gemm_matrix.cl has
 * none. */
static int way_of(tern_place *place, const tern_gemm *g)
{
    if (g->dtype != TERN_F32)
        return tern_cuda_matrix_way(place, g->dtype);
    return g->tf32 && tern_cuda_matrix_way(place, TERN_BF16) == TERN_MATRIX_MMA ? TERN_MATRIX_MMA
                                                                                : TERN_MATRIX_NONE;
}

static void arguments(const tern_gemm *g, const tern_gemm_shape *shape, tern_arg args[ARGS])
{
    const tern_arg of[] = TERN_GEMM_ARGS(g, shape);
    const tern_buffer *mask = g->mask ? g->mask : g->a.buffer;
    memcpy(args, of, sizeof of);
    if (g->wide)
        args[0] = tern_arg_buffer(TERN_ROLE_OUT, TERN_F32, g->c.buffer, g->c.at);
    args[7] = tern_arg_buffer(g->mask ? TERN_ROLE_OUT : TERN_ROLE_UNUSED, g->dtype, mask,
                              g->mask ? g->mask_at : 0);
    args[8] = tern_arg_i32((int32_t)g->epilogue);
}

static tern_gemm_variant variant_of(tern_place *place, const tern_gemm *g, int way)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_cuda_tile tile =
        tern_cuda_matrix_tile(place, way, g->m, g->n, g->count[0] * g->count[1]);
    tern_arg args[ARGS];
    arguments(g, &shape, args);
    tern_gemm_variant v = {.dtype = g->dtype, .way = way, .layout = tern_gemm_layout(g)};
    v.odd = tern_gemm_odd(g, v.layout);
    v.rows = v.columns = tile.size;
    v.depth = tile.depth / (g->dtype == TERN_F32 ? 2 : 1);
    v.wide = g->wide;
    v.narrow = tern_fits_index32(args, ARGS, 0);
    return v;
}

/* ---- a product ----------------------------------------------------------------------------- */

static tern_status launch(tern_place *place, void *kernel, const tern_gemm_variant *v,
                          const tern_gemm *g)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const int64_t rows = v->rows, columns = v->columns;
    tern_arg args[ARGS];
    arguments(g, &shape, args);
    const tern_grid grid = {.count = g->count[0] * g->count[1] * ((g->m + rows - 1) / rows) *
                                     ((g->n + columns - 1) / columns),
                            .groups = 1};
    return tern_cuda_launch(place, kernel, &grid, args, ARGS);
}

/* Sets *v to the variant for the product and *kernel to its kernel, NULL if that is not usable. */
static tern_status find(tern_place *place, const tern_gemm *g, tern_gemm_variant *v, void **kernel)
{
    static const tern_gemm_backend backend = {tern_cuda_matrix_prepare, launch, true};
    *v = variant_of(place, g, way_of(place, g));
    return tern_gemm_find(place, &backend, v, kernel);
}

bool tern_cuda_gemm_is_own(tern_place *place, const tern_gemm *g)
{
    return way_of(place, g) != TERN_MATRIX_NONE && !g->bias_grad;
}

tern_status tern_cuda_gemm_own_fits(tern_place *place, const tern_gemm *g, bool *fits)
{
    tern_gemm_variant v;
    void *kernel;
    *fits = false;
    if (!tern_cuda_gemm_is_own(place, g) || g->c.col != 1)
        return TERN_OK;
    TERN_TRY(find(place, g, &v, &kernel));
    *fits = kernel != NULL;
    return TERN_OK;
}

tern_status tern_cuda_gemm_own(tern_place *place, const tern_gemm *g, bool *done)
{
    tern_gemm_variant v;
    void *kernel;
    *done = false;
    if (!tern_cuda_gemm_is_own(place, g))
        return TERN_OK;
    TERN_TRY(find(place, g, &v, &kernel));
    *done = kernel != NULL;
    return kernel ? launch(place, kernel, &v, g) : TERN_OK;
}
