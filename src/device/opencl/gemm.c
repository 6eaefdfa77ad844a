/* gemm.c -- matrix products with the kernels of matmul.cl, and batches for the other routes. */
#include "device/opencl/gemm.h"
#include "base/lock.h"
#include "device/gemm_kernel.h"
#include "device/signature.h"

/* ---- kernels of matmul.cl ------------------------------------------------------------------ */

/* Launches a kernel of matmul.cl. The caller holds the state's lock. */
static tern_status launch_gemm_kernel(tern_place *place, const char *name, void *(*slots)[2],
                                      const tern_gemm *g, tern_grid grid, const tern_arg *args,
                                      int n)
{
    void *kernel;
    TERN_TRY(
        tern_cl_resolve_for(place, "matmul", name, g->dtype, args, n, slots[g->dtype], &kernel));
    return tern_cl_launch(place, kernel, &grid, args, n);
}

static tern_status portable(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g)
{
    tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    return launch_gemm_kernel(place, "gemm", state->portable, g, tern_gemm_grid(g), args,
                              sizeof args / sizeof *args);
}

/* Computes C = beta C + bias; the product is then added to C. */
static tern_status put_bias(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g)
{
    tern_gemm_shape shape = tern_gemm_shape_of(g);
    int64_t items = g->count[0] * g->count[1] * g->m * g->n;
    const tern_arg args[] = {tern_arg_buffer(TERN_ROLE_OUT, g->dtype, g->c.buffer, g->c.at),
                             tern_arg_buffer(TERN_ROLE_IN, g->dtype, g->bias, g->bias_at),
                             TERN_ARG_STRUCT(tern_gemm_shape, &shape),
                             tern_arg_real(g->dtype, g->beta)};
    tern_grid grid = {items, items, 0, false, 0};
    return launch_gemm_kernel(place, "gemm_bias", state->bias, g, grid, args,
                              sizeof args / sizeof *args);
}

/* ---- two levels of batch as one, of CLBlast's products ----------------------------------- */

static bool collapses(const tern_gemm *g)
{
    if (g->count[0] == 1 || g->count[1] == 1)
        return true;
    const tern_matrix *x[] = {&g->a, &g->b, &g->c};
    for (int i = 0; i < 3; i++)
        if (x[i]->batch[0] != x[i]->batch[1] * g->count[1])
            return false;
    return true;
}

static tern_status multiply(tern_place *place, tern_cl_gemm_state *state, tern_cl_way way,
                            const tern_gemm *g)
{
    const tern_matrix *x[] = {&g->a, &g->b, &g->c};
    bool own = way == TERN_CL_OWN, whole = own || collapses(g);
    int inner = g->count[1] == 1 && whole && !own ? 0 : 1; /* the batch level of the strides */
    int64_t loops = whole ? 1 : g->count[0];
    tern_cl_product p = {.of = g,
                         .count = whole ? g->count[0] * g->count[1] : g->count[1],
                         .inner = g->count[1],
                         .outer = {g->a.batch[0], g->b.batch[0], g->c.batch[0]}};
    for (int64_t loop = 0; loop < loops; loop++) {
        for (int i = 0; i < 3; i++) {
            p.at[i] = x[i]->at + loop * x[i]->batch[0];
            p.stride[i] = x[i]->batch[inner];
        }
        TERN_TRY(own ? tern_cl_vector_gemm(place, state, &p)
                     : tern_cl_clblast_gemm(place, way, &p, g->bias ? 1 : g->beta));
    }
    return TERN_OK;
}

/* Computes the product in the given way. The caller holds the state's lock. */
static tern_status compute(tern_place *place, tern_cl_gemm_state *state, tern_cl_way way,
                           const tern_gemm *g, const tern_cl_tile *tile, int matrix)
{
    bool done = false;
    if (way == TERN_CL_TILES)
        TERN_TRY(tern_cl_tiles_gemm(place, state, g, tile, &done));
    if (way == TERN_CL_MATRIX)
        TERN_TRY(tern_cl_matrix_gemm(place, g, matrix, tile, &done));
    if (done)
        return TERN_OK;
    if (way == TERN_CL_PORTABLE || way == TERN_CL_TILES || way == TERN_CL_MATRIX)
        return portable(place, state, g);
    if (way != TERN_CL_OWN && g->bias)
        TERN_TRY(put_bias(place, state, g));
    return multiply(place, state, way, g);
}

static tern_status compute_wide(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g,
                                tern_gemm *wide)
{
    TERN_TRY(tern_cl_half_begin(place, state, g, wide));
    tern_cl_way way = tern_cl_route_of(place, wide, NULL);
    TERN_TRY(compute(place, state, way, wide, NULL, TERN_MATRIX_NONE)); /* CLBlast: gemm_half.c */
    return tern_cl_half_end(place, state, g);
}

tern_status tern_cl_gemm(tern_place *place, const tern_gemm *g)
{
    tern_gemm wide;
    TERN_TRY(tern_cl_alive(place));
    tern_cl_gemm_state *state = tern_cl_gemm_state_of(place);
    if (!state)
        return TERN_ERR_MEMORY;
    tern_cl_tile tile;
    tern_cl_way way = tern_cl_route_of(place, g, &tile);
    bool half = way == TERN_CL_PORTABLE && tern_cl_half_fits(place, g, &wide);
    int matrix = way == TERN_CL_MATRIX ? tern_cl_matrix_way(place, g->dtype) : TERN_MATRIX_NONE;
    if (matrix == TERN_MATRIX_NONE) /* named by TERN_OPENCL_GEMM */
        matrix = TERN_MATRIX_PLAIN;
    /* The lock is held to the end, because two successive launches use the scratch buffer. */
    tern_mutex_lock(&state->lock);
    tern_status status =
        half ? compute_wide(place, state, g, &wide) : compute(place, state, way, g, &tile, matrix);
    tern_mutex_unlock(&state->lock);
    return status;
}
