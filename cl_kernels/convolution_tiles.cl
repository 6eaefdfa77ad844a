/* convolution_tiles.cl -- a convolution or a gradient of one as a product by tiles, whose B is
 * gathered from the image while tiles are filled: columns in memory are not made (implicit GEMM;
 * Chetlur et al., cuDNN, 2014). It is built as matmul_tiles.cl is, with indices of 32 bits;
 * TILE_TB: neighbours down B are neighbours in memory, not across. */
#include "tiles.h"
#include "convolution_lines.h"

/* Where a line's numbers point: along the image in three dims, in its memory, and in the other
 * matrix. Lines that are not there are far outside. */
#define LINES(name, n)                                                                             \
    LOCAL_ARRAY(i32, name##_z, n);                                                                 \
    LOCAL_ARRAY(i32, name##_y, n);                                                                 \
    LOCAL_ARRAY(i32, name##_x, n);                                                                 \
    LOCAL_ARRAY(i32, name##_from, n);                                                              \
    LOCAL_ARRAY(i32, name##_to, n)
#define PUT_LINE(name, i, line, p, there)                                                          \
    do {                                                                                           \
        i32 z_ = (line).first[0] + (p)[1] * (line).step[0];                                        \
        i32 y_ = (line).first[1] + (p)[2] * (line).step[1];                                        \
        i32 x_ = (line).first[2] + (p)[3] * (line).step[2];                                        \
        name##_z[i] = (there) ? z_ : -(1 << 30);                                                   \
        name##_y[i] = y_;                                                                          \
        name##_x[i] = x_;                                                                          \
        name##_from[i] = (p)[0] * (line).outer + (z_ * g.end[1] + y_) * g.end[2] + x_;             \
        name##_to[i] = (line).at + (p)[0] * (line).outer_at + (p)[1] * (line).along_at[0] +        \
                       (p)[2] * (line).along_at[1] + (p)[3] * (line).along_at[2];                  \
    } while (0)

KERNEL6(K(conv_tiles), (OUT, STO, cs), (OUT, f32, sums), (IN, STO, as), (IN, STO, bs),
        (IN, STO, biases), (ARG, tern_conv_tiles, shape))
{
    BASE(cs);
    BASE(sums);
    BASE(as);
    BASE(bs);
    BASE(biases);
    LOCAL_ARRAY(WORD, a_words, TILE_K *A_STEP / TILE_V);
    LOCAL_ARRAY(WORD, b_words, TILE_K *B_STEP / TILE_V);
    LINES(row, TILE_K);
    LINES(col, COLS);
    LOCAL f32 *ta = (LOCAL f32 *)a_words, *tb = (LOCAL f32 *)b_words;
    const tern_conv_tiles g = shape;
    const i32 down_item = LID / TILE_ACROSS, across_item = LID % TILE_ACROSS;
    const i32 down = (g.m + ROWS - 1) / ROWS, across = (g.n + COLS - 1) / COLS;
    i32 by[4];
    line_at(by, g.row.size, TILE_K);
    GROUPS(u, g.groups * g.parts * down * across)
    {
        const i32 i0 = u / across % down * ROWS, j0 = u % across * COLS, batch = u / across / down;
        const i32 part = batch % g.parts, group = batch / g.parts, begin = part * g.part;
        const i32 end = begin + g.part < g.k ? begin + g.part : g.k;
        const GLOBAL STO *a = as + group * g.a_group, *b = bs + group * g.b_group;
        f32 tile[TILE_M][TILE_N];
        i32 at[4];
        BARRIER();
        for (i32 q = LID; q < COLS; q += TERN_WG) {
            line_at(at, g.column.size, j0 + q);
            PUT_LINE(col, q, g.column, at, j0 + q < g.n);
        }
        tile_clear(tile);
        line_at(at, g.row.size, begin + LID);
        for (i32 p0 = begin; p0 < end; p0 += TILE_K) {
#if TILE_K > TERN_WG
            for (i32 q = LID; q < TILE_K; q += TERN_WG) {
                line_at(at, g.row.size, p0 + q);
                PUT_LINE(row, q, g.row, at, p0 + q < end);
            }
#else
            if (LID < TILE_K)
                PUT_LINE(row, LID, g.row, at, p0 + LID < end);
            line_move(at, by, g.row.size);
#endif
            BARRIER(); /* the lines are there, and nobody reads the tiles */
#pragma unroll 4
            for (i32 q = LID; q < ROWS * TILE_K; q += TERN_WG) {
                i32 p = q % TILE_K, i = q / TILE_K;
                ta[p * A_STEP + i] =
                    p0 + p < end && i0 + i < g.m ? LD(a, (i0 + i) * g.a_row + row_to[p]) : 0;
            }
#pragma unroll 4
            for (i32 q = LID; q < COLS * TILE_K; q += TERN_WG) {
#if TILE_TB
                i32 p = q % TILE_K, j = q / TILE_K;
#else
                i32 p = q / COLS, j = q % COLS;
#endif
                i32 inside = (u32)(row_z[p] + col_z[j]) < (u32)g.end[0] &&
                             (u32)(row_y[p] + col_y[j]) < (u32)g.end[1] &&
                             (u32)(row_x[p] + col_x[j]) < (u32)g.end[2];
                tb[p * B_STEP + j] = inside ? LD(b, row_from[p] + col_from[j]) : 0;
            }
            BARRIER();
            tile_multiply(tile, a_words + down_item, b_words + across_item);
        }
        BARRIER(); /* of the columns' lines, where there was no chunk */
#pragma unroll
        for (i32 r = 0; r < TILE_M; r++) {
            i32 i = i0 + PLACE(down_item, TILE_DOWN, r);
            f32 bias = i < g.m && g.has_bias && g.parts == 1 ? LD(biases, group * g.m + i) : 0;
#pragma unroll
            for (i32 s = 0; s < TILE_N; s++) {
                i32 j = PLACE(across_item, TILE_ACROSS, s);
                i32 to = group * g.c_group + i * g.c_row + col_to[j];
                if (i >= g.m || j0 + j >= g.n)
                    continue;
                if (g.parts > 1)
                    sums[part * g.whole + to] = tile[r][s];
                else
                    ST(cs, to, tile[r][s] + bias + (g.adds ? LD(cs, to) : 0));
            }
        }
    }
}

#include "convolution_parts.h"
