/* pool.cl -- the largest and the mean of windows, and their gradients.
 *
 * Gradients go to a plane of x from one plane of y. Where a thread does a chunk of the work it adds
 * up a whole plane, window after window; elsewhere each element looks for the windows that it is
 * in.
 *
 * Where the largest element of a window lies is its place in the plane, or a byte: its position in
 * the window, box1 box2 z + box2 y + x counted from where the window begins, padding included. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 1
#include "pool_windows.h"

/* Where lanes are many each takes four elements along the third dim of a type that has loads of
 * four. Of images by channels these are in windows of their own; along a row they share windows. */
#if !TERN_CHUNKS
#include "float4.h"
#define POOL_HELD 4 /* windows, or elements of one, that a lane loads before it uses the first */
#undef POOL_STORE_
#define POOL_STORE_(p, at, v)   TERN_CAT(POOL_STORE, IN_SET(FLOAT4, TERN_T))(p, at, v)
#define POOL_STORE_0(p, at, v)
#define POOL_STORE_1(p, at, v)                                                                     \
    if (whole) {                                                                                   \
        STORE4((p) + (at), 0, v);                                                                  \
    } else
#endif

#if IS_FLOAT || IS_WHOLE

/* What a window's largest is before its first element, and a sum by its divisor: of integers
 * rounded towards 0. */
#undef LARGER
#undef LOWEST
#undef DIVIDED
#if IS_FLOAT
#define LOWEST        MINUS_INF
#define LARGER(v, w)  ((v) > (w) || (v) != (v))
#define DIVIDED(v, d) ((v) / (ACC)(d))
#elif IN_SET(UNSIGNED, TERN_T)
#define LOWEST        0
#define LARGER(v, w)  ((v) > (w))
#define DIVIDED(v, d) ((d) == -1 ? -(v) : (v) / (ACC)(d))
#else
#define LOWEST        ((REAL)((u64)1 << (8 * sizeof(REAL) - 1)))
#define LARGER(v, w)  ((v) > (w))
#define DIVIDED(v, d) ((d) == -1 ? -(v) : (v) / (ACC)(d))
#endif

#if TERN_HOST && IS_FLOAT
#include "pool_rows.h"
#endif

/* The largest of each window, NaN being larger than all, and where it lies. */
KERNEL5(K(max_pool), (OUT, STO, ys), (OUT, i64, places), (OUT, u8, bytes), (IN, STO, xs),
        (ARG, tern_pool_shape, shape))
{
    BASE(ys);
    BASE(places);
    BASE(bytes);
    BASE(xs);
    tern_pool_shape s = shape;
    idx in1 = (idx)s.in[1], in2 = (idx)s.in[2], out1 = (idx)s.out[1], out2 = (idx)s.out[2];
    const idx box1 = pool_box(&s, 1), box2 = pool_box(&s, 2);
#if TERN_HOST && IS_FLOAT
    if (pool_is_halving(&s)) {
        idx band = POOL_BAND / 2 / in2, bands = (out1 + band - 1) / band;
        GROUPS(g, (idx)s.planes * (idx)s.in[0] * bands)
        {
            idx slice = g / bands, q = g % bands * band, z = slice % (idx)s.in[0];
            idx y = (slice * out1 + q) * out2;
            K(max_pool_stride2)(ys + y, s.bytes != 0 ? 0 : places + y, bytes + y,
                               xs + (slice * in1 + 2 * q) * in2, (z * in1 + 2 * q) * in2,
                               tern_smaller(out1 - q, band), out2);
        }
        return;
    }
    if (pool_fits_tiles(&s)) {
        GROUPS(r, (idx)s.planes * (idx)s.out[0] * out1)
        {
            tern_window z = window_of(&s, 0, r / out1 % (idx)s.out[0]),
                y = window_of(&s, 1, r % out1);
            const GLOBAL STO *plane = xs + r / out1 / (idx)s.out[0] * (idx)s.in[0] * in1 * in2;
            for (idx from = 0; from < out2; from += POOL_TILE)
                K(max_pool_tile)(ys + r * out2, places + r * out2, bytes + r * out2, plane, &s, z,
                                 y, from);
        }
        return;
    }
#endif
#if TERN_CHUNKS && !TERN_HOST
    if (pool_is_halving(&s)) {
        GROUPS(r, (idx)s.planes * (idx)s.in[0] * out1)
        {
            idx at = (r / out1 % (idx)s.in[0] * in1 + r % out1 * 2) * in2;
            const i32 width = (i32)in2;
            const GLOBAL STO *x = xs + (r / out1 * in1 + r % out1 * 2) * in2;
            for (i32 j = 0; j < (i32)out2; ++j)
            {
                REAL a = LD(x, 2 * j), b = LD(x, 2 * j + 1);
                REAL c = LD(x, 2 * j + width), d = LD(x, 2 * j + width + 1);
                i32 right = LARGER(b, a), lower = LARGER(d, c);
                a = right ? b : a;
                c = lower ? d : c;
                i32 below = LARGER(c, a);
                ST(ys, r * out2 + j, below ? c : a);
                if (s.bytes != 0)
                    bytes[r * out2 + j] = (u8)(below ? 2 + lower : right);
                else
                    places[r * out2 + j] = at + 2 * j + (below ? width + lower : right);
            }
        }
        return;
    }
#endif
#if !TERN_CHUNKS && IN_SET(FLOAT4, TERN_T)
    if (s.last != 0 && (in2 & 3) == 0 && ALIGNED4(xs) && ALIGNED4(ys) &&
        (s.bytes != 0 ? ALIGNED4(bytes) : ALIGNED4(places))) {
        FLAT(r, (idx)s.planes * (idx)s.out[0] * out1, out2 / 4)
        {
            const idx slice = r / out1, p = slice / (idx)s.out[0];
            tern_window z = window_of(&s, 0, slice - p * (idx)s.out[0]),
                y = window_of(&s, 1, r - slice * out1);
            INNER(r, j)
            {
                const GLOBAL STO *plane = xs + p * (idx)s.in[0] * in1 * in2 + 4 * j;
                REAL most[4];
                idx best[4];
                EACH4(e)
                {
                    most[e] = LOWEST;
                    best[e] = -1;
                }
                EACH(iz, z) for (idx first = y.first; first < y.end; first += POOL_HELD * y.step)
                {
                    REAL x4[POOL_HELD][4];
                    UNROLL for (i32 u = 0; u < POOL_HELD; u++)
                    {
                        const idx at = first + u * y.step < y.end ? first + u * y.step : first;
                        LOAD4(x4[u], plane + (iz * in1 + at) * in2, 0);
                    }
                    UNROLL for (i32 u = 0; u < POOL_HELD; u++) if (first + u * y.step < y.end)
                    {
                        EACH4(e)
                        {
                            const i32 more = LARGER(x4[u][e], most[e]);
                            most[e] = more ? x4[u][e] : most[e];
                            best[e] = more ? (iz - z.begin) * box1 + first + u * y.step - y.begin
                                : best[e];
                        }
                    }
                }
                STORE4(ys + r * out2 + 4 * j, 0, most);
                if (s.bytes != 0) {
                    u32 four = 0;
                    EACH4(e) four |= (u32)POOL_BYTE(&s, z, y, 0, best[e]) << 8 * e;
                    ((GLOBAL u32 *)(bytes + r * out2))[j] = four;
                } else {
                    i64 place[4];
                    EACH4(e) place[e] = pool_place(&s, z, y, 0, best[e]);
                    STORE4_i64(places + r * out2 + 4 * j, 0, place);
                }
            }
        }
        return;
    }
#endif
    FLAT(r, (idx)s.planes * (idx)s.out[0] * out1, out2)
    {
        tern_window z = window_of(&s, 0, r / out1 % (idx)s.out[0]),
            y = window_of(&s, 1, r % out1);
        const GLOBAL STO *plane = xs + r / out1 / (idx)s.out[0] * (idx)s.in[0] * in1 * in2;
        INNER(r, j)
        {
            tern_window x = window_of(&s, 2, j);
            idx best = -1;
            REAL most = LOWEST;
            EACH(iz, z) EACH(iy, y)
            {
                const idx row = (iz * in1 + iy) * in2;
                const idx k = ((iz - z.begin) * box1 + iy - y.begin) * box2 - x.begin;
                EACH(ix, x)
                {
                    REAL v = LD(plane, row + ix);
                    i32 more = LARGER(v, most);
                    most = more ? v : most;
                    best = more ? k + ix : best;
                }
            }
            ST(ys, r * out2 + j, most);
            if (s.bytes != 0)
                bytes[r * out2 + j] = POOL_BYTE(&s, z, y, j, best);
            else
                places[r * out2 + j] = pool_place(&s, z, y, j, best);
        }
    }
}

/* The mean of each window. */
KERNEL3(K(avg_pool), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_pool_shape, shape))
{
    BASE(ys);
    BASE(xs);
    tern_pool_shape s = shape;
    idx in1 = (idx)s.in[1], in2 = (idx)s.in[2], out1 = (idx)s.out[1], out2 = (idx)s.out[2];
    FLAT(r, (idx)s.planes * (idx)s.out[0] * out1, out2)
    {
        tern_window z = window_of(&s, 0, r / out1 % (idx)s.out[0]),
            y = window_of(&s, 1, r % out1);
        const GLOBAL STO *plane = xs + r / out1 / (idx)s.out[0] * (idx)s.in[0] * in1 * in2;
        INNER(r, j)
        {
            tern_window x = window_of(&s, 2, j);
            ACC sum = 0;
            EACH(iz, z) EACH(iy, y)
            {
                const GLOBAL STO *row = plane + (iz * in1 + iy) * in2;
                SIMD_SUM(sum) for (idx ix = x.first; ix < x.end; ++ix) sum += LD(row, ix);
            }
            ST(ys, r * out2 + j, DIVIDED(sum, divisor_of(&s, z, y, x)));
        }
    }
}
#endif

#if IS_FLOAT
/* dx = dy where x was the largest. */
KERNEL5(K(max_pool_dx), (OUT, STO, xs), (IN, STO, ys), (IN, i64, places), (IN, u8, bytes),
        (ARG, tern_pool_shape, shape))
{
    BASE(xs);
    BASE(ys);
    BASE(places);
    BASE(bytes);
    tern_pool_shape s = shape;
    idx in1 = (idx)s.in[1], in2 = (idx)s.in[2], each = PLACE_STEP(s), line = PLACE_ROW(s);
    idx out1 = (idx)s.out[1], out2 = (idx)s.out[2], outs = (idx)s.out[0] * out1 * out2;
#if TERN_CHUNKS
    idx ins = (idx)s.in[0] * in1 * in2, within = (idx)s.in[0] * in1 * line;
    i32 apart[256]; /* from where a window begins to each position */
    const idx box1 = pool_box(&s, 1), box2 = pool_box(&s, 2);
    for (idx k = 0, x = 0, y = 0, z = 0; k < 256 && s.bytes != 0; ++k) {
        apart[k] = (i32)((z * in1 + y) * line + x * each);
        x = x + 1 < box2 ? x + 1 : 0;
        y = x > 0 ? y : y + 1 < box1 ? y + 1 : 0;
        z += x == 0 && y == 0;
    }
    GROUPS(p, s.planes)
    {
        GLOBAL STO *x = xs + p * ins;
        SIMD LANES(i, ins)
        {
            ST(x, i, 0);
        }
        for (idx first = p * outs, row = 0; first < (p + 1) * outs; first += out2, ++row) {
            const idx begin = (pool_begin(&s, 0, row / out1) * in1 +
                               pool_begin(&s, 1, row % out1)) * line;
            for (idx j = 0; j < out2; ++j) {
                i64 i = s.bytes != 0
                    ? begin + pool_begin(&s, 2, j) * each + apart[bytes[first + j]]
                    : places[first + j];
                if (i >= 0 && i < within) { /* else its forward was recorded, and never ran */
                    idx at = each != 0 ? (idx)i : (idx)i * in2 + j;
                    ST(x, at, LD(x, at) + LD(ys, first + j));
                }
            }
        }
    }
#else
    const idx box1 = pool_box(&s, 1), box2 = pool_box(&s, 2);
    const i32 whole = (in2 & 3) == 0 && ALIGNED4(xs);
    if (s.last == 0) {
        FLAT(r, (idx)s.planes * (idx)s.in[0] * in1, (in2 + 3) / 4)
        {
            const idx slice = r / in1, p = slice / (idx)s.in[0], row = r - slice * in1;
            tern_window z = windows_with(&s, 0, slice - p * (idx)s.in[0]),
                y = windows_with(&s, 1, row);
            INNER(r, j)
            {
                const idx left = 4 * j, right = left + 3 < in2 ? left + 3 : in2 - 1;
                const idx begin = windows_with(&s, 2, left).first,
                    end = windows_with(&s, 2, right).end;
                const idx own = (r - p * (idx)s.in[0] * in1) * in2 + left;
                REAL sum[4] = {0, 0, 0, 0};
                EACH(qz, z) EACH(qy, y) for (idx first = begin; first < end; first += POOL_HELD)
                {
                    const idx q = p * outs + (qz * out1 + qy) * out2 + first;
                    const idx above = (row - pool_begin(&s, 1, qy) +
                        (slice - p * (idx)s.in[0] - pool_begin(&s, 0, qz)) * box1) * box2;
                    idx place[POOL_HELD];
                    REAL dy[POOL_HELD];
                    UNROLL for (i32 u = 0; u < POOL_HELD; u++)
                    {
                        place[u] = -1;
                        if (first + u < end && s.bytes != 0) {
                            const idx right_of = (idx)bytes[q + u] - above;
                            place[u] = right_of < 0 || right_of >= box2 ? -1
                                : pool_begin(&s, 2, first + u) + right_of - left;
                        } else if (first + u < end)
                            place[u] = (idx)places[q + u] - own;
                        dy[u] = first + u < end ? LD(ys, q + u) : 0;
                    }
                    UNROLL for (i32 u = 0; u < POOL_HELD; u++)
                    {
                        UNROLL for (i32 e = 0; e < 4; e++) sum[e] += place[u] == e ? dy[u] : 0;
                    }
                }
                POOL_STORE_(xs, r * in2 + left, sum)
                for (i32 e = 0; e < 4; e++)
                    if (left + e <= right)
                        ST(xs, r * in2 + left + e, sum[e]);
            }
        }
        return;
    }
#if IN_SET(FLOAT4, TERN_T)
    if (whole && ALIGNED4(ys) && (s.bytes != 0 ? ALIGNED4(bytes) : ALIGNED4(places))) {
        FLAT(r, (idx)s.planes * (idx)s.in[0] * in1, in2 / 4)
        {
            const idx slice = r / in1, p = slice / (idx)s.in[0], own = r - p * (idx)s.in[0] * in1,
                      row = r - slice * in1;
            tern_window z = windows_with(&s, 0, slice - p * (idx)s.in[0]),
                y = windows_with(&s, 1, row);
            INNER(r, j)
            {
                REAL sum[4] = {0, 0, 0, 0};
                EACH(qz, z) for (idx first = y.first; first < y.end; first += 2)
                {
                    const idx q = p * outs + (qz * out1 + first) * out2 + 4 * j,
                        more = first + 1 < y.end ? out2 : 0;
                    i64 place[2][4];
                    REAL dy[2][4];
                    idx here[2] = {own, own};
                    if (s.bytes != 0) {
                        UNROLL for (i32 u = 0; u < 2; u++)
                        {
                            const u32 four =
                                *(const GLOBAL u32 *)(bytes + q + (u != 0 ? more : 0));
                            EACH4(e) place[u][e] = four >> 8 * e & 255;
                            here[u] = (slice - p * (idx)s.in[0] - pool_begin(&s, 0, qz)) * box1 +
                                row - pool_begin(&s, 1, first + u);
                        }
                    } else {
                        LOAD4_i64(place[0], places + q, 0);
                        LOAD4_i64(place[1], places + q + more, 0);
                    }
                    LOAD4(dy[0], ys + q, 0);
                    LOAD4(dy[1], ys + q + more, 0);
                    EACH4(e)
                    {
                        sum[e] += (idx)place[0][e] == here[0] ? dy[0][e] : 0;
                        sum[e] += more != 0 && (idx)place[1][e] == here[1] ? dy[1][e] : 0;
                    }
                }
                STORE4(xs + r * in2 + 4 * j, 0, sum);
            }
        }
        return;
    }
#endif
    FLAT(r, (idx)s.planes * (idx)s.in[0] * in1, in2)
    {
        tern_window z = windows_with(&s, 0, r / in1 % (idx)s.in[0]),
            y = windows_with(&s, 1, r % in1);
        idx p = r / in1 / (idx)s.in[0], own = r - p * (idx)s.in[0] * in1;
        INNER(r, j)
        {
            REAL sum = 0;
            EACH(qz, z) EACH(qy, y)
            {
                const idx q = p * outs + (qz * out1 + qy) * out2 + j;
                const idx here = (r / in1 % (idx)s.in[0] - pool_begin(&s, 0, qz)) * box1 +
                    r % in1 - pool_begin(&s, 1, qy);
                const i32 is_own = s.bytes != 0 ? (idx)bytes[q] == here : (idx)places[q] == own;
                sum += is_own ? LD(ys, q) : 0;
            }
            ST(xs, r * in2 + j, sum);
        }
    }
#endif
}

/* dx = the sum of dy / divisor over the windows it is in. */
KERNEL3(K(avg_pool_dx), (OUT, STO, xs), (IN, STO, ys), (ARG, tern_pool_shape, shape))
{
    BASE(xs);
    BASE(ys);
    tern_pool_shape s = shape;
    idx in1 = (idx)s.in[1], in2 = (idx)s.in[2];
    idx out1 = (idx)s.out[1], out2 = (idx)s.out[2], outs = (idx)s.out[0] * out1 * out2;
    FLAT(r, (idx)s.planes * (idx)s.in[0] * in1, in2)
    {
        tern_window z = windows_with(&s, 0, r / in1 % (idx)s.in[0]),
            y = windows_with(&s, 1, r % in1);
        idx p = r / in1 / (idx)s.in[0];
        INNER(r, j)
        {
            tern_window x = windows_with(&s, 2, j);
            ACC sum = 0;
            EACH(qz, z) EACH(qy, y)
            {
                tern_window wz = window_of(&s, 0, qz), wy = window_of(&s, 1, qy);
                EACH(qx, x)
                {
                    tern_window wx = window_of(&s, 2, qx);
                    sum += LD(ys, p * outs + (qz * out1 + qy) * out2 + qx) /
                           (ACC)divisor_of(&s, wz, wy, wx);
                }
            }
            ST(xs, r * in2 + j, sum);
        }
    }
}

/* x = 0 but for y at its places; those that occur twice take the last, or with add the sum. ins,
 * outs: elements of a plane. */
KERNEL9(K(unpool), (OUT, STO, xs), (IN, STO, ys), (IN, i64, places), (ARG, i64, planes),
        (ARG, i64, ins), (ARG, i64, outs), (ARG, i32, add), (OUT, i64, fault), (ARG, i32, code))
{
    BASE(xs);
    BASE(ys);
    BASE(places);
    BASE(fault);
    PLANES(p, planes)
    {
        GLOBAL STO *x = xs + p * (idx)ins;
        for (idx i = 0; i < (idx)ins; ++i)
            ST(x, i, 0);
        for (idx q = 0; q < (idx)outs; ++q) {
            i64 i = places[p * (idx)outs + q];
            REAL v = LD(ys, p * (idx)outs + q);
            if (i < 0 || i >= ins)
                FAULT(fault, code, i, ins);
            else
                ST(x, (idx)i, add != 0 ? LD(x, (idx)i) + v : v);
        }
    }
}
#endif

#if IN_SET(UNSIGNED, TERN_T)
/* The places that bytes stand for. */
KERNEL3(K(pool_places), (OUT, i64, places), (IN, STO, bytes), (ARG, tern_pool_shape, shape))
{
    BASE(places);
    BASE(bytes);
    tern_pool_shape s = shape;
    const idx out0 = (idx)s.out[0], out1 = (idx)s.out[1], out2 = (idx)s.out[2];
    FLAT(r, (idx)s.planes * out0 * out1, out2)
    {
        const tern_window z = window_of(&s, 0, r / out1 % out0), y = window_of(&s, 1, r % out1);
        INNER(r, j)
        {
            places[r * out2 + j] =
                pool_place(&s, z, y, j, (idx)bytes[r * out2 + j]);
        }
    }
}
#endif
