/* matrix_gemm.c -- gemm_matrix.cl in lanes of the host against float64: compiled for each way of
 * matrix.h and each type. */
#include "matrix_lanes.h"
#include "matrix_gemm.h"
#undef exp /* of float64 here */
#undef tanh
#undef erfc
#undef fabs

typedef struct product {
    void *c;
    const u16 *a, *b, *bias;
    u16 *notes;
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

#define CASE          nn
#define MATRIX_TA     0
#define MATRIX_TB     0
#define MATRIX_ODD    0
#define MATRIX_RESULT TERN_T
#define MATRIX_END    0
#include "matrix_gemm_case.h"

#define CASE          nt
#define MATRIX_TA     0
#define MATRIX_TB     1
#define MATRIX_ODD    1
#define MATRIX_RESULT f32
#define MATRIX_END    0
#include "matrix_gemm_case.h"

#define CASE          tn
#define MATRIX_TA     1
#define MATRIX_TB     0
#define MATRIX_ODD    2
#define MATRIX_RESULT TERN_T
#define MATRIX_END    1
#include "matrix_gemm_case.h"

#define CASE          tt
#define MATRIX_TA     1
#define MATRIX_TB     1
#define MATRIX_ODD    1
#define MATRIX_RESULT TERN_T
#define MATRIX_END    2
#include "matrix_gemm_case.h"

#undef MATRIX_ROWS
#undef MATRIX_DEPTH
#define MATRIX_ROWS  128
#define MATRIX_DEPTH 64

#define CASE          flat
#define MATRIX_TA     0
#define MATRIX_TB     1
#define MATRIX_ODD    0
#define MATRIX_RESULT TERN_T
#define MATRIX_END    3
#include "matrix_gemm_case.h"

#define CASE          erf
#define MATRIX_TA     1
#define MATRIX_TB     0
#define MATRIX_ODD    0
#define MATRIX_RESULT f32
#define MATRIX_END    4
#include "matrix_gemm_case.h"

#define CASE          back
#define MATRIX_TA     0
#define MATRIX_TB     0
#define MATRIX_ODD    2
#define MATRIX_RESULT TERN_T
#define MATRIX_END    5
#include "matrix_gemm_case.h"

#define RUN(c) K__(run, c, TERN_T)
static const struct {
    const char *name;
    void (*run)(void *);
    int rows, ta, tb, wide, end, m, n, k, outer, inner;
    f32 alpha, beta;
    bool bias;
} cases[] = {
    {"nn, whole eights, a batch", RUN(nn), 64, 0, 0, 0, 0, 70, 72, 40, 2, 3, 0.5f, 0, false},
    {"nn, sums of two", RUN(nn), 64, 0, 0, 0, 0, 64, 128, 96, 1, 1, 1, -1, true},
    {"nt, float32, edges", RUN(nt), 64, 0, 1, 1, 0, 67, 45, 33, 1, 2, 1, 2, true},
    {"tn, any strides, relu", RUN(tn), 64, 1, 0, 0, 1, 65, 67, 31, 1, 2, 1, 0, true},
    {"tt, gelu", RUN(tt), 64, 1, 1, 0, 2, 30, 133, 65, 1, 1, 0.25f, 0, true},
    {"gelu's gradient", RUN(flat), 128, 0, 1, 0, 3, 136, 72, 80, 1, 1, 1, 0, false},
    {"gelu by erf, float32", RUN(erf), 128, 1, 0, 1, 4, 96, 64, 16, 1, 1, 0.25f, 0, true},
    {"its gradient", RUN(back), 128, 0, 0, 0, 5, 131, 35, 7, 1, 1, 1, 0, false},
};

/* ---- values: eighths, whose products and sums have no rounding ------------------------------- */

static u32 next_state;
static f64 next(void)
{
    next_state = next_state * 1664525u + 1013904223u;
    return ((int)(next_state >> 24) % 31 - 15) / 8.0;
}
static f64 get(const void *x, int wide, i64 i)
{
    return wide ? ((const f32 *)x)[i] : LD_OF(TERN_T, (const u16 *)x, i);
}
static void *numbers(i64 n, int wide)
{
    /* Behind it is what would be seen in a sum. */
    void *x = aligned_alloc(64, ((size_t)n * 4 + 191) / 64 * 64);
    memset(x, 0x5a, ((size_t)n * 4 + 191) / 64 * 64);
    for (i64 i = 0; i < n; i++)
        if (wide)
            ((f32 *)x)[i] = (f32)next();
        else
            ST_OF(TERN_T, (u16 *)x, i, next());
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

static f64 slope(f64 x, int end)
{
    f64 a = 0.7978845608028654, t = tanh(a * (x + 0.044715 * x * x * x));
    if (end == 3)
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * a * (1 + 3 * 0.044715 * x * x);
    return 0.5 * erfc(-x * 0.7071067811865476) + x * 0.3989422804014327 * exp(-0.5 * x * x);
}
static f64 at_end(f64 v, f64 noted, int end)
{
    f64 a = 0.7978845608028654;
    switch (end) {
    case 1:
        return v > 0 ? v : 0;
    case 2:
        return 0.5 * noted * (1 + tanh(a * (noted + 0.044715 * noted * noted * noted)));
    case 4:
        return 0.5 * noted * erfc(-noted * 0.7071067811865476);
    case 3:
    case 5:
        return v * slope(noted, end);
    default:
        return v;
    }
}

/* Half a unit in the last place of the result, and what gelu's own arithmetic may add. */
static f64 apart(f64 got, f64 want, int wide, int end)
{
    f64 bits = wide ? 0x1p-23 : MATRIX_IS_BF16 ? 0x1p-8 : 0x1p-11;
    f64 may = (bits + (end > 1 ? 4e-6 : 0)) * (1e-6 + fabs(want)) + (end > 1 ? 4e-6 : 1e-9);
    f64 difference = fabs(got - want) / may;
    return difference == difference ? difference : 1000;
}

static f64 check(int w, const product *p, const void *before, const u16 *noted)
{
    const tern_gemm_shape *s = &p->shape;
    const int wide = cases[w].wide, end = cases[w].end;
    f64 worst = 0;
    for (i64 u = 0; u < s->count[0] * s->count[1] * s->m * s->n; u++) {
        i64 j = u % s->n, i = u / s->n % s->m, b1 = u / s->n / s->m % s->count[1];
        i64 b0 = u / s->n / s->m / s->count[1];
        i64 at = b0 * s->c.batch[0] + b1 * s->c.batch[1] + i * s->c.row + j * s->c.col;
        i64 note = i * ((s->n + 7) / 8 * 8) + j;
        const u16 *a = p->a + b0 * s->a.batch[0] + b1 * s->a.batch[1] + i * s->a.row;
        const u16 *b = p->b + b0 * s->b.batch[0] + b1 * s->b.batch[1] + j * s->b.col;
        f64 sum = 0;
        for (i64 k = 0; k < s->k; k++)
            sum += get(a, 0, k * s->a.col) * get(b, 0, k * s->b.row);
        sum = p->alpha * sum + (s->has_bias ? get(p->bias, 0, j) : 0);
        sum += p->beta != 0 ? p->beta * get(before, wide, at) : 0;
        if (end == 2 || end == 4)
            worst = fmax(worst, apart(get(p->notes, 0, note), sum, 0, 0));
        worst = fmax(worst,
                     apart(get(p->c, wide, at), at_end(sum, get(noted, 0, note), end), wide, end));
    }
    return worst;
}

double TERN_CAT(TERN_CAT(matrix_gemm, MATRIX_WAY), TERN_T)(int w, const char **name)
{
    if (w >= (int)(sizeof cases / sizeof *cases)) {
        *name = NULL;
        return 0;
    }
    const int m = cases[w].m, n = cases[w].n, k = cases[w].k, wide = cases[w].wide;
    const int o = cases[w].outer, i = cases[w].inner;
    i64 na, nb, nc, ne = (i64)m * ((n + 7) / 8 * 8);
    next_state = (u32)w;
    *name = cases[w].name;
    product p = {.alpha = cases[w].alpha, .beta = cases[w].beta};
    p.shape = (tern_gemm_shape){.m = m, .n = n, .k = k, .count = {o, i}};
    p.shape.a = lay(m, k, cases[w].ta, o, i, &na);
    p.shape.b = lay(k, n, cases[w].tb, o, i, &nb);
    p.shape.c = lay(m, n, 0, o, i, &nc);
    p.shape.has_bias = cases[w].bias;
    u16 *a = numbers(na, 0), *b = numbers(nb, 0), *bias = numbers(n, 0), *notes = numbers(ne, 0);
    void *c = numbers(nc, wide), *before = numbers(nc, wide);
    memcpy(before, c, (size_t)nc * (wide ? 4 : 2));
    p.a = a, p.b = b, p.bias = bias, p.notes = notes, p.c = c;
    const int tiles = (m + cases[w].rows - 1) / cases[w].rows * ((n + 63) / 64) * o * i;
    the_lanes.lost = false;
    lanes_run(tiles > 2 ? tiles - 1 : tiles, cases[w].rows, MATRIX_LANES, cases[w].run, &p);
    f64 worst = check(w, &p, before, notes);
    for (i64 e = 0; e < nc; e++) { /* nothing is written between the lines */
        i64 column = e % p.shape.c.row;
        if (column >= n && get(c, wide, e) != get(before, wide, e))
            worst = 1000;
    }
    free(a), free(b), free(bias), free(notes), free(c), free(before);
#if MATRIX_WAY > 0
    return the_lanes.lost || unit_differs ? 1000 : worst;
#else
    return the_lanes.lost ? 1000 : worst;
#endif
}
