/* pool_windows.h -- which elements a window of pool.cl has, which windows an element is in, and the
 * positions of elements in a window. */
#ifndef TERN_POOL_WINDOWS_H
#define TERN_POOL_WINDOWS_H
/* The elements from first, every step-th, to end of window q along dim d; those inside x only. */
typedef struct tern_window {
    idx first, end, step, whole; /* whole: how many it counts with those outside */
    idx begin;                   /* its first with those outside */
} tern_window;

INLINE tern_window window_of(const tern_pool_shape *s, i32 d, idx q)
{
    tern_window w;
    idx in = (idx)s->in[d], out = (idx)s->out[d];
    if (s->adaptive != 0 && in != out) {
        w.begin = w.first = (idx)((i64)q * in / out); /* a product of more than an idx holds */
        w.end = (idx)(((i64)(q + 1) * in + out - 1) / out);
        w.step = 1;
        w.whole = w.end - w.first;
    } else {
        idx limit = in + (idx)s->padding[d];
        w.step = (idx)s->dilation[d];
        w.begin = w.first = q * (idx)s->stride[d] - (idx)s->padding[d];
        w.end = w.first + ((idx)s->window[d] - 1) * w.step + 1;
        w.whole = (w.end < limit ? w.end : limit) - w.first;
        if (w.first < 0)
            w.first += (w.step - 1 - w.first) / w.step * w.step;
        w.end = w.end < in ? w.end : in;
    }
    return w;
}

/* n / stride, of n that is not below 0: division is slow on GPUs, and most strides are 1 or 2. */
#define POOL_OVER_(n, stride) ((stride) == 1 ? (n) : (stride) == 2 ? (n) >> 1 : (n) / (stride))

/* The windows first..end that element i may be in. */
INLINE tern_window windows_with(const tern_pool_shape *s, i32 d, idx i)
{
    tern_window w;
    idx in = (idx)s->in[d], out = (idx)s->out[d], stride = (idx)s->stride[d];
    w.step = 1;
    w.whole = w.begin = 0;
    if (s->adaptive != 0 && in != out) {
        w.first = (idx)((i64)i * out / in);
        w.end = (idx)(((i64)(i + 1) * out - 1) / in) + 1;
    } else {
        idx last = i + (idx)s->padding[d];
        idx first = last - ((idx)s->window[d] - 1) * (idx)s->dilation[d];
        w.first = first <= 0 ? 0 : POOL_OVER_(first + stride - 1, stride);
        w.end = POOL_OVER_(last, stride) + 1;
        w.end = w.end < out ? w.end : out;
    }
    return w;
}

/* What the sum of a window is divided by. */
INLINE i64 divisor_of(const tern_pool_shape *s, tern_window z, tern_window y,
                      tern_window x)
{
    if (s->divisor != 0)
        return s->divisor;
    if (s->count_padding != 0)
        return (i64)z.whole * y.whole * x.whole;
    return (i64)(z.end - z.first) * (y.end - y.first) * (x.end - x.first);
}
#if TERN_CHUNKS
#define PLANES(p, n) GROUPS(p, n)
#else
#define PLANES(p, n) ITEMS(p, n)
#endif
#define EACH(i, span) for (idx i = (span).first; i < (span).end; i += (span).step)

/* What a step along a row, and a row, add to a place. */
#define PLACE_STEP(s) ((s).last != 0 ? 0 : 1)
#define PLACE_ROW(s)  ((s).last != 0 ? 1 : (idx)(s).in[2])

/* Called in many places, and not in the loops that take the time. */
#if TERN_HOST
#define POOL_APART static __attribute__((noinline))
#else
#define POOL_APART INLINE
#endif
/* The positions along dim d of the windows. */
POOL_APART idx pool_box(const tern_pool_shape *s, i32 d)
{
    return s->adaptive != 0 && s->in[d] != s->out[d]
        ? (idx)(s->in[d] / s->out[d]) + 2
        : (idx)((s->window[d] - 1) * s->dilation[d]) + 1;
}
/* Where window q begins along dim d. */
POOL_APART idx pool_begin(const tern_pool_shape *s, i32 d, idx q)
{
    return s->adaptive != 0 && s->in[d] != s->out[d]
        ? (idx)((i64)q * (idx)s->in[d] / (idx)s->out[d])
        : q * (idx)s->stride[d] - (idx)s->padding[d];
}
/* The place of a position k in window q of a row; below 0: of the window's first element. */
POOL_APART i64 pool_place(const tern_pool_shape *s, tern_window z, tern_window y, idx q, idx k)
{
    const tern_window x = window_of(s, 2, q);
    const idx box1 = pool_box(s, 1), box2 = pool_box(s, 2), rows = k / box2;
    const idx ins = (idx)s->in[0] * (idx)s->in[1] * PLACE_ROW(*s);
    const idx iz = k < 0 ? z.first : z.begin + rows / box1,
              iy = k < 0 ? y.first : y.begin + rows % box1,
              ix = k < 0 ? x.first : x.begin + k - rows * box2;
    const idx place = (iz * (idx)s->in[1] + iy) * PLACE_ROW(*s) + ix * PLACE_STEP(*s);
    return (i64)(place < ins ? place : ins - 1);
}
/* The position of the first element of window q of a row. */
POOL_APART idx pool_first(const tern_pool_shape *s, tern_window z, tern_window y, idx q)
{
    const tern_window x = window_of(s, 2, q);
    return ((z.first - z.begin) * pool_box(s, 1) + y.first - y.begin) * pool_box(s, 2) + x.first -
           x.begin;
}
#define POOL_BYTE(s, z, y, q, k) (u8)((k) < 0 ? pool_first(s, z, y, q) : (k))

/* Windows of a tile, the largest stride that it takes, and numbers of a row of x for each of it. */
#define POOL_TILE   64
#define POOL_STRIDE 4
#define POOL_ROW    88
INLINE i32 pool_fits_tiles(const tern_pool_shape *s)
{
    return s->adaptive == 0 && s->in[0] * s->in[1] * s->in[2] < 0x40000000 &&
        s->stride[2] <= POOL_STRIDE &&
           s->window[2] * s->dilation[2] <= POOL_ROW - POOL_TILE;
}

/* Numbers of x in a band of rows, and how many lanes past a row's end are written before the next
 * row is. */
#define POOL_BAND 1024
#define POOL_PAST 8
/* Windows of 2 x 2 side by side that fill their plane's rows? */
INLINE i32 pool_is_halving(const tern_pool_shape *s)
{
    i32 flat = s->window[0] == 1 && s->stride[0] == 1 && s->padding[0] == 0;
    for (i32 d = 1; d < 3; ++d)
        flat &= s->window[d] == 2 && s->stride[d] == 2 && s->padding[d] == 0 && s->dilation[d] == 1;
    return flat && s->adaptive == 0 && 2 * s->out[1] <= s->in[1] && 2 * s->out[2] == s->in[2] &&
           s->in[2] <= POOL_BAND / 2;
}
#endif
