/* scan.cl -- running results, and products, along the middle of (outer, n, inner): element k of a
 * stretch is `inner` after the one before it. The types that sums are kept in: f32, f64, i64; the host
 * brings the others to them. */
#include "order.h"
#ifndef TERN_SCAN_ONCE
#define TERN_SCAN_ONCE
#define KEPT_f32  1
#define KEPT_f64  1
#define KEPT_f16  0
#define KEPT_bf16 0
#define KEPT_i32  0
#define KEPT_i64  1
#define KEPT_u8   0
#define KEPT_bool 0
/* y after a step: what says which of a and b there are. */
enum { TERN_SCAN_SUM = 1, TERN_SCAN_PRODUCT = 2, TERN_SCAN_BOTH = 3 };
#define TERN_STEP(what, y, a, b)                                                                   \
    ((what) == TERN_SCAN_SUM       ? (y) + (b)                                                     \
     : (what) == TERN_SCAN_PRODUCT ? (y) * (a)                                                     \
                                   : (y) * (a) + (b))
TERN_COLLECTIVE_(group_product, f32, a *b)
#if TERN_F64
TERN_COLLECTIVE_(group_product, f64, a *b)
#endif
TERN_COLLECTIVE_(group_product, i64, a *b)
#endif

#if TERN_CAT(KEPT, TERN_T)
/* y[k] = a[k] y[k - 1] + b[k], y before the first being `first`; reverse: from the last to the first.
 * inner = 1, a group for each stretch: every lane takes a run of it, first to find what the run makes
 * of any y before it (y A + B), then with the y that the lanes before it make. */
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
        ACC factor = 1, term = 0, y = first;
        to = to < (idx)n ? to : (idx)n;
        if (LSIZE > 1) {
            for (idx k = from; k < to; k++) {
                ACC a = what == TERN_SCAN_SUM ? 1 : as[start + k * step];
                term = what == TERN_SCAN_PRODUCT ? 0 : term * a + bs[start + k * step];
                factor *= a;
            }
        }
        factors[LID] = factor;
        terms[LID] = term;
        BARRIER();
        for (i32 lane = 0; lane < LID; lane++)
            y = TERN_STEP(what, y, factors[lane], terms[lane]);
        BARRIER();
        for (idx k = from; k < to; k++) {
            idx at = start + k * step;
            y = TERN_STEP(what, y, as[at], bs[at]);
            ys[at] = y;
        }
    }
}

/* The same, a lane for each stretch. */
KERNEL9(K(scan_columns), (OUT, STO, ys), (IN, STO, as), (IN, STO, bs), (ARG, i64, outer), (ARG, i64, n),
        (ARG, i64, inner), (ARG, REAL, first), (ARG, i32, what), (ARG, i32, reverse))
{
    BASE(ys);
    BASE(as);
    BASE(bs);
    FLAT(o, outer, inner)
    {
        idx step = reverse != 0 ? -(idx)inner : (idx)inner;
        idx at = o * (idx)n * (idx)inner + (reverse != 0 ? ((idx)n - 1) * (idx)inner : 0);
        SIMD INNER(o, j)
        {
            ys[at + j] = TERN_STEP(what, first, as[at + j], bs[at + j]);
        }
        for (idx k = 1; k < (idx)n; k++) {
            at += step;
            SIMD INNER(o, j)
            {
                ys[at + j] = TERN_STEP(what, ys[at - step + j], as[at + j], bs[at + j]);
            }
        }
    }
}

/* Where the largest (flip 0) or smallest (flip -1) up to here stands: the last of equals; the last NaN
 * once there was one. */
KERNEL6(K(scan_peak), (OUT, i64, places), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
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

/* Products of stretches, each cut into parts of len as in reduce.cl. */
KERNEL6(K(product_rows), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
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

KERNEL5(K(product_columns), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
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

#if TERN_CAT(KEPT, TERN_T) && IS_FLOAT
/* y[k] = log(e^y[k - 1] + e^x[k]) */
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
            ACC y = MINUS_INF;
            for (idx k = 0; k < (idx)n; k++) {
                ACC x = xs[at + k * (idx)inner], high = x > y ? x : y, low = x > y ? y : x;
                ACC sum = high - high == 0 ? high + FN(tern_log1p)(exp(low - high)) : high;
                y = x != x || y != y ? x + y : sum;
                ys[at + k * (idx)inner] = y;
            }
        }
    }
}
#endif
