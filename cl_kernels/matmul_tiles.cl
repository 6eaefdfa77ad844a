/* matmul_tiles.cl -- matrix products on OpenCL devices with work-groups, for any strides: a group
 * keeps a tile of C in the registers of its items. Arguments and result are those of gemm in
 * matmul.cl. What it is built for:
 *
 *   TILE_DOWN TILE_ACROSS  items of a group, down and across its tile: TERN_WG in all
 *   TILE_M TILE_N          rows and columns of an item
 *   TILE_K                 how deep the tiles of A and B in local memory are
 *   TILE_V                 1 or 4 elements a load; 4 divides TILE_M, TILE_N and TILE_K then
 *   TILE_TA TILE_TB        1: the columns of A (the rows of B are then not) lie without gaps in
 *                          memory, not its rows
 *
 * A lies by columns in local memory, so that an item reads neighbours of both; an item's rows and
 * columns are TILE_V together, and as many apart as all items have, so that items that load
 * together load neighbours. */
#include "tiles.h"
/* x in [0, xs) runs where neighbours in memory do, y in [0, ys) across; x_end and y_end of them are
 * there, the others are 0. quads: four along x may be loaded at once. */
INLINE void K(tile_fill)(LOCAL f32 *to, i32 x_to, i32 y_to, i32 xs, i32 ys, const GLOBAL STO *from,
                         idx x_step, idx y_step, idx x_end, idx y_end, i32 quads)
{
#if TILE_V == 4
    if (quads && x_end >= xs && y_end >= ys) {
        const i32 all = xs / 4 * ys;
#pragma unroll
        for (i32 r = 0; r < (all + TERN_WG - 1) / TERN_WG; r++) {
            i32 q = LID + r * TERN_WG, x = q % (xs / 4), y = q / (xs / 4);
            f32 v[4];
            if (all % TERN_WG != 0 && q >= all)
                continue;
            LOAD4(v, from + y * y_step, x);
            to += x * 4 * x_to + y * y_to;
            EACH4(e) to[e * x_to] = v[e];
            to -= x * 4 * x_to + y * y_to;
        }
        return;
    }
#endif
    const i32 all = xs * ys;
#pragma unroll 4
    for (i32 r = 0; r < (all + TERN_WG - 1) / TERN_WG; r++) {
        i32 q = LID + r * TERN_WG, x = q % xs, y = q / xs;
        if (all % TERN_WG == 0 || q < all)
            to[x * x_to + y * y_to] =
                x < x_end && y < y_end ? LD(from, x * x_step + y * y_step) : 0;
    }
}

#define IS_QUADS(x, s, along, across)                                                              \
    (TILE_V == 4 && (s).along == 1 && (((s).across | (s).batch[0] | (s).batch[1]) & 3) == 0 &&     \
     ALIGNED4(x))
#define MOVE_TO(x, s) (x + b0 * (idx)(s).batch[0] + b1 * (idx)(s).batch[1])

/* alpha sums + bias + beta row, an item's elements of a row of C. */
INLINE void K(tile_row)(f32 *sums, const f32 *bias, GLOBAL STO *row, idx step, idx j0, idx n,
                        i32 item, f32 alpha, f32 beta, i32 quads)
{
#pragma unroll
    for (i32 s = 0; s < TILE_N; s++)
        sums[s] = alpha * sums[s] + bias[s];
    if (beta != 0) {
#pragma unroll
        for (i32 s = 0; s < TILE_N; s++) {
            idx j = j0 + PLACE(item, TILE_ACROSS, s);
            sums[s] += beta * LD(row, (j < n ? j : n - 1) * step);
        }
    }
#if TILE_V == 4
    if (quads && j0 + COLS <= n) {
#pragma unroll
        for (i32 s = 0; s < TILE_N; s += 4)
            STORE4(row, (j0 + PLACE(item, TILE_ACROSS, s)) / 4, (sums + s));
        return;
    }
#endif
#pragma unroll
    for (i32 s = 0; s < TILE_N; s++) {
        idx j = j0 + PLACE(item, TILE_ACROSS, s);
        if (j < n)
            ST(row, j * step, sums[s]);
    }
}

KERNEL7(K(gemm_tiles), (OUT, STO, cs), (IN, STO, as), (IN, STO, bs), (IN, STO, biases),
        (ARG, tern_gemm_shape, g), (ARG, REAL, alpha), (ARG, REAL, beta))
{
    BASE(cs);
    BASE(as);
    BASE(bs);
    BASE(biases);
    LOCAL_ARRAY(WORD, a_words, TILE_K *A_STEP / TILE_V);
    LOCAL_ARRAY(WORD, b_words, TILE_K *B_STEP / TILE_V);
    LOCAL f32 *ta = (LOCAL f32 *)a_words, *tb = (LOCAL f32 *)b_words;
    const i32 down_item = LID / TILE_ACROSS, across_item = LID % TILE_ACROSS;
    const idx m = (idx)g.m, n = (idx)g.n, k = (idx)g.k;
    const idx down = (m + ROWS - 1) / ROWS, across = (n + COLS - 1) / COLS;
    const i32 c_quads = IS_QUADS(cs, g.c, col, row);
#if TILE_TA
    const i32 a_quads = IS_QUADS(as, g.a, row, col);
#else
    const i32 a_quads = IS_QUADS(as, g.a, col, row);
#endif
#if TILE_TB
    const i32 b_quads = IS_QUADS(bs, g.b, row, col);
#else
    const i32 b_quads = IS_QUADS(bs, g.b, col, row);
#endif
    GROUPS(u, g.count[0] * g.count[1] * down * across)
    {
        idx j0 = u % across * COLS, i0 = u / across % down * ROWS, batch = u / across / down;
        idx b0 = batch / (idx)g.count[1], b1 = batch % (idx)g.count[1];
        const GLOBAL STO *a = MOVE_TO(as, g.a) + i0 * (idx)g.a.row;
        const GLOBAL STO *b = MOVE_TO(bs, g.b) + j0 * (idx)g.b.col;
        GLOBAL STO *c = MOVE_TO(cs, g.c);
        f32 sums[TILE_M][TILE_N];
        tile_clear(sums);
        for (idx p0 = 0; p0 < k; p0 += TILE_K) {
            BARRIER();
#if TILE_TA
            K(tile_fill)(ta, 1, A_STEP, ROWS, TILE_K, a, (idx)g.a.row, (idx)g.a.col, m - i0, k - p0,
                a_quads);
#else
            K(tile_fill)(ta, A_STEP, 1, TILE_K, ROWS, a, (idx)g.a.col, (idx)g.a.row, k - p0, m - i0,
                a_quads);
#endif
#if TILE_TB
            K(tile_fill)(tb, B_STEP, 1, TILE_K, COLS, b, (idx)g.b.row, (idx)g.b.col, k - p0, n - j0,
                b_quads);
#else
            K(tile_fill)(tb, 1, B_STEP, COLS, TILE_K, b, (idx)g.b.col, (idx)g.b.row, n - j0, k - p0,
                b_quads);
#endif
            BARRIER();
            tile_multiply(sums, a_words + down_item, b_words + across_item);
            a += TILE_K * (idx)g.a.col;
            b += TILE_K * (idx)g.b.row;
        }
        f32 bias[TILE_N];
#pragma unroll
        for (i32 s = 0; s < TILE_N; s++) {
            idx j = j0 + PLACE(across_item, TILE_ACROSS, s);
            bias[s] = g.has_bias && j < n ? LD(biases, j) : 0;
        }
#pragma unroll
        for (i32 r = 0; r < TILE_M; r++) {
            idx i = i0 + PLACE(down_item, TILE_DOWN, r);
            if (i < m)
                K(tile_row)(sums[r], bias, c + i * (idx)g.c.row, (idx)g.c.col, j0, n, across_item,
                            alpha, beta, c_quads);
        }
    }
}
