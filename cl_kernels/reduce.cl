/* reduce.cl -- sums, squared deviations and extremes over the middle of (outer, n, inner).
 *
 * Each of the outer slices of n is cut into `parts` of `len`, a group or a team for each; where
 * there are several, a second launch reduces their results. A group of the rows form (inner = 1)
 * reads one slice; a group of the columns form takes a tile of TERN_TILE columns down its rows,
 * `abreast` rows at a time where inner is small, and adds up the folded ones at the end. The short
 * form (inner = 1, n small) gives each slice to one lane. */

#include "float4.h"
#include "norm_again.h"
#include "order.h"
#ifndef TERN_REDUCE_ONCE
#define TERN_REDUCE_ONCE
enum { TERN_TILE = 256, TERN_RUN = 1024 };

INLINE idx tern_least(idx a, idx b)
{
    return a < b ? a : b;
}

#define ST_f32_(p, i, v) ((p)[i] = (v))
#define ST_i64_(p, i, v) ((p)[i] = (i64)(v))

#define SUM_ROW_0(LOAD, TERM)                                                                      \
    for (idx b = 0; b < count; b += TERN_RUN) {                                                    \
        idx run = tern_least(TERN_RUN, count - b);                                                 \
        ACC t = 0;                                                                                 \
        SIMD_SUM(t) TEAM_LANES(j, run)                                                             \
        {                                                                                          \
            ACC x = LOAD(xs, at + b + j);                                                          \
            t += (TERM);                                                                           \
        }                                                                                          \
        s += t;                                                                                    \
    }
/* Of elements as they are; TERN_SUM_RUN says that the host has functions for the types of f32. */
#define SUM_RUN_0 SUM_ROW_0
#define SUM_RUN_1(LOAD, TERM)                                                                      \
    for (idx b = 0; b < count; b += TERN_RUN)                                                      \
        s += TERN_CAT(tern_sum_run, TERN_T)(xs + at + b, tern_least(TERN_RUN, count - b));
#define SUM_ROW_1(LOAD, TERM)                                                                      \
    ROW_VECTORS(xs + at, count, 1)                                                                 \
    TERN_CAT(SUM_OF, LOAD)(ROW_KEEP_)                                                              \
    ROW_SUM(1, TERN_CAT(SUM_OF, LOAD), s, TERM)
#define SUM_OF_LD(X)      X(x, TERN_T, xs + at)
#define SUM_OF_LD_f32_(X) X(x, f32, xs + at)

/* Sum of TERM, an expression in the element x and the row's (column's) shift. */
#define SUM_ROWS(NAME, OUT_T, STORE, IN_T, LOAD, SHIFT, TERM)                                      \
    SUM_ROWS_BY(TERN_CAT(SUM_ROW, BY_FOURS), NAME, OUT_T, STORE, IN_T, LOAD, SHIFT, TERM)
#define SUM_ROWS_BY(ROW, NAME, OUT_T, STORE, IN_T, LOAD, SHIFT, TERM)                              \
    KERNEL8(K(NAME), (OUT, OUT_T, ys), (IN, IN_T, xs), (IN, ACC, shifts), (ARG, i64, outer),       \
            (ARG, i64, n), (ARG, i64, parts), (ARG, i64, len), (ARG, REAL, divisor))               \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(shifts);                                                                              \
        LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                        \
        TEAMS(g, outer *parts, len)                                                                \
        {                                                                                          \
            idx o = g / (idx)parts, first = (g - o * (idx)parts) * (idx)len;                       \
            idx count = tern_least((idx)len, (idx)n - first), at = o * (idx)n + first;             \
            ACC s = 0, shift = SHIFT(shifts, o);                                                   \
            ROW(LOAD, TERM)                                                                        \
            s = TEAM_SUM(s, scratch);                                                              \
            if (TEAM_LEADER)                                                                       \
                STORE(ys, g, DIVIDE(s, divisor));                                                  \
        }                                                                                          \
    }

#define SUM_SHORT(NAME, OUT_T, STORE, SHIFT, TERM)                                                 \
    KERNEL6(K(NAME), (OUT, OUT_T, ys), (IN, STO, xs), (IN, ACC, shifts), (ARG, i64, outer),        \
            (ARG, i64, n), (ARG, REAL, divisor))                                                   \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(shifts);                                                                              \
        ITEMS(o, outer)                                                                            \
        {                                                                                          \
            ACC s = 0, shift = SHIFT(shifts, o);                                                   \
            for (idx j = 0; j < (idx)n; j++) {                                                     \
                ACC x = LD(xs, o * (idx)n + j);                                                    \
                s += (TERM);                                                                       \
            }                                                                                      \
            STORE(ys, o, DIVIDE(s, divisor));                                                      \
        }                                                                                          \
    }

#define SUM_COLUMNS(NAME, OUT_T, STORE, IN_T, LOAD, SHIFT, TERM)                                   \
    KERNEL10(K(NAME), (OUT, OUT_T, ys), (IN, IN_T, xs), (IN, ACC, shifts), (ARG, i64, outer),      \
             (ARG, i64, n), (ARG, i64, parts), (ARG, i64, len), (ARG, REAL, divisor),              \
             (ARG, i64, inner), (ARG, i64, abreast))                                               \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(shifts);                                                                              \
        BESIDE(NAME)                                                                               \
        LOCAL_ARRAY(ACC, sums, TERN_TILE);                                                         \
        LOCAL_ARRAY(ACC, moved, TERN_TILE);                                                        \
        idx wide = (idx)(inner * abreast), tiles = (wide + TERN_TILE - 1) / TERN_TILE;             \
        GROUPS(g, (idx)(outer * parts) * tiles)                                                    \
        {                                                                                          \
            idx part = g / tiles, left = (g - part * tiles) * TERN_TILE;                           \
            idx o = part / (idx)parts, first = (part - o * (idx)parts) * (idx)len;                 \
            idx count = tern_least((idx)len, (idx)n - first);                                      \
            idx width = tern_least(TERN_TILE, wide - left),                                        \
                columns = tern_least(width, (idx)inner);                                           \
            idx at = (o * (idx)n + first) * (idx)inner + left, over = o * (idx)inner + left;       \
            SIMD LANES(j, width)                                                                   \
            {                                                                                      \
                sums[j] = 0;                                                                       \
                moved[j] = SHIFT(shifts, over + j % columns);                                      \
            }                                                                                      \
            for (idx k = 0; k < count; k += (idx)abreast) {                                        \
                idx now = abreast == 1 ? width : tern_least(width, (count - k) * (idx)inner);      \
                SIMD LANES(j, now)                                                                 \
                {                                                                                  \
                    ACC x = LOAD(xs, at + j), shift = moved[j];                                    \
                    sums[j] += (TERM);                                                             \
                }                                                                                  \
                at += wide;                                                                        \
            }                                                                                      \
            BARRIER();                                                                             \
            LANES(c, columns)                                                                      \
            {                                                                                      \
                ACC s = 0;                                                                         \
                for (idx j = c; j < width; j += (idx)inner)                                        \
                    s += sums[j];                                                                  \
                STORE(ys, part * (idx)inner + left + c, DIVIDE(s, divisor));                       \
            }                                                                                      \
            BARRIER();                                                                             \
        }                                                                                          \
    }
#define NO_SHIFT_(p, i) 0
#define LD_f32_(p, i)   ((p)[i])
#define SHIFT_(p, i)    ((p)[i])
#endif

#undef SUM_PLAIN
#ifdef TERN_SUM_RUN
#define SUM_PLAIN TERN_CAT(SUM_RUN, IN_SET(FLOAT4, TERN_T))
#else
#define SUM_PLAIN TERN_CAT(SUM_ROW, BY_FOURS)
#endif

#undef DIVIDE
#if IS_FLOAT
#define DIVIDE(s, by) ((s) / (by))
#else
#define DIVIDE(s, by) (s)
#endif

#if IS_HALF /* parts are kept in f32 */
SUM_ROWS_BY(SUM_PLAIN, sum_rows, STO, ST, STO, LD, NO_SHIFT_, x)
SUM_ROWS_BY(SUM_PLAIN, sum_rows_part, f32, ST_f32_, STO, LD, NO_SHIFT_, x)
SUM_ROWS(sum_rows_merge, STO, ST, f32, LD_f32_, NO_SHIFT_, x)
#elif IS_FLOAT
SUM_ROWS_BY(SUM_PLAIN, sum_rows, STO, ST, STO, LD, NO_SHIFT_, x)
SUM_ROWS(deviation_rows, STO, ST, STO, LD, SHIFT_, (x - shift) * (x - shift))
#else
SUM_ROWS(sum_rows, i64, ST_i64_, STO, LD, NO_SHIFT_, x)
#endif

#if !TERN_ROW_LANES /* programs for short rows have those alone */
#if IS_HALF
SUM_SHORT(sum_short, STO, ST, NO_SHIFT_, x)
SUM_COLUMNS(sum_columns, STO, ST, STO, LD, NO_SHIFT_, x)
SUM_COLUMNS(sum_columns_part, f32, ST_f32_, STO, LD, NO_SHIFT_, x)
SUM_COLUMNS(sum_columns_merge, STO, ST, f32, LD_f32_, NO_SHIFT_, x)
#elif IS_FLOAT
SUM_SHORT(sum_short, STO, ST, NO_SHIFT_, x)
SUM_SHORT(deviation_short, STO, ST, SHIFT_, (x - shift) * (x - shift))
SUM_COLUMNS(sum_columns, STO, ST, STO, LD, NO_SHIFT_, x)
SUM_COLUMNS(deviation_columns, STO, ST, STO, LD, SHIFT_, (x - shift) * (x - shift))
#else
SUM_SHORT(sum_short, i64, ST_i64_, NO_SHIFT_, x)
SUM_COLUMNS(sum_columns, i64, ST_i64_, STO, LD, NO_SHIFT_, x)
#endif

/* The largest (flip 0) or smallest (flip -1) and the first place of it. what: 1 wants the values, 2
 * the places, 4 says that xs are values found before, whose places are in from. */
KERNEL10(K(extremum_rows), (OUT, STO, ys), (OUT, i64, places), (IN, STO, xs), (IN, i64, from),
         (ARG, i64, outer), (ARG, i64, n), (ARG, i64, parts), (ARG, i64, len), (ARG, i32, flip),
         (ARG, i32, what))
{
    BASE(ys);
    BASE(places);
    BASE(xs);
    BASE(from);
    LOCAL_ARRAY(KEY, keys, TERN_WG);
    LOCAL_ARRAY(i64, found, TERN_WG);
    TEAMS(g, outer *parts, len)
    {
        idx o = g / (idx)parts, first = (g - o * (idx)parts) * (idx)len;
        idx count = tern_least((idx)len, (idx)n - first), at = o * (idx)n + first, block = 0;
        KEY mine = LEAST;
        for (idx b = 0; b < count; b += TERN_RUN) {
            idx run = tern_least(TERN_RUN, count - b);
            KEY best = LEAST;
            SIMD_MAX(best) TEAM_LANES(j, run)
            {
                KEY key = FN(tern_order)(LD(xs, at + b + j), flip);
                best = best > key ? best : key;
            }
            block = best > mine ? b : block;
            mine = best > mine ? best : mine;
        }
        KEY best = TEAM_OF(team_max, KEY, mine, keys);
        i64 place = count;
        if (mine == best && (what & 2) != 0) {
            TEAM_LANES(j, tern_least(TERN_RUN, count - block))
            {
                if (FN(tern_order)(LD(xs, at + block + j), flip) == best) {
                    place = block + j;
                    break;
                }
            }
        }
        place = TEAM_OF(team_min, i64, place, found);
        if (TEAM_LEADER && (what & 1) != 0)
            ST(ys, g, FN(tern_unorder)(best, flip));
        if (TEAM_LEADER && (what & 2) != 0)
            places[g] = (what & 4) != 0 ? from[at + (idx)place] : (i64)first + place;
    }
}

KERNEL7(K(extremum_short), (OUT, STO, ys), (OUT, i64, places), (IN, STO, xs), (ARG, i64, outer),
        (ARG, i64, n), (ARG, i32, flip), (ARG, i32, what))
{
    BASE(ys);
    BASE(places);
    BASE(xs);
    ITEMS(o, outer)
    {
        KEY best = FN(tern_order)(LD(xs, o * (idx)n), flip);
        i32 place = 0;
        for (i32 j = 1; j < (i32)n; j++) {
            KEY key = FN(tern_order)(LD(xs, o * (idx)n + j), flip);
            place = key > best ? j : place;
            best = key > best ? key : best;
        }
        if ((what & 1) != 0)
            ST(ys, o, FN(tern_unorder)(best, flip));
        if ((what & 2) != 0)
            places[o] = place;
    }
}

KERNEL12(K(extremum_columns), (OUT, STO, ys), (OUT, i64, places), (IN, STO, xs), (IN, i64, from),
         (ARG, i64, outer), (ARG, i64, n), (ARG, i64, parts), (ARG, i64, len), (ARG, i32, flip),
         (ARG, i32, what), (ARG, i64, inner), (ARG, i64, abreast))
{
    BASE(ys);
    BASE(places);
    BASE(xs);
    BASE(from);
    LOCAL_ARRAY(KEY, best, TERN_TILE);
    LOCAL_ARRAY(i32, row, TERN_TILE);
    idx wide = (idx)(inner * abreast), tiles = (wide + TERN_TILE - 1) / TERN_TILE;
    GROUPS(g, (idx)(outer * parts) * tiles)
    {
        idx part = g / tiles, left = (g - part * tiles) * TERN_TILE;
        idx o = part / (idx)parts, first = (part - o * (idx)parts) * (idx)len;
        idx count = tern_least((idx)len, (idx)n - first);
        idx width = tern_least(TERN_TILE, wide - left), columns = tern_least(width, (idx)inner);
        idx at = (o * (idx)n + first) * (idx)inner + left;
        SIMD LANES(j, width)
        {
            best[j] = LEAST;
            row[j] = 0;
        }
        for (idx k = 0; k < count; k += (idx)abreast) {
            idx now = abreast == 1 ? width : tern_least(width, (count - k) * (idx)inner);
            SIMD LANES(j, now)
            {
                KEY key = FN(tern_order)(LD(xs, at + j), flip), old = best[j];
                row[j] = key > old ? (i32)k : row[j];
                best[j] = key > old ? key : old;
            }
            at += wide;
        }
        BARRIER();
        LANES(c, columns)
        {
            KEY top = best[c];
            i32 place = row[c], below = 1;
            for (idx j = c + (idx)inner; j < width; j += (idx)inner) {
                i32 here = row[j] + below;
                place = best[j] > top || (best[j] == top && here < place) ? here : place;
                top = best[j] > top ? best[j] : top;
                below++;
            }
            idx to = part * (idx)inner + left + c;
            if ((what & 1) != 0)
                ST(ys, to, FN(tern_unorder)(top, flip));
            if ((what & 2) != 0)
                places[to] = (what & 4) == 0
                                 ? (i64)first + place
                                 : from[(o * (idx)n + first + place) * (idx)inner + left + c];
        }
        BARRIER();
    }
}

#if IS_FLOAT && !IS_HALF
/* ys = sums^(1/p), the sums those of |x|^p of xs (outer, n, inner); for orders other than 2 the
 * roots are in ys, and only those that are wrong are written. Where powers are beyond the
 * type, or so small that they lost digits, they are summed again of x over the largest |x|, or over
 * the smallest where p is negative; NaN and infinity stay. Collectives stand outside of
 * conditions. */
#define SCALINGS_0 7 /* of 2^16 each: as far as there are exponents */
#define SCALINGS_1 63
KERNEL7(K(norm_root), (OUT, STO, ys), (IN, STO, sums), (IN, STO, xs), (ARG, i64, outer),
        (ARG, i64, n), (ARG, i64, inner), (ARG, ACC, p))
{
    BASE(ys);
    BASE(sums);
    BASE(xs);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    TEAMS(r, outer *inner, n)
    {
        const idx o = r / (idx)inner, at = o * (idx)n * (idx)inner + r - o * (idx)inner;
        const ACC s = sums[r];
        idx count = POWERS_LOST(s) ? (idx)n : 0;
        ACC most = p < 0 ? MINUS_INF : 0, again = 0;
        TEAM_LANES(j, count)
        {
            const ACC x = xs[at + j * (idx)inner], v = (x < 0) == (p < 0) ? x : -x;
            most = v > most ? v : most;
        }
        most = TEAM_MAX(most, scratch);
        most = p < 0 ? -most : most;
        count = most > 0 && most - most == 0 ? count : 0;
        TEAM_LANES(j, count)
        {
            const ACC q = xs[at + j * (idx)inner] / most;
            again += pow(q < 0 ? -q : q, p);
        }
        again = TEAM_SUM(again, scratch);
        if (TEAM_LEADER && (count > 0 || p == 2))
            ys[r] = count == 0 ? sqrt(s) : most * (p == 2 ? sqrt(again) : pow(again, 1 / p));
    }
}

/* ys = sqrt(variances), those of xs; freedom: what sums of squares were divided by. Likewise: the
 * mean, too, is that of scaled numbers. The scale is a power of two: what is multiplied with it
 * stays exact, and so do deviations that are small beside the mean. */
KERNEL7(K(std_root), (OUT, STO, ys), (IN, STO, variances), (IN, STO, xs), (ARG, i64, outer),
        (ARG, i64, n), (ARG, i64, inner), (ARG, ACC, freedom))
{
    BASE(ys);
    BASE(variances);
    BASE(xs);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    TEAMS(r, outer *inner, n)
    {
        const idx o = r / (idx)inner, at = o * (idx)n * (idx)inner + r - o * (idx)inner;
        const ACC s = variances[r];
        idx count = POWERS_LOST(s) ? (idx)n : 0;
        ACC most = 0, mean = 0, off = 0, again = 0, scale = 1;
        TEAM_LANES(j, count)
        {
            const ACC x = xs[at + j * (idx)inner], v = x < 0 ? -x : x;
            most = v > most ? v : most;
        }
        most = TEAM_MAX(most, scratch);
        count = most > 0 && most - most == 0 ? count : 0;
        for (i32 i = 0; i < TERN_CAT(SCALINGS, IN_SET(DOUBLES, TERN_T)) && count > 0; i++)
            scale *= most * scale < 1 ? 65536 : most * scale > 65536 ? C(1.0) / 65536 : 1;
        TEAM_LANES(j, count)
        {
            mean += xs[at + j * (idx)inner] * scale;
        }
        mean = TEAM_SUM(mean, scratch) / (ACC)n;
        TEAM_LANES(j, count)
        {
            const ACC d = xs[at + j * (idx)inner] * scale - mean;
            off += d;
            again += d * d;
        }
        off = TEAM_SUM(off, scratch);
        again = TEAM_SUM(again, scratch) - off * off / (ACC)n;
        again = again < 0 ? 0 : again;
        if (TEAM_LEADER)
            ys[r] = count > 0 ? sqrt(again / freedom) / scale : sqrt(s);
    }
}
#undef SCALINGS_0
#undef SCALINGS_1
#endif
#endif
