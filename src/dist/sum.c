/* sum.c -- reductions over the ranks' data, in the order of ranks; halves are computed in float32
 * and rounded once. */
#include "dist/dist.h"
#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

static float f16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)(h & 0x7fff) << 13;
    float value;
    if ((h & 0x7c00) == 0x7c00)
        bits |= 0x7f800000; /* inf, nan */
    memcpy(&value, &bits, 4);
    if ((h & 0x7c00) != 0x7c00)
        value *=
            0x1p112f; /* scales by the difference of exponent biases; correct for subnormal numbers
                         too */
    return h & 0x8000 ? -value : value;
}

static uint16_t f32_to_f16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (value != value)
        return sign | 0x7e00;
    value = fabsf(value);
    if (value >= 65520)
        return sign | 0x7c00;
    if (value < 0x1p-14f) /* subnormal: rounds to a multiple of 2^-24, ties to even */
        return (uint16_t)(sign | (uint16_t)nearbyintf(value * 0x1p24f));
    bits &= 0x7fffffff;
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (uint16_t)((bits - (112u << 23)) >> 13));
}

static float bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static uint16_t f32_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void load(float *to, const void *from, int64_t at, int n, tern_dtype dtype)
{
    const uint16_t *halves = (const uint16_t *)from + at;
    if (dtype == TERN_F32)
        memcpy(to, (const float *)from + at, sizeof *to * (size_t)n);
    else
        for (int i = 0; i < n; i++)
            to[i] = dtype == TERN_F16 ? f16_to_f32(halves[i]) : bf16_to_f32(halves[i]);
}

static void store(void *to, int64_t at, const float *from, int n, tern_dtype dtype)
{
    uint16_t *halves = (uint16_t *)to + at;
    if (dtype == TERN_F32)
        memcpy((float *)to + at, from, sizeof *from * (size_t)n);
    else
        for (int i = 0; i < n; i++)
            halves[i] = dtype == TERN_F16 ? f32_to_f16(from[i]) : f32_to_bf16(from[i]);
}

/* The result is NaN if either value is, as in PyTorch's minimum and maximum. */
#define COMBINE(REAL)                                                                              \
    static void combine_##REAL(REAL *a, const REAL *b, int n, tern_dist_op op)                     \
    {                                                                                              \
        for (int i = 0; i < n; i++) {                                                              \
            REAL x = a[i], y = b[i];                                                               \
            if (op == TERN_DIST_PRODUCT)                                                           \
                x *= y;                                                                            \
            else if (op == TERN_DIST_MIN)                                                          \
                x = x != x || x < y ? x : y;                                                       \
            else if (op == TERN_DIST_MAX)                                                          \
                x = x != x || x > y ? x : y;                                                       \
            else                                                                                   \
                x += y;                                                                            \
            a[i] = x;                                                                              \
        }                                                                                          \
    }
COMBINE(float)
COMBINE(double)

static void combine_block(void *out, const void *rows, int n, int64_t count, int64_t at, int m,
                          tern_dtype dtype, tern_dist_op op, int ranks)
{
    if (dtype == TERN_F64) {
        double sum[BLOCK];
        memcpy(sum, (const double *)rows + at, sizeof *sum * (size_t)m);
        for (int r = 1; r < n; r++)
            combine_double(sum, (const double *)rows + r * count + at, m, op);
        for (int i = 0; i < m; i++)
            ((double *)out)[at + i] = op == TERN_DIST_AVG ? sum[i] / ranks : sum[i];
        return;
    }
    float sum[BLOCK], row[BLOCK];
    load(sum, rows, at, m, dtype);
    for (int r = 1; r < n; r++) {
        load(row, rows, r * count + at, m, dtype);
        combine_float(sum, row, m, op);
    }
    for (int i = 0; op == TERN_DIST_AVG && i < m; i++)
        sum[i] /= (float)ranks;
    store(out, at, sum, m, dtype);
}

void tern_dist_combine(void *out, const void *rows, int n, int64_t count, tern_dtype dtype,
                       tern_dist_op op, int ranks)
{
    for (int64_t at = 0; at < count; at += BLOCK)
        combine_block(out, rows, n, count, at, (int)(count - at < BLOCK ? count - at : BLOCK),
                      dtype, op, ranks);
}

/* Adds the n elements of b from `at` on to those of a. */
static void add(void *a, const void *b, int64_t at, int n, tern_dtype dtype)
{
    if (dtype == TERN_F64) {
        combine_double((double *)a + at, (const double *)b + at, n, TERN_DIST_SUM);
        return;
    }
    float sum[BLOCK], other[BLOCK];
    load(sum, a, at, n, dtype);
    load(other, b, at, n, dtype);
    combine_float(sum, other, n, TERN_DIST_SUM);
    store(a, at, sum, n, dtype);
}

void tern_dist_combine_tree(void *rows, int n, int64_t count, tern_dtype dtype)
{
    const size_t row = (size_t)count * tern_dtype_size(dtype);
    for (int apart = 1; apart < n; apart *= 2)
        for (int r = 0; r + apart < n; r += 2 * apart)
            for (int64_t at = 0; at < count; at += BLOCK)
                add((char *)rows + row * (size_t)r, (char *)rows + row * (size_t)(r + apart), at,
                    (int)(count - at < BLOCK ? count - at : BLOCK), dtype);
}
