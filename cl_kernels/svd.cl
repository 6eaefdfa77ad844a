/* svd.cl -- singular values by one-sided Jacobi rotations (Hestenes), a matrix of a stack at a
 * time: qs (batch, c, l) with k rows of length l, k <= l, that come in, c = k or l; ps (batch, k,
 * k), ss (batch, k). In the end rows = ps^T diag(ss) qs. Without vectors, where c is 0, only ss is
 * right. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#if IS_FLOAT && !IS_HALF

#if IS_WIDE
#define SVD_ROUNDING C(2.220446049250313e-16)
#else
#define SVD_ROUNDING C(1.1920929e-7)
#endif
#define ROWS_OF_MATRIX_ (c > 0 ? (idx)c : (idx)k)

/* The rotation that makes two rows orthogonal:
 *   z = (|y|^2 - |x|^2) / (2 xy),  tan = sign z / (|z| + sqrt(1 + z^2)). */
INLINE REAL K(svd_tangent)(REAL xx, REAL yy, REAL xy)
{
    REAL z = (yy - xx) / (2 * xy), w = z < 0 ? -z : z;
    REAL t = w > C(1e9) ? C(0.5) / w : 1 / (w + sqrt(1 + w * w));
    return z < 0 ? -t : t;
}

/* Rows of qs and ps are rotated in pairs until all rows of qs are orthogonal but for rounding; an
 * element stays with its lane. With slope = tan(angle / 2) a small angle adds a small correction,
 * whose rounding does not change lengths. Rows are brought to a largest element of 1 first. NaN is
 * a fault; an infinity makes ss NaN. */
KERNEL9(K(svd_rotate), (OUT, STO, qs), (OUT, STO, ps), (OUT, STO, ss), (OUT, i64, fault),
        (ARG, i64, batch), (ARG, i64, k), (ARG, i64, l), (ARG, i64, c), (ARG, i32, code))
{
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    BASE(qs);
    BASE(ps);
    BASE(ss);
    BASE(fault);
    GROUPS(g, batch)
    {
        idx q0 = g * ROWS_OF_MATRIX_ * (idx)l, p0 = g * (idx)(k * k);
        idx rotations = c > 0 ? (idx)k : 0;
        REAL most = 0, bad = 0, nans = 0, tolerance = SVD_ROUNDING * sqrt((REAL)l);
        LANES(j, k *l)
        {
            REAL v = qs[q0 + j] < 0 ? -qs[q0 + j] : qs[q0 + j];
            most = v > most ? v : most;
            bad += v - v;
            nans += v != v;
        }
        most = GROUP_MAX(most, scratch);
        bad = GROUP_SUM(bad, scratch);
        nans = GROUP_SUM(nans, scratch);
        if (nans > 0 && LID == 0)
            FAULT(fault, code, k, g);
        most = most > C(1e-37) ? most : 1;
        LANES(j, l)
        {
            for (idx i = 0; i < (idx)k; i++)
                qs[q0 + i * (idx)l + j] /= most;
        }
        LANES(j, rotations)
        {
            for (idx i = 0; i < (idx)k; i++)
                ps[p0 + i * (idx)k + j] = i == j;
        }
        i32 rotated = 1;
        for (i32 sweep = 0; sweep < 60 && rotated != 0; sweep++) {
            rotated = 0;
            for (idx p = 0; p < (idx)k; p++)
                for (idx q = p + 1; q < (idx)k; q++) {
                    idx x0 = q0 + p * (idx)l, y0 = q0 + q * (idx)l;
                    REAL xx = 0, yy = 0, xy = 0;
                    SIMD_SUM2(xx, yy) LANES(j, l)
                    {
                        xx += qs[x0 + j] * qs[x0 + j];
                        yy += qs[y0 + j] * qs[y0 + j];
                    }
                    SIMD_SUM(xy) LANES(j, l)
                    {
                        xy += qs[x0 + j] * qs[y0 + j];
                    }
                    xx = GROUP_SUM(xx, scratch);
                    yy = GROUP_SUM(yy, scratch);
                    xy = GROUP_SUM(xy, scratch);
                    if ((xy < 0 ? -xy : xy) > tolerance * sqrt(xx) * sqrt(yy)) {
                        REAL t = K(svd_tangent)(xx, yy, xy), cosine = 1 / sqrt(1 + t * t);
                        REAL sine = cosine * t, slope = sine / (1 + cosine);
                        rotated = 1;
                        SIMD LANES(j, l)
                        {
                            REAL x = qs[x0 + j], y = qs[y0 + j];
                            qs[x0 + j] = x - sine * (y + slope * x);
                            qs[y0 + j] = y + sine * (x - slope * y);
                        }
                        SIMD LANES(j, rotations)
                        {
                            REAL x = ps[p0 + p * (idx)k + j], y = ps[p0 + q * (idx)k + j];
                            ps[p0 + p * (idx)k + j] = x - sine * (y + slope * x);
                            ps[p0 + q * (idx)k + j] = y + sine * (x - slope * y);
                        }
                    }
                }
        }
        for (idx i = 0; i < (idx)k; i++) {
            REAL xx = 0;
            SIMD_SUM(xx) LANES(j, l)
            {
                xx += qs[q0 + i * (idx)l + j] * qs[q0 + i * (idx)l + j];
            }
            xx = GROUP_SUM(xx, scratch);
            if (LID == 0)
                ss[g * (idx)k + i] = bad == bad ? sqrt(xx) * most : bad;
        }
        BARRIER();
    }
}

/* ss from the largest to the smallest, the rows of qs and ps with them. */
KERNEL7(K(svd_sort), (OUT, STO, qs), (OUT, STO, ps), (OUT, STO, ss), (ARG, i64, batch),
        (ARG, i64, k), (ARG, i64, l), (ARG, i64, c))
{
    BASE(qs);
    BASE(ps);
    BASE(ss);
    GROUPS(g, batch)
    {
        idx q0 = g * ROWS_OF_MATRIX_ * (idx)l, p0 = g * (idx)(k * k), s0 = g * (idx)k;
        for (idx i = 0; i < (idx)k; i++) {
            idx best = i;
            for (idx r = i + 1; r < (idx)k; r++)
                best = ss[s0 + r] > ss[s0 + best] ? r : best;
            REAL value = ss[s0 + best], other = ss[s0 + i];
            BARRIER();
            if (LID == 0) {
                ss[s0 + best] = other;
                ss[s0 + i] = value;
            }
            LANES(j, c > 0 && best != i ? l : 0)
            {
                REAL x = qs[q0 + i * (idx)l + j];
                qs[q0 + i * (idx)l + j] = qs[q0 + best * (idx)l + j];
                qs[q0 + best * (idx)l + j] = x;
            }
            LANES(j, c > 0 && best != i ? k : 0)
            {
                REAL x = ps[p0 + i * (idx)k + j];
                ps[p0 + i * (idx)k + j] = ps[p0 + best * (idx)k + j];
                ps[p0 + best * (idx)k + j] = x;
            }
            BARRIER();
        }
    }
}

/* The c rows of qs become directions. One that has no length but rounding, or is not there, is the
 * unit vector that is farthest from all rows before it, less what it has of them, twice. */
KERNEL6(K(svd_complete), (OUT, STO, qs), (IN, STO, ss), (ARG, i64, batch), (ARG, i64, k),
        (ARG, i64, l), (ARG, i64, c))
{
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    BASE(qs);
    BASE(ss);
    GROUPS(g, batch)
    {
        idx q0 = g * (idx)(c * l), s0 = g * (idx)k;
        REAL least = ss[s0] * SVD_ROUNDING * (REAL)l;
        for (idx i = 0; i < (idx)c; i++) {
            idx x0 = q0 + i * (idx)l;
            REAL value = i < (idx)k ? ss[s0 + i] : 0, own = 0, far = 0, at = 0;
            idx fresh = value > least ? 0 : (idx)l; /* no barrier stands under a condition */
            LANES(j, fresh)
            {
                REAL rest = 1;
                for (idx r = 0; r < i; r++)
                    rest -= qs[q0 + r * (idx)l + j] * qs[q0 + r * (idx)l + j];
                qs[x0 + j] = rest;
                far = rest > far ? rest : far;
            }
            far = GROUP_MAX(far, scratch);
            LANES(j, fresh)
            {
                REAL place = qs[x0 + j] == far ? (REAL)((idx)l - j) : 0;
                at = place > at ? place : at;
            }
            at = GROUP_MAX(at, scratch);
            LANES(j, fresh)
            {
                qs[x0 + j] = (REAL)((idx)l - j) == at;
            }
            for (idx r = 0; r < 2 * i; r++) {
                REAL dot = 0;
                idx y0 = q0 + (r < i ? r : r - i) * (idx)l;
                SIMD_SUM(dot) LANES(j, fresh)
                {
                    dot += qs[y0 + j] * qs[x0 + j];
                }
                dot = GROUP_SUM(dot, scratch);
                SIMD LANES(j, fresh)
                {
                    qs[x0 + j] -= dot * qs[y0 + j];
                }
            }
            SIMD_SUM(own) LANES(j, l)
            {
                own += qs[x0 + j] * qs[x0 + j];
            }
            own = sqrt(GROUP_SUM(own, scratch));
            SIMD LANES(j, l)
            {
                qs[x0 + j] /= own;
            }
        }
    }
}
#undef ROWS_OF_MATRIX_
#undef SVD_ROUNDING
#endif
