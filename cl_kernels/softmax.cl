/* softmax.cl -- softmax and log softmax: a team for each dense row of n elements. Collectives stand outside
 * of branches: some compilers lose their way otherwise. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 4
#if IS_FLOAT

#if TERN_HOST && IS_HALF
/* Powers of a row this short are kept in the cache as they are computed: half precision is read and written
 * once. */
#define SOFTMAX_KEPT 2048
INLINE void K(softmax_short)(GLOBAL STO *ys, const GLOBAL STO *xs, idx n)
{
    ACC kept[SOFTMAX_KEPT], m = MINUS_INF, z = 0;
    SIMD_MAX(m) LANES(j, n)
    {
        ACC x = LD(xs, j);
        kept[j] = x;
        m = m > x ? m : x;
    }
    SIMD_SUM(z) LANES(j, n)
    {
        ACC e = exp_below(kept[j] - m);
        kept[j] = e;
        z += e;
    }
    z = 1 / z;
    SIMD LANES(j, n)
    {
        ST(ys, j, kept[j] * z);
    }
}
#endif

/* y = e^(x - max) / sum, or (log_ != 0) x - max - log sum. An empty or all -inf row gives NaN. */
KERNEL5(K(softmax), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, rows), (ARG, i64, n), (ARG, i32, log_))
{
    BASE(ys);
    BASE(xs);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    TEAMS(r, rows, n)
    {
        idx at = r * (idx)n;
        ACC m = MINUS_INF, z = 0;
#if TERN_HOST && IS_HALF
        if (log_ == 0 && n <= SOFTMAX_KEPT) {
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
    }
}

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
    }
}
#endif
