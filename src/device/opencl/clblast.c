/* clblast.c -- matrix products by CLBlast, opened at run time. */
#include "base/dynlib.h"
#include "base/lock.h"
#include "device/builds.h"
#include "device/opencl/gemm.h"
#include <stdio.h>
#include <string.h>

static struct {
#define X(NAME, PARAMETERS) int(*NAME) PARAMETERS;
#include "device/opencl/clblast.def"
#undef X
} blast;
static char reason[256];
static bool there;

static void load(void)
{
    void *library = tern_dynlib_open(TERN_LIBRARY_CLBLAST, reason, sizeof reason), *address;
    there = library != NULL;
#define X(NAME, PARAMETERS)                                                                        \
    address = there ? tern_dynlib_symbol(library, "CLBlast" #NAME) : NULL;                         \
    memcpy(&blast.NAME, &address, sizeof address);                                                 \
    there = there && address;
#include "device/opencl/clblast.def"
#undef X
}

bool tern_cl_clblast_is_there(void)
{
    static tern_once once = TERN_ONCE_INIT;
    tern_call_once(&once, load);
    return there;
}

/* A matrix as BLAS takes it: rows x cols with contiguous rows, or transposed. */
typedef struct blas_matrix {
    bool fits, transposed;
    int64_t line; /* leading dimension */
} blas_matrix;

static blas_matrix as_blas(const tern_matrix *x, int64_t rows, int64_t cols)
{
    if (x->col == 1 || cols == 1) {
        int64_t line = rows == 1 ? cols : x->row;
        if (line >= cols)
            return (blas_matrix){true, false, line};
    }
    if (x->row == 1 || rows == 1) {
        int64_t line = cols == 1 ? rows : x->col;
        if (line >= rows)
            return (blas_matrix){true, true, line};
    }
    return (blas_matrix){0};
}

/* Returns whether BLAS takes a vector with this step, which has to be at least 1. */
static bool can_step(int64_t n, int64_t step)
{
    return n == 1 || step > 0;
}

/* The kernels read C even if beta is 0, and NaN times 0 is NaN: C must be zero before. */
static bool must_clear(const tern_gemm *g)
{
    return g->beta == 0 && !g->bias;
}

static bool can_gemv(const tern_gemm *g)
{
    if (g->n == 1 && g->m > 1 && g->c.row != 1 && must_clear(g))
        return false; /* zeroing would also clear the memory between C's elements */
    if (g->n == 1)
        return as_blas(&g->a, g->m, g->k).fits && can_step(g->k, g->b.row) &&
               can_step(g->m, g->c.row);
    return g->m == 1 && as_blas(&g->b, g->k, g->n).fits && can_step(g->k, g->a.col);
}

static bool can_gemm(const tern_gemm *g)
{
    blas_matrix c = as_blas(&g->c, g->m, g->n);
    return as_blas(&g->a, g->m, g->k).fits && as_blas(&g->b, g->k, g->n).fits && c.fits &&
           !c.transposed;
}

bool tern_cl_clblast_can(tern_cl_way way, const tern_gemm *g)
{
    return (g->dtype == TERN_F32 || g->dtype == TERN_F64) &&
           (way == TERN_CL_GEMV ? can_gemv(g) : can_gemm(g)) && tern_cl_clblast_is_there();
}

static size_t s(int64_t value)
{
    return (size_t)value;
}

enum { ROW_MAJOR = 101, AS_IT_IS = 111 };

/* Computes matrix i of the batch, or the whole batch. */
static int gemm(tern_cl_state *state, const tern_cl_product *p, int64_t i, bool batched,
                double beta)
{
    const tern_gemm *g = p->of;
    blas_matrix a = as_blas(&g->a, g->m, g->k), b = as_blas(&g->b, g->k, g->n);
    blas_matrix c = as_blas(&g->c, g->m, g->n);
    int at = AS_IT_IS + a.transposed, bt = AS_IT_IS + b.transposed;
    cl_mem am = g->a.buffer->handle, bm = g->b.buffer->handle, cm = g->c.buffer->handle;
    size_t m = s(g->m), n = s(g->n), k = s(g->k), first[3];
    for (int x = 0; x < 3; x++)
        first[x] = s(p->at[x] + i * p->stride[x]);
#define GEMM(LETTER, REAL)                                                                         \
    (batched ? blast.LETTER##gemmStridedBatched(                                                   \
                   ROW_MAJOR, at, bt, m, n, k, (REAL)g->alpha, am, first[0], s(a.line),            \
                   s(p->stride[0]), bm, first[1], s(b.line), s(p->stride[1]), (REAL)beta, cm,      \
                   first[2], s(c.line), s(p->stride[2]), s(p->count), &state->queue, NULL)         \
             : blast.LETTER##gemm(ROW_MAJOR, at, bt, m, n, k, (REAL)g->alpha, am, first[0],        \
                                  s(a.line), bm, first[1], s(b.line), (REAL)beta, cm, first[2],    \
                                  s(c.line), &state->queue, NULL))
    return g->dtype == TERN_F64 ? GEMM(D, double) : GEMM(S, float);
#undef GEMM
}

/* Computes C = A x for one column, C^T = B^T x for one row. */
static int gemv(tern_cl_state *state, const tern_cl_product *p, int64_t i, double beta)
{
    const tern_gemm *g = p->of;
    bool column = g->n == 1;
    const tern_matrix *matrix = column ? &g->a : &g->b, *x = column ? &g->b : &g->a;
    int64_t rows = column ? g->m : g->k, cols = column ? g->k : g->n;
    int64_t x_step = column ? x->row : x->col, c_step = column ? g->c.row : 1;
    blas_matrix a = as_blas(matrix, rows, cols);
    int transpose = AS_IT_IS + (a.transposed != !column), of_matrix = column ? 0 : 1;
    size_t stored_rows = s(a.transposed ? cols : rows), stored_cols = s(a.transposed ? rows : cols);
    size_t first[3];
    for (int t = 0; t < 3; t++)
        first[t] = s(p->at[t] + i * p->stride[t]);
    x_step = g->k == 1 ? 1 : x_step;
    c_step = column && g->m == 1 ? 1 : c_step;
#define GEMV(LETTER, REAL)                                                                         \
    blast.LETTER##gemv(ROW_MAJOR, transpose, stored_rows, stored_cols, (REAL)g->alpha,             \
                       matrix->buffer->handle, first[of_matrix], s(a.line), x->buffer->handle,     \
                       first[!of_matrix], s(x_step), (REAL)beta, g->c.buffer->handle, first[2],    \
                       s(c_step), &state->queue, NULL)
    return g->dtype == TERN_F64 ? GEMV(D, double) : GEMV(S, float);
#undef GEMV
}

static const char *way_name(tern_cl_way way)
{
    return way == TERN_CL_GEMV ? "gemv" : way == TERN_CL_BATCHED ? "gemmStridedBatched" : "gemm";
}

/* Returns whether this is the routine's first call for a type, when CLBlast compiles it. */
static bool is_first(tern_cl_way way, tern_dtype dtype)
{
    static atomic_uint called[TERN_DTYPE_END];
    unsigned bit = 1u << way;
    return !(atomic_fetch_or(&called[dtype], bit) & bit);
}

tern_status tern_cl_clblast_gemm(tern_place *place, tern_cl_way way, const tern_cl_product *product,
                                 double beta)
{
    tern_cl_state *state = tern_cl_state_of(place);
    bool batched = way == TERN_CL_BATCHED && product->count > 1;
    int code = 0;
    const size_t each = tern_dtype_size(product->of->dtype);
    for (int64_t i = 0; i < product->count && way == TERN_CL_GEMV && must_clear(product->of); i++)
        TERN_TRY(tern_cl_zero(place, product->of->c.buffer,
                              s(product->at[2] + i * product->stride[2]) * each,
                              s(product->of->m * product->of->n) * each));
    char title[64];
    bool first = is_first(way, product->of->dtype);
    snprintf(title, sizeof title, "kernel %s of CLBlast", way_name(way));
    TERN_TRY(tern_cl_alive(place));
    if (first) {
        TERN_TRY(tern_build_allowed(place, title));
        tern_build_compiles(place, title);
    }
    tern_mutex_lock(&state->lock);
    for (int64_t i = 0; i < (batched ? 1 : product->count) && code == 0; i++) {
        code = tern_cl_gate()
                   ? CL_OUT_OF_RESOURCES
                   : tern_cl_code(way == TERN_CL_GEMV ? gemv(state, product, i, beta)
                                                      : gemm(state, product, i, batched, beta));
        tern_cl_note_enqueued(state);
    }
    tern_mutex_unlock(&state->lock);
    if (first)
        tern_build_compiled(place, title);
    if (code > -100) /* a code of OpenCL; CLBlast's own are below -1000 */
        return tern_cl_check(place, code, "CLBlast gemm");
    return tern_fail(TERN_ERR_DEVICE, "%s: CLBlast's gem%c (%lldx%lldx%lld) gave %d",
                     tern_place_info(place)->device, way == TERN_CL_GEMV ? 'v' : 'm',
                     (long long)product->of->m, (long long)product->of->n,
                     (long long)product->of->k, code);
}

int tern_cl_clblast_override(tern_place *place, const char *kernel, int precision, size_t n,
                             const char **names, const size_t *values)
{
    return blast.OverrideParameters(tern_cl_state_of(place)->device, kernel, precision, n, names,
                                    values);
}
