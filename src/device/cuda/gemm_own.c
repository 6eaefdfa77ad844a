/* gemm_own.c -- products of halves, and of float32 where TensorFloat-32 is allowed, by
 * gemm_matrix.cl on tensor cores, from compute capability 8.0 on, where cuBLASLt does not compute
 * them. */
#include "base/warning.h"
#include "device/cuda/cuda.h"
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include <stdio.h>
#include <string.h>

enum { FIRST_COMPUTE = 80, LARGE = 128, SMALL = 64, SMALL_DEPTH = 32, ARGS = 9 };

/* ---- which kernel ------------------------------------------------------------------------- */

/* NONE: none of these. */
static int way_of(tern_place *place, const tern_gemm *g)
{
    const int compute = tern_cuda_state_of(place)->compute;
    const int unit = compute < FIRST_COMPUTE ? TERN_MATRIX_PLAIN : TERN_MATRIX_MMA;
    if (g->dtype != TERN_F32)
        return tern_matrix_wanted(unit, g->dtype);
    return g->tf32 && tern_matrix_wanted(unit, TERN_BF16) == TERN_MATRIX_MMA ? TERN_MATRIX_MMA
                                                                             : TERN_MATRIX_NONE;
}

/* Large tiles where they are as many as there are multiprocessors. */
static bool is_large(tern_place *place, const tern_gemm *g, int way)
{
    int64_t tiles = (g->m + LARGE - 1) / LARGE * ((g->n + LARGE - 1) / LARGE);
    return way != TERN_MATRIX_PLAIN && g->m >= LARGE && g->n >= LARGE &&
           tiles * g->count[0] * g->count[1] >= tern_place_info(place)->compute_units;
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
    args[8] = tern_arg_i32((int32_t)g->end);
}

static tern_gemm_variant variant_of(tern_place *place, const tern_gemm *g, int way)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const bool large = is_large(place, g, way);
    tern_arg args[ARGS];
    arguments(g, &shape, args);
    tern_gemm_variant v = {.dtype = g->dtype, .way = way, .layout = tern_gemm_layout(g)};
    v.odd = tern_gemm_odd(g, v.layout);
    v.rows = v.columns = large ? LARGE : SMALL;
    v.depth = (large ? tern_matrix_depth(way) : SMALL_DEPTH) / (g->dtype == TERN_F32 ? 2 : 1);
    v.wide = g->wide;
    v.narrow = tern_fits_index32(args, ARGS, 0);
    return v;
}

static bool is_same(const tern_gemm_variant *x, const tern_gemm_variant *y)
{
    return x->dtype == y->dtype && x->way == y->way && x->layout == y->layout && x->odd == y->odd &&
           x->rows == y->rows && x->wide == y->wide && x->narrow == y->narrow;
}

/* ---- a kernel ------------------------------------------------------------------------------ */

static tern_status build(tern_place *place, const tern_gemm_variant *v, tern_cuda_kernel **kernel)
{
    const char *type = tern_dtype_rows[v->dtype].suffix;
    const int threads = v->rows * v->columns / 64;
    char defines[400], name[32], title[80];
    tern_text text = {0};
    snprintf(defines, sizeof defines,
             "#define TERN_WG %d\n#define TERN_IDX32 %d\n#define TERN_T %s\n"
             "#define MATRIX_WAY %d\n#define MATRIX_ROWS %d\n#define MATRIX_COLS %d\n"
             "#define MATRIX_DEPTH %d\n#define MATRIX_TA %d\n#define MATRIX_TB %d\n"
             "#define MATRIX_ODD %d\n#define MATRIX_WIDE %d\n#define MATRIX_ENDS 1\n",
             threads, v->narrow, type, v->way, v->rows, v->columns, v->depth, v->layout & 1,
             v->layout >> 1, v->odd, v->wide);
    snprintf(name, sizeof name, "gemm_matrix_%s", type);
    snprintf(title, sizeof title, "tile %dx%dx%d by %s of gemm_matrix.cl", v->rows, v->columns,
             v->depth, tern_matrix_name(v->way));
    tern_cuda_matrix_text(&text, defines, "gemm_matrix.cl", name);
    const tern_cuda_source source = {text.data, title, name, true};
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cuda_build(place, &source, kernel);
    tern_text_free(&text);
    if (status == TERN_OK)
        (*kernel)->block = threads;
    return status;
}

static tern_status launch(tern_place *place, const tern_cuda_gemm_kernel *k, const tern_gemm *g)
{
    const tern_gemm_shape shape = tern_gemm_shape_of(g);
    const int64_t rows = k->of.rows, columns = k->of.columns;
    tern_arg args[ARGS];
    arguments(g, &shape, args);
    const tern_grid grid = {.count = g->count[0] * g->count[1] * ((g->m + rows - 1) / rows) *
                                     ((g->n + columns - 1) / columns),
                            .groups = 1};
    return tern_cuda_launch(place, k->kernel, &grid, args, ARGS);
}

typedef struct trial {
    tern_place *place;
    const tern_cuda_gemm_kernel *kernel;
} trial;

static tern_status run_trial(void *user, const tern_gemm *g)
{
    const trial *t = user;
    return launch(t->place, t->kernel, g);
}

/* Not into the graph that the thread records. */
static tern_status try(tern_place *place, const tern_cuda_gemm_kernel *k)
{
    const cudaStream_t recording = tern_thread.recording_stream;
    trial t = {place, k};
    bool right = k->of.way == TERN_MATRIX_PLAIN;
    tern_status status = TERN_OK;
    tern_thread.recording_stream = NULL;
    if (!right)
        status = tern_gemm_try(place, &k->of, run_trial, &t, &right);
    tern_thread.recording_stream = recording;
    return status != TERN_OK || right ? status
                                      : tern_fail(TERN_ERR_DEVICE, "what was tried came out wrong");
}

/* With gemm_lock. What fails is reported once; without memory it is another time. */
static tern_status find(tern_place *place, const tern_gemm_variant *v,
                        const tern_cuda_gemm_kernel **found)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    tern_cuda_gemm_kernel *k = device->products;
    char why[600];
    tern_error_hold hold;
    while (k && !is_same(&k->of, v))
        k = k->next;
    *found = k;
    if (k)
        return TERN_OK;
    if (!(k = tern_alloc(sizeof *k)))
        return TERN_ERR_MEMORY;
    k->of = *v;
    tern_status status = tern_error_hold_begin(&hold);
    if (status == TERN_OK) {
        if (build(place, v, &k->kernel) == TERN_OK)
            try(place, k);
        status = tern_error_hold_end(&hold, why, sizeof why);
    }
    if (status != TERN_OK) {
        tern_cuda_kernel_free(k->kernel);
        k->kernel = NULL;
    }
    if (status == TERN_ERR_MEMORY) {
        tern_free(k);
        return tern_fail(status, "%s: no memory for a matrix product's kernel",
                         tern_place_info(place)->device);
    }
    if (status != TERN_OK)
        tern_warn("slow", "tern_matmul",
                  "products of %s on %s leave its matrix unit alone (%s): %s",
                  tern_dtype_name(v->dtype), tern_place_info(place)->device,
                  tern_matrix_name(v->way), why);
    k->next = device->products;
    *found = device->products = k;
    return TERN_OK;
}

bool tern_cuda_gemm_is_own(tern_place *place, const tern_gemm *g)
{
    return way_of(place, g) != TERN_MATRIX_NONE && !g->sums;
}

tern_status tern_cuda_gemm_own_fits(tern_place *place, const tern_gemm *g, bool *fits)
{
    const tern_cuda_gemm_kernel *k;
    *fits = false;
    if (!tern_cuda_gemm_is_own(place, g) || g->c.col != 1)
        return TERN_OK;
    const tern_gemm_variant v = variant_of(place, g, way_of(place, g));
    TERN_TRY(find(place, &v, &k));
    *fits = k->kernel != NULL;
    return TERN_OK;
}

tern_status tern_cuda_gemm_own(tern_place *place, const tern_gemm *g, bool *done)
{
    const tern_cuda_gemm_kernel *k;
    *done = false;
    if (!tern_cuda_gemm_is_own(place, g))
        return TERN_OK;
    const tern_gemm_variant v = variant_of(place, g, way_of(place, g));
    TERN_TRY(find(place, &v, &k));
    *done = k->kernel != NULL;
    return *done ? launch(place, k, g) : TERN_OK;
}
