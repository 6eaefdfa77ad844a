/* convolution_matrix.cl -- convolutions of halves and their gradients as products on matrix units
 * (matrix.h), one operand of which is gathered from the image while tiles are filled: columns in
 * memory are not made (implicit GEMM; Chetlur et al., cuDNN, 2014).
 *
 *   CONV_PASS  image, its lines           other operand  depth
 *   0          x, places of y             weight         channels of x at each tap
 *   1          dy, places of x            weight         channels of y at each tap
 *   2          x, channels of it by taps  dy             places of y
 *
 * The depth is made of units: CONV_UNIT channels at one tap, zeros where there are fewer, or one
 * place. What a unit and a line of the image add up to is the same for all channels of the unit, so
 * that it is looked up, and compared with the image's ends, for many at once. All blocks of taps of
 * some channels follow each other: what they see is in the cache.
 *
 *   CONV_LAST       1: channels lie together, and places are rows of the result. Else places do,
 *                   and are columns. Of pass 2 lines of the image are columns always.
 *   CONV_UNIT       4 to MATRIX_DEPTH, which it divides; of pass 2 it is 1
 *   CONV_IMAGE_ODD  0: eight channels at a time, which lie together at multiples of 16 bytes: of
 *   CONV_OTHER_ODD     CONV_LAST alone, with units of 8 and more. 1: one by one
 *   MATRIX_ROWS MATRIX_COLS MATRIX_DEPTH  as in gemm_matrix.cl; MATRIX_ODD is 0 */
#include "matrix_tiles.h"
#include "matrix_product.h"
#include "convolution_lines.h"
#undef TERN_BLOCKS
#define TERN_BLOCKS 1 /* the assembler would spill three for a block more */
#undef CONV_UNITS
#undef LINES
#undef OTHERS
#undef CONV_HELD
#undef CONV_LOAD
#undef CONV_SEES
#undef CONV_ALONG
#undef CONV_DOWN
#undef CONV_PUT_WORDS
#undef FETCH_IMAGE
#undef PUT_IMAGE
#undef OTHER_AT
#undef OTHER_IS
#undef OTHER_I
#undef OTHER_W
#undef FETCH_OTHER
#undef PUT_OTHER
#undef PUT_UNIT
#undef PLACES_ARE_ROWS
#define CONV_UNITS      (MATRIX_DEPTH / CONV_UNIT)
#define PLACES_ARE_ROWS (CONV_LAST && CONV_PASS != 2)
#if PLACES_ARE_ROWS
#define LINES  MATRIX_ROWS
#define OTHERS MATRIX_COLS
#else
#define LINES  MATRIX_COLS
#define OTHERS MATRIX_ROWS
#endif

/* Eight halves, or one, from `at` on; zeros where they are not. Where a load that is left out is a
 * branch, something else is loaded, so that all of an item's loads are under way at once; NVIDIA's
 * instructions have conditions of their own. */
#if MATRIX_WAY == MATRIX_MMA
#define CONV_LOAD(T, from, at, there, otherwise)                                                   \
    ((there) ? *(const GLOBAL T *)((from) + (at)) : (otherwise))
#else
#define CONV_LOAD(T, from, at, there, otherwise)                                                   \
    (*(const GLOBAL T *)((from) + ((there) ? (at) : 0)))
#endif
INLINE void K(conv_eight)(u32 *to, const GLOBAL STO *from, i32 at, i32 there)
{
    matrix_four w;
    w.x = w.y = w.z = w.w = 0;
    w = CONV_LOAD(matrix_four, from, at, there, w);
    to[0] = there ? w.x : 0, to[1] = there ? w.y : 0;
    to[2] = there ? w.z : 0, to[3] = there ? w.w : 0;
}
INLINE u32 K(conv_half)(const GLOBAL STO *from, i32 at, i32 there)
{
    const u32 h = CONV_LOAD(STO, from, at, there, 0);
    return there ? h : 0;
}

/* Fours of words of a tile that an item has in registers. */
#define CONV_HELD(SIZE) (2 * MATRIX_PAIRS(SIZE, MATRIX_DEPTH))
/* Whether line l sees something at unit u. */
#define CONV_SEES(l, u)                                                                            \
    (((l).y + (u).y < (u32)g.end[0]) & ((l).z + (u).z < (u32)g.end[1]) &                           \
     ((l).w + (u).w < (u32)g.end[2]))
/* Number r of an item, of lines that come `wide` at a time: neighbours are next to each other along
 * the lines, or along the depth. */
#define CONV_ALONG(wide)   (item % (wide))
#define CONV_DOWN(r, wide) (item / (wide) + (r) * (TERN_WG / (wide)))
#define CONV_PUT_WORDS(tile, held, SIZE, I, W)                                                     \
    MATRIX_EACH(r_, (SIZE) * MATRIX_DEPTH / 2 / TERN_WG)                                           \
    {                                                                                              \
        (tile)[MATRIX_AT(I, W, MATRIX_DEPTH / 2)] = held[r_ / 4][r_ % 4];                          \
    }

/* ---- the image ------------------------------------------------------------------------------- */

#if CONV_IMAGE_ODD && CONV_PASS != 2 /* two channels of a place */
#define FETCH_IMAGE(held)                                                                          \
    {                                                                                              \
        const matrix_four l_ = line[CONV_ALONG(LINES)];                                            \
        MATRIX_EACH(r_, LINES *MATRIX_DEPTH / 2 / TERN_WG)                                         \
        {                                                                                          \
            const i32 k_ = CONV_DOWN(r_, LINES) * 2, c_ = k_ % CONV_UNIT;                          \
            const matrix_four u_ = unit[k_ / CONV_UNIT];                                           \
            const i32 left_ = CONV_SEES(l_, u_) ? (i32)unit_to[k_ / CONV_UNIT].y - c_ : 0;         \
            const i32 at_ = (i32)(l_.x + u_.x) + c_ * g.deep;                                      \
            held[r_ / 4][r_ % 4] = K(conv_half)(image, at_, left_ > 0) |                           \
                                   K(conv_half)(image, at_ + g.deep, left_ > 1) << 16;             \
        }                                                                                          \
    }
#define PUT_IMAGE(tile, held)                                                                      \
    CONV_PUT_WORDS(tile, held, LINES, CONV_ALONG(LINES), CONV_DOWN(r_, LINES))
#elif CONV_IMAGE_ODD /* a channel at two places */
#define FETCH_IMAGE(held)                                                                          \
    {                                                                                              \
        const i32 w_ = CONV_ALONG(MATRIX_DEPTH / 2);                                               \
        const matrix_four u_ = unit[2 * w_], v_ = unit[2 * w_ + 1];                                \
        MATRIX_EACH(r_, LINES *MATRIX_DEPTH / 2 / TERN_WG)                                         \
        {                                                                                          \
            const matrix_four l_ = line[CONV_DOWN(r_, MATRIX_DEPTH / 2)];                          \
            held[r_ / 4][r_ % 4] =                                                                 \
                K(conv_half)(image, (i32)(l_.x + u_.x), CONV_SEES(l_, u_)) |                       \
                K(conv_half)(image, (i32)(l_.x + v_.x), CONV_SEES(l_, v_)) << 16;                  \
        }                                                                                          \
    }
#define PUT_IMAGE(tile, held)                                                                      \
    CONV_PUT_WORDS(tile, held, LINES, CONV_DOWN(r_, MATRIX_DEPTH / 2), CONV_ALONG(MATRIX_DEPTH / 2))
#elif CONV_PASS == 2 /* eight channels, at two places each */
#define FETCH_IMAGE(held)                                                                          \
    {                                                                                              \
        const matrix_four l_ = line[CONV_ALONG(LINES / 8) * 8];                                    \
        MATRIX_EACH(r_, MATRIX_PAIRS(LINES, MATRIX_DEPTH))                                         \
        {                                                                                          \
            const i32 k_ = CONV_DOWN(r_, LINES / 8) * 2;                                           \
            if (MATRIX_IS_OWN(LID + r_ * TERN_WG, LINES / 8 * (MATRIX_DEPTH / 2)))                 \
                MATRIX_EACH(h_, 2)                                                                 \
                {                                                                                  \
                    const matrix_four u_ = unit[k_ + h_];                                          \
                    K(conv_eight)(held[2 * r_ + h_], image, (i32)(l_.x + u_.x),                    \
                                  CONV_SEES(l_, u_));                                              \
                }                                                                                  \
        }                                                                                          \
    }
#define PUT_IMAGE(tile, held) MATRIX_PUT_TURNED(tile, held, , , , , , LINES, MATRIX_DEPTH)
#else /* eight channels of a place */
#define FETCH_IMAGE(held)                                                                          \
    {                                                                                              \
        const i32 k_ = CONV_ALONG(MATRIX_DEPTH / 8) * 8, c_ = k_ % CONV_UNIT;                      \
        const matrix_four u_ = unit[k_ / CONV_UNIT];                                               \
        const i32 left_ = (i32)unit_to[k_ / CONV_UNIT].y - c_;                                     \
        MATRIX_EACH(r_, MATRIX_HELD(LINES, MATRIX_DEPTH))                                          \
        if (MATRIX_IS_OWN(LID + r_ * TERN_WG, LINES *MATRIX_DEPTH / 8)) {                          \
            const matrix_four l_ = line[CONV_DOWN(r_, MATRIX_DEPTH / 8)];                          \
            K(conv_eight)(held[r_], image, (i32)(l_.x + u_.x) + c_,                                \
                          (left_ > 0) & CONV_SEES(l_, u_));                                        \
        }                                                                                          \
    }
#define PUT_IMAGE(tile, held) MATRIX_PUT(tile, held, , , , , , LINES, MATRIX_DEPTH)
#endif

/* ---- the other operand ----------------------------------------------------------------------- */

/* Where (i, k) of it is, and whether. */
#define OTHER_AT(i, k)                                                                             \
    ((i)*g.a_row + (i32)unit_to[(k) / CONV_UNIT].x + (k) % CONV_UNIT * g.a_deep)
#define OTHER_IS(i, k) (((i) < rows) & ((k) % CONV_UNIT < (i32)unit_to[(k) / CONV_UNIT].y))
#if CONV_OTHER_ODD
/* Neighbours among its lines lie together; with them Intel's compiler runs out of registers. */
#if (CONV_PASS == 1 && !MATRIX_IS_XE) || (CONV_PASS == 2 && CONV_LAST)
#define OTHER_I CONV_ALONG(OTHERS)
#define OTHER_W CONV_DOWN(r_, OTHERS)
#else
#define OTHER_I CONV_DOWN(r_, MATRIX_DEPTH / 2)
#define OTHER_W CONV_ALONG(MATRIX_DEPTH / 2)
#endif
#define FETCH_OTHER(held)                                                                          \
    MATRIX_EACH(r_, OTHERS *MATRIX_DEPTH / 2 / TERN_WG)                                            \
    {                                                                                              \
        const i32 i_ = OTHER_I, k_ = OTHER_W * 2;                                                  \
        held[r_ / 4][r_ % 4] = K(conv_half)(other, OTHER_AT(i_, k_), OTHER_IS(i_, k_)) |           \
                               K(conv_half)(other, OTHER_AT(i_, k_ + 1), OTHER_IS(i_, k_ + 1))     \
                                   << 16;                                                          \
    }
#define PUT_OTHER(tile, held) CONV_PUT_WORDS(tile, held, OTHERS, OTHER_I, OTHER_W)
#elif CONV_PASS == 0
#define FETCH_OTHER(held)                                                                          \
    MATRIX_EACH(r_, MATRIX_HELD(OTHERS, MATRIX_DEPTH))                                             \
    if (MATRIX_IS_OWN(LID + r_ * TERN_WG, OTHERS *MATRIX_DEPTH / 8)) {                             \
        const i32 i_ = CONV_DOWN(r_, MATRIX_DEPTH / 8), k_ = CONV_ALONG(MATRIX_DEPTH / 8) * 8;     \
        K(conv_eight)(held[r_], other, OTHER_AT(i_, k_), OTHER_IS(i_, k_));                        \
    }
#define PUT_OTHER(tile, held) MATRIX_PUT(tile, held, , , , , , OTHERS, MATRIX_DEPTH)
#else
#define FETCH_OTHER(held)                                                                          \
    MATRIX_EACH(r_, MATRIX_PAIRS(OTHERS, MATRIX_DEPTH))                                            \
    if (MATRIX_IS_OWN(LID + r_ * TERN_WG, OTHERS / 8 * (MATRIX_DEPTH / 2))) {                      \
        const i32 i_ = CONV_ALONG(OTHERS / 8) * 8, k_ = CONV_DOWN(r_, OTHERS / 8) * 2;             \
        MATRIX_EACH(h_, 2)                                                                         \
        K(conv_eight)(held[2 * r_ + h_], other, OTHER_AT(i_, k_ + h_), OTHER_IS(i_, k_ + h_));     \
    }
#define PUT_OTHER(tile, held) MATRIX_PUT_TURNED(tile, held, , , , , , OTHERS, MATRIX_DEPTH)
#endif

/* ---- lines and units ------------------------------------------------------------------------- */

#ifndef CONV_LINES
#define CONV_LINES
/* What number p of a line, there or far outside, adds: where it is in the image and along its three
 * dims, and in the other matrix. */
INLINE matrix_four conv_place(const tern_conv_line *line, const i32 *p, i32 there, i32 down,
                              i32 across, i32 pixel)
{
    const i32 z = line->first[0] + p[1] * line->step[0], y = line->first[1] + p[2] * line->step[1];
    const i32 x = line->first[2] + p[3] * line->step[2];
    matrix_four at;
    at.x = (u32)(p[0] * line->outer + ((z * down + y) * across + x) * pixel);
    at.y = (u32)(there ? z : -(1 << 30)), at.z = (u32)y, at.w = (u32)x;
    return at;
}
INLINE i32 conv_to(const tern_conv_line *line, const i32 *p)
{
    return line->at + p[0] * line->outer_at + p[1] * line->along_at[0] + p[2] * line->along_at[1] +
           p[3] * line->along_at[2];
}
#endif
/* Unit p of those before `end`, whose digits are in at, into the table by item p. */
#define PUT_UNIT(p)                                                                                \
    if (LID < CONV_UNITS) {                                                                        \
        const i32 there_ = (p) + LID < end;                                                        \
        matrix_two to_;                                                                            \
        to_.x = (u32)conv_to(&g.row, at);                                                          \
        to_.y = !there_ ? 0 : CONV_PASS == 2 ? 1 : (u32)(g.depth - at[0] * CONV_UNIT);             \
        unit[LID] = conv_place(&g.row, at, there_, g.end[1], g.end[2], g.pixel);                   \
        unit_to[LID] = to_;                                                                        \
    }

/* ---- the result ------------------------------------------------------------------------------ */

INLINE void K(conv_end8)(const LOCAL f32 *from, GLOBAL STO *c, const GLOBAL STO *bias, i32 has_bias,
                         i32 adds)
{
    f32 v[8], more[8];
    MATRIX_EACH(e, 8) v[e] = from[e];
    if (has_bias && PLACES_ARE_ROWS) {
        K(matrix_load8)(more, bias);
        MATRIX_EACH(e, 8) v[e] += more[e];
    } else if (has_bias) {
        const f32 b = LD(bias, 0);
        MATRIX_EACH(e, 8) v[e] += b;
    }
    if (adds) {
        K(matrix_load8)(more, c);
        MATRIX_EACH(e, 8) v[e] += more[e];
    }
    K(matrix_store8)(c, v);
}

KERNEL6(K(conv_matrix), (OUT, STO, cs), (OUT, f32, parts), (IN, STO, as), (IN, STO, bs),
        (IN, STO, biases), (ARG, tern_conv_tiles, g))
{
    BASE(cs);
    BASE(parts);
    BASE(as);
    BASE(bs);
    BASE(biases);
    LOCAL_ARRAY(matrix_four, scratch, MATRIX_LOCAL_WORDS / 4);
    LOCAL_ARRAY(matrix_four, line, LINES);
    LOCAL_ARRAY(matrix_four, unit, CONV_UNITS);
    LOCAL_ARRAY(matrix_two, unit_to, CONV_UNITS);
    LOCAL_ARRAY(i32, line_to, LINES);
    LOCAL u32 *ta = (LOCAL u32 *)scratch, *tb = ta + MATRIX_ROWS * MATRIX_DEPTH / 2;
    LOCAL f32 *tc = (LOCAL f32 *)scratch;
    const i32 subs = MATRIX_ROWS / MATRIX_SUB_X;
    const i32 sub_x = LID / MATRIX_LANES % subs, y0 = LID / MATRIX_LANES / subs * MATRIX_SUB_Y;
    const i32 line_tiles = (g.n + LINES - 1) / LINES, other_tiles = (g.m + OTHERS - 1) / OTHERS;
    const i32 each = g.part / CONV_UNIT, units = g.k / CONV_UNIT;
    i32 by[4], item = LID;
    line_at(by, g.row.size, CONV_UNITS);
    GROUPS(u, g.groups * g.parts * line_tiles * other_tiles)
    {
        const i32 i0 = u % other_tiles * OTHERS, j0 = u / other_tiles % line_tiles * LINES;
        const i32 batch = u / other_tiles / line_tiles, part = batch % g.parts;
        const i32 group = batch / g.parts, begin = part * each, rows = g.m - i0;
        const i32 end = begin + each < units ? begin + each : units;
        const GLOBAL STO *other = as + group * g.a_group + i0 * g.a_row;
        const GLOBAL STO *image = bs + group * g.b_group;
        matrix_sums sums[MATRIX_X][MATRIX_Y];
        u32 image_held[CONV_HELD(LINES)][4], other_held[CONV_HELD(OTHERS)][4];
        i32 at[4];
        MATRIX_BARRIER(); /* nobody reads the last lines and tiles */
        for (i32 q = LID; q < LINES; q += TERN_WG) {
#if CONV_PASS == 2 && CONV_LAST
            line_at(at, g.column.size, (j0 + q) / g.depth);
            at[0] = (j0 + q) % g.depth;
#else
            line_at(at, g.column.size, j0 + q);
#endif
            line[q] = conv_place(&g.column, at, j0 + q < g.n, g.end[1], g.end[2], g.pixel);
            line_to[q] = conv_to(&g.column, at);
        }
        line_at(at, g.row.size, begin + LID);
        PUT_UNIT(begin)
        MATRIX_CLEAR_SUMS
        MATRIX_BARRIER();
        FETCH_IMAGE(image_held)
        FETCH_OTHER(other_held)
        for (i32 p = begin; p < end; p += CONV_UNITS) {
            MATRIX_ANEW(item);
            MATRIX_BARRIER();
#if PLACES_ARE_ROWS
            PUT_IMAGE(ta, image_held)
            PUT_OTHER(tb, other_held)
#else
            PUT_IMAGE(tb, image_held)
            PUT_OTHER(ta, other_held)
#endif
            line_move(at, by, g.row.size);
            PUT_UNIT(p + CONV_UNITS)
            MATRIX_BARRIER();
            if (p + CONV_UNITS < end) {
                FETCH_IMAGE(image_held)
                FETCH_OTHER(other_held)
            }
            MATRIX_MULTIPLY_TILES
        }
        for (i32 t = 0; t < 4; t++) {
            MATRIX_QUARTER(t)
            for (i32 q = LID; q < MATRIX_ROWS / 4 * (MATRIX_COLS / g.width); q += TERN_WG) {
                const i32 l = q / (MATRIX_COLS / g.width);
                const i32 x = MATRIX_QUARTER_ROW(t, l), y = q % (MATRIX_COLS / g.width) * g.width;
                const i32 a = PLACES_ARE_ROWS ? y : x, b = PLACES_ARE_ROWS ? x : y;
                const LOCAL f32 *sum = tc + l * C_STEP + y;
                const i32 to = group * g.c_group + (i0 + a) * g.c_row + line_to[b];
                const GLOBAL STO *bias = biases + group * g.m + i0 + a;
                if (i0 + a >= g.m || j0 + b >= g.n)
                    continue;
                if (g.parts > 1)
                    for (i32 e = 0; e < g.width; e++)
                        parts[part * g.whole + to + e] = sum[e];
                else if (g.width == 8)
                    K(conv_end8)(sum, cs + to, bias, g.has_bias, g.adds);
                else
                    ST(cs, to, sum[0] + (g.has_bias ? LD(bias, 0) : 0) + (g.adds ? LD(cs, to) : 0));
            }
        }
    }
}

#include "convolution_parts.h"
