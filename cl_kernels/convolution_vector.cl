/* convolution_vector.cl -- convolutions and their gradients on CPU-type OpenCL devices, one
 * work-item a group: products as in convolution_tiles.cl, whose B is the image as it lies, without
 * columns (Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD
 * architectures", 2018).
 *
 * What a block of places sees of some channels is copied in float32 with the zeros around it, into
 * L2. There a tap is a distance, the same for all places; with a stride elements that neighbouring
 * places see are brought side by side. So eight neighbours are loaded at once, and 6 rows x 2
 * vectors of sums stay in registers. Of the weight's gradient vectors are channels of dy,
 * transposed, and a tap of a place is one number of the image. */
#include "convolution_parts.h"
#define HIGH 6
/* Of loops that are not worth a compiler's time, or are as they should be. */
#define AS_IT_IS TERN_PRAGMA(clang loop vectorize(disable) unroll(disable))

typedef struct tern_conv_patch {
    i32 near[3], size[3]; /* where the first place looks first, and elements along each dim */
    i32 phases, slots;    /* element u of a row is at u % phases * slots + u / phases */
    i32 pitch;            /* from row to row */
    i64 plane;            /* from channel to channel: of rows that are far apart more than an i32,
                             until it fits */
} tern_conv_patch;

INLINE i32 conv_least(i32 a, i32 b)
{
    return a < b ? a : b;
}
INLINE i32 conv_volume(const i32 *size)
{
    return size[0] * size[1] * size[2];
}

/* What `high` rows of `wide` places look at. */
INLINE void conv_patch(tern_conv_patch *p, const tern_conv_line *taps, const tern_conv_line *places,
                       i32 high, i32 wide, i32 phases)
{
    const i32 extent[3] = {1, high, wide};
    for (i32 d = 0; d < 3; d++) {
        i32 reach = (taps->size[d] - 1) * taps->step[d];
        p->near[d] = taps->first[d] + places->first[d] + (reach < 0 ? reach : 0);
        p->size[d] = (reach < 0 ? -reach : reach) + (extent[d] - 1) * places->step[d] + 1;
    }
    p->phases = phases;
    p->slots = (p->size[2] + phases - 1) / phases;
    p->pitch = p->slots * phases;
    p->plane = (i64)p->size[0] * p->size[1] * p->pitch;
}

/* The largest patch of so many channels that there is room for: how many rows of places, and
 * channels. */
INLINE void conv_fit(tern_conv_patch *p, const tern_conv_line *taps, const tern_conv_line *places,
                     i32 wide, i32 phases, i32 *high, i32 *deep)
{
    conv_patch(p, taps, places, *high, wide, phases);
    while (*high > 1 && *deep * p->plane > TERN_CONV_IMAGE) {
        *high = (*high + 1) / 2;
        conv_patch(p, taps, places, *high, wide, phases);
    }
    *deep = conv_least(*deep, TERN_CONV_IMAGE / (i32)p->plane);
}

/* Where tap k of the line is in a patch, and in the matrix. */
INLINE void conv_tap(const tern_conv_line *taps, const tern_conv_patch *p, i32 k, i32 *in_patch,
                     i32 *at)
{
    i32 q[4], u[3];
    q[2] = k % taps->size[2];
    k /= taps->size[2];
    q[1] = k % taps->size[1];
    k /= taps->size[1];
    q[0] = k % taps->size[0];
    k /= taps->size[0];
    for (i32 d = 0; d < 3; d++)
        u[d] = (taps->step[d] < 0 ? q[d] - taps->size[d] + 1 : q[d]) * taps->step[d];
    *in_patch = k * (i32)p->plane + (u[0] * p->size[1] + u[1]) * p->pitch +
        u[2] % p->phases * p->slots +
                u[2] / p->phases;
    *at = taps->at + k * taps->outer_at + q[0] * taps->along_at[0] + q[1] * taps->along_at[1] +
          q[2] * taps->along_at[2];
}

/* Eight numbers at once. */
#if IS_HALF
#define CONV_LD8(p) (float8)(LD(p, 0), LD(p, 1), LD(p, 2), LD(p, 3), LD(p, 4), LD(p, 5), LD(p, 6), \
    LD(p, 7))
#define CONV_ST8(p, v, more)                                                                       \
    for (i32 q = 0; q < 8; q++)                                                                    \
    ST(p, q, v[q] + more)
#else
#define CONV_LD8(p)          vload8(0, p)
#define CONV_ST8(p, v, more) vstore8(vload8(0, v) + more, 0, p)
#endif

/* Copies a patch of so many channels, whose first element is (z, y, x). */
INLINE void K(conv_fill)(GLOBAL f32 *to, const GLOBAL STO *from, i32 channels, i32 apart,
                         const tern_conv_patch *p, const i32 *end, i32 z, i32 y, i32 x)
{
    for (i32 c = 0; c < channels; c++, from += apart)
        for (i32 iz = z; iz < z + p->size[0]; iz++)
            for (i32 iy = y; iy < y + p->size[1]; iy++) {
                const GLOBAL STO *row = from + (iz * end[1] + iy) * end[2];
                i32 inside = (u32)iz < (u32)end[0] && (u32)iy < (u32)end[1];
                for (i32 f = x; f < x + p->phases; f++, to += p->slots) {
                    i32 a = f < 0 ? (p->phases - 1 - f) / p->phases : 0, j = 0;
                    i32 b = inside && f < end[2] ? (end[2] - f + p->phases - 1) / p->phases : 0;
                    b = conv_least(b, p->slots);
                    a = conv_least(a, b);
AS_IT_IS
                    for (; j < a; j++)
                        to[j] = 0;
                    if (p->phases == 1)
AS_IT_IS
                        for (; j + 8 <= b; j += 8)
                            vstore8(CONV_LD8(row + f + j), 0, to + j);
AS_IT_IS
                    for (; j < b; j++)
                        to[j] = LD(row, f + j * p->phases);
AS_IT_IS
                    for (; j < p->slots; j++)
                        to[j] = 0;
                }
            }
}

/* What a tile of places writes, from here on. */
typedef struct tern_conv_out {
    i32 high, wide, line, vectors; /* of the block; from row to row of the patch; in a row */
    i32 first, last;               /* of the channels */
    i32 rows;                      /* of the matrix */
} tern_conv_out;

/* `rows` rows of the matrix times all places of a block; `kept` has their sums between blocks of
 * channels. */
INLINE void K(conv_rows)(const i32 rows, GLOBAL STO *c, const GLOBAL STO *bias, GLOBAL f32 *kept,
                         const GLOBAL f32 *a, const GLOBAL f32 *x, const i32 *taps, i32 k,
                         const tern_conv_out *o, const tern_conv_tiles *g)
{
    const i32 *along = g->column.along_at, all = o->high * o->vectors;
    for (i32 v = 0; v < all; v += 2, kept += 16 * rows) {
        float8 sum[HIGH][2];
        f32 spill[HIGH][2][8];
        i32 y[2], j[2];
        for (i32 s = 0; s < 2; s++) {
            i32 u = conv_least(v + s, all - 1);
            y[s] = u / o->vectors;
            j[s] = u % o->vectors * 8;
        }
        const GLOBAL f32 *x0 = x + y[0] * o->line + j[0], *x1 = x + y[1] * o->line + j[1];
#pragma unroll
        for (i32 i = 0; i < rows; i++)
#pragma unroll
            for (i32 s = 0; s < 2; s++)
                sum[i][s] = o->first ? (float8)(0) : vload8(i * 2 + s, kept);
AS_IT_IS
        for (i32 p = 0; p < k; p++) {
            float8 b0 = vload8(0, x0 + taps[p]), b1 = vload8(0, x1 + taps[p]);
#pragma unroll
            for (i32 i = 0; i < rows; i++) {
                float8 w = (float8)(a[p * rows + i]);
                sum[i][0] = fma(w, b0, sum[i][0]);
                sum[i][1] = fma(w, b1, sum[i][1]);
            }
        }
#pragma unroll
        for (i32 i = 0; i < rows; i++)
#pragma unroll
            for (i32 s = 0; s < 2; s++) {
                if (o->last)
                    vstore8(sum[i][s], 0, spill[i][s]);
                else
                    vstore8(sum[i][s], i * 2 + s, kept);
            }
AS_IT_IS
        for (i32 i = 0; o->last && i < conv_least(rows, o->rows); i++) {
            f32 more = g->has_bias ? LD(bias, i) : 0;
AS_IT_IS
            for (i32 s = 0; s < conv_least(2, all - v); s++) {
                GLOBAL STO *to = c + i * g->c_row + y[s] * along[1] + j[s] * along[2];
                i32 n = o->wide - j[s];
                if (n >= 8 && along[2] == 1 && !g->adds)
                    CONV_ST8(to, spill[i][s], more);
                else
AS_IT_IS
                    for (i32 q = 0; q < conv_least(n, 8); q++)
                        ST(to, q * along[2], spill[i][s][q] + more +
                            (g->adds ? LD(to, q * along[2]) : 0));
            }
        }
    }
}

/* y, or dx of one phase. */
KERNEL6(K(conv_vector), (OUT, STO, cs), (OUT, f32, sums), (IN, STO, as), (IN, STO, bs),
        (IN, STO, biases), (ARG, tern_conv_tiles, shape))
{
    BASE(cs);
    BASE(sums);
    BASE(as);
    BASE(bs);
    BASE(biases);
    const tern_conv_tiles g = shape;
    const tern_conv_line *places = &g.column;
    const i32 of = conv_volume(g.row.size), channels = g.k / of,
        wide = conv_least(places->size[2], TERN_CONV_WIDE);
    const i32 images = g.n / conv_volume(places->size);
    i32 vectors = (wide + 7) / 8, high = conv_least(places->size[1], 128 / vectors),
        deep = TERN_CONV_K / of;
    deep = channels == 0 ? 1 : conv_least(channels, deep);
    tern_conv_patch p;
    conv_fit(&p, &g.row, places, wide, places->step[2], &high, &deep);
    const i32 across = (places->size[2] + wide - 1) / wide,
        down = (places->size[1] + high - 1) / high;
    const i32 blocks = (g.m + TERN_CONV_M - 1) / TERN_CONV_M;
    i32 taps[TERN_CONV_K], at[TERN_CONV_K], packed = -1;
    GLOBAL f32 *x = sums + get_group_id(0) * TERN_CONV_SCRATCH, *a = x + TERN_CONV_IMAGE + 64;
    GLOBAL f32 *kept = a + (TERN_CONV_M + HIGH) * TERN_CONV_K;
AS_IT_IS
    for (i32 k = 0; k < deep * of; k++)
        conv_tap(&g.row, &p, k, &taps[k], &at[k]);
    GROUPS(u, g.groups * blocks * images * places->size[0] * down * across)
    {
        i32 r = u, j0 = r % across * wide, y0 = (r /= across) % down * high, z0 = (r /= down)
            % places->size[0];
        i32 image = (r /= places->size[0]) % images, block = r / images,
            m0 = block % blocks * TERN_CONV_M;
        const i32 group = block / blocks, rows = conv_least(g.m - m0, TERN_CONV_M);
        tern_conv_out o;
        o.high = conv_least(high, places->size[1] - y0);
        o.wide = conv_least(wide, places->size[2] - j0);
        o.line = places->step[1] * p.pitch;
        o.vectors = (o.wide + 7) / 8;
        for (i32 from = 0; from == 0 || from < channels; from += deep) {
            const i32 count = conv_least(deep, channels - from), k = count * of;
            o.first = from == 0;
            o.last = from + deep >= channels;
            K(conv_fill)(x, bs + group * g.b_group + image * places->outer + from * g.row.outer,
                count, g.row.outer, &p,
                         g.end, p.near[0] + z0 * places->step[0], p.near[1] + y0 * places->step[1],
                         p.near[2] + j0 * places->step[2]);
AS_IT_IS
            for (i32 i = 0, step; i < rows; i += step) {
                const GLOBAL STO *weight = as + group * g.a_group + (m0 + i) * g.a_row +
                    from * g.row.outer_at;
                GLOBAL STO *c = cs + group * g.c_group + (m0 + i) * g.c_row + places->at +
                    image * places->outer_at +
                                z0 * places->along_at[0] + y0 * places->along_at[1] +
                                    j0 * places->along_at[2];
                o.rows = rows - i;
                step = o.rows <= 4 || o.rows == 8 ? 4 : HIGH;
                if (packed != block * channels + from)
AS_IT_IS
                    for (i32 q = 0; q < k; q++)
AS_IT_IS
                        for (i32 s = 0; s < step; s++)
                            a[i * k + q * step + s] = s < o.rows ? LD(weight, s * g.a_row + at[q])
                                : 0;
                if (step == 4)
                    K(conv_rows)(4, c, biases + group * g.m + m0 + i, kept + i * 1040, a + i * k, x,
                        taps, k, &o, &g);
                else
                    K(conv_rows)(HIGH, c, biases + group * g.m + m0 + i, kept + i * 1040, a + i * k,
                        x, taps, k, &o, &g);
            }
            packed = block * channels + from;
        }
    }
}

/* sum += 6 numbers of the image at each place times up to 16 channels of dy there. */
INLINE void conv_outer(const i32 vectors, GLOBAL f32 *sums, const GLOBAL f32 *x, const i32 *taps,
                       const i32 *places, const GLOBAL f32 *dy, i32 n)
{
    float8 sum[HIGH][2];
    const GLOBAL f32 *row[HIGH];
#pragma unroll
    for (i32 i = 0; i < HIGH; i++) {
        row[i] = x + taps[i];
#pragma unroll
        for (i32 s = 0; s < vectors; s++)
            sum[i][s] = vload8(i * 2 + s, sums);
    }
AS_IT_IS
    for (i32 q = 0; q < n; q++) {
        i64 at = places[q];
        float8 d0 = vload8(q * 2, dy), d1 = vload8(q * 2 + 1, dy);
#pragma unroll
        for (i32 i = 0; i < HIGH; i++) {
            float8 w = (float8)(row[i][at]);
            sum[i][0] = fma(w, d0, sum[i][0]);
            if (vectors == 2)
                sum[i][1] = fma(w, d1, sum[i][1]);
        }
    }
#pragma unroll
    for (i32 i = 0; i < HIGH; i++)
#pragma unroll
        for (i32 s = 0; s < vectors; s++)
            vstore8(sum[i][s], i * 2 + s, sums);
}

/* Parts of dweight, to be added up: a task is a block of it and a part of the images. */
KERNEL4(K(conv_vector_dw), (OUT, f32, sums), (IN, STO, as), (IN, STO, bs),
        (ARG, tern_conv_tiles, shape))
{
    BASE(sums);
    BASE(as);
    BASE(bs);
    const tern_conv_tiles g = shape;
    const tern_conv_line *places = &g.row;
    const i32 of = conv_volume(g.column.size), channels = g.n / of,
        images = g.k / conv_volume(places->size);
    const i32 wide = conv_least(places->size[2], TERN_CONV_WIDE);
    i32 high = conv_least(places->size[1], TERN_CONV_WIDE / wide),
        deep = conv_least(channels, TERN_CONV_K / of);
    tern_conv_patch p;
    conv_fit(&p, &g.column, places, wide, 1, &high, &deep);
    const i32 across = (places->size[2] + wide - 1) / wide,
        down = (places->size[1] + high - 1) / high;
    const i32 all = images * places->size[0] * down * across;
    const i32 blocks = (g.m + TERN_CONV_M - 1) / TERN_CONV_M, depths = (channels + deep - 1) / deep;
    i32 taps[TERN_CONV_K + HIGH], seen[TERN_CONV_WIDE], at;
    GLOBAL f32 *x = sums + (i64)g.parts * g.whole + get_group_id(0) * TERN_CONV_SCRATCH;
    GLOBAL f32 *dy = x + TERN_CONV_IMAGE + 64, *kept = dy + TERN_CONV_M * TERN_CONV_WIDE;
AS_IT_IS
    for (i32 k = 0; k < deep * of + HIGH; k++)
        conv_tap(&g.column, &p, conv_least(k, deep * of - 1), &taps[k], &at);
    GROUPS(u, g.groups * blocks * depths * g.parts)
    {
        i32 r = u, part = r % g.parts, from = (r /= g.parts) % depths * deep, m0 = (r /= depths)
            % blocks * TERN_CONV_M;
        const i32 group = r / blocks, rows = conv_least(g.m - m0, TERN_CONV_M);
        const i32 n = conv_least(deep, channels - from) * of, tiles = (n + HIGH - 1) / HIGH;
        const i32 end = (i32)((i64)all * (part + 1) / g.parts);
        SIMD for (i32 i = 0; i < (rows + 15) / 16 * tiles * 16 * HIGH; i++) kept[i] = 0;
        for (i32 b = (i32)((i64)all * part / g.parts); b < end; b++) {
            i32 j0 = b % across * wide, y0 = b / across % down * high,
                z0 = b / across / down % places->size[0];
            const i32 image = b / across / down / places->size[0],
                h = conv_least(high, places->size[1] - y0);
            const i32 w = conv_least(wide, places->size[2] - j0);
            const GLOBAL STO *a = as + group * g.a_group + m0 * g.a_row + places->at +
                image * places->outer_at +
                                  z0 * places->along_at[0] + y0 * places->along_at[1] + j0;
            K(conv_fill)(x, bs + group * g.b_group + image * places->outer + from * g.column.outer,
                n / of,
                         g.column.outer, &p, g.end, p.near[0] + z0 * places->step[0],
                         p.near[1] + y0 * places->step[1], p.near[2] + j0 * places->step[2]);
            for (i32 y = 0; y < h; y++)
AS_IT_IS
                for (i32 j = 0; j < w; j++)
                    seen[y * w + j] = y * places->step[1] * p.pitch + j * places->step[2];
            for (i32 i = 0; i < (rows + 7) / 8 * 8; i++) {
                const GLOBAL STO *row = a + conv_least(i, rows - 1) * g.a_row;
                GLOBAL f32 *to = dy + i / 16 * 16 * h * w + i % 16;
                for (i32 y = 0; y < h; y++)
                    for (i32 j = 0; j < w; j++, to += 16)
                        *to = LD(row, y * places->along_at[1] + j);
            }
            for (i32 i = 0; i < rows; i += 16)
                for (i32 t = 0; t < tiles; t++) {
                    GLOBAL f32 *sum = kept + (i / 16 * tiles + t) * 16 * HIGH;
                    if (rows - i > 8)
                        conv_outer(2, sum, x, taps + t * HIGH, seen, dy + i * h * w, h * w);
                    else
                        conv_outer(1, sum, x, taps + t * HIGH, seen, dy + i * h * w, h * w);
                }
        }
        GLOBAL f32 *to = sums + (i64)part * g.whole + group * g.c_group + m0 * g.c_row + from * of;
        for (i32 i = 0; i < rows; i++)
AS_IT_IS
            for (i32 k = 0; k < n; k++)
                to[i * g.c_row + k] = kept[(i / 16 * tiles + k / HIGH) * 16 * HIGH + k % HIGH * 16 +
                    i % 16];
    }
}
