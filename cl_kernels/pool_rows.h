/* pool_rows.h -- windows of a row side by side in lanes, of TERN_T: OpenCL's compilers for
 * processors make less of these than of the loops in pool.cl, which includes this. */
/* `rows` rows of windows of 2 x 2, `n` in each. The larger of each two neighbours in a row, in one
 * loop over all rows, then that of two rows: the first of equal ones is in the first row, as in a
 * walk over windows. */
POOL_APART void K(max_pool_stride2)(GLOBAL STO *ys, GLOBAL i64 *places, GLOBAL u8 *bytes,
                                const GLOBAL STO *x, i64 first, idx rows, idx n)
{
    REAL pair[POOL_BAND / 2 + POOL_PAST], most[POOL_BAND / 4 + POOL_PAST];
    i32 at[POOL_BAND / 2 + POOL_PAST], best[POOL_BAND / 4 + POOL_PAST];
    SIMD for (i32 i = 0; i < 2 * (i32)(rows * n); ++i)
    {
        REAL a = LD(x, 2 * i), b = LD(x, 2 * i + 1);
        i32 more = b > a || b != b;
        pair[i] = more ? b : a;
        at[i] = more ? 1 : 0;
    }
    for (idx r = 0; r < rows; ++r)
        for (idx b = 0; b < n; b += POOL_PAST) {
            const REAL *upper = pair + 2 * r * n + b, *lower = upper + n;
            const i32 *upper_at = at + 2 * r * n + b, *lower_at = upper_at + n;
            SIMD for (i32 q = 0; q < POOL_PAST; ++q)
            {
                i32 more = lower[q] > upper[q] || lower[q] != lower[q];
                most[r * n + b + q] = more ? lower[q] : upper[q];
                best[r * n + b + q] = more ? 2 + lower_at[q] : upper_at[q];
            }
        }
    SIMD for (idx i = 0; i < rows * n; ++i)
    {
        ST(ys, i, most[i]);
    }
    for (idx r = 0; r < rows && places; ++r)
        for (idx q = 0; q < n; ++q)
        {
            const i32 k = best[r * n + q];
            places[r * n + q] = first + 4 * r * n + 2 * q + (k & 1) + (k > 1 ? 2 * n : 0);
        }
    if (!places)
        SIMD for (idx i = 0; i < rows * n; ++i) bytes[i] = (u8)best[i];
}

/* The windows of a row of y from `from` on, POOL_TILE at most: lanes are windows. A row of x is
 * read once, minus infinity where it ends, so that windows at the edges are as all others; element
 * t goes to row t % stride, so that those of neighbouring windows lie side by side. */
POOL_APART void K(max_pool_tile)(GLOBAL STO *ys, GLOBAL i64 *places, GLOBAL u8 *bytes,
                             const GLOBAL STO *plane, const tern_pool_shape *s, tern_window z,
                             tern_window y, idx from)
{
    REAL row[POOL_STRIDE * POOL_ROW], most[POOL_TILE];
    i32 best[POOL_TILE];
    idx in1 = (idx)s->in[1], in2 = (idx)s->in[2], inside[POOL_STRIDE];
    const idx box1 = pool_box(s, 1), box2 = pool_box(s, 2);
    idx stride = (idx)s->stride[2], step = (idx)s->dilation[2],
        begin = from * stride - (idx)s->padding[2];
    idx n = tern_smaller((idx)s->out[2] - from, POOL_TILE), lanes = (n + 7) / 8 * 8;
    idx reach = lanes + ((idx)s->window[2] - 1) * step / stride + 1;
    for (idx b = 0; b < lanes; b += 8)
        SIMD for (i32 q = 0; q < 8; ++q)
        {
            most[b + q] = MINUS_INF;
            best[b + q] = -1;
        }
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
                const i32 position = (i32)(((iz - z.begin) * box1 + iy - y.begin) * box2 + k);
                SIMD for (i32 q = 0; q < 8; ++q)
                {
                    REAL v = x[b + q];
                    i32 more = v > most[b + q] || v != v;
                    best[b + q] = more ? position : best[b + q];
                    most[b + q] = more ? v : most[b + q];
                }
            }
        }
    }
    for (idx q = 0; q < n; ++q) {
        ST(ys, from + q, most[q]);
        if (s->bytes != 0)
            bytes[from + q] = POOL_BYTE(s, z, y, from + q, best[q]);
        else
            places[from + q] = pool_place(s, z, y, from + q, best[q]);
    }
}
