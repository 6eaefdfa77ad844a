/* resize.cl -- one dim of images resampled by a table of weights; images of bytes, too, on their way to a model.
 *
 * Where a thread does a chunk of the work, it adds up a line of elements side by side, or along the last dim the
 * same element of several rows. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 1
#if IS_FLOAT || IN_SET(UNSIGNED, TERN_T)

/* Weights of bytes are in units of 2^-bits; their sum is rounded, and within 0..255. */
#undef RESIZE_HALF
#undef RESIZED
#if IS_FLOAT
#define RESIZE_HALF       0
#define RESIZED(sum, bits) (sum)
#else
#define RESIZE_HALF       (1 << bits >> 1)
#define RESIZED(sum, bits) ((sum) > 0 ? (sum) >> (bits) < 255 ? (sum) >> (bits) : 255 : 0)
#endif

/* Elements of a row, and rows, that a thread of many adds up side by side. */
#ifndef RESIZE_LINE
#define RESIZE_LINE 64
#define RESIZE_ROWS 4
#endif

#if TERN_CHUNKS
/* n elements of y, each the sum of `count` elements of x that lie inner apart. */
INLINE void K(resize_line)(GLOBAL STO *y, const GLOBAL STO *x, const GLOBAL REAL *w, idx count,
                           idx inner, idx n, i32 bits)
{
    REAL sum[RESIZE_LINE];
    (void)bits;
    for (idx j = 0; j < n; ++j)
        sum[j] = RESIZE_HALF;
    for (idx k = 0; k < count; ++k) {
        REAL v = w[k];
        SIMD for (idx j = 0; j < n; ++j) sum[j] += v * LD(x, k * inner + j);
    }
    SIMD for (idx j = 0; j < n; ++j) ST(y, j, RESIZED(sum[j], bits));
}

/* The same element of four rows of x that are in apart, in y out apart: a weight is loaded once. */
INLINE void K(resize_rows)(GLOBAL STO *y, const GLOBAL STO *x, const GLOBAL REAL *w, idx count,
                           idx in, idx out, i32 bits)
{
    REAL a = RESIZE_HALF, b = a, c = a, d = a;
    (void)bits;
    for (idx k = 0; k < count; ++k) {
        REAL v = w[k];
        a += v * LD(x, k);
        b += v * LD(x, in + k);
        c += v * LD(x, 2 * in + k);
        d += v * LD(x, 3 * in + k);
    }
    ST(y, 0, RESIZED(a, bits));
    ST(y, out, RESIZED(b, bits));
    ST(y, 2 * out, RESIZED(c, bits));
    ST(y, 3 * out, RESIZED(d, bits));
}
#endif

/* x (rows, in, inner) -> y (rows, out, inner): y[r, q, j] = the sum of weights[q, k] x[r, first + k, j]; range[q]
 * is first, and how many there are. */
KERNEL10(K(resize), (OUT, STO, ys), (IN, STO, xs), (IN, i64, range), (IN, REAL, weights), (ARG, i64, rows),
         (ARG, i64, in), (ARG, i64, out), (ARG, i64, inner), (ARG, i64, width), (ARG, i32, bits))
{
    BASE(ys);
    BASE(xs);
    BASE(range);
    BASE(weights);
#if TERN_CHUNKS
    idx ins = (idx)in, outs = (idx)out, wide = (idx)inner;
    if (wide == 1)
        GROUPS(b, ((idx)rows + RESIZE_ROWS - 1) / RESIZE_ROWS)
        {
            idx r = b * RESIZE_ROWS, end = r + RESIZE_ROWS;
            for (idx q = 0; q < outs; ++q) {
                const GLOBAL REAL *w = weights + q * (idx)width;
                idx first = (idx)range[2 * q], count = (idx)range[2 * q + 1];
                if (end <= (idx)rows)
                    K(resize_rows)(ys + r * outs + q, xs + r * ins + first, w, count, ins, outs, bits);
                else
                    for (idx i = r; i < (idx)rows; ++i)
                        K(resize_line)(ys + i * outs + q, xs + i * ins + first, w, count, 1, 1, bits);
            }
        }
    else
        GROUPS(r, (idx)rows * outs)
        {
            idx q = r % outs, count = (idx)range[2 * q + 1];
            const GLOBAL STO *from = xs + (r / outs * ins + (idx)range[2 * q]) * wide;
            for (idx j = 0; j < wide; j += RESIZE_LINE)
                K(resize_line)(ys + r * wide + j, from + j, weights + q * (idx)width, count, wide,
                               wide - j < RESIZE_LINE ? wide - j : RESIZE_LINE, bits);
        }
#else
    FLAT(r, (idx)rows * (idx)out, (idx)inner)
    {
        idx q = r % (idx)out, count = (idx)range[2 * q + 1];
        const GLOBAL STO *from = xs + (r / (idx)out * (idx)in + (idx)range[2 * q]) * (idx)inner;
        const GLOBAL REAL *w = weights + q * (idx)width;
        INNER(r, j)
        {
            REAL sum = RESIZE_HALF;
            for (idx k = 0; k < count; ++k)
                sum += w[k] * LD(from, k * (idx)inner + j);
            ST(ys, r * (idx)inner + j, RESIZED(sum, bits));
        }
    }
#endif
}
#endif
