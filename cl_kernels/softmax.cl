/* softmax.cl -- softmax and log softmax: a team for each dense row of n elements. Collectives stand
 * outside of branches: some compilers lose their way otherwise. */
#undef TERN_BLOCKS
#if IS_HALF
#define TERN_BLOCKS 4
#elif TERN_IDX32
#define TERN_BLOCKS 3
#else /* indices of 64 bits take registers too */
#define TERN_BLOCKS 2
#endif
#if IS_FLOAT
#include "float4.h"

#if TERN_HOST && !IS_WIDE
/* A row this short is kept in the cache, filled up to whole registers: no power is computed by
 * itself, and half precision is read and written once. Lanes are put together by halves. */
#undef SOFTMAX_KEPT
#if IS_HALF
#define SOFTMAX_KEPT 2048
#else
#define SOFTMAX_KEPT 256
#endif
#define SOFTMAX_LANES 16
#define SOFTMAX_EACH(n) SIMD for (i32 q = 0; q < (n); q++)
#define SOFTMAX_LARGER(n) SOFTMAX_EACH(n) most[q] = most[q] > most[q + (n)] ? most[q]              \
    : most[q + (n)];
#define SOFTMAX_ADD(n)    SOFTMAX_EACH(n) sum[q] += sum[q + (n)];
INLINE void K(softmax_short)(GLOBAL STO *ys, const GLOBAL STO *xs, idx n)
{
    ACC kept[SOFTMAX_KEPT], most[SOFTMAX_LANES], sum[SOFTMAX_LANES];
    const idx end = (n + SOFTMAX_LANES - 1) / SOFTMAX_LANES * SOFTMAX_LANES;
    SIMD LANES(j, n)
    {
        kept[j] = LD(xs, j);
    }
    for (idx j = n; j < end; j++)
        kept[j] = MINUS_INF;
    SOFTMAX_EACH(SOFTMAX_LANES)
    {
        most[q] = kept[q];
        sum[q] = 0;
    }
    for (idx j = SOFTMAX_LANES; j < end; j += SOFTMAX_LANES)
        SOFTMAX_EACH(SOFTMAX_LANES) most[q] = most[q] > kept[j + q] ? most[q] : kept[j + q];
    SOFTMAX_LARGER(8) SOFTMAX_LARGER(4) SOFTMAX_LARGER(2) SOFTMAX_LARGER(1)
    for (idx j = 0; j < end; j += SOFTMAX_LANES)
        SOFTMAX_EACH(SOFTMAX_LANES)
        {
            ACC e = exp_below(kept[j + q] - most[0]);
            kept[j + q] = e;
            sum[q] += e;
        }
    SOFTMAX_ADD(8) SOFTMAX_ADD(4) SOFTMAX_ADD(2) SOFTMAX_ADD(1)
    const ACC one = 1 / sum[0];
    SIMD LANES(j, n)
    {
        ST(ys, j, kept[j] * one);
    }
}
#endif

/* y = e^(x - max) / sum, or (log_ != 0) x - max - log sum. An empty or all -inf row gives NaN. */
KERNEL5(K(softmax), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, rows), (ARG, i64, n),
        (ARG, i32, log_))
{
    BASE(ys);
    BASE(xs);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    TEAMS(r, rows, n)
    {
        idx at = r * (idx)n;
        ACC m = MINUS_INF, z = 0;
#if BY_FOURS
#undef SOFTMAX_IN
#undef SOFTMAX_KEPT_
#undef SOFTMAX_KEEP
#define SOFTMAX_IN(X) X(x, TERN_T, xs + at)
        ROW_VECTORS(xs + at, n, ROW_PAST(xs) == ROW_PAST(ys))
        SOFTMAX_IN(ROW_KEEP_)
#if TERN_SHORT_ROWS /* e^x stays at hand */
#define SOFTMAX_KEPT_   kept[u][e]
#define SOFTMAX_KEEP    kept[u][e] = v;
        f32 kept[ROW_MOST][ROW_WIDTH];
        const i32 is_kept = log_ == 0;
#elif IS_HALF
#define SOFTMAX_KEPT_   x
#define SOFTMAX_KEEP
        const i32 is_kept = 0;
#else
#define SOFTMAX_KEPT_   x
#define SOFTMAX_KEEP    if (is_kept) x_k[u].v[e] = v;
        const i32 is_kept = log_ == 0 && !again;
#endif
        ROW_POWERS(SOFTMAX_IN, m, z, SOFTMAX_KEEP)
        const ACC share = 1 / z, own = ROW_SHRINK(kept_base) * share;
        z = m + ROW_LOG(z, m);
        ROW_CHUNKS(0, SOFTMAX_IN,
                   if (log_ != 0) { ROW_UNITS(SOFTMAX_IN, f32 y_v[ROW_WIDTH];, y_v[e] = x - z;,
                       ROW_STORE(TERN_T, ys + at + head, q, y_v);) }
                   else if (is_kept) { ROW_UNITS(SOFTMAX_IN, f32 y_v[ROW_WIDTH];,
                       y_v[e] = SOFTMAX_KEPT_ * own;, ROW_STORE(TERN_T, ys + at + head, q, y_v);) }
                   else { ROW_UNITS(SOFTMAX_IN, f32 y_v[ROW_WIDTH];,
                       y_v[e] = ROW_POWER(x) * share;,
                       ROW_STORE(TERN_T, ys + at + head, q, y_v);) })
        ROW_LEFT(SOFTMAX_IN, ST(ys, at + j, log_ != 0 ? x - z : ROW_POWER(x) * share);)
#else
#if TERN_HOST && !IS_WIDE
        if (log_ == 0 && n > 0 && n <= SOFTMAX_KEPT) {
            K(softmax_short)(ys + at, xs + at, (idx)n);
            continue;
        }
#endif
        SIMD_MAX(m) TEAM_LANES(j, n)
        {
            ACC x = LD(xs, at + j);
            m = m > x ? m : x;
        }
        m = TEAM_MAX(m, scratch);
        if (log_ == 0 && !IS_HALF) { /* e^x is kept in y, which is wide enough */
            RUNS(b, run, n)
            {
                ACC some = 0;
                SIMD_SUM(some) TEAM_LANES(j, run)
                {
                    ACC e = exp_below(LD(xs, at + b + j) - m);
                    ST(ys, at + b + j, e);
                    some += e;
                }
                z += some;
            }
        } else {
            RUNS(b, run, n)
            {
                ACC some = 0;
                SIMD_SUM(some) TEAM_LANES(j, run)
                {
                    some += exp_below(LD(xs, at + b + j) - m);
                }
                z += some;
            }
        }
        z = TEAM_SUM(z, scratch);
        if (log_ != 0) {
            z = log(z);
            SIMD TEAM_LANES(j, n)
            {
                ST(ys, at + j, LD(xs, at + j) - m - z);
            }
        } else if (IS_HALF) {
            z = 1 / z;
            SIMD TEAM_LANES(j, n)
            {
                ST(ys, at + j, exp_below(LD(xs, at + j) - m) * z);
            }
        } else {
            z = 1 / z;
            SIMD TEAM_LANES(j, n)
            {
                ST(ys, at + j, LD(ys, at + j) * z);
            }
        }
#endif
    }
}

#undef TERN_BLOCKS
#if IS_HALF || TERN_ROW_LANES
#define TERN_BLOCKS 3
#else
#define TERN_BLOCKS 2
#endif
/* dx = y (dy - sum dy y), or dy - e^y sum dy */
KERNEL6(K(softmax_gradient), (OUT, STO, dxs), (IN, STO, ys), (IN, STO, dys), (ARG, i64, rows),
        (ARG, i64, n), (ARG, i32, log_))
{
    BASE(dxs);
    BASE(ys);
    BASE(dys);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    TEAMS(r, rows, n)
    {
        idx at = r * (idx)n;
        ACC s = 0;
#if BY_FOURS
#undef SOFTMAX_IN
#define SOFTMAX_IN(X) X(y, TERN_T, ys + at) X(dy, TERN_T, dys + at)
        ROW_VECTORS(ys + at, n, ROW_PAST(ys) == ROW_PAST(dys) && ROW_PAST(ys) == ROW_PAST(dxs))
        SOFTMAX_IN(ROW_KEEP_)
        ROW_SUM(1, SOFTMAX_IN, s, log_ != 0 ? dy : dy * y)
        s = TEAM_SUM(s, scratch);
        ROW_EACH(0, SOFTMAX_IN, f32 v[ROW_WIDTH];, v[e] = log_ != 0 ? dy - exp(y) * s
                 : y * (dy - s);, ROW_STORE(TERN_T, dxs + at + head, q, v);,
                 ST(dxs, at + j, v[0]);)
#else
        if (log_ != 0) {
            RUNS(b, run, n)
            {
                ACC some = 0;
                SIMD_SUM(some) TEAM_LANES(j, run)
                {
                    some += LD(dys, at + b + j);
                }
                s += some;
            }
        } else {
            RUNS(b, run, n)
            {
                ACC some = 0;
                SIMD_SUM(some) TEAM_LANES(j, run)
                {
                    some += LD(dys, at + b + j) * LD(ys, at + b + j);
                }
                s += some;
            }
        }
        s = TEAM_SUM(s, scratch);
        if (log_ != 0) {
            SIMD TEAM_LANES(j, n)
            {
                ST(dxs, at + j, LD(dys, at + j) - exp(LD(ys, at + j)) * s);
            }
        } else {
            SIMD TEAM_LANES(j, n)
            {
                ST(dxs, at + j, LD(ys, at + j) * (LD(dys, at + j) - s));
            }
        }
#endif
    }
}
#endif
