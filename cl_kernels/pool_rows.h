/* pool_rows.h -- windows of a row side by side in lanes, of TERN_T: OpenCL's compilers for
 * processors make less of these than of the loops in pool.cl, which includes this. */
/* `rows` rows of windows of 2 x 2, `n` in each. The larger of each two neighbours in a row, in one
 * loop over all rows, then that of two rows: the first of equal ones is in the first row, as in a
 * walk over windows. */
INLINE void K(max_pool_stride2)(GLOBAL STO *ys, GLOBAL i64 *places, const GLOBAL STO *x, i64 first,
                                idx rows, idx n)
{
    REAL pair[POOL_BAND / 2 + POOL_PAST], most[POOL_BAND / 4 + POOL_PAST];
    i32 at[POOL_BAND / 2 + POOL_PAST], best[POOL_BAND / 4 + POOL_PAST];
    SIMD for (i32 i = 0; i < 2 * (i32)(rows * n); ++i)
    {
        REAL a = LD(x, 2 * i), b = LD(x, 2 * i + 1);
        i32 more = b > a || b != b;
        pair[i] = more ? b : a;
        at[i] = 2 * i + (more ? 1 : 0);
    }
    for (idx r = 0; r < rows; ++r)
        for (idx b = 0; b < n; b += POOL_PAST) {
            const REAL *upper = pair + 2 * r * n + b, *lower = upper + n;
            const i32 *upper_at = at + 2 * r * n + b, *lower_at = upper_at + n;
            SIMD for (i32 q = 0; q < POOL_PAST; ++q)
            {
                i32 more = lower[q] > upper[q] || lower[q] != lower[q];
                most[r * n + b + q] = more ? lower[q] : upper[q];
                best[r * n + b + q] = more ? lower_at[q] : upper_at[q];
            }
        }
    SIMD for (idx i = 0; i < rows * n; ++i)
    {
        ST(ys, i, most[i]);
        places[i] = first + best[i];
    }
}

/* The windows of a row of y from `from` on, POOL_TILE at most: lanes are windows. A row of x is
 * read once, minus infinity where it ends, so that windows at the edges are as all others; element
 * t goes to row t % stride, so that those of neighbouring windows lie side by side. */
INLINE void K(max_pool_tile)(GLOBAL STO *ys, GLOBAL i64 *places, const GLOBAL STO *plane,
                             const tern_pool_shape *s, tern_profile_range z, tern_profile_range y,
                                 idx from)
{
    REAL row[POOL_STRIDE * POOL_ROW], most[POOL_TILE];
    i32 best[POOL_TILE];
    idx in1 = (idx)s->in[1], in2 = (idx)s->in[2], each = PLACE_STEP(*s), line = PLACE_ROW(*s);
    idx ins = (idx)s->in[0] * in1 * line, inside[POOL_STRIDE];
    idx stride = (idx)s->stride[2], step = (idx)s->dilation[2],
        begin = from * stride - (idx)s->padding[2];
    idx n = tern_smaller((idx)s->out[2] - from, POOL_TILE), lanes = (n + 7) / 8 * 8;
    idx reach = lanes + ((idx)s->window[2] - 1) * step / stride + 1;
    i32 apart = (i32)(stride * each), corner = (i32)((z.first * in1 + y.first) * line +
        begin * each);
    for (idx b = 0; b < lanes; b += 8)
        SIMD for (i32 q = 0; q < 8; ++q)
        {
            most[b + q] = MINUS_INF;
            best[b + q] = corner + (i32)(b + q) * apart;
        }
    for (idx q = 0; q < lanes && begin + q * stride < 0; ++q) /* the first one inside */
        best[q] += (i32)((step - 1 - begin - q * stride) / step * step);
    for (idx k = 0; k < stride; ++k) {
        idx left = in2 - begin - k;
        inside[k] = left <= 0 ? 0 : tern_smaller((left + stride - 1) / stride, POOL_ROW);
        for (idx b = 0; b < reach; b += 8)
            SIMD for (i32 t = 0; t < 8; ++t) row[k * POOL_ROW + b + t] = MINUS_INF;
    }
    EACH(iz, z) EACH(iy, y)
    {
        idx at = (iz * in1 + iy) * in2 + begin;
        for (idx k = 0; k < stride; ++k) {
            REAL *to = row + k * POOL_ROW;
            idx first = begin + k < 0 ? (stride - 1 - begin - k) / stride : 0;
            if (stride == 1)
                SIMD for (idx t = first; t < inside[k]; ++t) to[t] = LD(plane, at + t);
            else if (stride == 2)
                SIMD for (idx t = first; t < inside[k]; ++t) to[t] = LD(plane, at + 2 * t + k);
            else
                for (idx t = first; t < inside[k]; ++t)
                    to[t] = LD(plane, at + t * stride + k);
        }
        for (idx k = 0; k < (idx)s->window[2] * step; k += step) {
            const REAL *x = row + k % stride * POOL_ROW + k / stride;
            for (idx b = 0; b < lanes; b += 8) {
                i32 place = (i32)((iz * in1 + iy) * line + (begin + b * stride + k) * each);
                SIMD for (i32 q = 0; q < 8; ++q)
                {
                    REAL v = x[b + q];
                    i32 more = v > most[b + q] || v != v;
                    best[b + q] = more ? place + q * apart : best[b + q];
                    most[b + q] = more ? v : most[b + q];
                }
            }
        }
    }
    for (idx q = 0; q < n; ++q) {
        ST(ys, from + q, most[q]);
        places[from + q] = best[q] < ins ? (i64)best[q] : (i64)(ins - 1);
    }
}
