/* test_block_tiles.c -- attention on tensor cores: the kernels of attention_tiles.cl as NVRTC gets them, for the host over
 * block.h, where a warp's product of tiles is written down from PTX's tables of which lane has which elements.
 * No GPU takes part. */
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
#undef LD_F16
#undef ST_F16
#undef TERN_EXP2_ROUGH
#define LD_F16(R, p, i)    ((f32)(p)[i])
#define ST_F16(S, p, i, v) ((p)[i] = (u16)(v))
#define __fmaf_rn(a, b, c) ((a) * (b) + (c))
#include "params_device.h"
#include "dialect.h"
#include "shapes.h"
#include "nd_index.h"
#include "math.cl"
#include "math_special.cl"
#include "math_names.h"

/* c (16, 8) += a (16, 16) b (16, 8): with g = lane / 4 and q = lane % 4, word r of a holds row g + 8 (r % 2),
 * columns 2 q + 8 (r / 2) and the next; word r of b holds rows 2 q + 8 r and the next of column g; c holds
 * rows g and g + 8, columns 2 q and the next. */
static void tern_mma_bf16(f32 *c, const u32 *a, const u32 *b)
{
    static u32 words[BLOCK_THREADS][6];
    i32 own = threadIdx.x, warp = own / 32 * 32, g = own % 32 / 4, q = own % 4;
    for (i32 r = 0; r < 6; r++)
        words[own][r] = r < 4 ? a[r] : b[r - 4];
    __syncthreads();
    for (i32 e = 0; e < 4; e++) {
        i32 row = g + e / 2 * 8, col = 2 * q + e % 2;
        for (i32 k = 0; k < 16; k++) {
            u32 x = words[warp + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
            u32 y = words[warp + col * 4 + k % 8 / 2][4 + k / 8];
            x = k % 2 ? x >> 16 : x & 0xffffu;
            y = k % 2 ? y >> 16 : y & 0xffffu;
            c[e] += f32_from_bits(x << 16) * f32_from_bits(y << 16);
        }
    }
    __syncthreads();
}
#define TERN_TENSOR_CORES 1
#define TERN_T            bf16
#include "attention_tiles.cl"
#undef exp
#undef log
#undef sqrt
#undef fabs
#undef tanh

enum { QUERIES = 70, KEYS = 90, WIDTH = 40, VALUES = 72, STACKS = 2 };
typedef struct data {
    _Alignas(16) u16 q[STACKS * QUERIES * WIDTH], k[STACKS * KEYS * WIDTH];
    _Alignas(16) u16 v[STACKS * KEYS * VALUES], out[STACKS * QUERIES * VALUES];
    u16 dout[STACKS * QUERIES * VALUES], dq[STACKS * QUERIES * WIDTH], dk[STACKS * KEYS * WIDTH];
    u16 dv[STACKS * KEYS * VALUES];
    f32 lse[STACKS * QUERIES];
    u64 state[2];
    u8 bools[1];
    tern_attention_tiles s;
} data;
static data of;

static void forward(void)
{
    attention_tiles_bf16(of.out, of.lse, of.q, of.k, of.v, of.q, of.bools, of.state, of.s, 1);
}
static void backward(void)
{
    attention_tiles_gradient_bf16(of.dq, of.dk, of.dv, of.q, of.k, of.v, of.out, of.dout, of.lse,
                                  of.q, of.bools, of.state, of.s, 1);
}

static void fill(u16 *x, i32 n, i32 seed)
{
    for (i32 i = 0; i < n; i++)
        x[i] = tern_f32_to_bf16((f32)((i * 37 + seed * 11) % 101 - 50) / 64);
}
static f64 at(const u16 *x, i32 i)
{
    return f32_from_bits((u32)x[i] << 16);
}
static tern_gemm_matrix rows_of(i32 rows, i32 columns)
{
    return (tern_gemm_matrix){.row = columns, .col = 1, .batch = {0, rows * columns}};
}

static void set_up(i32 causal)
{
    fill(of.q, STACKS * QUERIES * WIDTH, 1);
    fill(of.k, STACKS * KEYS * WIDTH, 2);
    fill(of.v, STACKS * KEYS * VALUES, 3);
    fill(of.dout, STACKS * QUERIES * VALUES, 4);
    of.s = (tern_attention_tiles){.block = {.count = {1, STACKS},
                                            .queries = QUERIES,
                                            .keys = KEYS,
                                            .before = QUERIES + KEYS,
                                            .after = 0,
                                            .flags = causal ? TERN_ATTENTION_BAND : 0},
                                  .q = rows_of(QUERIES, WIDTH),
                                  .k = rows_of(KEYS, WIDTH),
                                  .v = rows_of(KEYS, VALUES),
                                  .out = rows_of(QUERIES, VALUES),
                                  .dout = rows_of(QUERIES, VALUES),
                                  .dq = rows_of(QUERIES, WIDTH),
                                  .dk = rows_of(KEYS, WIDTH),
                                  .dv = rows_of(KEYS, VALUES),
                                  .width = WIDTH,
                                  .value_width = VALUES,
                                  .scale = 0.25f};
}

/* The textbook's way, in double precision. */
typedef struct expected {
    f64 out[QUERIES][VALUES], dq[QUERIES][WIDTH], dk[KEYS][WIDTH], dv[KEYS][VALUES];
} expected;

static f64 dot(const u16 *x, const u16 *y, i32 n)
{
    f64 sum = 0;
    for (i32 e = 0; e < n; e++)
        sum += at(x, e) * at(y, e);
    return sum;
}

static void attend(i32 stack, i32 causal, expected *to)
{
    const u16 *q = of.q + stack * QUERIES * WIDTH, *k = of.k + stack * KEYS * WIDTH;
    const u16 *v = of.v + stack * KEYS * VALUES, *dout = of.dout + stack * QUERIES * VALUES;
    memset(to, 0, sizeof *to);
    for (i32 i = 0; i < QUERIES; i++) {
        f64 p[KEYS], total = 0, delta = 0;
        for (i32 j = 0; j < KEYS; j++) {
            p[j] = causal && j > i ? 0 : exp(0.25 * dot(q + i * WIDTH, k + j * WIDTH, WIDTH));
            total += p[j];
        }
        for (i32 j = 0; j < KEYS; j++) {
            p[j] /= total;
            delta += p[j] * dot(dout + i * VALUES, v + j * VALUES, VALUES);
            for (i32 e = 0; e < VALUES; e++) {
                to->out[i][e] += p[j] * at(v, j * VALUES + e);
                to->dv[j][e] += p[j] * at(dout, i * VALUES + e);
            }
        }
        for (i32 j = 0; j < KEYS; j++) {
            f64 ds = 0.25 * p[j] * (dot(dout + i * VALUES, v + j * VALUES, VALUES) - delta);
            for (i32 e = 0; e < WIDTH; e++) {
                to->dq[i][e] += ds * at(k, j * WIDTH + e);
                to->dk[j][e] += ds * at(q, i * WIDTH + e);
            }
        }
    }
}

static void near(const u16 *x, const f64 *y, i32 n)
{
    for (i32 i = 0; i < n; i++)
        if (!(fabs(at(x, i) - y[i]) <= 0.01 * (1 + fabs(y[i])))) {
            print_error("element %d is %g, expected %g\n", i, at(x, i), y[i]);
            fail();
        }
}

static void attention_on_tensor_cores_is_the_textbook_s(void **state)
{
    static expected to;
    (void)state;
    for (i32 causal = 0; causal < 2; causal++) {
        set_up(causal);
        block_run(3, forward);
        block_run(4, backward);
        assert_false(the_block.lost);
        for (i32 stack = 0; stack < STACKS; stack++) {
            attend(stack, causal, &to);
            near(of.out + stack * QUERIES * VALUES, to.out[0], QUERIES * VALUES);
            near(of.dq + stack * QUERIES * WIDTH, to.dq[0], QUERIES * WIDTH);
            near(of.dk + stack * KEYS * WIDTH, to.dk[0], KEYS * WIDTH);
            near(of.dv + stack * KEYS * VALUES, to.dv[0], KEYS * VALUES);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(attention_on_tensor_cores_is_the_textbook_s),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
