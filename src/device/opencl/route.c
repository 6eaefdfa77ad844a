/* route.c -- chooses the route of a matrix product by its sizes. Devices of type CPU have
 * matmul_vector.cl, which on PoCL is about as fast as OpenBLAS, while CLBlast with its defaults
 * reaches a tenth of that. On GPUs CLBlast is good at large matrices and strided batches. A call of
 * it costs several driver calls, and its gemm wastes most of a tile on a thin matrix: those use
 * tern's own kernels and gemv. Large half precision products use the matrix unit if there is one.
 * Without CLBlast, large products on known GPUs use tiles. TERN_OPENCL_GEMM=own, clblast, portable,
 * tiles:16x16x4x4x16x4 or matrix:128x128x64 selects a route wherever it is possible, and =gpu the
 * routes of a GPU. */
#include "base/env.h"
#include "base/warning.h"
#include "device/gemm_kernel.h"
#include "device/opencl/gemm.h"
#include <stdlib.h>
#include <string.h>

enum { THIN = 16, SMALL = 32 };
#define ANY  INT64_MAX
#define FORM {0}, "", false /* no tile, any layout and type */

static const tern_cl_route gpu_routes[] = {
    /* clang-format off */
    /* least m, n, k, count   most m, n, k, count        */
    {{1, 1, 1, 1},            {SMALL, SMALL, ANY, ANY},  TERN_CL_OWN, FORM},
    {{1, 1, 1, 1},            {ANY, 1, ANY, 1},          TERN_CL_GEMV, FORM},
    {{1, 1, 1, 1},            {1, ANY, ANY, 1},          TERN_CL_GEMV, FORM},
    {{1, 1, 1, 1},            {THIN, ANY, ANY, ANY},     TERN_CL_OWN, FORM},
    {{1, 1, 1, 1},            {ANY, THIN, ANY, ANY},     TERN_CL_OWN, FORM},
    {{1, 1, 1, 1},            {ANY, ANY, THIN, ANY},     TERN_CL_OWN, FORM},
    {{1, 1, 1, 2},            {ANY, ANY, ANY, ANY},      TERN_CL_BATCHED, FORM},
    {{1, 1, 1, 1},            {ANY, ANY, ANY, 1},        TERN_CL_GEMM, FORM},
    /* clang-format on */
};
enum { GPU_ROUTES = sizeof gpu_routes / sizeof *gpu_routes };

static tern_cl_way own(tern_place *place, const tern_gemm *g)
{
    bool vector = tern_cl_state_of(place)->cpu_form && tern_cl_vector_fits(place, g->dtype);
    return vector ? TERN_CL_OWN : TERN_CL_PORTABLE;
}

/* place is NULL if matrix units must not be used. unit is true if a matrix unit takes the product
 * without tuning. */
static bool fits(tern_place *place, const tern_cl_route *r, const tern_gemm *g, bool unit)
{
    const int64_t size[TERN_CL_SIZES] = {g->m, g->n, g->k, g->count[0] * g->count[1]};
    for (int i = 0; i < TERN_CL_SIZES; i++)
        if (size[i] < r->least[i] || size[i] > r->most[i])
            return false;
    if (r->halves ? !tern_dtype_is_half(g->dtype) : unit && r->way != TERN_CL_MATRIX)
        return false;
    int layout = tern_gemm_layout(g);
    if (*r->layout && layout != (r->layout[0] == 't') + 2 * (r->layout[1] == 't'))
        return false;
    if (r->way == TERN_CL_MATRIX)
        return place && tern_cl_matrix_way(place, g->dtype) != TERN_MATRIX_NONE;
    return r->way == TERN_CL_TILES ? g->dtype != TERN_F64
                                   : r->way == TERN_CL_OWN || tern_cl_clblast_can(r->way, g);
}

/* Returns the first route that matches; only those of CLBlast if that is requested. */
static const tern_cl_route *first(tern_place *place, const tern_cl_route *routes, int n,
                                  const tern_gemm *g, bool clblast, bool unit)
{
    for (int i = 0; i < n; i++)
        if (!(clblast && (routes[i].way == TERN_CL_OWN || routes[i].way == TERN_CL_TILES ||
                          routes[i].way == TERN_CL_MATRIX)) &&
            fits(place, &routes[i], g, unit))
            return &routes[i];
    return NULL;
}

/* Returns whether a large product has a tile on an untuned GPU without CLBlast; sets *tile. */
static bool has_family_tile(tern_place *place, const tern_gemm *g, tern_cl_tile *tile)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    const char *text = tern_cl_tile_of_family(tern_place_info(place)->name);
    bool large = g->m > SMALL && g->n > SMALL && g->k > THIN && g->dtype != TERN_F64;
    return large && text && !tern_cl_tile_read(text, tile) &&
           !tern_cl_tile_check(tile, s->local_memory, s->group_limit);
}

/* Returns whether a half-precision product is large enough for a matrix unit; sets *tile. */
static bool has_matrix_tile(tern_place *place, const tern_gemm *g, tern_cl_tile *tile)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    bool large = g->m > SMALL && g->n > SMALL && g->k > THIN && tern_dtype_is_half(g->dtype);
    int way = large ? tern_cl_matrix_way(place, g->dtype) : TERN_MATRIX_NONE;
    if (way == TERN_MATRIX_NONE)
        return false;
    *tile = tern_cl_matrix_tile(place, way, g);
    return !tern_cl_matrix_tile_check(tile, s->local_memory, s->group_limit);
}

tern_cl_way tern_cl_route_of(tern_place *place, const tern_gemm *g, tern_cl_tile *tile)
{
    tern_cl_tile ignored;
    tile = tile ? tile : &ignored;
    const tern_cl_tuning *tuning = &tern_cl_state_of(place)->tuning;
    const char *forced = tern_env(TERN_ENV_OPENCL_GEMM);
    forced = forced ? forced : "";
    if (strcmp(forced, "portable") == 0)
        return TERN_CL_PORTABLE;
    if (strcmp(forced, "own") == 0)
        return tern_cl_vector_fits(place, g->dtype) ? TERN_CL_OWN : TERN_CL_PORTABLE;
    if (strncmp(forced, "tiles:", 6) == 0) {
        bool bad = tern_cl_tile_read(forced + 6, tile) != NULL;
        *tile = bad ? (tern_cl_tile){0} : *tile; /* the build then fails */
        return g->dtype == TERN_F64 ? own(place, g) : TERN_CL_TILES;
    }
    if (strncmp(forced, "matrix:", 7) == 0 && tern_dtype_is_half(g->dtype)) {
        bool bad = tern_cl_matrix_tile_read(forced + 7, tile) != NULL;
        *tile = bad ? (tern_cl_tile){0} : *tile;
        return TERN_CL_MATRIX;
    }
    int helps = tern_cl_state_of(place)->doctor.gemm[g->dtype];
    if (helps && !*forced)
        return helps == 1 ? own(place, g) : TERN_CL_PORTABLE;
    bool clblast = strcmp(forced, "clblast") == 0;
    const bool unit = !clblast && has_matrix_tile(place, g, tile);
    const tern_cl_route *r = first(place, tuning->routes, tuning->n_routes, g, clblast, unit);
    if (!r && unit)
        return TERN_CL_MATRIX;
    bool gpu =
        clblast || strcmp(forced, "gpu") == 0 || tern_place_info(place)->type != TERN_DEVICE_CPU;
    if (!r && gpu)
        r = first(place, gpu_routes, GPU_ROUTES, g, clblast, false);
    if (!r && gpu && !tern_cl_clblast_is_there())
        tern_warn("slow", "tern_matmul",
                  "matrix products on %s take tern's own kernel, as there is no CLBlast (Debian: "
                  "libclblast1)",
                  tern_place_info(place)->device);
    if (r)
        *tile = r->tile;
    else if (gpu && !clblast && has_family_tile(place, g, tile))
        return TERN_CL_TILES;
    return r && r->way != TERN_CL_OWN ? r->way : clblast ? TERN_CL_PORTABLE : own(place, g);
}

/* Returns whether the product goes to a matrix unit. *tile is the named, tuned or default tile. */
static bool is_for_matrix(tern_place *place, const tern_gemm *g, tern_cl_tile *tile, int *matrix)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    const char *forced = tern_env(TERN_ENV_OPENCL_GEMM);
    const bool named = forced && strncmp(forced, "matrix:", 7) == 0;
    if (!tern_dtype_is_half(g->dtype) || s->doctor.gemm[g->dtype] ||
        (forced && !named && strcmp(forced, "gpu") != 0))
        return false;
    *matrix = tern_cl_matrix_way(place, g->dtype);
    if (named) {
        *matrix = *matrix == TERN_MATRIX_NONE ? TERN_MATRIX_PLAIN : *matrix;
        return !tern_cl_matrix_tile_read(forced + 7, tile);
    }
    const tern_cl_route *tuned =
        first(place, s->tuning.routes, s->tuning.n_routes, g, false, *matrix != TERN_MATRIX_NONE);
    if (*matrix == TERN_MATRIX_NONE || (tuned && tuned->way != TERN_CL_MATRIX))
        return false;
    *tile = tuned ? tuned->tile : tern_cl_matrix_tile(place, *matrix, g);
    return !tern_cl_matrix_tile_check(tile, s->local_memory, s->group_limit);
}

tern_cl_way tern_cl_convolution_tile(tern_place *place, const tern_gemm *g, tern_cl_tile *tile,
                                     int *matrix)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    const char *forced = tern_env(TERN_ENV_OPENCL_GEMM);
    if (g->dtype == TERN_F64)
        return TERN_CL_OWN;
    if (matrix && is_for_matrix(place, g, tile, matrix))
        return TERN_CL_MATRIX;
    if (forced && strncmp(forced, "tiles:", 6) == 0)
        return tern_cl_tile_read(forced + 6, tile) ? TERN_CL_OWN : TERN_CL_TILES;
    if (s->cpu_form || s->doctor.gemm[g->dtype] || (forced && strcmp(forced, "gpu") != 0))
        return TERN_CL_OWN;
    const tern_cl_route *tuned = first(NULL, s->tuning.routes, s->tuning.n_routes, g, false, false);
    if (tuned)
        *tile = tuned->tile;
    else if (!has_family_tile(place, g, tile))
        *tile = (tern_cl_tile){8, 8, 4, 4, 8, 4}; /* fits every device */
    return !tuned || tuned->way == TERN_CL_TILES ? TERN_CL_TILES : TERN_CL_OWN;
}
