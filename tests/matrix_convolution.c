/* matrix_convolution.c -- convolution_matrix.cl in lanes of the host against sums in float64 as they
 * are written: compiled for each way of matrix.h and each type. The products are the library's
 * (device/conv_product.h). */
#include "matrix_lanes.h"
#include "matrix_gemm.h"
#include "device/conv_product.h"
#undef fabs /* of float64 here */

enum { PASS_Y, PASS_X, PASS_WEIGHT }; /* tern_conv_pass */
typedef struct product {
    u16 *c;
    f32 *sums;
    const u16 *a, *b, *bias;
    tern_conv_tiles shape;
} product;

#undef K
#define K(n)         K__(n, CASE, TERN_T)
#define K__(n, c, t) TERN_CAT(TERN_CAT(n, c), t)
#undef TERN_WG
#define TERN_WG (MATRIX_ROWS * MATRIX_COLS / 64)
#undef ITEMS
#define ITEMS(i, n)                                                                                \
    for (idx i = the_lanes.group * (idx)TERN_WG + LID; i < (idx)(n);                               \
         i += the_lanes.groups * TERN_WG)
#define MATRIX_ODD   0
#define MATRIX_ROWS  64
#define MATRIX_COLS  64
#define MATRIX_DEPTH 32

#define CASE           y_rows
#define CONV_PASS      0
#define CONV_LAST      0
#define CONV_UNIT      16
#define CONV_IMAGE_ODD 1
#define CONV_OTHER_ODD 1
#include "matrix_convolution_case.h"

#define CASE           y_last
#define CONV_PASS      0
#define CONV_LAST      1
#define CONV_UNIT      32
#define CONV_IMAGE_ODD 0
#define CONV_OTHER_ODD 0
#include "matrix_convolution_case.h"

#define CASE           y_few
#define CONV_PASS      0
#define CONV_LAST      1
#define CONV_UNIT      4
#define CONV_IMAGE_ODD 1
#define CONV_OTHER_ODD 1
#include "matrix_convolution_case.h"

#define CASE           x_rows
#define CONV_PASS      1
#define CONV_LAST      0
#define CONV_UNIT      8
#define CONV_IMAGE_ODD 1
#define CONV_OTHER_ODD 1
#include "matrix_convolution_case.h"

#define CASE           x_last
#define CONV_PASS      1
#define CONV_LAST      1
#define CONV_UNIT      16
#define CONV_IMAGE_ODD 0
#define CONV_OTHER_ODD 0
#include "matrix_convolution_case.h"

#define CASE           x_half
#define CONV_PASS      1
#define CONV_LAST      1
#define CONV_UNIT      8
#define CONV_IMAGE_ODD 1
#define CONV_OTHER_ODD 0
#include "matrix_convolution_case.h"

#define CASE           w_rows
#define CONV_PASS      2
#define CONV_LAST      0
#define CONV_UNIT      1
#define CONV_IMAGE_ODD 1
#define CONV_OTHER_ODD 1
#include "matrix_convolution_case.h"

#define CASE           w_last
#define CONV_PASS      2
#define CONV_LAST      1
#define CONV_UNIT      1
#define CONV_IMAGE_ODD 0
#define CONV_OTHER_ODD 0
#include "matrix_convolution_case.h"

#define CASE           w_few
#define CONV_PASS      2
#define CONV_LAST      1
#define CONV_UNIT      1
#define CONV_IMAGE_ODD 1
#define CONV_OTHER_ODD 0
#include "matrix_convolution_case.h"

#undef MATRIX_ROWS
#undef MATRIX_DEPTH
#define MATRIX_ROWS  128
#define MATRIX_DEPTH 64

#define CASE           y_large
#define CONV_PASS      0
#define CONV_LAST      1
#define CONV_UNIT      64
#define CONV_IMAGE_ODD 0
#define CONV_OTHER_ODD 0
#include "matrix_convolution_case.h"

#define CASE           w_large
#define CONV_PASS      2
#define CONV_LAST      1
#define CONV_UNIT      1
#define CONV_IMAGE_ODD 1
#define CONV_OTHER_ODD 1
#include "matrix_convolution_case.h"

#define AS(c) K__(run, c, TERN_T), K__(sum, c, TERN_T)
static const struct {
    const char *name;
    void (*run)(void *), (*sum)(void *);
    int pass, last, unit, rows, parts;
    bool bias, adds;
    tern_conv_shape s; /* but for out */
} cases[] = {
    {"y, rows, groups, strides",
     AS(y_rows),
     PASS_Y,
     0,
     16,
     64,
     1,
     true,
     false,
     {2, 40, 34, 2, .in = {1, 7, 9}, .window = {1, 3, 2}, .stride = {1, 2, 1}, .padding = {0, 1, 1},
      .dilation = {1, 1, 2}}},
    {"y, rows, three dims",
     AS(y_rows),
     PASS_Y,
     0,
     16,
     64,
     1,
     false,
     false,
     {1, 17, 66, 1, .in = {3, 4, 8}, .window = {2, 3, 3}, .stride = {1, 1, 1}, .padding = {1, 1, 1},
      .dilation = {1, 1, 1}}},
    {"y, last, eights",
     AS(y_last),
     PASS_Y,
     1,
     32,
     64,
     1,
     true,
     false,
     {2, 80, 48, 2, .in = {1, 6, 7}, .window = {1, 3, 3}, .stride = {1, 1, 2}, .padding = {0, 1, 2},
      .dilation = {1, 1, 2}}},
    {"y, last, one tap",
     AS(y_last),
     PASS_Y,
     1,
     32,
     64,
     1,
     false,
     false,
     {1, 32, 72, 1, .in = {1, 9, 9}, .window = {1, 1, 1}, .stride = {1, 1, 1}, .padding = {0, 0, 0},
      .dilation = {1, 1, 1}}},
    {"y, last, three channels",
     AS(y_few),
     PASS_Y,
     1,
     4,
     64,
     2,
     true,
     false,
     {2, 3, 24, 1, .in = {1, 9, 8}, .window = {1, 3, 5}, .stride = {1, 2, 2}, .padding = {0, 1, 1},
      .dilation = {1, 1, 1}}},
    {"dx, rows, phases, added",
     AS(x_rows),
     PASS_X,
     0,
     8,
     64,
     1,
     false,
     true,
     {2, 18, 20, 2, .in = {1, 7, 8}, .window = {1, 3, 3}, .stride = {1, 2, 3}, .padding = {0, 1, 1},
      .dilation = {1, 2, 1}}},
    {"dx, rows, in parts",
     AS(x_rows),
     PASS_X,
     0,
     8,
     64,
     2,
     false,
     true,
     {1, 9, 19, 1, .in = {1, 4, 10}, .window = {1, 3, 3}, .stride = {1, 1, 1}, .padding = {0, 1, 1},
      .dilation = {1, 1, 1}}},
    {"dx, last, eights, phases",
     AS(x_last),
     PASS_X,
     1,
     16,
     64,
     1,
     false,
     true,
     {1, 80, 48, 2, .in = {1, 6, 9}, .window = {1, 3, 3}, .stride = {1, 2, 1}, .padding = {0, 1, 0},
      .dilation = {1, 1, 1}}},
    {"dx, last, channels of y one by one",
     AS(x_half),
     PASS_X,
     1,
     8,
     64,
     1,
     false,
     false,
     {1, 24, 12, 1, .in = {1, 5, 9}, .window = {1, 2, 3}, .stride = {1, 1, 1}, .padding = {0, 0, 1},
      .dilation = {1, 1, 1}}},
    {"dw, rows, groups",
     AS(w_rows),
     PASS_WEIGHT,
     0,
     1,
     64,
     2,
     false,
     false,
     {3, 14, 22, 2, .in = {1, 7, 6}, .window = {1, 3, 3}, .stride = {1, 2, 1}, .padding = {0, 1, 1},
      .dilation = {1, 1, 2}}},
    {"dw, last, eights",
     AS(w_last),
     PASS_WEIGHT,
     1,
     1,
     64,
     3,
     false,
     false,
     {2, 48, 80, 2, .in = {1, 5, 7}, .window = {1, 3, 2}, .stride = {1, 1, 2}, .padding = {0, 1, 1},
      .dilation = {1, 1, 1}}},
    {"dw, last, three channels",
     AS(w_few),
     PASS_WEIGHT,
     1,
     1,
     64,
     1,
     false,
     false,
     {2, 3, 24, 1, .in = {1, 9, 8}, .window = {1, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 1, 1},
      .dilation = {1, 1, 1}}},
    {"y, 128 places, a depth of 64",
     AS(y_large),
     PASS_Y,
     1,
     64,
     128,
     1,
     true,
     false,
     {2, 72, 40, 1, .in = {1, 8, 9}, .window = {1, 1, 2}, .stride = {1, 1, 1}, .padding = {0, 0, 1},
      .dilation = {1, 1, 1}}},
    {"dw, 128 channels, a depth of 64",
     AS(w_large),
     PASS_WEIGHT,
     1,
     1,
     128,
     1,
     false,
     false,
     {1, 5, 131, 1, .in = {1, 9, 9}, .window = {1, 3, 3}, .stride = {1, 1, 1}, .padding = {0, 1, 1},
      .dilation = {1, 1, 1}}},
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
/* Before and behind it is NaN, which no sum forgets. */
enum { AROUND = 32 };
static u16 *numbers(i64 n)
{
    const size_t all = ((size_t)n + 2 * AROUND + 31) / 32 * 32;
    u16 *x = aligned_alloc(64, all * sizeof *x);
    memset(x, 0xff, all * sizeof *x);
    for (i64 i = 0; i < n; i++)
        ST_OF(TERN_T, x, i + AROUND, next());
    return x + AROUND;
}
static void drop(u16 *x)
{
    free(x - AROUND);
}

/* ---- float64 --------------------------------------------------------------------------------- */

static i64 volume(const i64 *dims)
{
    return dims[0] * dims[1] * dims[2];
}
/* Element (n, c, place) of an array whose channels lie together, or do not. */
static i64 at(bool last, i64 n, i64 c, i64 place, i64 channels, i64 places)
{
    return last ? (n * places + place) * channels + c : (n * channels + c) * places + place;
}
/* What output q sees at tap k; -1: nothing. */
static i64 seen(const tern_conv_shape *s, i64 q, i64 k)
{
    i64 i[3];
    for (int d = 2; d >= 0; d--) {
        i[d] = q % s->out[d] * s->stride[d] - s->padding[d] + k % s->window[d] * s->dilation[d];
        q /= s->out[d], k /= s->window[d];
        if (i[d] < 0 || i[d] >= s->in[d])
            return -1;
    }
    return (i[0] * s->in[1] + i[1]) * s->in[2] + i[2];
}

/* The pass as it is written, added to `out`. */
static void sum_up(int w, const tern_conv_shape *s, const u16 *const *in, f64 *out)
{
    const bool last = cases[w].last;
    const i64 each = s->c / s->groups, of = s->o / s->groups, ins = volume(s->in);
    const i64 outs = volume(s->out), taps = volume(s->window);
    for (i64 u = 0; u < s->n * s->o * outs * taps; u++) {
        const i64 k = u % taps, q = u / taps % outs, o = u / taps / outs % s->o;
        const i64 n = u / taps / outs / s->o, i = seen(s, q, k);
        for (i64 c = 0; i >= 0 && c < each; c++) {
            const i64 x = at(last, n, o / of * each + c, i, s->c, ins);
            const i64 f = at(last, o, c, k, each, taps), y = at(last, n, o, q, s->o, outs);
            if (cases[w].pass == PASS_Y)
                out[y] += get(in[0], x) * get(in[1], f);
            else if (cases[w].pass == PASS_X)
                out[x] += get(in[2], y) * get(in[1], f);
            else
                out[f] += get(in[2], y) * get(in[0], x);
        }
    }
}

/* Half a unit in the last place of the result. */
static f64 apart(f64 got, f64 want)
{
    f64 may = (MATRIX_IS_BF16 ? 0x1p-8 : 0x1p-11) * (1e-6 + fabs(want)) + 1e-9;
    f64 difference = fabs(got - want) / may;
    return difference == difference ? difference : 1000;
}

/* ---- a case ---------------------------------------------------------------------------------- */

static void compute(int w, const tern_conv_shape *s, product *p)
{
    const tern_conv_layout layout = {cases[w].last, cases[w].unit};
    const int pass = cases[w].pass;
    i64 phases[3];
    tern_conv_phases(s, pass, phases);
    for (i64 i = 0; i < volume(phases); i++) {
        const i64 phase[3] = {i / phases[2] / phases[1], i / phases[2] % phases[1], i % phases[2]};
        tern_conv_tiles *t = &p->shape;
        tern_conv_product(t, s, pass, layout, phase);
        const int depth = cases[w].rows == 128 ? 64 : 32, rows = cases[w].rows;
        const bool swapped = cases[w].last && pass != PASS_WEIGHT;
        t->has_bias = cases[w].bias, t->adds = cases[w].adds;
        t->parts = cases[w].parts;
        t->part = ((t->k + t->parts - 1) / t->parts + depth - 1) / depth * depth;
        if (cases[w].bias && cases[w].last && (intptr_t)p->bias % 16)
            t->width = 1;
        i64 tiles = (swapped ? (t->n + rows - 1) / rows * ((t->m + 63) / 64)
                             : (t->m + rows - 1) / rows * ((t->n + 63) / 64));
        tiles *= t->groups * t->parts;
        lanes_run((int)(tiles > 2 ? tiles - 1 : tiles), rows, MATRIX_LANES, cases[w].run, p);
        if (t->parts > 1)
            lanes_run(2, rows, MATRIX_LANES, cases[w].sum, p);
    }
}

double TERN_CAT(TERN_CAT(matrix_convolution, MATRIX_WAY), TERN_T)(int w, const char **name)
{
    if (w >= (int)(sizeof cases / sizeof *cases)) {
        *name = NULL;
        return 0;
    }
    tern_conv_shape s = cases[w].s;
    for (int d = 0; d < 3; d++)
        s.out[d] =
            (s.in[d] + 2 * s.padding[d] - s.dilation[d] * (s.window[d] - 1) - 1) / s.stride[d] + 1;
    const i64 sizes[] = {s.n * s.c * volume(s.in), s.o * s.c / s.groups * volume(s.window),
                         s.n * s.o * volume(s.out)};
    const int pass = cases[w].pass, to = pass == PASS_Y ? 2 : pass == PASS_X ? 0 : 1;
    next_state = (u32)w;
    *name = cases[w].name;
    u16 *in[3] = {numbers(sizes[0]), numbers(sizes[1]), numbers(sizes[2])}, *bias = numbers(s.o);
    f64 *want = calloc((size_t)sizes[to], sizeof *want), worst = 0;
    f32 *sums = calloc((size_t)(sizes[to] * cases[w].parts), sizeof *sums);
    for (i64 i = 0; i < sizes[to]; i++) {
        const i64 channel = cases[w].last ? i % s.o : i / volume(s.out) % s.o;
        want[i] = cases[w].adds ? get(in[to], i) : cases[w].bias ? get(bias, channel) : 0;
    }
    sum_up(w, &s, (const u16 *const *)in, want);
    product p = {in[to], sums, in[pass == PASS_WEIGHT ? 2 : 1], in[pass == PASS_X ? 2 : 0], bias};
    the_lanes.lost = false;
    compute(w, &s, &p);
    for (i64 i = 0; i < sizes[to]; i++)
        worst = fmax(worst, apart(get(in[to], i), want[i]));
    for (int i = 0; i < AROUND; i++) /* nothing is written beyond its ends */
        if (in[to][-1 - i] != 0xffff || in[to][sizes[to] + i] != 0xffff)
            worst = 1000;
    drop(in[0]), drop(in[1]), drop(in[2]), drop(bias), free(want), free(sums);
#if MATRIX_WAY > 0
    return the_lanes.lost || unit_differs ? 1000 : worst;
#else
    return the_lanes.lost ? 1000 : worst;
#endif
}
