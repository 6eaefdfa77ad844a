/* test_convolution_plain.c -- convolutions of any shape and their gradients beside the sums as they are written, for
 * numbers of every kind. Where ways of computing begin and end, shapes come in numbers. */
#include "support.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROBLEMS = 220, MOST_WORK = 1500000 };
static uint64_t seed = 20;

/* One of 0 to n - 1. */
static int64_t pick(int64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(seed >> 33) % n;
}
#define ONE_OF(...)                                                                                \
    ((const int64_t[]){__VA_ARGS__})[pick(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))]

/* ---- shapes ------------------------------------------------------------------------------ */

typedef struct problem {
    int64_t n, c, o, groups, in[2], out[2], window[2], stride[2], padding[2], dilation[2];
    int64_t lies; /* in which way x, the weight and dy lie in memory */
    bool has_bias;
    int64_t
        special; /* in which of them there is a number that is not like the others; -1 for none */
} problem;

static int64_t work_of(const problem *p)
{
    return p->n * p->o * p->out[0] * p->out[1] * (p->c / p->groups) * p->window[0] * p->window[1];
}

static problem any_shape(void)
{
    problem p = {.n = pick(4), .groups = ONE_OF(1, 1, 1, 2, 3, 5)};
    p.c = p.groups * (1 + pick(4));
    p.o = p.groups * (1 + pick(6));
    for (int d = 0; d < 2; d++) {
        p.window[d] = 1 + pick(4);
        p.dilation[d] = 1 + pick(3);
        p.stride[d] = 1 + pick(3);
        p.padding[d] = pick(5);
        p.in[d] = 1 + pick(12);
    }
    return p;
}

/* Those of 3 x 3 taps, and what is nearly so. */
static problem three_by_three(void)
{
    problem p = {.n = ONE_OF(1, 1, 2, 3, 7, 20), .groups = ONE_OF(1, 1, 1, 1, 1, 2)};
    p.c = p.groups * ONE_OF(1, 3, 5, 7, 8, 9, 15, 16, 16, 17, 24, 31, 32, 33, 65, 255, 256, 257);
    p.o = p.groups * ONE_OF(1, 3, 5, 7, 8, 9, 15, 16, 16, 17, 24, 31, 32, 33, 65, 255, 256, 257);
    for (int d = 0; d < 2; d++) {
        p.window[d] = 3;
        p.dilation[d] = p.stride[d] = 1;
        p.padding[d] = ONE_OF(0, 1, 1, 1, 2, 3);
        p.in[d] = ONE_OF(1, 2, 5, 6, 7, 8, 9, 11, 14, 15, 16, 17, 18, 28, 33);
    }
    return p;
}

/* Those of half the rows and columns. */
static problem halved(void)
{
    problem p = {.n = 1 + pick(4), .groups = 1};
    p.c = ONE_OF(1, 7, 8, 9, 16, 17, 33);
    p.o = ONE_OF(1, 7, 8, 9, 16, 17, 33, 40);
    for (int d = 0; d < 2; d++) {
        p.window[d] = d ? p.window[0] : ONE_OF(1, 3, 3);
        p.stride[d] = 2, p.dilation[d] = 1;
        p.padding[d] = p.window[d] / 2 + (pick(12) == 0);
        p.in[d] = (d ? ONE_OF(16, 16, 32, 48, 20) : ONE_OF(2, 4, 4, 6, 8, 16)) - (pick(8) == 0);
    }
    return p;
}

static problem few_channels(void)
{
    problem p = {.n = 1 + pick(3), .c = 1 + pick(5), .o = 1 + pick(20), .groups = 1};
    for (int d = 0; d < 2; d++) {
        p.window[d] = 1 + pick(7);
        p.dilation[d] = 1 + pick(2);
        p.stride[d] = 1 + pick(3);
        p.padding[d] = pick(6);
        p.in[d] = 1 + pick(40);
    }
    return p;
}

/* Whether there is such a convolution; one that is too much work loses images, then columns. */
static bool complete(problem *p)
{
    for (;;) {
        for (int d = 0; d < 2; d++) {
            int64_t all = p->in[d] + 2 * p->padding[d] - p->dilation[d] * (p->window[d] - 1) - 1;
            if (all < 0 || p->in[d] < 1)
                return false;
            p->out[d] = all / p->stride[d] + 1;
        }
        if (work_of(p) <= MOST_WORK)
            return true;
        if (p->n > 1)
            p->n--;
        else
            p->in[p->in[0] < p->in[1]]--;
    }
}

/* ---- numbers ----------------------------------------------------------------------------- */

enum { X, WEIGHT, Y, TENSORS, BIAS = TENSORS, NUMBERS };
enum { ROWS, TURNED, PART, LAST, ONE, WAYS };

static tern_shape shape_of(const problem *p, int which)
{
    return which == X        ? TERN_SHAPE(p->n, p->c, p->in[0], p->in[1])
           : which == WEIGHT ? TERN_SHAPE(p->o, p->c / p->groups, p->window[0], p->window[1])
                             : TERN_SHAPE(p->n, p->o, p->out[0], p->out[1]);
}

static int64_t count(tern_shape s)
{
    return s.dims[0] * s.dims[1] * s.dims[2] * s.dims[3];
}

/* Of single precision, from -1 to 1. */
static double *numbers_of(tern_shape shape)
{
    int64_t n = count(shape);
    double *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(pick(1 << 20) - (1 << 19)) / (1 << 19);
    return x;
}

/* ---- the sums as they are written -------------------------------------------------------- */

/* Of each result its numbers, and how large rounding may be: epsilon times what the tiles of any way multiply for it,
 * the numbers that its taps see or that lie beside those, each by all of the weight's. */
typedef struct sums {
    double *value[TENSORS], *size[TENSORS];
} sums;

static void add_planes(const problem *p, const double *x, const double *w, const double *dy,
                       double *y, double *dx, double *dw)
{
    for (int64_t i = 0; i < p->out[0]; i++)
        for (int64_t j = 0; j < p->out[1]; j++)
            for (int64_t a = 0; a < p->window[0]; a++) {
                int64_t r = i * p->stride[0] + a * p->dilation[0] - p->padding[0];
                for (int64_t b = 0; r >= 0 && r < p->in[0] && b < p->window[1]; b++) {
                    int64_t s = j * p->stride[1] + b * p->dilation[1] - p->padding[1];
                    if (s < 0 || s >= p->in[1])
                        continue;
                    const double u = x[r * p->in[1] + s], v = w[a * p->window[1] + b],
                                 d = dy[i * p->out[1] + j];
                    y[i * p->out[1] + j] += u * v;
                    dx[r * p->in[1] + s] += d * v;
                    dw[a * p->window[1] + b] += u * d;
                }
            }
}

static double most(const double *x, int64_t n)
{
    double all = 0;
    for (int64_t i = 0; i < n; i++)
        all = fmax(all, fabs(x[i]));
    return all;
}

static void add_sizes(const problem *p, const double *x, const double *w, const double *dy,
                      double *y, double *dx, double *dw)
{
    const int64_t taps = p->window[0] * p->window[1], ins = p->in[0] * p->in[1],
                  outs = p->out[0] * p->out[1];
    const double u = most(x, ins), v = most(w, taps), d = most(dy, outs);
    for (int64_t i = 0; i < outs; i++)
        y[i] += u * v * (double)taps;
    for (int64_t i = 0; i < ins; i++)
        dx[i] += d * v * (double)taps;
    for (int64_t i = 0; i < taps; i++)
        dw[i] += u * d * (double)outs;
}

static void sums_of(const problem *p, double *const *in, sums *s)
{
    const int64_t ins = p->in[0] * p->in[1], outs = p->out[0] * p->out[1];
    const int64_t taps = p->window[0] * p->window[1];
    const int64_t cs = p->c / p->groups, os = p->o / p->groups;
    for (int k = 0; k < TENSORS; k++) {
        s->value[k] = calloc((size_t)count(shape_of(p, k)) + 1, sizeof(double));
        s->size[k] = calloc((size_t)count(shape_of(p, k)) + 1, sizeof(double));
        assert_non_null(s->value[k]);
        assert_non_null(s->size[k]);
    }
    for (int64_t i = 0; in[BIAS] && i < count(shape_of(p, Y)); i++) {
        s->value[Y][i] = in[BIAS][i / outs % p->o];
        s->size[Y][i] =
            fabs(s->value[Y][i]) * (double)(cs * taps); /* with each of them it is rounded */
    }
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t o = 0; o < p->o; o++)
            for (int64_t c = 0; c < cs; c++) {
                int64_t x = (n * p->c + o / os * cs + c) * ins, w = (o * cs + c) * taps,
                        y = (n * p->o + o) * outs;
                add_planes(p, in[X] + x, in[WEIGHT] + w, in[Y] + y, s->value[Y] + y,
                           s->value[X] + x, s->value[WEIGHT] + w);
                add_sizes(p, in[X] + x, in[WEIGHT] + w, in[Y] + y, s->size[Y] + y, s->size[X] + x,
                          s->size[WEIGHT] + w);
            }
}

/* ---- comparing --------------------------------------------------------------------------- */

static bool agrees(double a, double b, double size)
{
    if (isnan(b))
        return isnan(a);
    return isinf(b) ? a == b : fabs(a - b) <= size;
}

/* Of x86-64; 0 where there are no kernels for v3, 3 on Arm, which has the same. */
static int version(void)
{
    int v = 0;
#ifdef __aarch64__
    v = 3;
#elif defined(TEST_WITH_V3)
    tern_device_info info;
    assert_ok(tern_device_get_info("cpu", &info));
    if (sscanf(info.driver, "x86-64-v%d", &v) != 1)
        v = 0;
#endif
    return v;
}

/* Whether it goes by a kernel of the cpu's own: y and the weight's gradient of few channels, all three of the others. */
static bool is_own(const problem *p)
{
    bool own = p->groups == 1 && p->lies != LAST, three = version() >= 3, two = three;
    for (int d = 0; d < 2; d++) {
        own = own && p->dilation[d] == 1;
        three = three && p->window[d] == 3 && p->stride[d] == 1 && p->padding[d] <= 2 &&
                p->in[d] >= 6 && p->out[d] >= 6;
        two = two && p->window[d] == p->window[0] && p->window[d] % 2 && p->window[d] <= 3 &&
              p->stride[d] == 2 && p->padding[d] == p->window[d] / 2 && p->in[d] == 2 * p->out[d] &&
              (p->window[d] == 1 || version() == 3);
    }
    three = three && p->c >= 16 && p->o >= 16 && p->c <= 256 && p->o <= 256 &&
            p->n * p->out[0] * p->out[1] >= 256;
    two = two && p->c >= 8 && p->o >= 8 && p->out[1] % 8 == 0 && p->out[0] * p->out[1] % 16 == 0;
    bool few = p->c <= 4 && p->out[1] >= 8 && p->c * p->window[0] * p->window[1] <= 256;
    return own && (three || (two && !p->has_bias) || few);
}

/* Whether result k has products of a special number and a zero beside the image: columns have those zeros, in PyTorch too. */
static bool may_be_nan(const problem *p, int k)
{
    return ((k == Y && p->special == WEIGHT) || (k == WEIGHT && p->special == Y)) &&
           (p->padding[0] || p->padding[1]);
}

static void fail_at(const problem *p, const char *what, int64_t i, double a, double b, double size)
{
    fail_msg("%s[%lld] is %.9g, not %.9g +- %.3g: x (%lld, %lld, %lld, %lld), y (%lld, %lld, %lld, "
             "%lld), window %lld %lld, stride %lld %lld, padding %lld %lld, dilation %lld %lld, "
             "groups %lld",
             what, (long long)i, a, b, size, (long long)p->n, (long long)p->c, (long long)p->in[0],
             (long long)p->in[1], (long long)p->n, (long long)p->o, (long long)p->out[0],
             (long long)p->out[1], (long long)p->window[0], (long long)p->window[1],
             (long long)p->stride[0], (long long)p->stride[1], (long long)p->padding[0],
             (long long)p->padding[1], (long long)p->dilation[0], (long long)p->dilation[1],
             (long long)p->groups);
}

/* The same numbers, in a tensor that lies otherwise. */
static tern_tensor *lying(tern_tensor *x, int64_t how)
{
    tern_shape shape = tern_shape_of(x);
    switch (how) {
    case TURNED:
        return tern_transpose(tern_contiguous(tern_transpose(x, 1, 3)), 1, 3);
    case PART:
        return tern_narrow(tern_pad(x, TERN_SHAPE(3, 2), NULL), 3, 3, shape.dims[3]);
    case LAST:
        return tern_to_memory_format(x, TERN_CHANNELS_LAST);
    case ONE:
        return shape.dims[0] > 0 ? test_expand(tern_contiguous(tern_narrow(x, 0, 0, 1)), shape) : x;
    default:
        return x;
    }
}

/* y and the gradients of x and the weight. */
static void compute(const problem *p, double *const *in, tern_tensor **result)
{
    const tern_conv_function_options o = {.stride = TERN_SHAPE(p->stride[0], p->stride[1]),
                                          .padding = TERN_SHAPE(p->padding[0], p->padding[1]),
                                          .dilation = TERN_SHAPE(p->dilation[0], p->dilation[1]),
                                          .groups = p->groups};
    tern_tensor *t[TENSORS];
    for (int k = 0; k < TENSORS; k++)
        t[k] = lying(test_tensor("cpu", TERN_F32, shape_of(p, k), in[k]), p->lies);
    for (int k = X; k <= WEIGHT; k++)
        tern_requires_grad_(t[k], true);
    tern_tensor *bias = in[BIAS] ? test_tensor("cpu", TERN_F32, TERN_SHAPE(p->o), in[BIAS]) : NULL;
    tern_tensor *y = tern_conv2d(t[X], t[WEIGHT], bias, &o), *grads[2];
    const tern_autograd_grad_options with = {.gradients = &t[Y]};
    assert_non_null(y);
    assert_ok(tern_autograd_grad(&y, 1, t, 2, grads, &with));
    result[X] = grads[0], result[WEIGHT] = grads[1], result[Y] = tern_detach(y);
}

/* The sums of a problem, which have the same bits in every run; y and dx of own kernels on any number of threads. */
static void compare(const problem *p, double *const *in)
{
    static const char *const names[] = {"dx", "dw", "y"};
    const int threads = tern_get_num_threads();
    tern_tensor *result[3][TENSORS];
    sums s;
    sums_of(p, in, &s);
    for (int run = 0; run < 3; run++) {
        assert_ok(tern_set_num_threads(run ? 2 : 1));
        compute(p, in, result[run]);
    }
    assert_ok(tern_set_num_threads(threads));
    for (int k = 0; k < TENSORS; k++) {
        double *numbers = test_read(result[1][k]);
        const double terms = (double)(k == WEIGHT ? p->n * p->out[0] * p->out[1]
                                                  : p->window[0] * p->window[1] *
                                                        (k == X ? p->o : p->c) / p->groups);
        for (int64_t i = 0; i < count(shape_of(p, k)); i++) {
            const double size = s.size[k][i] * FLT_EPSILON * (2 + sqrt(terms) / 4);
            if (!agrees(numbers[i], s.value[k][i], size) &&
                !(isnan(numbers[i]) && may_be_nan(p, k)))
                fail_at(p, names[k], i, numbers[i], s.value[k][i], size);
        }
        free(numbers);
        assert_same(result[1][k], result[2][k]);
        if (k != WEIGHT && is_own(p) && (k == Y || p->c > 4))
            assert_same(result[0][k], result[1][k]);
        free(s.value[k]);
        free(s.size[k]);
    }
}

/* Some of each family, with what gives the numbers something of their own. */
static void compare_all(void (*change)(problem *p, double **in))
{
    static problem (*const families[])(void) = {three_by_three, any_shape,      three_by_three,
                                                few_channels,   three_by_three, halved};
    for (int i = 0; i < PROBLEMS; i++)
        TERN_SCOPE {
            problem p = families[i % 6]();
            double *in[] = {NULL, NULL, NULL, NULL};
            if (!complete(&p))
                continue;
            p.lies = pick(3) ? ROWS : pick(WAYS);
            for (int k = 0; k < TENSORS; k++)
                in[k] = numbers_of(shape_of(&p, k));
            p.special = -1;
            p.has_bias = pick(3) == 0;
            if (p.has_bias)
                in[BIAS] = numbers_of(TERN_SHAPE(1, 1, 1, p.o));
            change(&p, in);
            if (p.lies == ONE) /* what is seen as many images is one */
                for (int k = 0; k < TENSORS; k++) {
                    tern_shape shape = shape_of(&p, k);
                    const int64_t each = shape.dims[1] * shape.dims[2] * shape.dims[3];
                    for (int64_t j = each; j < count(shape); j++)
                        in[k][j] = in[k][j - each];
                }
            compare(&p, in);
            for (int k = 0; k < NUMBERS; k++)
                free(in[k]);
        }
}

/* ---- tests ------------------------------------------------------------------------------- */

static void nothing(problem *p, double **in)
{
    (void)p;
    (void)in;
}

static void any_shape_has_the_sums_as_they_are_written(void **state)
{
    (void)state;
    compare_all(nothing);
}

/* x about a mean: sums of differences would lose it. */
static void about_a_mean(problem *p, double **in)
{
    const double mean = (double)pick(200) - 100;
    for (int64_t i = 0; i < count(shape_of(p, X)); i++)
        in[X][i] = (float)(in[X][i] + mean);
}

static void numbers_about_a_mean_have_them_too(void **state)
{
    (void)state;
    compare_all(about_a_mean);
}

/* A number like no other in x, the weight or dy, at a corner or anywhere; what is finite has a neighbour with which it
 * is not, and small factors. */
static void one_is_special(problem *p, double **in)
{
    static const double values[] = {INFINITY, -INFINITY, NAN, 3e38};
    const int which = (int)pick(TENSORS);
    const double value = values[pick(4)];
    const tern_shape shape = shape_of(p, which);
    const int64_t plane = shape.dims[2] * shape.dims[3], n = count(shape);
    if (n == 0)
        return;
    p->special = which;
    double *at = in[which] + pick(n / plane) * plane;
    const int64_t i = pick(2) ? pick(plane) : pick(2) * (plane - 1);
    at[i] = value;
    if (isfinite(value)) {
        at[i + 1 < plane ? i + 1 : i] = value;
        for (int k = 0; k < TENSORS; k++)
            for (int64_t j = 0; k != which && j < count(shape_of(p, k)); j++)
                in[k][j] = (float)(in[k][j] * 1e-3);
    }
}

/* Nothing that a tap does not see is in its sum, and infinity stays one. */
static void special_numbers_are_where_they_are_seen(void **state)
{
    (void)state;
    compare_all(one_is_special);
}

static const struct CMUnitTest tests[] = {
    TEST(any_shape_has_the_sums_as_they_are_written),
    TEST(numbers_about_a_mean_have_them_too),
    TEST(special_numbers_are_where_they_are_seen),
};
TEST_MAIN(tests)
