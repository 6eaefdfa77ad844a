/* gemm_matrix.cl -- products of halves on matrix units (matrix.h). A group makes MATRIX_ROWS x
 * MATRIX_COLS of C, MATRIX_DEPTH at a time, and an item holds 64 sums: a group has MATRIX_ROWS *
 * MATRIX_COLS / 64 items. Operands and result are those of gemm in matmul.cl. What it is built for:
 *
 *   MATRIX_ROWS MATRIX_COLS   multiples of 64
 *   MATRIX_DEPTH              a multiple of 16
 *   MATRIX_TA MATRIX_TB       1: the columns of A (the rows of B are then not) lie without gaps
 *   MATRIX_ODD                see matrix_tiles.h
 *
 * C goes by way of local memory, a quarter of it after the other, where items have eight neighbours
 * each. */
#include "matrix_tiles.h"
#undef MATRIX_SUB_X
#undef MATRIX_SUB_Y
#undef MATRIX_X
#undef MATRIX_Y
#undef MATRIX_HIGH
#undef MATRIX_ROOM
#undef C_STEP
#undef A_HELD
#undef B_HELD
#undef FETCH_A
#undef PUT_A
#undef FETCH_B
#undef PUT_B
#undef STORE_QUARTER
#undef IS_AT_16
/* What a sub-group has of C: 64 sums a lane; in rows and columns, and in tiles. */
#define MATRIX_SUB_X (MATRIX_LANES >= 32 ? 64 : 32)
#define MATRIX_SUB_Y (MATRIX_LANES == 64 ? 64 : MATRIX_LANES >= 16 ? 32 : 16)
#define MATRIX_X     (MATRIX_SUB_X / 16)
#define MATRIX_Y     (MATRIX_SUB_Y / MATRIX_N)
/* A quarter of C is so many rows of each sub-group's; the gap from row to row spreads what is
 * stored over the banks. */
#define MATRIX_HIGH (MATRIX_SUB_X / 4)
#define C_STEP      (MATRIX_COLS + 4)
#define MATRIX_ROOM                                                                                \
    ((MATRIX_ROWS + MATRIX_COLS) * MATRIX_DEPTH / 2 > MATRIX_ROWS / 4 * C_STEP                     \
         ? (MATRIX_ROWS + MATRIX_COLS) * MATRIX_DEPTH / 2                                          \
         : MATRIX_ROWS / 4 * C_STEP)

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

/* Eight halves in a row as float32, and back; they lie at a multiple of 16 bytes. */
INLINE void K(matrix_load8)(f32 *v, const GLOBAL STO *from)
{
    matrix_four w = *(const GLOBAL matrix_four *)from;
    v[0] = matrix_low(w.x), v[1] = matrix_high(w.x), v[2] = matrix_low(w.y);
    v[3] = matrix_high(w.y), v[4] = matrix_low(w.z), v[5] = matrix_high(w.z);
    v[6] = matrix_low(w.w), v[7] = matrix_high(w.w);
}
INLINE void K(matrix_store8)(GLOBAL STO *to, const f32 *v)
{
    matrix_four w;
    w.x = matrix_pair(v[0], v[1]), w.y = matrix_pair(v[2], v[3]);
    w.z = matrix_pair(v[4], v[5]), w.w = matrix_pair(v[6], v[7]);
    *(GLOBAL matrix_four *)to = w;
}
#define IS_AT_16(p) ((u64)(p) % 16 == 0)

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

/* Quarter t of the sums into local memory. The numbers of sums must be constants, which a loop
 * with as much in it would not leave them with all compilers. */
#define STORE_QUARTER(t)                                                                           \
    MATRIX_EACH(s, MATRIX_Y)                                                                       \
    MATRIX_EACH(e, MATRIX_SUMS)                                                                    \
    {                                                                                              \
        const i32 row = MATRIX_ROW(e) - (t)*MATRIX_HIGH % 16;                                      \
        if (MATRIX_HIGH == 16 || (row >= 0 && row < MATRIX_HIGH))                                  \
            tc[(sub_x * MATRIX_HIGH + row) * C_STEP + y0 + s * MATRIX_N +                          \
               MATRIX_COLUMN(MATRIX_PLACE(e))] = sums[(t)*MATRIX_X / 4][s].v[e];                   \
    }

KERNEL7(K(gemm_matrix), (OUT, STO, cs), (IN, STO, as), (IN, STO, bs), (IN, STO, biases),
        (ARG, tern_gemm_shape, g), (ARG, f32, alpha), (ARG, f32, beta))
{
    BASE(cs);
    BASE(as);
    BASE(bs);
    BASE(biases);
    LOCAL_ARRAY(matrix_four, room, MATRIX_ROOM / 4);
    LOCAL u32 *ta = (LOCAL u32 *)room, *tb = ta + MATRIX_ROWS * MATRIX_DEPTH / 2;
    LOCAL f32 *tc = (LOCAL f32 *)room;
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
        MATRIX_EACH(r, MATRIX_X)
        MATRIX_EACH(s, MATRIX_Y)
        MATRIX_EACH(e, MATRIX_SUMS) sums[r][s].v[e] = 0;
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
            MATRIX_EACH(d, MATRIX_DEPTH / 16)
            {
                matrix_b y[MATRIX_Y];
                MATRIX_STEP();
                MATRIX_EACH(s, MATRIX_Y)
                y[s] = matrix_load_b(tb, y0 + s * MATRIX_N, d * 8, MATRIX_DEPTH / 2);
                MATRIX_EACH(r, MATRIX_X)
                {
                    matrix_a x = matrix_load_a(ta, sub_x * MATRIX_SUB_X + r * 16, d * 8,
                                               MATRIX_DEPTH / 2);
                    MATRIX_EACH(s, MATRIX_Y) matrix_multiply(&sums[r][s], &x, &y[s]);
                }
            }
        }
        for (i32 t = 0; t < 4; t++) {
            MATRIX_BARRIER();
            if (t == 0)
                STORE_QUARTER(0)
            else if (t == 1)
                STORE_QUARTER(1)
            else if (t == 2)
                STORE_QUARTER(2)
            else
                STORE_QUARTER(3)
            MATRIX_BARRIER();
            for (i32 q = LID; q < MATRIX_ROWS / 4 * (MATRIX_COLS / width); q += TERN_WG) {
                const i32 l = q / (MATRIX_COLS / width), column = q % (MATRIX_COLS / width) * width;
                const i32 x = l / MATRIX_HIGH * MATRIX_SUB_X + t * MATRIX_HIGH + l % MATRIX_HIGH;
                const idx i = i0 + x, j = j0 + column;
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
