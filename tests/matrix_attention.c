/* matrix_attention.c -- attention_matrix.cl and its gradients in lanes of the host against float64:
 * compiled for each way of matrix.h and each type. */
#include "matrix_lanes.h"
#include "matrix_gemm.h"
#include "philox.h"
#undef fabs /* of float64 here */
#undef exp
#undef log
#undef tanh

enum { STACKS = 2, GAP = 8 };
typedef struct problem {
    u16 *q, *k, *v, *out, *dout, *dq, *dk, *dv, *numbers;
    u8 *bools;
    f32 *lse, *delta;
    u64 state[2];
    tern_attention_tiles s;
    f32 kept;
} problem;

/* Two sub-groups. */
#undef TERN_WG
#define TERN_WG (2 * MATRIX_LANES)
#undef K
#define K(n)            K__(n, VARIANT, MATRIX_PASS, TERN_T)
#define K__(n, v, p, t) TERN_CAT(TERN_CAT(TERN_CAT(n, v), p), t)

#define VARIANT       w32
#define MATRIX_WIDTH  32
#define MATRIX_EXTRAS 0
#define MATRIX_ODD    0
#include "matrix_attention_case.h"
#define VARIANT       w64
#define MATRIX_WIDTH  64
#define MATRIX_EXTRAS 0
#define MATRIX_ODD    0
#include "matrix_attention_case.h"
#define VARIANT       w128
#define MATRIX_WIDTH  128
#define MATRIX_EXTRAS 0
#define MATRIX_ODD    0
#include "matrix_attention_case.h"
#define VARIANT       extras256
#define MATRIX_WIDTH  256
#define MATRIX_EXTRAS 1
#define MATRIX_ODD    0
#include "matrix_attention_case.h"
#define VARIANT       extras
#define MATRIX_WIDTH  64
#define MATRIX_EXTRAS 1
#define MATRIX_ODD    0
#include "matrix_attention_case.h"
#define VARIANT       extras128
#define MATRIX_WIDTH  128
#define MATRIX_EXTRAS 1
#define MATRIX_ODD    0
#include "matrix_attention_case.h"
#define VARIANT       odd
#define MATRIX_WIDTH  32
#define MATRIX_EXTRAS 1
#define MATRIX_ODD    2
#include "matrix_attention_case.h"

#define RUN(v)                                                                                     \
    {K__(run, v, 0, TERN_T), K__(run, v, 1, TERN_T), K__(run, v, 2, TERN_T),                       \
     K__(run, v, 3, TERN_T)},                                                                      \
        {TERN_CAT(TERN_CAT(cuts, v), 0), TERN_CAT(TERN_CAT(cuts, v), 1),                           \
         TERN_CAT(TERN_CAT(cuts, v), 2), TERN_CAT(TERN_CAT(cuts, v), 3)},                          \
        TERN_CAT(whole, v)
static const struct {
    const char *name;
    void (*run[4])(void *);
    int cuts[4];
    bool whole;
    int columns, width, value_width, queries, keys, before, after, flags;
    double dropout;
    f32 scale, softcap;
} cases[] = {
    {"32 wide, causal", RUN(w32), 32, 24, 32, 45, 45, 45, 0, TERN_ATTENTION_BAND, 0, .3f, 0},
    {"64 wide", RUN(w64), 64, 64, 64, 37, 70, 0, 0, 0, 0, .2f, 0},
    {"64 wide, causal", RUN(w64), 64, 64, 48, 50, 50, 50, 0, TERN_ATTENTION_BAND, 0, .2f, 0},
    {"64 wide, a window", RUN(w64), 64, 40, 64, 40, 150, 9, 103, TERN_ATTENTION_BAND, 0, .2f, 0},
    {"128 wide, causal", RUN(w128), 128, 128, 128, 33, 47, 40, 14, TERN_ATTENTION_BAND, 0, .1f, 0},
    {"128 wide", RUN(w128), 128, 120, 72, 20, 35, 0, 0, 0, 0, .1f, 0},
    {"numbers, softcap", RUN(extras), 64, 64, 64, 35, 40, 0, 0, TERN_ATTENTION_NUMBERS, 0, .4f, 2},
    {"bools, dropout, band", RUN(extras), 64, 56, 64, 40, 40, 40, 0,
     TERN_ATTENTION_BOOLS | TERN_ATTENTION_BAND, .3, -.2f, 0},
    {"128 wide, dropout", RUN(extras128), 128, 128, 128, 20, 37, 0, 0, 0, .5, .1f, 0},
    {"256 wide, causal, dropout", RUN(extras256), 256, 256, 200, 35, 43, 40, 8, TERN_ATTENTION_BAND,
     .25, .1f, 0},
    {"any strides", RUN(odd), 32, 19, 13, 21, 34, 5, 2, TERN_ATTENTION_BAND, 0, .3f, 0},
};

/* ---- values ---------------------------------------------------------------------------------- */

static u32 next_state;
static f64 next(void)
{
    next_state = next_state * 1664525u + 1013904223u;
    return (f64)(next_state >> 8) / (1 << 23) - 1;
}
static f64 get(const u16 *x, i64 i)
{
    return LD_OF(TERN_T, x, i);
}

/* Lines of all stacks beside each other, with a gap behind each that shows in a sum; where the
 * width is no multiple of 8 its elements are two apart. */
static u16 *numbers(tern_gemm_matrix *m, i64 lines, i64 width)
{
    i64 col = width % 8 ? 2 : 1, step = width * col + (width % 8 ? 3 : GAP);
    *m = (tern_gemm_matrix){.row = STACKS * step, .col = col, .batch = {0, step}};
    u16 *x = aligned_alloc(64, (size_t)(lines * STACKS * step * 2 + 63) / 64 * 64);
    for (i64 i = 0; i < lines * STACKS * step; i++)
        ST_OF(TERN_T, x, i, i % step < width * col ? next() : 77);
    return x;
}
static i64 at(const tern_gemm_matrix *m, i64 stack, i64 line, i64 column)
{
    return stack * m->batch[1] + line * m->row + column * m->col;
}

/* ---- float64 --------------------------------------------------------------------------------- */

typedef struct
    row_of { /* of a query: each key's weight, whether dropout keeps it, the softcap's slope */
    f64 weight[160], keeps[160], slope[160], lse;
} row_of;

static bool is_kept(const problem *p, u64 number)
{
    tern_words w = tern_philox(p->state[1] + number / 4, p->state[0]);
    const u32 words[] = {w.a, w.b, w.c, w.d};
    return (i32)(words[number % 4] >> 8) >= p->s.block.drop;
}

static void weigh(const problem *p, i64 stack, i64 i, row_of *r)
{
    const tern_attention_tiles *s = &p->s;
    const tern_attention_block *b = &s->block;
    f64 sum = 0;
    for (i64 j = 0; j < b->keys; j++) {
        f64 x = 0;
        for (i64 c = 0; c < s->width; c++)
            x += get(p->q, at(&s->q, stack, i, c)) * get(p->k, at(&s->k, stack, j, c));
        x *= s->scale;
        f64 bent = s->softcap != 0 ? tanh(x / s->softcap) : 0;
        r->slope[j] = 1 - bent * bent;
        x = s->softcap != 0 ? s->softcap * bent : x;
        i64 place = stack * b->stride[1] + i * b->stride[2] + j * b->stride[3];
        x += b->flags & TERN_ATTENTION_NUMBERS ? get(p->numbers, place) : 0;
        bool seen = !(b->flags & TERN_ATTENTION_BAND) || (j >= i - b->before && j <= i + b->after);
        seen = seen && (!(b->flags & TERN_ATTENTION_BOOLS) || p->bools[place]);
        r->weight[j] = seen ? exp(x) : 0;
        sum += r->weight[j];
        r->keeps[j] = b->drop == 0 || is_kept(p, (u64)((stack * b->queries + i) * b->keys + j));
    }
    r->lse = sum > 0 ? log(sum) : 0;
    for (i64 j = 0; j < b->keys; j++)
        r->weight[j] /= sum > 0 ? sum : 1;
}

/* The largest difference of the lines of a matrix, of what may be: a part of its largest value. */
static f64 apart(const u16 *got, const tern_gemm_matrix *m, const f64 *want, i64 lines, i64 width)
{
    f64 most = 0, worst = 0;
    for (i64 i = 0; i < STACKS * lines * width; i++)
        most = fmax(most, fabs(want[i]));
    for (i64 i = 0; i < STACKS * lines * width; i++) {
        f64 x = get(got, at(m, i / width / lines, i / width % lines, i % width));
        f64 difference = fabs(x - want[i]) / ((MATRIX_IS_BF16 ? 0x1p-7 : 0x1p-10) * most);
        worst = difference <= worst ? worst : difference;
    }
    for (i64 e = 0; e < lines * m->row; e++) /* nothing is written between them */
        if (e % m->batch[1] >= width * m->col && get(got, e) != 77)
            return 1000;
    return worst;
}

#define ADD(to, lines, width, line, column) (to)[(stack * (lines) + (line)) * (width) + (column)]
static f64 check(const problem *p)
{
    const tern_attention_tiles *s = &p->s;
    const i64 n = s->block.queries, m = s->block.keys, w = s->width, vw = s->value_width;
    f64 *out = calloc((size_t)(STACKS * n * vw), 8), *dq = calloc((size_t)(STACKS * n * w), 8);
    f64 *dk = calloc((size_t)(STACKS * m * w), 8), *dv = calloc((size_t)(STACKS * m * vw), 8);
    f64 worst = 0;
    row_of r;
    for (i64 stack = 0; stack < STACKS; stack++)
        for (i64 i = 0; i < n; i++) {
            f64 mean = 0, d[160];
            weigh(p, stack, i, &r);
            worst = fmax(worst, fabs(p->lse[stack * n + i] - r.lse) / 1e-4);
            for (i64 j = 0; j < m; j++) {
                f64 kept = r.weight[j] * r.keeps[j] * p->kept;
                d[j] = 0;
                for (i64 c = 0; c < vw; c++) {
                    f64 dout = get(p->dout, at(&s->dout, stack, i, c));
                    f64 v = get(p->v, at(&s->v, stack, j, c));
                    ADD(out, n, vw, i, c) += kept * v;
                    ADD(dv, m, vw, j, c) += kept * dout;
                    d[j] += v * dout * r.keeps[j] * p->kept;
                }
                mean += r.weight[j] * d[j];
            }
            for (i64 j = 0; j < m; j++)
                for (i64 c = 0; c < w; c++) {
                    f64 ds = r.weight[j] * (d[j] - mean) * r.slope[j] * s->scale;
                    ADD(dq, n, w, i, c) += ds * get(p->k, at(&s->k, stack, j, c));
                    ADD(dk, m, w, j, c) += ds * get(p->q, at(&s->q, stack, i, c));
                }
        }
    worst = fmax(worst, apart(p->out, &s->out, out, n, vw));
    worst = fmax(worst, apart(p->dq, &s->dq, dq, n, w));
    worst = fmax(worst, apart(p->dk, &s->dk, dk, m, w));
    worst = fmax(worst, apart(p->dv, &s->dv, dv, m, vw));
    free(out), free(dq), free(dk), free(dv);
    return worst;
}

static void make(problem *p, int w)
{
    const i64 n = cases[w].queries, m = cases[w].keys;
    tern_attention_tiles *s = &p->s;
    next_state = (u32)w;
    *s = (tern_attention_tiles){.width = cases[w].width,
                                .value_width = cases[w].value_width,
                                .scale = cases[w].scale,
                                .softcap = cases[w].softcap};
    s->block = (tern_attention_block){.count = {1, STACKS},
                                      .queries = n,
                                      .keys = m,
                                      .before = cases[w].before,
                                      .after = cases[w].after,
                                      .stride = {0, n * m, m, 1},
                                      .flags = cases[w].flags,
                                      .drop = (i32)(cases[w].dropout * (1 << 24))};
    p->kept = (f32)(1 / (1 - cases[w].dropout));
    p->state[0] = 12345, p->state[1] = 678;
    p->q = numbers(&s->q, n, s->width), p->k = numbers(&s->k, m, s->width);
    p->v = numbers(&s->v, m, s->value_width), p->out = numbers(&s->out, n, s->value_width);
    p->dout = numbers(&s->dout, n, s->value_width), p->dq = numbers(&s->dq, n, s->width);
    p->dk = numbers(&s->dk, m, s->width), p->dv = numbers(&s->dv, m, s->value_width);
    p->lse = calloc((size_t)(STACKS * n), 4), p->delta = calloc((size_t)(STACKS * n), 4);
    p->numbers = malloc((size_t)(STACKS * n * m) * 2), p->bools = malloc((size_t)(STACKS * n * m));
    for (i64 i = 0; i < STACKS * n * m; i++) {
        f64 x = next();
        ST_OF(TERN_T, p->numbers, i, x < -.7 ? -HUGE_VAL : x);
        p->bools[i] = x > -.5 && i / m % n != 7; /* a query that sees none */
    }
}

double TERN_CAT(TERN_CAT(matrix_attention, MATRIX_WAY), TERN_T)(int w, const char **name)
{
    if (w >= (int)(sizeof cases / sizeof *cases)) {
        *name = NULL;
        return 0;
    }
    problem p;
    *name = cases[w].name;
    make(&p, w);
    the_lanes.lost = false;
    for (int pass = 0; pass < (cases[w].whole ? 3 : 4); pass++) {
        int columns = 2 * MATRIX_N, lines = pass < 2 ? cases[w].queries : cases[w].keys;
        int groups = STACKS * ((lines + columns - 1) / columns) * cases[w].cuts[pass];
        lanes_run(groups, TERN_WG, MATRIX_LANES, cases[w].run[pass], &p);
    }
    f64 worst = check(&p);
    void *const all[] = {p.q,  p.k,  p.v,   p.out,   p.dout,    p.dq,
                         p.dk, p.dv, p.lse, p.delta, p.numbers, p.bools};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
#if MATRIX_WAY > 0
    return the_lanes.lost || unit_differs ? 1000 : worst;
#else
    return the_lanes.lost ? 1000 : worst;
#endif
}
