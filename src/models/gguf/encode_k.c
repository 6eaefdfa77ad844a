/* encode_k.c -- encodes floats as K types, blocks of 256 whose parts have their own scales, and as
 * uneven levels: scales, minima and levels are fitted alternately by least squares. */
#include "models/gguf/encode.h"
#include <math.h>
#include <string.h>

static const signed char points[16] = IO_BLOCK_POINTS;

enum { BLOCK = 256, MOST_PART = 32, MOST_PARTS = 16 };

/* Returns x rounded and clamped; low for NaN. */
static int clamped(float x, int low, int high)
{
    x = x > (float)low ? x : (float)low;
    x = x < (float)high ? x : (float)high;
    return (int)(x + (x < 0 ? -0.5f : 0.5f));
}

/* ---- one part ------------------------------------------------------------------------------ */

/* Approximates x by s q - m, with q from 0 to top and m >= 0. */
typedef struct ranged {
    float s, m;
} ranged;

/* Computes the levels for s and m, and returns the squared error. */
static float levels_of(const float *x, int n, int top, ranged r, int *q)
{
    const float inverse = r.s > 0 ? 1 / r.s : 0;
    float error = 0;
    for (int i = 0; i < n; i++) {
        q[i] = clamped((x[i] + r.m) * inverse, 0, top);
        const float away = x[i] - (r.s * (float)q[i] - r.m);
        error += away * away;
    }
    return error;
}

/* Returns the s and m with the least error for the levels. */
static ranged fitted(const float *x, int n, const int *q, ranged r)
{
    float sum_q = 0, sum_qq = 0, sum_x = 0, sum_xq = 0;
    for (int i = 0; i < n; i++) {
        sum_q += (float)q[i];
        sum_qq += (float)(q[i] * q[i]);
        sum_x += x[i];
        sum_xq += x[i] * (float)q[i];
    }
    const float size = (float)n * sum_qq - sum_q * sum_q;
    if (size <= 0)
        return r;
    const float s = ((float)n * sum_xq - sum_q * sum_x) / size, m = (s * sum_q - sum_x) / (float)n;
    if (m < 0)
        return sum_qq > 0 && sum_xq > 0 ? (ranged){sum_xq / sum_qq, 0} : r;
    return s > 0 ? (ranged){s, m} : r;
}

/* Tries ranges somewhat narrower and wider than the part's own; for few levels they differ less. */
static ranged best_range(const float *x, int n, int top)
{
    float low = 0, high = x[0], least = INFINITY;
    ranged best = {0, 0};
    int q[MOST_PART];
    for (int i = 0; i < n; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    if (high <= low)
        return (ranged){0, -low};
    for (int k = -8; k <= 4; k += 3) {
        ranged r = {(high - low) / ((float)top - 0.125f * (float)k * (top > 3 ? 1 : 0.5f)), -low};
        for (int turn = 0; turn < 3; turn++) {
            const float error = levels_of(x, n, top, r, q);
            if (error < least) {
                least = error;
                best = r;
            }
            r = fitted(x, n, q, r);
        }
    }
    return best;
}

/* Returns the s with the least error of s q, with q from -half to half - 1. */
static float best_scale(const float *x, int n, int half)
{
    float most = 0, best = 0, gain = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(most))
            most = x[i];
    if (most == 0)
        return 0;
    for (int k = -9; k <= 9; k += 3)
        for (int sign = -1; sign <= 1; sign += 2) {
            const float inverse = (float)sign * ((float)half - 0.1f * (float)k) / most;
            float sum_xq = 0, sum_qq = 0;
            for (int i = 0; i < n; i++) {
                const float q = (float)clamped(x[i] * inverse, -half, half - 1);
                sum_xq += x[i] * q;
                sum_qq += q * q;
            }
            /* least squares: the error is reduced by sum_xq squared / sum_qq */
            if (sum_qq > 0 && sum_xq * sum_xq > gain * sum_qq) {
                gain = sum_xq * sum_xq / sum_qq;
                best = sum_xq / sum_qq;
            }
        }
    return best;
}

/* Writes a scale as float16 and returns the stored value. */
static float as_half(unsigned char *to, float x)
{
    gguf_put_half(to, x);
    return io_half(to);
}

/* ---- blocks: ranges ------------------------------------------------------------------------ */

/* A block's scales and minima, in units of d and dmin, and its levels. */
typedef struct ranges {
    int scale[MOST_PARTS], min[MOST_PARTS], q[BLOCK];
} ranges;

static void round_levels(const float *x, int each, int top, float d, float dmin, ranges *r)
{
    for (int p = 0; p < BLOCK / each; p++)
        levels_of(x + p * each, each, top,
                  (ranged){d * (float)r->scale[p], dmin * (float)r->min[p]}, r->q + p * each);
}

/* Computes the d and dmin with the least error for the block. */
static void fit_both(const float *x, int each, const ranges *r, float *d, float *dmin)
{
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int i = 0; i < BLOCK; i++) {
        const double a = (double)r->scale[i / each] * r->q[i], b = -(double)r->min[i / each];
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ax += a * (double)x[i];
        bx += b * (double)x[i];
    }
    const double size = aa * bb - ab * ab;
    if (size > 1e-9 * aa * bb) {
        const double to_d = (bb * ax - ab * bx) / size, to_dmin = (aa * bx - ab * ax) / size;
        if (to_d > 0 && to_dmin > 0) {
            *d = (float)to_d;
            *dmin = (float)to_dmin;
        }
    } else if (aa > 0 && bb == 0 && ax > 0)
        *d = (float)(ax / aa);
}

/* Fits parts of `each` elements with scales and minima up to `most`; writes d and dmin to `to`. */
static void fit_ranges(const float *x, int each, int top, int most, unsigned char *to, ranges *r)
{
    ranged part[MOST_PARTS];
    float s = 0, m = 0;
    const int n = BLOCK / each;
    for (int p = 0; p < n; p++) {
        part[p] = best_range(x + p * each, each, top);
        s = fmaxf(s, part[p].s);
        m = fmaxf(m, part[p].m);
    }
    float d = as_half(to, s / (float)most), dmin = as_half(to + 2, m / (float)most);
    for (int turn = 0; turn < 2; turn++) {
        for (int p = 0; p < n; p++) {
            r->scale[p] = d > 0 ? clamped(part[p].s / d, 0, most) : 0;
            r->min[p] = dmin > 0 ? clamped(part[p].m / dmin, 0, most) : 0;
        }
        round_levels(x, each, top, d, dmin, r);
        fit_both(x, each, r, &d, &dmin);
        d = as_half(to, d);
        dmin = as_half(to + 2, dmin);
    }
    round_levels(x, each, top, d, dmin, r);
}

/* Packs scales and minima of six bits into 12 bytes. */
static void put_six_bits(const ranges *r, unsigned char *s)
{
    for (int k = 0; k < 4; k++) {
        s[k] = (unsigned char)(r->scale[k] | (r->scale[k + 4] >> 4) << 6);
        s[k + 4] = (unsigned char)(r->min[k] | (r->min[k + 4] >> 4) << 6);
        s[k + 8] = (unsigned char)((r->scale[k + 4] & 15) | (r->min[k + 4] & 15) << 4);
    }
}

static void put_low_bits(const int *q, unsigned char *qs)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        const int *at = q + i / 32 * 64 + i % 32;
        qs[i] = (unsigned char)((at[0] & 15) | (at[32] & 15) << 4);
    }
}

void gguf_encode_q4_k(const float *x, unsigned char *to)
{
    ranges r;
    fit_ranges(x, 32, 15, 63, to, &r);
    put_six_bits(&r, to + 4);
    put_low_bits(r.q, to + 16);
}

void gguf_encode_q5_k(const float *x, unsigned char *to)
{
    ranges r;
    fit_ranges(x, 32, 31, 63, to, &r);
    put_six_bits(&r, to + 4);
    memset(to + 16, 0, 32);
    for (int i = 0; i < BLOCK; i++)
        to[16 + i % 32] |= (unsigned char)((r.q[i] >> 4) << i / 32);
    put_low_bits(r.q, to + 48);
}

/* Packs two bits of each level, element by element of a half block. */
static void put_two_bits(const int *q, unsigned char *qs)
{
    memset(qs, 0, 64);
    for (int i = 0; i < BLOCK; i++)
        qs[i / 128 * 32 + i % 32] |= (unsigned char)((q[i] & 3) << i % 128 / 32 * 2);
}

void gguf_encode_q2_k(const float *x, unsigned char *to)
{
    ranges r;
    fit_ranges(x, 16, 3, 15, to + 80, &r);
    for (int p = 0; p < 16; p++)
        to[p] = (unsigned char)(r.scale[p] | r.min[p] << 4);
    put_two_bits(r.q, to + 16);
}

/* ---- blocks: scales of either sign --------------------------------------------------------- */

/* Fits parts of 16 with levels from -half and scales from -most to most - 1; writes d to `to`. */
static void fit_scales(const float *x, int half, int most, unsigned char *to, int scale[16],
                       int q[BLOCK])
{
    float part[16], largest = 0;
    for (int p = 0; p < 16; p++) {
        part[p] = best_scale(x + 16 * p, 16, half);
        if (fabsf(part[p]) > fabsf(largest))
            largest = part[p];
    }
    float d = as_half(to, largest / -(float)most);
    for (int turn = 0; turn < 3; turn++) {
        double xa = 0, aa = 0;
        for (int i = 0; i < BLOCK; i++) {
            const int p = i / 16;
            if (i % 16 == 0)
                scale[p] = d != 0 ? clamped(part[p] / d, -most, most - 1) : 0;
            const float s = d * (float)scale[p];
            q[i] = s != 0 ? clamped(x[i] / s, -half, half - 1) : 0;
            const double a = (double)scale[p] * q[i];
            xa += a * (double)x[i];
            aa += a * a;
        }
        if (turn < 2 && aa > 0)
            d = as_half(to, (float)(xa / aa));
    }
}

void gguf_encode_q3_k(const float *x, unsigned char *to)
{
    int scale[16], q[BLOCK];
    fit_scales(x, 4, 32, to + 108, scale, q);
    memset(to, 0, 32);
    for (int i = 0; i < BLOCK; i++) {
        q[i] += 4;
        to[i % 32] |= (unsigned char)((q[i] >> 2) << i / 32);
    }
    put_two_bits(q, to + 32);
    memset(to + 96, 0, 12);
    for (int k = 0; k < 16; k++) {
        const int s = scale[k] + 32;
        to[96 + k % 8] |= (unsigned char)((s & 15) << k / 8 * 4);
        to[104 + k % 4] |= (unsigned char)((s >> 4) << k / 4 * 2);
    }
}

void gguf_encode_q6_k(const float *x, unsigned char *to)
{
    int scale[16], q[BLOCK];
    fit_scales(x, 32, 128, to + 208, scale, q);
    memset(to, 0, 192);
    for (int i = 0; i < BLOCK; i++) {
        const int n = i / 128, k = i % 128 / 32, l = i % 32, level = q[i] + 32;
        to[64 * n + 32 * (k % 2) + l] |= (unsigned char)((level & 15) << k / 2 * 4);
        to[128 + 32 * n + l] |= (unsigned char)((level >> 4) << 2 * k);
    }
    for (int p = 0; p < 16; p++)
        to[192 + p] = (unsigned char)(signed char)scale[p];
}

/* ---- uneven levels ------------------------------------------------------------------------- */

static int nearest_point(float x)
{
    int above = 0;
    for (int i = 0; i < 15; i++)
        above += x * 2 > (float)(points[i] + points[i + 1]);
    return above;
}

void gguf_encode_iq4_nl(const float *x, unsigned char *to)
{
    float most = 0, d = 0, gain = 0;
    int q[MOST_PART];
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > fabsf(most))
            most = x[i];
    for (int k = -12; most != 0 && k <= 12; k += 3)
        for (int end = 0; end < 16; end += 15) {
            const float inverse = (float)points[end] * (1 + 0.02f * (float)k) / most;
            float sum_xq = 0, sum_qq = 0;
            for (int i = 0; i < 32; i++) {
                const float p = (float)points[nearest_point(x[i] * inverse)];
                sum_xq += x[i] * p;
                sum_qq += p * p;
            }
            if (sum_xq * sum_xq > gain * sum_qq) {
                gain = sum_xq * sum_xq / sum_qq;
                d = sum_xq / sum_qq;
            }
        }
    d = as_half(to, d);
    for (int i = 0; i < 32; i++)
        q[i] = d != 0 ? nearest_point(x[i] / d) : 8;
    for (int i = 0; i < 16; i++)
        to[2 + i] = (unsigned char)(q[i] | q[i + 16] << 4);
}
