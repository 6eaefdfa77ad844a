/* loss.cl -- cross entropy of rows of logits against classes, and squared differences. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 4
#if IS_FLOAT

#if TERN_CHUNKS /* devices with work-groups have cross_entropy_unit of fused.cl */
/* For each row x of n classes with target t, weights w (1 without has_weight), smoothing s:
 *   loss = (1 - s) w[t] (lse - x[t]) + s / n sum_c w[c] (lse - x[c]),   lse = log sum e^x
 * lses keeps lse, pulls the factor of softmax in the gradient: (1 - s) w[t] + s / n sum_c w[c];
 * weights gets w[t]. Rows whose target is `ignored` have all of it 0. A target that is no class is
 * the fault `code`. */
KERNEL15(K(cross_entropy), (OUT, ACC, losses), (OUT, ACC, lses), (OUT, ACC, pulls),
         (OUT, ACC, weights), (IN, STO, xs), (IN, i64, targets), (IN, STO, ws), (OUT, i64, fault),
         (ARG, i64, rows), (ARG, i64, n), (ARG, i64, row), (ARG, i64, ignored),
         (ARG, REAL, smoothing), (ARG, i32, has_weight), (ARG, i32, code))
{
    BASE(losses);
    BASE(lses);
    BASE(pulls);
    BASE(weights);
    BASE(xs);
    BASE(targets);
    BASE(ws);
    BASE(fault);
    GROUPS(r, rows)
    {
        idx at = r * (idx)row;
        i64 target = targets[r];
        i32 known = target >= 0 && target < n, counts = known && target != ignored;
        ACC m = MINUS_INF, z = 0, all = (ACC)n, even = 0;
        SIMD_MAX(m) LANES(j, n)
        {
            ACC x = LD(xs, at + j);
            m = m > x ? m : x;
        }
        SIMD_SUM(z) LANES(j, n)
        {
            z += exp_below(LD(xs, at + j) - m);
        }
        z = log(z);
        if (smoothing != 0 && has_weight != 0) {
            all = 0;
            SIMD_SUM2(all, even) LANES(j, n)
            {
                ACC w = LD(ws, j);
                all += w;
                even += w * (z - (LD(xs, at + j) - m));
            }
        } else if (smoothing != 0) {
            SIMD_SUM(even) LANES(j, n)
            {
                even += z - (LD(xs, at + j) - m);
            }
        }
        ACC w = 1, share = smoothing / (ACC)n, loss = 0;
        if (!known && target != ignored)
            FAULT(fault, code, target, n);
        if (counts != 0) {
            w = has_weight != 0 ? LD(ws, (idx)target) : w;
            loss = (1 - smoothing) * w * (z - (LD(xs, at + (idx)target) - m));
            loss = smoothing != 0 ? loss + share * even : loss;
        }
        losses[r] = loss;
        lses[r] = m + z;
        pulls[r] = counts != 0 ? (1 - smoothing) * w + share * all : 0;
        weights[r] = counts != 0 ? w : 0;
    }
}

/* dx = dout (pull softmax(x) - (1 - s) w[t] [c = t] - s / n w[c]). dout is one for each row (each
 * != 0) or one for all, divided by total where mean != 0. */
KERNEL17(K(cross_entropy_gradient), (OUT, STO, dxs), (IN, ACC, douts), (IN, STO, xs),
         (IN, i64, targets), (IN, STO, ws), (IN, ACC, lses), (IN, ACC, pulls), (IN, ACC, totals),
         (ARG, i64, rows), (ARG, i64, n), (ARG, i64, row), (ARG, i64, dx_row), (ARG, i64, ignored),
         (ARG, REAL, smoothing), (ARG, i32, has_weight), (ARG, i32, each), (ARG, i32, mean))
{
    BASE(dxs);
    BASE(douts);
    BASE(xs);
    BASE(targets);
    BASE(ws);
    BASE(lses);
    BASE(pulls);
    BASE(totals);
    GROUPS(r, rows)
    {
        idx at = r * (idx)row, to = r * (idx)dx_row;
        i64 target = targets[r];
        LANES(j, dx_row - n)
        {
            ST(dxs, to + (idx)n + j, 0);
        }
        if (target == ignored || target < 0 || target >= n) {
            LANES(j, n)
            {
                ST(dxs, to + j, 0);
            }
        } else {
            ACC scale = douts[each != 0 ? r : 0], lse = lses[r], share = smoothing / (ACC)n;
            scale = mean != 0 ? scale / totals[0] : scale;
            ACC pull = scale * pulls[r], push = scale * (1 - smoothing);
            const i32 own = LID == (i32)(target % LSIZE); /* the lane that writes there */
            const ACC chosen = own ? LD(xs, at + (idx)target) : 0; /* dxs may be xs */
            ACC w = has_weight != 0 ? LD(ws, (idx)target) : 1, even = scale * share;
            if (smoothing != 0 && has_weight != 0) {
                SIMD LANES(j, n)
                {
                    ST(dxs, to + j, pull * exp_below(LD(xs, at + j) - lse) - even * LD(ws, j));
                }
            } else {
                SIMD LANES(j, n)
                {
                    ST(dxs, to + j, pull * exp_below(LD(xs, at + j) - lse) - even);
                }
            }
            if (own) {
                idx j = (idx)target;
                even = has_weight != 0 ? even * w : even;
                ST(dxs, to + j, pull * exp_below(chosen - lse) - push * w - even);
            }
        }
    }
}
#endif

/* One group: y = sum losses, divided by sum weights where mean != 0, which total keeps. */
KERNEL6(K(loss_total), (OUT, STO, ys), (OUT, ACC, totals), (IN, ACC, losses), (IN, ACC, weights),
        (ARG, i64, n), (ARG, i32, mean))
{
    BASE(ys);
    BASE(totals);
    BASE(losses);
    BASE(weights);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(g, 1)
    {
        ACC s = 0, t = 0;
        RUNS(b, run, n)
        {
            ACC some = 0, more = 0;
            SIMD_SUM2(some, more) LANES(j, run)
            {
                some += losses[b + j];
                more += weights[b + j];
            }
            s += some;
            t += more;
        }
        s = GROUP_SUM(s, scratch);
        t = GROUP_SUM(t, scratch);
        if (LID == 0) {
            totals[0] = t;
            ST(ys, g, mean != 0 ? s / t : s);
        }
    }
}

/* Sums of (x - y)^2 over parts of len; weights gets how many. */
KERNEL7(K(squared_difference), (OUT, ACC, losses), (OUT, ACC, weights), (IN, STO, xs),
        (IN, STO, ys), (ARG, i64, n), (ARG, i64, parts), (ARG, i64, len))
{
    BASE(losses);
    BASE(weights);
    BASE(xs);
    BASE(ys);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(g, parts)
    {
        idx at = g * (idx)len, count = (idx)n - at < (idx)len ? (idx)n - at : (idx)len;
        ACC s = 0;
        RUNS(b, run, count)
        {
            ACC some = 0;
            SIMD_SUM(some) LANES(j, run)
            {
                ACC d = (ACC)LD(xs, at + b + j) - LD(ys, at + b + j);
                some += d * d;
            }
            s += some;
        }
        s = GROUP_SUM(s, scratch);
        if (LID == 0) {
            losses[g] = s;
            weights[g] = (ACC)count;
        }
    }
}

/* Few elements, in one group: y = (sum of (x - z)^2) / divisor, and where has_dx != 0 also
 * dx = factor (x - z) for the way back. */
KERNEL8(K(squared_error), (OUT, STO, ys), (OUT, STO, dxs), (IN, STO, xs), (IN, STO, zs),
        (ARG, i64, n), (ARG, REAL, divisor), (ARG, REAL, factor), (ARG, i32, has_dx))
{
    BASE(ys);
    BASE(dxs);
    BASE(xs);
    BASE(zs);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    GROUPS(g, 1)
    {
        ACC s = 0;
        SIMD_SUM(s) LANES(j, n)
        {
            ACC d = (ACC)LD(xs, j) - LD(zs, j);
            s += d * d;
        }
        s = GROUP_SUM(s, scratch);
        if (LID == 0)
            ST(ys, g, s / divisor);
        if (has_dx != 0) {
            SIMD LANES(j, n)
            {
                ST(dxs, j, factor * (LD(xs, j) - LD(zs, j)));
            }
        }
    }
}

/* dx = factor dout (x - y) */
KERNEL6(K(difference_scaled), (OUT, STO, dxs), (IN, STO, douts), (IN, STO, xs), (IN, STO, ys),
        (ARG, i64, n), (ARG, REAL, factor))
{
    BASE(dxs);
    BASE(douts);
    BASE(xs);
    BASE(ys);
    ACC scale = factor * LD(douts, 0);
    SIMD ITEMS(i, n)
    {
        ST(dxs, i, scale * (LD(xs, i) - LD(ys, i)));
    }
}
#endif

#if IS_FLOAT
/* 0 <= x <= 1; NaN is let through, as by PyTorch. */
KERNEL4(K(unit_interval), (IN, STO, xs), (OUT, i64, fault), (ARG, i64, n), (ARG, i32, code))
{
    BASE(xs);
    BASE(fault);
    ITEMS(i, n)
    {
        REAL x = LD(xs, i);
        if (x < 0 || x > 1)
            FAULT(fault, code, i, n);
    }
}
#endif
