/* gemm_matrix.cl -- products of halves on matrix units (matrix.h), and of float32 on NVIDIA's. A
 * group makes MATRIX_ROWS x MATRIX_COLS of C, MATRIX_DEPTH at a time, and an item holds 64 sums: a
 * group has MATRIX_ROWS * MATRIX_COLS / 64 items. Operands and result are those of gemm in
 * matmul.cl. What it is built for:
 *
 *   MATRIX_ROWS MATRIX_COLS   multiples of 64
 *   MATRIX_DEPTH              a multiple of 16
 *   MATRIX_TA MATRIX_TB       1: the columns of A (the rows of B are then not) lie without gaps
 *   MATRIX_ODD                see matrix_tiles.h
 *   MATRIX_WIDE               1: C is float32, where A and B are halves
 *   MATRIX_EPILOGUES          1: the kernel has two arguments more, `epilogue`, a
 *                             tern_gemm_epilogue, and the mask that gelu writes and its gradient
 *                             reads: rows of n up to a multiple of 8, of one product */
#include "matrix.h"
#if MATRIX_IS_TF32
#include "matrix_tiles_f32.h"
#else
#include "matrix_tiles.h"
#endif
#include "matrix_product.h"
#undef TERN_BLOCKS
#define TERN_BLOCKS 1 /* the assembler would spill three for a block more */
#undef A_HELD
#undef B_HELD
#undef FETCH_A
#undef PUT_A
#undef FETCH_B
#undef PUT_B
#undef LOAD8
#undef STORE8
#undef C_STO
#undef C_LD
#undef C_ST
#undef C_LOAD8
#undef C_STORE8
#undef MATRIX_EPILOGUE
#undef MATRIX_EPILOGUE8

#if MATRIX_TA
#define A_HELD  MATRIX_TURNED_HELD(MATRIX_ROWS, MATRIX_DEPTH)
#define FETCH_A MATRIX_FETCH_TURNED
#define PUT_A   MATRIX_PUT_TURNED
#else
#define A_HELD  MATRIX_HELD(MATRIX_ROWS, MATRIX_DEPTH)
#define FETCH_A MATRIX_FETCH
#define PUT_A   MATRIX_PUT
#endif
#if MATRIX_TB
#define B_HELD  MATRIX_HELD(MATRIX_COLS, MATRIX_DEPTH)
#define FETCH_B MATRIX_FETCH
#define PUT_B   MATRIX_PUT
#else
#define B_HELD  MATRIX_TURNED_HELD(MATRIX_COLS, MATRIX_DEPTH)
#define FETCH_B MATRIX_FETCH_TURNED
#define PUT_B   MATRIX_PUT_TURNED
#endif

#if MATRIX_IS_TF32
#define LOAD8  K(matrix_load8_wide)
#define STORE8 K(matrix_store8_wide)
#else
#define LOAD8  K(matrix_load8)
#define STORE8 K(matrix_store8)
#endif
#if MATRIX_WIDE
#define C_STO      f32
#define C_LD(p)    (*(p))
#define C_ST(p, v) (*(p) = (v))
#else
#define C_STO      STO
#define C_LD(p)    LD(p, 0)
#define C_ST(p, v) ST(p, 0, v)
#endif
#if MATRIX_WIDE || MATRIX_IS_TF32
#define C_LOAD8  K(matrix_load8_wide)
#define C_STORE8 K(matrix_store8_wide)
#else
#define C_LOAD8  K(matrix_load8)
#define C_STORE8 K(matrix_store8)
#endif

/* The epilogue, which is applied to C last: relu; gelu by tanh, which writes x to the mask; or
 * gelu's gradient, which reads x from there. gelu is x s with s = 1 / (1 + 2^(-2u log2 e)) of
 * u = sqrt(2 / pi) (x + 0.044715 x^3). */
#if MATRIX_EPILOGUES
#define MATRIX_RELU          1
#define MATRIX_GELU          2
#define MATRIX_GELU_GRADIENT 3
INLINE f32 K(matrix_epilogue)(f32 v, f32 noted, i32 epilogue)
{
    if (epilogue == 0)
        return v;
    if (epilogue == MATRIX_RELU)
        return v < 0 ? 0 : v;
    const f32 x = epilogue == MATRIX_GELU ? v : noted, square = x * x;
    const f32 s = 1 / (1 + TERN_EXP2_ROUGH(-2.3022082f * x * (1 + 0.044715f * square)));
    const f32 slope = s + x * s * (1 - s) * 1.5957691f * (1 + 0.134145f * square);
    return epilogue == MATRIX_GELU ? v * s : v * slope;
}
#define MATRIX_EPILOGUE(v, at)                                                                     \
    if (epilogue == MATRIX_GELU)                                                                   \
        ST(masks, at, v);                                                                          \
    v = K(matrix_epilogue)(v, epilogue == MATRIX_GELU_GRADIENT ? LD(masks, at) : 0, epilogue);
#define MATRIX_EPILOGUE8(v, at)                                                                    \
    f32 noted[8];                                                                                  \
    MATRIX_EACH(e, 8) noted[e] = 0;                                                                \
    if (epilogue == MATRIX_GELU)                                                                   \
        STORE8(masks + (at), v);                                                                   \
    if (epilogue == MATRIX_GELU_GRADIENT)                                                          \
        LOAD8(noted, masks + (at));                                                                \
    MATRIX_EACH(e, 8) v[e] = K(matrix_epilogue)(v[e], noted[e], epilogue);
#else
#define MATRIX_EPILOGUE(v, at)
#define MATRIX_EPILOGUE8(v, at)
#endif

/* alpha v + bias + beta c, of a number of C, and of eight in a row. */
INLINE f32 K(matrix_sum)(f32 v, const GLOBAL C_STO *c, const GLOBAL STO *bias, f32 alpha, f32 beta,
                         i32 has_bias)
{
    v *= alpha;
    if (has_bias)
        v += LD(bias, 0);
    if (beta != 0)
        v += beta * C_LD(c);
    return v;
}
INLINE void K(matrix_sum8)(f32 *v, const LOCAL f32 *from, const GLOBAL C_STO *c,
                           const GLOBAL STO *bias, f32 alpha, f32 beta, i32 has_bias)
{
    f32 more[8];
    MATRIX_EACH(e, 8) v[e] = alpha * from[e];
    if (has_bias) {
        LOAD8(more, bias);
        MATRIX_EACH(e, 8) v[e] += more[e];
    }
    if (beta != 0) {
        C_LOAD8(more, c);
        MATRIX_EACH(e, 8) v[e] += beta * more[e];
    }
}

#if MATRIX_EPILOGUES
KERNEL9(K(gemm_matrix), (OUT, C_STO, cs), (IN, STO, as), (IN, STO, bs), (IN, STO, biases),
        (ARG, tern_gemm_shape, g), (ARG, f32, alpha), (ARG, f32, beta), (OUT, STO, masks),
        (ARG, i32, epilogue))
#else
KERNEL7(K(gemm_matrix), (OUT, C_STO, cs), (IN, STO, as), (IN, STO, bs), (IN, STO, biases),
        (ARG, tern_gemm_shape, g), (ARG, f32, alpha), (ARG, f32, beta))
#endif
{
    BASE(cs);
    BASE(as);
    BASE(bs);
    BASE(biases);
#if MATRIX_EPILOGUES
    BASE(masks);
    const idx noted_row = ((idx)g.n + 7) / 8 * 8;
    const i32 noted_width = IS_AT_16(masks) ? 8 : 1;
#else
    const i32 noted_width = 8;
#endif
    LOCAL_ARRAY(matrix_four, scratch, MATRIX_LOCAL_WORDS / 4);
    LOCAL u32 *ta = (LOCAL u32 *)scratch, *tb = ta + MATRIX_ROWS * MATRIX_TILE_WORDS;
    LOCAL f32 *tc = (LOCAL f32 *)scratch;
    const i32 subs = MATRIX_ROWS / MATRIX_SUB_X;
    const i32 sub_x = LID / MATRIX_LANES % subs, y0 = LID / MATRIX_LANES / subs * MATRIX_SUB_Y;
    const idx m = (idx)g.m, n = (idx)g.n, k = (idx)g.k;
    const idx a_row = (idx)g.a.row, a_col = (idx)g.a.col;
    const idx b_row = (idx)g.b.row, b_col = (idx)g.b.col;
    const idx down = (m + MATRIX_ROWS - 1) / MATRIX_ROWS;
    const idx across = (n + MATRIX_COLS - 1) / MATRIX_COLS;
    const i32 has_bias = g.has_bias != 0;
    /* Eight in a row at once, where all rows have them at a multiple of 16 bytes. */
    const i32 width = n % 8 == 0 && g.c.col == 1 && IS_AT_16(cs) && IS_AT_16(biases) &&
                              (g.c.row | g.c.batch[0] | g.c.batch[1]) % 8 == 0
                          ? noted_width
                          : 1;
    GROUPS(u, g.count[0] * g.count[1] * down * across)
    {
        const idx j0 = u % across * MATRIX_COLS, i0 = u / across % down * MATRIX_ROWS;
        const idx batch = u / across / down;
        const idx b0 = batch / (idx)g.count[1], b1 = batch % (idx)g.count[1];
        const GLOBAL STO *a = as + b0 * (idx)g.a.batch[0] + b1 * (idx)g.a.batch[1] + i0 * a_row;
        const GLOBAL STO *b = bs + b0 * (idx)g.b.batch[0] + b1 * (idx)g.b.batch[1] + j0 * b_col;
        GLOBAL C_STO *c = cs + b0 * (idx)g.c.batch[0] + b1 * (idx)g.c.batch[1];
        matrix_sums sums[MATRIX_X][MATRIX_Y];
        u32 a_held[A_HELD][4], b_held[B_HELD][4];
        MATRIX_CLEAR_SUMS
        idx left = k; /* of the depth */
        FETCH_A(a_held, a, a_row, a_col, m - i0, left, MATRIX_ROWS, MATRIX_DEPTH)
        FETCH_B(b_held, b, b_col, b_row, n - j0, left, MATRIX_COLS, MATRIX_DEPTH)
        while (left > 0) {
            MATRIX_BARRIER();
            PUT_A(ta, a_held, a, a_row, a_col, m - i0, left, MATRIX_ROWS, MATRIX_DEPTH)
            PUT_B(tb, b_held, b, b_col, b_row, n - j0, left, MATRIX_COLS, MATRIX_DEPTH)
            MATRIX_BARRIER();
            a += MATRIX_DEPTH * a_col;
            b += MATRIX_DEPTH * b_row;
            left -= MATRIX_DEPTH;
            if (left > 0) {
                FETCH_A(a_held, a, a_row, a_col, m - i0, left, MATRIX_ROWS, MATRIX_DEPTH)
                FETCH_B(b_held, b, b_col, b_row, n - j0, left, MATRIX_COLS, MATRIX_DEPTH)
            }
            MATRIX_MULTIPLY_TILES
        }
        for (i32 t = 0; t < 4; t++) {
            MATRIX_QUARTER(t)
            for (i32 q = LID; q < MATRIX_ROWS / 4 * (MATRIX_COLS / width); q += TERN_WG) {
                const i32 l = q / (MATRIX_COLS / width), column = q % (MATRIX_COLS / width) * width;
                const idx i = i0 + MATRIX_QUARTER_ROW(t, l), j = j0 + column;
                const LOCAL f32 *sum = tc + l * C_STEP + column;
                GLOBAL C_STO *to = c + i * (idx)g.c.row + j * (idx)g.c.col;
                if (i >= m || j >= n)
                    continue;
                if (width == 8) {
                    f32 v[8];
                    K(matrix_sum8)(v, sum, to, biases + j, alpha, beta, has_bias);
                    MATRIX_EPILOGUE8(v, i * noted_row + j)
                    C_STORE8(to, v);
                } else {
                    f32 v = K(matrix_sum)(sum[0], to, biases + j, alpha, beta, has_bias);
                    MATRIX_EPILOGUE(v, i * noted_row + j)
                    C_ST(to, v);
                }
            }
        }
    }
}
