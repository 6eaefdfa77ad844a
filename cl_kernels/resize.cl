/* resize.cl -- one dim of images resampled by a table of weights; images of bytes, too, on their
 * way to a model.
 *
 * Where a thread does a chunk of the work, it adds up a line of elements side by side, or along the
 * last dim the same element of several rows, by way of a tile. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 1
/* Above the lowest instruction set the host has f32, and bytes. */
#undef RESIZE_HERE
#if defined(TERN_HOST) && TERN_WIDE && !TERN_LOWEST
#define RESIZE_HERE IN_SET(UNSIGNED, TERN_T)
#else
#define RESIZE_HERE (IS_FLOAT || IN_SET(UNSIGNED, TERN_T))
#endif
#if RESIZE_HERE

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

#if TERN_CHUNKS && TERN_HOST /* halves in private memory are not OpenCL C 1.2's */
/* Elements that are added up side by side, in registers; rows that lie side by side in a tile of
 * columns. */
#ifndef RESIZE_SIDE
#define RESIZE_SIDE    32
#define RESIZE_COLUMNS 256
#endif

/* n elements of y, each the sum of `count` elements of x that lie inner apart: in the images, and
 * of a tile. */
#undef RESIZE_LINE
#define RESIZE_LINE(NAME, SPACE)                                                                   \
    INLINE void K(NAME)(SPACE STO *y, const SPACE STO *x, const GLOBAL REAL *w, idx count,         \
                        idx inner, idx n, i32 bits)                                                \
    {                                                                                              \
        idx j = 0;                                                                                 \
        (void)bits;                                                                                \
        for (; j + RESIZE_SIDE <= n; j += RESIZE_SIDE) {                                           \
            REAL sum[RESIZE_SIDE];                                                                 \
            for (idx i = 0; i < RESIZE_SIDE; ++i)                                                  \
                sum[i] = RESIZE_HALF;                                                              \
            for (idx k = 0; k < count; ++k) {                                                      \
                REAL v = w[k];                                                                     \
                SIMD for (idx i = 0; i < RESIZE_SIDE; ++i) sum[i] += v * LD(x, k * inner + j + i); \
            }                                                                                      \
            SIMD for (idx i = 0; i < RESIZE_SIDE; ++i) ST(y, j + i, RESIZED(sum[i], bits));        \
        }                                                                                          \
        for (; j < n; ++j) {                                                                       \
            REAL sum = RESIZE_HALF;                                                                \
            for (idx k = 0; k < count; ++k)                                                        \
                sum += w[k] * LD(x, k * inner + j);                                                \
            ST(y, j, RESIZED(sum, bits));                                                          \
        }                                                                                          \
    }
RESIZE_LINE(resize_line, GLOBAL)
RESIZE_LINE(resize_tiled, )

/* Outputs q of n rows of x, `in` apart, as long as their elements fit into a tile, in which an
 * element of all rows is a line; the first output that does not. */
INLINE idx K(resize_tile)(GLOBAL STO *y, const GLOBAL STO *x, const GLOBAL i64 *range,
                          const GLOBAL REAL *weights, idx n, idx in, idx out, idx width, idx q,
                          i32 bits)
{
    LOCAL_ARRAY(STO, tile, RESIZE_SIDE * RESIZE_COLUMNS);
    idx base = (idx)range[2 * q], end = q, columns = 0;
    for (; end < out && (idx)range[2 * end] >= base; ++end) {
        idx last = (idx)range[2 * end] + (idx)range[2 * end + 1] - base;
        if (last > RESIZE_COLUMNS)
            break;
        columns = last > columns ? last : columns;
    }
    if (n < RESIZE_SIDE)
        for (idx i = 0; i < columns * RESIZE_SIDE; ++i)
            tile[i] = 0;
    for (idx i = 0; i < n; ++i)
        for (idx c = 0; c < columns; ++c)
            tile[c * RESIZE_SIDE + i] = x[i * in + base + c];
    for (; q < end; ++q) {
        STO line[RESIZE_SIDE];
        K(resize_tiled)(line, tile + ((idx)range[2 * q] - base) * RESIZE_SIDE, weights + q * width,
                        (idx)range[2 * q + 1], RESIZE_SIDE, RESIZE_SIDE, bits);
        for (idx i = 0; i < n; ++i)
            y[i * out + q] = line[i];
    }
    return q;
}
#endif

/* x (rows, in, inner) -> y (rows, out, inner): y[r, q, j] = the sum of weights[q, k] x[r, first +
 * k, j]; range[q] is first, and how many there are. */
KERNEL10(K(resize), (OUT, STO, ys), (IN, STO, xs), (IN, i64, range), (IN, REAL, weights),
         (ARG, i64, rows), (ARG, i64, in), (ARG, i64, out), (ARG, i64, inner), (ARG, i64, width),
         (ARG, i32, bits))
{
    BASE(ys);
    BASE(xs);
    BASE(range);
    BASE(weights);
#if TERN_CHUNKS && TERN_HOST
    idx ins = (idx)in, outs = (idx)out, wide = (idx)inner;
    if (wide == 1)
        GROUPS(b, ((idx)rows + RESIZE_SIDE - 1) / RESIZE_SIDE)
        {
            idx r = b * RESIZE_SIDE, n = (idx)rows - r < RESIZE_SIDE ? (idx)rows - r : RESIZE_SIDE;
            for (idx q = 0; q < outs;) {
                idx next = K(resize_tile)(ys + r * outs, xs + r * ins, range, weights, n, ins, outs,
                    (idx)width, q, bits);
                if (next == q) { /* wider than a tile */
                    for (idx i = r; i < r + n; ++i)
                        K(resize_line)(ys + i * outs + q, xs + i * ins + (idx)range[2 * q],
                            weights + q * (idx)width,
                                       (idx)range[2 * q + 1], 1, 1, bits);
                    next++;
                }
                q = next;
            }
        }
    else
        GROUPS(r, (idx)rows * outs)
        {
            idx q = r % outs, count = (idx)range[2 * q + 1];
            const GLOBAL STO *from = xs + (r / outs * ins + (idx)range[2 * q]) * wide;
            K(resize_line)(ys + r * wide, from, weights + q * (idx)width, count, wide, wide, bits);
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
