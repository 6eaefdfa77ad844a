/* matrix_gemm.c -- gemm_matrix.cl in lanes of the host against float64: compiled for each way of
 * matrix.h and each type. */
#define MATRIX_WORD_BY_WORD 1 /* as in OpenCL; attention loads as in CUDA */
#include "matrix_lanes.h"
#include "matrix_gemm.h"
#undef fabs /* of float64 here */

typedef struct product {
    u16 *c;
    const u16 *a, *b, *bias;
    tern_gemm_shape shape;
    f32 alpha, beta;
} product;

#undef K
#define K(n)         K__(n, CASE, TERN_T)
#define K__(n, c, t) TERN_CAT(TERN_CAT(n, c), t)
#undef TERN_WG
#define TERN_WG      (MATRIX_ROWS * MATRIX_COLS / 64)
#define MATRIX_ROWS  64
#define MATRIX_COLS  64
#define MATRIX_DEPTH 32

#define CASE       nn
#define MATRIX_TA  0
#define MATRIX_TB  0
#define MATRIX_ODD 0
#include "matrix_gemm_case.h"

#define CASE       nt
#define MATRIX_TA  0
#define MATRIX_TB  1
#define MATRIX_ODD 1
#include "matrix_gemm_case.h"

#define CASE       tn
#define MATRIX_TA  1
#define MATRIX_TB  0
#define MATRIX_ODD 2
#include "matrix_gemm_case.h"

#define CASE       tt
#define MATRIX_TA  1
#define MATRIX_TB  1
#define MATRIX_ODD 1
#include "matrix_gemm_case.h"

#undef MATRIX_ROWS
#undef MATRIX_DEPTH
#define MATRIX_ROWS  128
#define MATRIX_DEPTH 64

#define CASE       flat
#define MATRIX_TA  0
#define MATRIX_TB  1
#define MATRIX_ODD 0
#include "matrix_gemm_case.h"

#define CASE       tall
#define MATRIX_TA  1
#define MATRIX_TB  0
#define MATRIX_ODD 0
#include "matrix_gemm_case.h"

#define CASE       odd
#define MATRIX_TA  0
#define MATRIX_TB  0
#define MATRIX_ODD 2
#include "matrix_gemm_case.h"

#define RUN(c) K__(run, c, TERN_T)
static const struct {
    const char *name;
    void (*run)(void *);
    int rows, ta, tb, m, n, k, outer, inner;
    f32 alpha, beta;
    bool bias;
} cases[] = {
    {"nn, whole eights, a batch", RUN(nn), 64, 0, 0, 70, 72, 40, 2, 3, 0.5f, 0, false},
    {"nn, sums of two", RUN(nn), 64, 0, 0, 64, 128, 96, 1, 1, 1, -1, true},
    {"nt, edges", RUN(nt), 64, 0, 1, 67, 45, 33, 1, 2, 1, 2, true},
    {"tn, any strides", RUN(tn), 64, 1, 0, 65, 67, 31, 1, 2, 1, 0, true},
    {"tt", RUN(tt), 64, 1, 1, 30, 133, 65, 1, 1, 0.25f, 0, true},
    {"nt, 128 rows", RUN(flat), 128, 0, 1, 136, 72, 80, 1, 1, 1, 0, false},
    {"tn, 128 rows", RUN(tall), 128, 1, 0, 96, 64, 16, 1, 1, 0.25f, 0, true},
    {"nn, 128 rows, any strides", RUN(odd), 128, 0, 0, 131, 35, 7, 1, 1, 1, 0, false},
};

/* ---- values: eighths, whose products and sums have no rounding ------------------------------- */

static u32 next_state;
static f64 next(void)
{
    next_state = next_state * 1664525u + 1013904223u;
    return ((int)(next_state >> 24) % 31 - 15) / 8.0;
}
static f64 get(const u16 *x, i64 i)
{
    return LD_OF(TERN_T, x, i);
}
static u16 *numbers(i64 n)
{
    /* Behind it is what would be seen in a sum. */
    const size_t bytes = ((size_t)n * sizeof(u16) + 191) / 64 * 64;
    u16 *x = aligned_alloc(64, bytes);
    memset(x, 0x5a, bytes);
    for (i64 i = 0; i < n; i++)
        ST_OF(TERN_T, x, i, next());
    return x;
}

/* A matrix with gaps between its lines: eights where the kernel wants them. */
static tern_gemm_matrix lay(int rows, int columns, int across, int outer, int inner, i64 *n)
{
    i64 line = ((across ? rows : columns) + 7) / 8 * 8 + 8, all = line * (across ? columns : rows);
    *n = all * outer * inner;
    return (tern_gemm_matrix){across ? 1 : line, across ? line : 1, {all * inner, all}};
}

/* ---- float64 --------------------------------------------------------------------------------- */

/* Half a unit in the last place of the result. */
static f64 apart(f64 got, f64 want)
{
    f64 may = (MATRIX_IS_BF16 ? 0x1p-8 : 0x1p-11) * (1e-6 + fabs(want)) + 1e-9;
    f64 difference = fabs(got - want) / may;
    return difference == difference ? difference : 1000;
}

static f64 check(const product *p, const u16 *before)
{
    const tern_gemm_shape *s = &p->shape;
    f64 worst = 0;
    for (i64 u = 0; u < s->count[0] * s->count[1] * s->m * s->n; u++) {
        i64 j = u % s->n, i = u / s->n % s->m, b1 = u / s->n / s->m % s->count[1];
        i64 b0 = u / s->n / s->m / s->count[1];
        i64 at = b0 * s->c.batch[0] + b1 * s->c.batch[1] + i * s->c.row + j * s->c.col;
        const u16 *a = p->a + b0 * s->a.batch[0] + b1 * s->a.batch[1] + i * s->a.row;
        const u16 *b = p->b + b0 * s->b.batch[0] + b1 * s->b.batch[1] + j * s->b.col;
        f64 sum = 0;
        for (i64 k = 0; k < s->k; k++)
            sum += get(a, k * s->a.col) * get(b, k * s->b.row);
        sum = p->alpha * sum + (s->has_bias ? get(p->bias, j) : 0);
        sum += p->beta != 0 ? p->beta * get(before, at) : 0;
        worst = fmax(worst, apart(get(p->c, at), sum));
    }
    return worst;
}

double TERN_CAT(TERN_CAT(matrix_gemm, MATRIX_WAY), TERN_T)(int w, const char **name)
{
    if (w >= (int)(sizeof cases / sizeof *cases)) {
        *name = NULL;
        return 0;
    }
    const int m = cases[w].m, n = cases[w].n, k = cases[w].k;
    const int o = cases[w].outer, i = cases[w].inner;
    i64 na, nb, nc;
    next_state = (u32)w;
    *name = cases[w].name;
    product p = {.alpha = cases[w].alpha, .beta = cases[w].beta};
    p.shape = (tern_gemm_shape){.m = m, .n = n, .k = k, .count = {o, i}};
    p.shape.a = lay(m, k, cases[w].ta, o, i, &na);
    p.shape.b = lay(k, n, cases[w].tb, o, i, &nb);
    p.shape.c = lay(m, n, 0, o, i, &nc);
    p.shape.has_bias = cases[w].bias;
    u16 *a = numbers(na), *b = numbers(nb), *bias = numbers(n), *c = numbers(nc);
    u16 *before = numbers(nc);
    memcpy(before, c, (size_t)nc * sizeof *c);
    p.a = a, p.b = b, p.bias = bias, p.c = c;
    const int tiles = (m + cases[w].rows - 1) / cases[w].rows * ((n + 63) / 64) * o * i;
    the_lanes.lost = false;
    lanes_run(tiles > 2 ? tiles - 1 : tiles, cases[w].rows, MATRIX_LANES, cases[w].run, &p);
    f64 worst = check(&p, before);
    for (i64 e = 0; e < nc; e++) { /* nothing is written between the lines */
        i64 column = e % p.shape.c.row;
        if (column >= n && get(c, e) != get(before, e))
            worst = 1000;
    }
    free(a), free(b), free(bias), free(c), free(before);
#if MATRIX_WAY > 0
    return the_lanes.lost || unit_differs ? 1000 : worst;
#else
    return the_lanes.lost ? 1000 : worst;
#endif
}
