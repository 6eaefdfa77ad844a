/* gemm_matrix.cl -- products of halves on matrix units (matrix.h). A group makes MATRIX_ROWS x
 * MATRIX_COLS of C, MATRIX_DEPTH at a time, and an item holds 64 sums: a group has MATRIX_ROWS *
 * MATRIX_COLS / 64 items. Operands and result are those of gemm in matmul.cl. What it is built for:
 *
 *   MATRIX_ROWS MATRIX_COLS   multiples of 64
 *   MATRIX_DEPTH              a multiple of 16
 *   MATRIX_TA MATRIX_TB       1: the columns of A (the rows of B are then not) lie without gaps
 *   MATRIX_ODD                see matrix_tiles.h */
#include "matrix_tiles.h"
#include "matrix_product.h"
#undef A_HELD
#undef B_HELD
#undef FETCH_A
#undef PUT_A
#undef FETCH_B
#undef PUT_B

#if MATRIX_TA
#define A_HELD  (2 * MATRIX_PAIRS(MATRIX_ROWS, MATRIX_DEPTH))
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
#define B_HELD  (2 * MATRIX_PAIRS(MATRIX_COLS, MATRIX_DEPTH))
#define FETCH_B MATRIX_FETCH_TURNED
#define PUT_B   MATRIX_PUT_TURNED
#endif

/* alpha v + bias + beta c, of a number of C, and of eight in a row. */
INLINE void K(matrix_end)(f32 v, GLOBAL STO *c, const GLOBAL STO *bias, f32 alpha, f32 beta,
                          i32 has_bias)
{
    v *= alpha;
    if (has_bias)
        v += LD(bias, 0);
    if (beta != 0)
        v += beta * LD(c, 0);
    ST(c, 0, v);
}
INLINE void K(matrix_end8)(const LOCAL f32 *from, GLOBAL STO *c, const GLOBAL STO *bias, f32 alpha,
                           f32 beta, i32 has_bias)
{
    f32 v[8], more[8];
    MATRIX_EACH(e, 8) v[e] = alpha * from[e];
    if (has_bias) {
        K(matrix_load8)(more, bias);
        MATRIX_EACH(e, 8) v[e] += more[e];
    }
    if (beta != 0) {
        K(matrix_load8)(more, c);
        MATRIX_EACH(e, 8) v[e] += beta * more[e];
    }
    K(matrix_store8)(c, v);
}

KERNEL7(K(gemm_matrix), (OUT, STO, cs), (IN, STO, as), (IN, STO, bs), (IN, STO, biases),
        (ARG, tern_gemm_shape, g), (ARG, f32, alpha), (ARG, f32, beta))
{
    BASE(cs);
    BASE(as);
    BASE(bs);
    BASE(biases);
    LOCAL_ARRAY(matrix_four, scratch, MATRIX_LOCAL_WORDS / 4);
    LOCAL u32 *ta = (LOCAL u32 *)scratch, *tb = ta + MATRIX_ROWS * MATRIX_DEPTH / 2;
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
                          ? 8
                          : 1;
    GROUPS(u, g.count[0] * g.count[1] * down * across)
    {
        const idx j0 = u % across * MATRIX_COLS, i0 = u / across % down * MATRIX_ROWS;
        const idx batch = u / across / down;
        const idx b0 = batch / (idx)g.count[1], b1 = batch % (idx)g.count[1];
        const GLOBAL STO *a = as + b0 * (idx)g.a.batch[0] + b1 * (idx)g.a.batch[1] + i0 * a_row;
        const GLOBAL STO *b = bs + b0 * (idx)g.b.batch[0] + b1 * (idx)g.b.batch[1] + j0 * b_col;
        GLOBAL STO *c = cs + b0 * (idx)g.c.batch[0] + b1 * (idx)g.c.batch[1];
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
                GLOBAL STO *to = c + i * (idx)g.c.row + j * (idx)g.c.col;
                if (i >= m || j >= n)
                    continue;
                if (width == 8)
                    K(matrix_end8)(sum, to, biases + j, alpha, beta, has_bias);
                else
                    K(matrix_end)(sum[0], to, biases + j, alpha, beta, has_bias);
            }
        }
    }
}
