/* test_block.c -- what only the CUDA form of a kernel has: warps' shuffles, teams of lanes, loads
 * of four.
 *
 * The library's kernels as NVRTC gets them (prelude_cuda.h), compiled for the host over block.h,
 * against sums as one writes them. No GPU takes part, and nothing here is fast. */
#include "support.h"
#include "block.h"
#include <stdio.h>

#undef bool /* the dialect has a type of this name */
#define TERN_WG 256
#include "prelude_cuda.h"
#undef TERN_ENTRY
#define TERN_ENTRY static
#undef UNROLL
#define UNROLL
#undef ROLLED
#define ROLLED
/* float16 needs the assembler of a GPU: nothing here is of it. */
#undef LD_F16
#undef ST_F16
#undef TERN_EXP2_ROUGH
#define LD_F16(R, p, i)    ((f32)(p)[i])
#define ST_F16(S, p, i, v) ((p)[i] = (u16)(v))
#include "params_device.h"
#include "dialect.h"
#include "shapes.h"
#include "nd_index.h"
#include "math.cl"
#include "math_special.cl"
#include "math_names.h"
#define TERN_T f32
#include "softmax.cl"
#include "norm_layer.cl"
#include "reduce.cl"
#include "copy.cl"
#include "elementwise.cl"
#undef TERN_T
#define TERN_T bf16
#include "copy.cl"
#undef TERN_T
#define TERN_T i64
#include "reduce.cl"
#undef exp
#undef log
#undef sqrt
#undef fabs

enum { MOST = 40000 };
static struct {
    _Alignas(16) f32 x[MOST], y[MOST], z[MOST], w[MOST];
    _Alignas(16) u16 h[MOST];
    i64 places[MOST], whole[MOST], sums[MOST];
    i64 rows, n;
    i32 what, at;
    tern_nd_index walk;
    tern_transposition transposition;
} of;

static void fill(i32 n)
{
    for (i32 i = 0; i < n; i++) {
        of.x[i] = (f32)(i * 7 % 97 - 48) / 16;
        of.w[i] = (f32)(i * 11 % 61 - 30) / 32;
        of.whole[i] = i * 13 % 1009;
        of.y[i] = of.z[i] = -77;
        of.h[i] = 7;
    }
}
static void near(f32 a, f64 b)
{
    assert_true(fabs(a - b) <= 2e-5 * (1 + fabs(b)));
}
/* As launch.c has it: enough blocks for all teams, or fewer, that go round. */
static void run(void (*kernel)(void), i32 fewer)
{
    i32 teams = TERN_WG / TERN_TEAM(of.n, TERN_WG), blocks = (i32)((of.rows + teams - 1) / teams);
    block_run(fewer && blocks > 2 ? 2 : blocks, kernel);
    assert_false(the_block.lost);
}

/* ---- rows --------------------------------------------------------------------------------- */

static void run_softmax(void)
{
    softmax_f32(of.y, of.x, of.rows, of.n, of.what);
}
static void run_softmax_gradient(void)
{
    softmax_gradient_f32(of.z, of.y, of.w, of.rows, of.n, of.what);
}
static void run_layer_norm(void)
{
    layer_norm_f32(of.y, of.z, of.z + of.rows, of.x, of.w, of.w, of.rows, of.n, 0.25f, of.what);
}
static void run_sum(void)
{
    sum_rows_f32(of.y, of.x, of.x, of.rows, of.n, 1, of.n, 2);
}
static void run_whole_sum(void)
{
    sum_rows_i64(of.sums, of.whole, of.whole, of.rows, of.n, 1, of.n, 1);
}
static void run_peak(void)
{
    extremum_rows_f32(of.y, of.places, of.x, of.places, of.rows, of.n, 1, of.n, 0, 3);
}

static void check_softmax(i32 r, i32 n)
{
    const f32 *x = of.x + r * n, *y = of.y + r * n, *w = of.w + r * n;
    f64 most = -1e9, sum = 0, dot = 0;
    for (i32 j = 0; j < n; j++)
        most = x[j] > most ? x[j] : most;
    for (i32 j = 0; j < n; j++)
        sum += exp(x[j] - most);
    for (i32 j = 0; j < n; j++) {
        f64 p = exp(x[j] - most) / sum;
        near(y[j], of.what ? log(p) : p);
        dot += of.what ? w[j] : w[j] * p;
    }
    for (i32 j = 0; j < n; j++) {
        f64 p = exp(x[j] - most) / sum;
        near(of.z[r * n + j], of.what ? w[j] - p * dot : p * (w[j] - dot));
    }
}

static void check_norm(i32 r, i32 n)
{
    const f32 *x = of.x + r * n;
    f64 mean = 0, variance = 0;
    for (i32 j = 0; j < n; j++)
        mean += x[j] / (f64)n;
    for (i32 j = 0; j < n; j++)
        variance += (x[j] - mean) * (x[j] - mean) / n;
    near(of.z[r], mean);
    for (i32 j = 0; j < n; j++)
        near(of.y[r * n + j], (x[j] - mean) / sqrt(variance + 0.25) * of.w[j] + of.w[j]);
}

static void check_sums(i32 r, i32 n)
{
    f64 sum = 0;
    i64 whole = 0;
    for (i32 j = 0; j < n; j++) {
        sum += of.x[r * n + j];
        whole += of.whole[r * n + j];
    }
    near(of.y[r], sum / 2);
    assert_true(of.sums[r] == whole);
}

static void check_peak(i32 r, i32 n)
{
    i32 best = 0;
    for (i32 j = 1; j < n; j++)
        best = of.x[r * n + j] > of.x[r * n + best] ? j : best;
    assert_true(of.y[r] == of.x[r * n + best] && of.places[r] == best);
}

static void rows_of_teams_and_of_blocks(void **state)
{
    (void)state;
    static const i32 lengths[] = {1, 3, 4, 5, 8, 9, 16, 17, 32, 33, 100, 512, 513, 1000};
    static const i32 counts[] = {3, 33};
    for (i32 i = 0; i < 14; i++)
        for (i32 k = 0; k < 2; k++) {
            i32 n = lengths[i], rows = counts[k];
            of.rows = rows;
            of.n = n;
            for (of.what = 0; of.what < 2; of.what++) {
                fill(MOST);
                run(run_softmax, i % 2);
                run(run_softmax_gradient, i % 2);
                for (i32 r = 0; r < rows; r++)
                    check_softmax(r, n);
            }
            assert_true(of.y[rows * n] == -77 && of.z[rows * n] == -77);
            fill(MOST);
            of.what = 3;
            run(run_layer_norm, i % 2);
            for (i32 r = 0; r < rows; r++)
                check_norm(r, n);
            assert_true(of.y[rows * n] == -77 && of.z[2 * rows] == -77);
            fill(MOST);
            run(run_sum, i % 2);
            run(run_whole_sum, i % 2);
            for (i32 r = 0; r < rows; r++)
                check_sums(r, n);
            assert_true(of.y[rows] == -77);
            run(run_peak, i % 2);
            for (i32 r = 0; r < rows; r++)
                check_peak(r, n);
            assert_true(of.y[rows] == -77);
        }
}

/* ---- quads -------------------------------------------------------------------------------- */

static void run_add(void)
{
    add_f32(of.y + of.at, of.x + of.at, of.w + of.what, of.walk);
}
static void run_to_half(void)
{
    copy_f32_bf16(of.h + of.at, of.x + of.at, of.walk);
}

static void dense_elements_at_any_place(void **state)
{
    (void)state;
    for (i32 n = 1; n < 1300; n = n * 3 + 1)
        for (of.at = 0; of.at < 6; of.at++)
            for (of.what = 0; of.what < 5; of.what += 2) {
                fill(MOST);
                of.walk =
                    (tern_nd_index){.rows = 1, .inner = n, .step = {1, 1, 1}, .form = TERN_ND_UNIT};
                block_run(n % 2 + 1, run_add);
                block_run(n % 2 + 1, run_to_half);
                for (i32 i = -1; i <= n; i++) {
                    i32 outside = i < 0 || i == n, at = of.at + i;
                    if (at < 0)
                        continue;
                    assert_true(of.y[at] == (outside ? -77 : of.x[at] + of.w[of.what + i]));
                    assert_true(of.h[at] == (outside ? 7 : tern_f32_to_bf16(of.x[at])));
                }
            }
}

/* ---- transposed copies --------------------------------------------------------------------- */

static void run_transposed(void)
{
    copy_transposed_f32(of.y, of.x, of.transposition);
}

static void planes_are_transposed(void **state)
{
    (void)state;
    static const i32 sizes[][3] = {{1, 32, 32},  {2, 33, 31}, {3, 16, 70},
                                   {1, 100, 17}, {1, 64, 64}, {2, 20, 68}};
    for (i32 i = 0; i < 6; i++) {
        i32 planes = sizes[i][0], n = sizes[i][1], m = sizes[i][2];
        fill(MOST);
        of.transposition = (tern_transposition){
            .planes = {.rows = planes, .ndim = 1}, .n = n, .m = m, .y_step = m, .x_step = n};
        of.transposition.together = (n | m | 8) & -(n | m | 8);
        of.transposition.planes.dim[0] = planes;
        of.transposition.planes.stride[0][0] = of.transposition.planes.stride[1][0] = n * m;
        block_run(i + 1, run_transposed);
        assert_false(the_block.lost);
        for (i32 e = 0; e < planes * n * m; e++) {
            i32 p = e / (n * m), r = e / m % n, c = e % m;
            assert_true(of.y[e] == of.x[p * n * m + c * n + r]);
        }
        assert_true(of.y[planes * n * m] == -77);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(rows_of_teams_and_of_blocks),
    TEST(dense_elements_at_any_place),
    TEST(planes_are_transposed),
};

TEST_MAIN(tests)
