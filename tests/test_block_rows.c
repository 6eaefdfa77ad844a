/* test_block_rows.c -- rows that a team of lanes reads by fours: the kernels as NVRTC gets them, for the host over block.h, with
 * rows of all lengths that begin anywhere, beside sums as one writes them. A load of four at the wrong place ends the test. No GPU
 * takes part. */
#include "support.h"
#include "block.h"

#undef bool /* the dialect has a type of this name */
#define TERN_WG 256
#include "prelude_cuda.h"
#undef TERN_ENTRY
#define TERN_ENTRY static
#undef UNROLL
#define UNROLL
#undef ROLLED
#define ROLLED
/* What needs the assembler of a GPU. */
#undef LD_F16
#undef ST_F16
#undef TERN_EXP2_ROUGH
#define TERN_EXP2_ROUGH(x) exp2f(x)
#undef LOADED
#define LD_F16(R, p, i)    ((f32)(p)[i])
#define ST_F16(S, p, i, v) ((p)[i] = (u16)(v))
#define LOADED(yes)
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#include "params_device.h"
#include "dialect.h"
#include "shapes.h"
#include "nd_index.h"
#include "math.cl"
#include "math_special.cl"
#include "math_names.h"
#pragma GCC diagnostic ignored "-Wshadow" /* a block of a row has a ROW_KEPT of its own */
#define TERN_T f32
#include "softmax.cl"
#include "norm_layer.cl"
#include "reduce.cl"
#undef TERN_T
#define TERN_T bf16
#include "softmax.cl"
#include "norm_layer.cl"
#include "reduce.cl"
#include "fused.cl"
#undef TERN_T
#define TERN_T f32
#include "fused.cl"
#undef exp
#undef log
#undef sqrt
#undef fabs
#undef erfc

enum { MOST = 40000, OUTSIDE = -77 };
enum { HAS_WEIGHT = 1, HAS_BIAS = 2, NO_MEAN = 4, ADDS = 8, ALSO = 16, HALVES_ALONE = 32 };
enum { MEAN = 1, PADDED = 8 }; /* of cross entropy */

/* What kernels read and write: an array of each type, of which a run takes one. */
typedef struct numbers {
    _Alignas(16) f32 f32[MOST];
    _Alignas(16) u16 bf16[MOST];
} numbers;
static numbers x, y, dy, w, b, out, also;
static f32 means[MOST], rstds[MOST], dws[MOST], dbs[MOST], losses[MOST], lses[MOST], pulls[MOST],
    weights[MOST], totals[1];
static f32 one[1];
static i64 targets[MOST], fault[3];
static i64 rows, n, len;
static i32 at, to, what, half;
static f32 smoothing;

static f64 get(const numbers *of, i64 i, i32 is_half)
{
    return is_half ? f32_from_bits((u32)of->bf16[i] << 16) : of->f32[i];
}
static void set(numbers *of, i64 i, f64 v)
{
    of->f32[i] = (f32)v;
    of->bf16[i] = tern_f32_to_bf16((f32)v);
}
static void fill(void)
{
    for (i32 i = 0; i < MOST; i++) {
        set(&x, i, (i * 7 % 97 - 48) / 16.0);
        set(&y, i, (i * 5 % 61 - 20) / 64.0);
        set(&dy, i, (i * 11 % 61 - 30) / 32.0);
        set(&w, i, (i * 3 % 11 + 1) / 8.0);
        set(&b, i, (i * 5 % 13 - 6) / 8.0);
        set(&out, i, OUTSIDE);
        set(&also, i, OUTSIDE);
        dws[i] = dbs[i] = OUTSIDE;
    }
    for (i32 i = 0; i < MOST; i++)
        targets[i] = i * 31 % (n ? n : 1);
}
static i32 is_nan(f64 v) /* isnan is undefined by math_names.h, and need not be a function */
{
    return v != v;
}
static void near(f64 a, f64 expected, i32 is_half)
{
    f64 most = (is_half ? 0.005 : 2e-5) * (1 + fabs(expected));
    if (is_nan(expected) ? !is_nan(a) : a != expected && !(fabs(a - expected) <= most))
        fail_msg("%g, not %g: rows of %lld, from %d to %d, what %d, %s", a, expected, (long long)n,
                 at, to, what, half ? "bfloat16" : "float32");
}
static void nothing_outside(const numbers *of, i64 end, i32 is_half)
{
    for (i32 i = 0; i < to; i++)
        assert_true(get(of, i, is_half) == OUTSIDE);
    for (i32 i = 0; i < 9; i++)
        assert_true(get(of, to + end + i, is_half) == OUTSIDE);
}
/* As launch.c has it: enough blocks for all teams, or fewer, that go round. */
static void run(void (*kernel)(void))
{
    i32 teams = TERN_WG / TERN_TEAM(n, TERN_WG), blocks = (i32)((rows + teams - 1) / teams);
    block_run(blocks > 2 ? 2 : blocks, kernel);
    assert_false(the_block.lost);
}
#define BY_TYPE(NAME, call_f32, call_bf16)                                                         \
    static void NAME(void)                                                                         \
    {                                                                                              \
        if (half) {                                                                                \
            call_bf16;                                                                             \
        } else {                                                                                   \
            call_f32;                                                                              \
        }                                                                                          \
    }
#define SOFTMAX(T)          softmax_##T(out.T + to, x.T + at, rows, n, what)
#define SOFTMAX_GRADIENT(T) softmax_gradient_##T(out.T + to, y.T + at, dy.T + at, rows, n, what)
#define LAYER_NORM(T)                                                                              \
    layer_norm_##T(out.T + to, means, rstds, x.T + at, w.T, b.T + 1, rows, n, 0.25f, what)
#define NORM_DX(T)                                                                                 \
    layer_norm_dx_##T(out.T + to, dy.T + at, x.T + at, w.T, means, rstds, rows, n, what)
#define ADD_NORM(T)                                                                                \
    add_layer_norm_##T(also.T + to, x.T + at, dy.T + at, out.T + to, means, rstds, w.T + 1, b.T,   \
                       rows, n, 0.25f, what)
#define NORM_GRADIENT(T)                                                                           \
    layer_norm_gradient_##T(out.T + to, dws, dbs, dy.T + at, x.T + at, w.T + at, y.T + at, means,  \
                            rstds, rows, n, len, what)
#define SUM(T) sum_rows_##T(out.T + to, x.T + at, one, rows, n, 1, n, 1)
#define ENTROPY(T)                                                                                 \
    cross_entropy_unit_##T(losses, losses, lses, pulls, weights, out.T + to, totals, totals,       \
                           x.T + at, targets, w.T, fault, rows, n, n, -100, smoothing, what, 0)
BY_TYPE(run_softmax, SOFTMAX(f32), SOFTMAX(bf16))
BY_TYPE(run_softmax_gradient, SOFTMAX_GRADIENT(f32), SOFTMAX_GRADIENT(bf16))
BY_TYPE(run_norm, LAYER_NORM(f32), LAYER_NORM(bf16))
BY_TYPE(run_norm_dx, NORM_DX(f32), NORM_DX(bf16))
BY_TYPE(run_add_norm, ADD_NORM(f32), ADD_NORM(bf16))
BY_TYPE(run_norm_gradient, NORM_GRADIENT(f32), NORM_GRADIENT(bf16))
BY_TYPE(run_sum, SUM(f32), SUM(bf16))
BY_TYPE(run_entropy, ENTROPY(f32), ENTROPY(bf16))
static void run_norm_mixed(void)
{
    layer_norm_mixed_bf16(out.f32 + to, also.bf16 + to, means, rstds, x.f32 + at, w.f32, b.f32 + 1,
                          rows, n, 0.25f, what);
}
static void run_add_norm_mixed(void)
{
    add_layer_norm_mixed_bf16(y.f32 + at, x.f32 + at, dy.bf16 + at, out.f32 + to, also.bf16 + to,
                              means, rstds, w.f32 + 1, b.f32, rows, n, 0.25f, what);
}
static void run_norm_gradient_mixed(void)
{
    layer_norm_gradient_mixed_bf16(out.f32 + to, also.bf16 + to, dws, dbs, dy.bf16 + at, x.f32 + at,
                                   w.f32 + at, y.f32 + at, means, rstds, rows, n, len, what);
}

/* Rows of a few and of many fours, of whole fours and not, that all of a team, or a block, have at hand and that they have not;
 * and where they begin, beside which that to which they are written may lie otherwise. */
static const i32 lengths[] = {1,    2,    3,    4,    5,    7,    8,    13,  16,
                              31,   64,   65,   127,  132,  256,  257,  768, 1021,
                              1024, 1025, 1500, 8190, 8192, 8201, 16411};
static const i32 places[][2] = {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {0, 1}, {3, 0}};
static void each_row(void (*check)(void))
{
    for (half = 0; half < 2; half++)
        for (i32 i = 0; i < (i32)(sizeof lengths / sizeof *lengths); i++)
            for (i32 k = 0; k < 6; k++) {
                if (lengths[i] > 256 ? (i + k) % 3 : (i + k) % 2 && k > 1)
                    continue;
                n = lengths[i];
                rows = n > 2000 ? 2 : n > 128 ? 3 : 17;
                at = places[k][0];
                to = places[k][1];
                check();
            }
}

static void check_softmax(void)
{
    for (what = 0; what < 2; what++) {
        fill();
        run(run_softmax);
        nothing_outside(&out, rows * n, half);
        for (i64 r = 0; r < rows; r++) {
            f64 most = -INFINITY, sum = 0;
            for (i64 j = 0; j < n; j++)
                most = fmax(most, get(&x, at + r * n + j, half));
            for (i64 j = 0; j < n; j++)
                sum += exp(get(&x, at + r * n + j, half) - most);
            for (i64 j = 0; j < n; j++) {
                f64 d = get(&x, at + r * n + j, half) - most;
                f64 scale = what ? 1 : (f64)n;
                near(get(&out, to + r * n + j, half) * scale,
                     what ? d - log(sum) : exp(d) / sum * scale, half);
            }
        }
        fill();
        run(run_softmax_gradient);
        nothing_outside(&out, rows * n, half);
        for (i64 r = 0; r < rows; r++) {
            f64 sum = 0, p, d;
            for (i64 j = 0; j < n; j++)
                sum += get(&dy, at + r * n + j, half) * (what ? 1 : get(&y, at + r * n + j, half));
            for (i64 j = 0; j < n; j++) {
                p = get(&y, at + r * n + j, half), d = get(&dy, at + r * n + j, half);
                near(get(&out, to + r * n + j, half), what ? d - exp(p) * sum : p * (d - sum),
                     half);
            }
        }
    }
}
static void softmax_of_rows_anywhere(void **state)
{
    (void)state;
    each_row(check_softmax);
}

/* Rows of numbers v (of `is_half`) as layer norm has them, with w from w_at and b from b_at on. */
static void check_normed(f64 (*v)(i64), const numbers *of, i32 is_half, i32 w_at, i32 b_at,
                         i32 stored_half)
{
    for (i64 r = 0; r < rows; r++) {
        f64 mean = 0, variance = 0;
        for (i64 j = 0; j < n; j++)
            mean += (what & NO_MEAN) ? 0 : v(r * n + j) / (f64)n;
        for (i64 j = 0; j < n; j++)
            variance += (v(r * n + j) - mean) * (v(r * n + j) - mean) / (f64)n;
        near(means[r], mean, is_half);
        for (i64 j = 0; j < n; j++) {
            f64 h = (v(r * n + j) - mean) / sqrt(variance + 0.25);
            h *= (what & HAS_WEIGHT) ? get(&w, w_at + j, is_half) : 1;
            near(get(of, to + r * n + j, stored_half),
                 h + ((what & HAS_BIAS) ? get(&b, b_at + j, is_half) : 0), stored_half);
        }
    }
}
static f64 of_x(i64 i)
{
    return get(&x, at + i, half);
}
static f64 of_sum(i64 i)
{
    return get(&also, to + i, half);
}
static f64 of_mixed_sum(i64 i)
{
    return y.f32[at + i];
}
static void check_norm(void)
{
    static const i32 options[] = {0, HAS_WEIGHT, HAS_BIAS, HAS_WEIGHT | HAS_BIAS,
                                  HAS_WEIGHT | NO_MEAN};
    what = options[(n + at) % 5];
    fill();
    run(run_norm);
    nothing_outside(&out, rows * n, half);
    check_normed(of_x, &out, half, 0, 1, half);
    fill();
    run(run_add_norm);
    nothing_outside(&out, rows * n, half);
    nothing_outside(&also, rows * n, half);
    for (i64 i = 0; i < rows * n; i++)
        near(get(&also, to + i, half), get(&x, at + i, half) + get(&dy, at + i, half), half);
    check_normed(of_sum, &out, half, 1, 0, half);
    if (half) { /* x is float32, the result both */
        half = 0;
        what |= at == 2 ? HALVES_ALONE : 0;
        fill();
        run(run_norm_mixed);
        nothing_outside(&also, rows * n, 1);
        if (at == 2)
            assert_true(out.f32[to] == OUTSIDE);
        else
            check_normed(of_x, &out, 0, 0, 1, 0);
        check_normed(of_x, &also, 0, 0, 1, 1);
        fill();
        run(run_add_norm_mixed);
        nothing_outside(&also, rows * n, 1);
        for (i64 i = 0; i < rows * n; i++)
            near(y.f32[at + i], x.f32[at + i] + get(&dy, at + i, 1), 0);
        check_normed(of_mixed_sum, &also, 0, 1, 0, 1);
        half = 1;
    }
}
static void layer_norm_of_rows_anywhere(void **state)
{
    (void)state;
    each_row(check_norm);
}

/* dx = rstd (g - mean g - h mean(g h)), with dy of one type and what is left of another. */
static void check_dx(i32 dy_half, i32 x_half, i32 w_at, i32 adds)
{
    for (i64 r = 0; r < rows; r++) {
        f64 s = 0, t = 0;
        for (i64 j = 0; j < n; j++) {
            f64 g = get(&dy, at + r * n + j, dy_half) *
                    ((what & HAS_WEIGHT) ? get(&w, w_at + j, x_half) : 1);
            s += (what & NO_MEAN) ? 0 : g / (f64)n;
            t += g * (get(&x, at + r * n + j, x_half) - means[r]) * rstds[r] / (f64)n;
        }
        for (i64 j = 0; j < n; j++) {
            f64 g = get(&dy, at + r * n + j, dy_half) *
                    ((what & HAS_WEIGHT) ? get(&w, w_at + j, x_half) : 1);
            f64 h = (get(&x, at + r * n + j, x_half) - means[r]) * rstds[r];
            near(get(&out, to + r * n + j, x_half),
                 rstds[r] * (g - s - h * t) + (adds ? get(&y, at + r * n + j, x_half) : 0), x_half);
        }
    }
}
static void check_gradient(i32 dy_half, i32 x_half)
{
    check_dx(dy_half, x_half, at, what & ADDS);
    for (i64 g = 0; g * len < rows; g++)
        for (i64 j = 0; j < n; j++) {
            f64 dw = 0, db = 0;
            for (i64 r = g * len; r < rows && r < (g + 1) * len; r++) {
                db += get(&dy, at + r * n + j, dy_half);
                dw += get(&dy, at + r * n + j, dy_half) *
                      (get(&x, at + r * n + j, x_half) - means[r]) * rstds[r];
            }
            near(dws[g * n + j], dw, 0);
            near(dbs[g * n + j], db, 0);
        }
    assert_true(dws[(rows + len - 1) / len * n] == OUTSIDE);
}
static void check_norm_gradient(void)
{
    static const i32 options[] = {0, HAS_WEIGHT, HAS_WEIGHT | NO_MEAN, HAS_WEIGHT | ADDS, ADDS};
    what = options[(n + at) % 5];
    for (i32 r = 0; r < rows; r++) {
        means[r] = (f32)(r % 3) / 4;
        rstds[r] = (f32)(r % 5 + 1) / 4;
    }
    fill();
    run(run_norm_dx);
    nothing_outside(&out, rows * n, half);
    check_dx(half, half, 0, 0);
    if (n > TERN_NORM_WIDE)
        return;
    len = rows > 5 ? 5 : 2;
    fill();
    block_run(2, run_norm_gradient);
    assert_false(the_block.lost);
    nothing_outside(&out, rows * n, half);
    check_gradient(half, half);
    if (half) {
        what |= ALSO;
        fill();
        block_run(2, run_norm_gradient_mixed);
        nothing_outside(&out, rows * n, 0);
        nothing_outside(&also, rows * n, 1);
        check_gradient(1, 0);
        for (i64 i = 0; i < rows * n; i++)
            near(get(&also, to + i, 1), out.f32[to + i], 1);
    }
}
static void gradients_of_layer_norm_of_rows_anywhere(void **state)
{
    (void)state;
    each_row(check_norm_gradient);
}

static void check_sum(void)
{
    fill();
    run(run_sum);
    nothing_outside(&out, rows, half);
    for (i64 r = 0; r < rows; r++) {
        f64 sum = 0;
        for (i64 j = 0; j < n; j++)
            sum += get(&x, at + r * n + j, half);
        near(get(&out, to + r, half), sum, half);
    }
}
static void sums_of_rows_anywhere(void **state)
{
    (void)state;
    each_row(check_sum);
}

/* The length of dx's rows, which begin at multiples of 8 where they are padded. */
static i64 rows_of_dx(i32 padded)
{
    what = padded ? MEAN | PADDED : MEAN;
    return padded ? (n + 7) / 8 * 8 : n;
}
static void check_entropy(void)
{
    f64 counted = 0;
    const i64 row = rows_of_dx((i32)(n + at) % 2);
    smoothing = at == 1 ? 0.125f : 0;
    fill();
    targets[0] = -100;
    for (i64 r = 0; r < rows; r++)
        counted += targets[r] != -100;
    run(run_entropy);
    for (i64 r = 0; r < rows; r++)
        for (i64 j = n; j < row; j++)
            assert_true(get(&out, to + r * row + j, half) == 0);
    nothing_outside(&out, rows * row, half);
    for (i64 r = 0; r < rows; r++) {
        f64 sum = 0, loss = 0, lse;
        for (i64 j = 0; j < n; j++)
            sum += exp(get(&x, at + r * n + j, half));
        lse = log(sum);
        near(lses[r], lse, 0);
        for (i64 j = 0; j < n; j++) {
            f64 v = get(&x, at + r * n + j, half),
                p = (j == targets[r] ? 1 - smoothing : 0) + smoothing / (f64)n;
            loss += targets[r] == -100 ? 0 : p * (lse - v);
            near(get(&out, to + r * row + j, half) * counted,
                 targets[r] == -100 ? 0 : exp(v - lse) - p, half);
        }
        near(losses[r], loss, 0);
    }
}
static void cross_entropy_of_rows_anywhere(void **state)
{
    (void)state;
    each_row(check_entropy);
}

/* A row with one element, or all, that is no number, among rows as they were. */
static void rows_with_what_is_no_number(void **state)
{
    (void)state;
    static const f64 odd[] = {NAN, INFINITY, -INFINITY, -200};
    static const i32 sizes[] = {3, 64, 1021, 9001};
    at = to = 1;
    what = 0;
    smoothing = 0;
    for (half = 0; half < 2; half++)
        for (i32 i = 0; i < 4; i++)
            for (i32 k = 0; k < 4; k++)
                for (i32 all = 0; all < 2; all++) {
                    n = sizes[i];
                    rows = 3;
                    fill();
                    for (i64 j = all ? 0 : n / 2; j < (all ? n : n / 2 + 1); j++)
                        set(&x, at + n + j, odd[k]);
                    run(run_softmax);
                    for (i64 r = 0; r < rows; r++) {
                        f64 sum = 0;
                        for (i64 j = 0; j < n; j++)
                            sum += get(&out, to + r * n + j, half);
                        near(sum, r == 1 && (k < 2 || (k == 2 && all)) ? NAN : 1, half);
                    }
                    if (k > 1 && !all)
                        assert_true(get(&out, to + n + n / 2, half) == 0);
                    rows_of_dx(0);
                    run(run_entropy);
                    what = 0;
                    for (i64 r = 0; r < rows; r++) {
                        const i32 wrong = r == 1 && (k < 2 || (k == 2 && all));
                        assert_true((lses[r] - lses[r] == 0) == !wrong &&
                                    is_nan(losses[r]) == wrong);
                        assert_true(is_nan(get(&out, to + r * n, half)) == wrong);
                    }
                }
}

/* Where a half has 11 bits, and below, where it has fewer. */
static void gelu_of_halves_has_their_bits(void **state)
{
    (void)state;
    for (i32 i = -700; i <= 700; i++) {
        f64 v = i / 100.0, expected = 0.5 * erfc(-v * M_SQRT1_2),
            actual = tern_normal_cdf_rough((f32)v);
        if (fabs(actual - expected) > expected / 65536 + 1e-7)
            fail_msg("%g at %g, not %g", actual, v, expected);
    }
    assert_true(is_nan((f64)tern_normal_cdf_rough(NAN)) && tern_normal_cdf_rough(INFINITY) == 1 &&
                tern_normal_cdf_rough(-INFINITY) == 0);
}

static const struct CMUnitTest tests[] = {
    TEST(gelu_of_halves_has_their_bits), TEST(softmax_of_rows_anywhere),
    TEST(layer_norm_of_rows_anywhere),   TEST(gradients_of_layer_norm_of_rows_anywhere),
    TEST(sums_of_rows_anywhere),         TEST(cross_entropy_of_rows_anywhere),
    TEST(rows_with_what_is_no_number),
};

TEST_MAIN(tests)
