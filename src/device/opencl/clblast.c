/* clblast.c -- matrix products by CLBlast, opened at run time. */
#include "base/dynlib.h"
#include "device/opencl/gemm.h"
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
    static const char *const names[] = {"libclblast.so.1", "libclblast.so", NULL};
    void *library = tern_dynlib_open(names, reason, sizeof reason), *address;
    there = library != NULL;
#define X(NAME, PARAMETERS)                                                                        \
    address = there ? tern_dynlib_symbol(library, "CLBlast" #NAME) : NULL;                         \
    memcpy(&blast.NAME, &address, sizeof address);                                                 \
    there = there && address;
#include "device/opencl/clblast.def"
#undef X
}

static bool is_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return there;
}

/* A matrix as BLAS takes it: rows x cols with elements of a row side by side, or transposed. */
typedef struct blas_matrix {
    bool fits, transposed;
    int64_t line; /* from row to row */
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

bool tern_cl_clblast_can(const tern_gemm *g)
{
    return (g->dtype == TERN_F32 || g->dtype == TERN_F64) && as_blas(&g->a, g->m, g->k).fits &&
           as_blas(&g->b, g->k, g->n).fits && !as_blas(&g->c, g->m, g->n).transposed &&
           as_blas(&g->c, g->m, g->n).fits && is_there();
}

static size_t s(int64_t value)
{
    return (size_t)value;
}

static int call(tern_cl_state *state, const tern_cl_product *p, double beta)
{
    enum { ROW_MAJOR = 101, AS_IT_IS = 111 };
    const tern_gemm *g = p->of;
    blas_matrix a = as_blas(&g->a, g->m, g->k), b = as_blas(&g->b, g->k, g->n);
    blas_matrix c = as_blas(&g->c, g->m, g->n);
    int at = AS_IT_IS + a.transposed, bt = AS_IT_IS + b.transposed;
    cl_mem am = g->a.buffer->handle, bm = g->b.buffer->handle, cm = g->c.buffer->handle;
    size_t m = s(g->m), n = s(g->n), k = s(g->k);
#define GEMM(LETTER, REAL)                                                                         \
    (p->count == 1                                                                                 \
         ? blast.LETTER##gemm(ROW_MAJOR, at, bt, m, n, k, (REAL)g->alpha, am, s(p->at[0]),         \
                              s(a.line), bm, s(p->at[1]), s(b.line), (REAL)beta, cm, s(p->at[2]),  \
                              s(c.line), &state->queue, NULL)                                      \
         : blast.LETTER##gemmStridedBatched(                                                       \
               ROW_MAJOR, at, bt, m, n, k, (REAL)g->alpha, am, s(p->at[0]), s(a.line),             \
               s(p->stride[0]), bm, s(p->at[1]), s(b.line), s(p->stride[1]), (REAL)beta, cm,       \
               s(p->at[2]), s(c.line), s(p->stride[2]), s(p->count), &state->queue, NULL))
    return g->dtype == TERN_F64 ? GEMM(D, double) : GEMM(S, float);
#undef GEMM
}

tern_status tern_cl_clblast_gemm(tern_place *place, const tern_cl_product *product, double beta)
{
    tern_cl_state *state = tern_cl_state_of(place);
    TERN_TRY(tern_cl_alive(place));
    pthread_mutex_lock(&state->lock);
    int code = tern_cl_gate() ? CL_OUT_OF_RESOURCES : call(state, product, beta);
    tern_cl_note_enqueued(state);
    pthread_mutex_unlock(&state->lock);
    if (code > -100) /* OpenCL's codes; below -1000 are CLBlast's own */
        return tern_cl_check(place, code, "CLBlast gemm");
    return tern_fail(TERN_ERR_DEVICE, "%s: CLBlast's gemm (%lldx%lldx%lld) gave %d",
                     tern_place_info(place)->device, (long long)product->of->m,
                     (long long)product->of->n, (long long)product->of->k, code);
}
