/* scan.cl -- running results, and products, along the middle of (outer, n, inner): element k of a
 * slice is `inner` after the one before it. The types that sums are kept in: f32, f64, i64; the
 * host brings the others to them. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 4
#include "order.h"
#ifndef TERN_SCAN_ONCE
#define TERN_SCAN_ONCE
/* y after a step: what says which of a and b there are. */
enum { TERN_SCAN_SUM = 1, TERN_SCAN_PRODUCT = 2, TERN_SCAN_BOTH = 3 };
#define TERN_STEP(what, y, a, b)                                                                   \
    ((what) == TERN_SCAN_SUM       ? (y) + (b)                                                     \
     : (what) == TERN_SCAN_PRODUCT ? (y) * (a)                                                     \
                                   : (y) * (a) + (b))
/* sum += v, where what is lost of it by rounding goes to low (Knuth's two-sum): sum + low is right
 * to one rounding after any number of steps. An infinity or NaN leaves low alone. */
#define TERN_ADD_TO(sum, low, v)                                                                   \
    do {                                                                                           \
        ACC v_ = (v), s_ = (sum) + v_, t_ = s_ - (sum);                                            \
        ACC e_ = ((sum) - (s_ - t_)) + (v_ - t_);                                                  \
        low = e_ - e_ == 0 ? low + e_ : low;                                                       \
        sum = s_;                                                                                  \
    } while (0)
/* Columns that one item takes: as many as a vector loop wants, one on GPUs. */
#define TERN_SCAN_TILE (LSIZE > 1 ? 1 : 32)
TERN_COLLECTIVE_(group_product, f32, a *b)
#if TERN_F64
TERN_COLLECTIVE_(group_product, f64, a *b)
#endif
TERN_COLLECTIVE_(group_product, i64, a *b)
#endif

#if (IS_FLOAT && !IS_HALF) || IS_I64
/* y[k] = a[k] y[k - 1] + b[k], y before the first being `first`; reverse: from the last to the
 * first. inner = 1, a group for each slice: every lane takes a run of it, first to find what the
 * run makes of any y before it (y A + B), then with the y that the lanes before it make. */
KERNEL8(K(scan_rows), (OUT, STO, ys), (IN, STO, as), (IN, STO, bs), (ARG, i64, rows), (ARG, i64, n),
        (ARG, REAL, first), (ARG, i32, what), (ARG, i32, reverse))
{
    BASE(ys);
    BASE(as);
    BASE(bs);
    LOCAL_ARRAY(ACC, factors, TERN_WG);
    LOCAL_ARRAY(ACC, terms, TERN_WG);
    GROUPS(r, rows)
    {
        idx run = ((idx)n + LSIZE - 1) / LSIZE, from = LID * run, to = from + run;
        idx step = reverse != 0 ? -1 : 1, start = r * (idx)n + (reverse != 0 ? (idx)n - 1 : 0);
        ACC factor = 1, term = 0, y = first, low = 0;
        to = to < (idx)n ? to : (idx)n;
        if (LSIZE > 1 && what == TERN_SCAN_SUM) {
            for (idx k = from; k < to; k++)
                TERN_ADD_TO(term, low, bs[start + k * step]);
            term += low;
            low = 0;
        } else if (LSIZE > 1) {
            for (idx k = from; k < to; k++) {
                ACC a = as[start + k * step];
                term = what == TERN_SCAN_PRODUCT ? 0 : term * a + bs[start + k * step];
                factor *= a;
            }
        }
        factors[LID] = factor;
        terms[LID] = term;
        BARRIER();
        if (what == TERN_SCAN_SUM) {
            for (i32 lane = 0; lane < LID; lane++)
                TERN_ADD_TO(y, low, terms[lane]);
            for (idx k = from; k < to; k++) {
                TERN_ADD_TO(y, low, bs[start + k * step]);
                ys[start + k * step] = y + low;
            }
        } else {
            for (i32 lane = 0; lane < LID; lane++)
                y = TERN_STEP(what, y, factors[lane], terms[lane]);
            for (idx k = from; k < to; k++) {
                idx at = start + k * step;
                y = TERN_STEP(what, y, as[at], bs[at]);
                ys[at] = y;
            }
        }
        BARRIER();
    }
}

/* The same, a lane for each slice. */
KERNEL9(K(scan_columns), (OUT, STO, ys), (IN, STO, as), (IN, STO, bs), (ARG, i64, outer),
        (ARG, i64, n), (ARG, i64, inner), (ARG, REAL, first), (ARG, i32, what), (ARG, i32, reverse))
{
    BASE(ys);
    BASE(as);
    BASE(bs);
    idx tiles = ((idx)inner + TERN_SCAN_TILE - 1) / TERN_SCAN_TILE;
    ITEMS(g, (idx)outer * tiles)
    {
        ACC y[TERN_SCAN_TILE], low[TERN_SCAN_TILE];
        idx o = g / tiles, left = (g - o * tiles) * TERN_SCAN_TILE, width = (idx)inner - left;
        idx step = reverse != 0 ? -(idx)inner : (idx)inner;
        idx at = o * (idx)n * (idx)inner + (reverse != 0 ? ((idx)n - 1) * (idx)inner : 0) + left;
        width = width < TERN_SCAN_TILE ? width : TERN_SCAN_TILE;
        for (idx j = 0; j < width; j++) {
            y[j] = first;
            low[j] = 0;
        }
        for (idx k = 0; k < (idx)n; k++) {
            if (what == TERN_SCAN_SUM) {
                SIMD for (idx j = 0; j < width; j++)
                {
                    TERN_ADD_TO(y[j], low[j], bs[at + j]);
                    ys[at + j] = y[j] + low[j];
                }
            } else {
                SIMD for (idx j = 0; j < width; j++)
                {
                    y[j] = TERN_STEP(what, y[j], as[at + j], bs[at + j]);
                    ys[at + j] = y[j];
                }
            }
            at += step;
        }
    }
}

/* Where the largest (flip 0) or smallest (flip -1) up to here stands: the last of equals; the last
 * NaN once there was one. */
KERNEL6(K(scan_extremum), (OUT, i64, places), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
        (ARG, i64, inner), (ARG, i32, flip))
{
    BASE(places);
    BASE(xs);
    FLAT(o, outer, inner)
    {
        INNER(o, j)
        {
            idx at = o * (idx)n * (idx)inner + j;
            KEY best = LEAST;
            idx place = 0;
            for (idx k = 0; k < (idx)n; k++) {
                KEY key = FN(tern_order)(xs[at + k * (idx)inner], flip);
                place = key >= best ? k : place;
                best = key >= best ? key : best;
                places[at + k * (idx)inner] = place;
            }
        }
    }
}

/* Products of slices, each cut into parts of len as in reduce.cl. */
KERNEL6(K(prod_rows), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
        (ARG, i64, parts), (ARG, i64, len))
{
    BASE(ys);
    BASE(xs);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(g, outer *parts)
    {
        idx o = g / (idx)parts, first = (g - o * (idx)parts) * (idx)len, at = o * (idx)n + first;
        idx count = (idx)n - first < (idx)len ? (idx)n - first : (idx)len;
        ACC y = 1;
        LANES(j, count)
        {
            y *= xs[at + j];
        }
        y = GROUP_OF(group_product, ACC, y, scratch);
        if (LID == 0)
            ys[g] = y;
    }
}

KERNEL5(K(prod_columns), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
        (ARG, i64, inner))
{
    BASE(ys);
    BASE(xs);
    FLAT(o, outer, inner)
    {
        idx at = o * (idx)n * (idx)inner;
        SIMD INNER(o, j)
        {
            ys[o * (idx)inner + j] = xs[at + j];
        }
        for (idx k = 1; k < (idx)n; k++) {
            at += (idx)inner;
            SIMD INNER(o, j)
            {
                ys[o * (idx)inner + j] *= xs[at + j];
            }
        }
    }
}
#endif

#if IS_FLOAT && !IS_HALF
/* y[k] = high + log(sum of e^(x - high) up to k), high being near the largest so far. */
KERNEL5(K(scan_log_sum), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
        (ARG, i64, inner))
{
    BASE(ys);
    BASE(xs);
    FLAT(o, outer, inner)
    {
        INNER(o, j)
        {
            idx at = o * (idx)n * (idx)inner + j;
            ACC high = MINUS_INF, sum = 0, low = 0;
            for (idx k = 0; k < (idx)n; k++) {
                ACC x = xs[at + k * (idx)inner];
                if (x > high + 16 || high == MINUS_INF) { /* seldom: each time rounds the sum */
                    ACC scale = high == MINUS_INF ? 0 : exp(high - x);
                    sum *= scale;
                    low *= scale;
                    high = x > high ? x : high;
                }
                if (x != x || high - high == 0) { /* one that is NaN makes all after it NaN */
                    ACC e = exp(x - high);
                    TERN_ADD_TO(sum, low, e);
                }
                ys[at + k * (idx)inner] = high - high == 0 ? high + log(sum + low) : sum != sum
                    ? sum : high;
            }
        }
    }
}
#endif
