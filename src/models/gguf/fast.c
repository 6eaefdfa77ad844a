/* fast.c -- decoders whose loops run over neighbouring elements, so that compilers vectorize them.
 * All products are exact, so the results equal those of io/block.c in any order. */
#include "models/gguf/fast.h"
#include "models/wide.h"
#include <string.h>

#ifdef WIDE
typedef const unsigned char *bytes;

WIDE static void q4_0(bytes b, float *y)
{
    const float d = io_half(b);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float)((b[2 + i] & 15) - 8);
        y[i + 16] = d * (float)((b[2 + i] >> 4) - 8);
    }
}

WIDE static void q8_0(bytes b, float *y)
{
    const float d = io_half(b);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)(signed char)b[2 + i];
}

WIDE_INLINE void scales_of(bytes b, float *scale, float *min)
{
    const float d = io_half(b), dmin = io_half(b + 2);
    bytes s = b + 4;
    for (int k = 0; k < 4; k++) {
        scale[k] = d * (float)(s[k] & 63);
        min[k] = dmin * (float)(s[k + 4] & 63);
        scale[k + 4] = d * (float)((s[k + 8] & 15) | s[k] >> 6 << 4);
        min[k + 4] = dmin * (float)(s[k + 8] >> 4 | s[k + 4] >> 6 << 4);
    }
}

WIDE static void q4_k(bytes b, float *y)
{
    float scale[8], min[8];
    scales_of(b, scale, min);
    bytes q = b + 16;
    for (int k = 0; k < 8; k += 2, q += 32, y += 64)
        for (int i = 0; i < 32; i++) {
            y[i] = scale[k] * (float)(q[i] & 15) - min[k];
            y[i + 32] = scale[k + 1] * (float)(q[i] >> 4) - min[k + 1];
        }
}

WIDE static void q5_k(bytes b, float *y)
{
    float scale[8], min[8];
    scales_of(b, scale, min);
    bytes q = b + 48, high = b + 16;
    for (int k = 0; k < 8; k += 2, q += 32, y += 64)
        for (int i = 0; i < 32; i++) {
            y[i] = scale[k] * (float)((q[i] & 15) | (high[i] >> k & 1) << 4) - min[k];
            y[i + 32] =
                scale[k + 1] * (float)(q[i] >> 4 | (high[i] >> (k + 1) & 1) << 4) - min[k + 1];
        }
}

WIDE static void q6_k(bytes b, float *y)
{
    const float d = io_half(b + 208);
    for (int n = 0; n < 4; n++) { /* 16 elements of each of four groups of 32 */
        bytes low = b + n / 2 * 64 + n % 2 * 16, high = b + 128 + n / 2 * 32 + n % 2 * 16;
        const signed char *s = (const signed char *)b + 192 + n / 2 * 8 + n % 2;
        const float a[4] = {d * (float)s[0], d * (float)s[2], d * (float)s[4], d * (float)s[6]};
        float *to = y + n / 2 * 128 + n % 2 * 16;
        for (int i = 0; i < 16; i++) {
            to[i] = a[0] * (float)(((low[i] & 15) | (high[i] & 3) << 4) - 32);
            to[i + 32] = a[1] * (float)(((low[i + 32] & 15) | (high[i] >> 2 & 3) << 4) - 32);
            to[i + 64] = a[2] * (float)((low[i] >> 4 | (high[i] >> 4 & 3) << 4) - 32);
            to[i + 96] = a[3] * (float)((low[i + 32] >> 4 | high[i] >> 6 << 4) - 32);
        }
    }
}

#ifdef __aarch64__
WIDE static void iq4_nl(bytes b, float *y)
{
    static const signed char points[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
    const float d = io_half(b);
    const int8x16_t level = vld1q_s8(points);
    const uint8x16_t q = vld1q_u8(b + 2);
    signed char of[32];
    vst1q_s8(of, vqtbl1q_s8(level, vandq_u8(q, vdupq_n_u8(15))));
    vst1q_s8(of + 16, vqtbl1q_s8(level, vshrq_n_u8(q, 4)));
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)of[i];
}
#else
WIDE static void iq4_nl(bytes b, float *y)
{
    const __m128i points =
        _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
    const __m128i q = _mm_loadu_si128((const __m128i *)(b + 2)), mask = _mm_set1_epi8(15);
    const __m256 d = _mm256_set1_ps(io_half(b));
    __m128i level[2] = {_mm_shuffle_epi8(points, _mm_and_si128(q, mask)),
                        _mm_shuffle_epi8(points, _mm_and_si128(_mm_srli_epi16(q, 4), mask))};
    for (int i = 0; i < 4; i++) {
        __m128i of_8 = i % 2 ? _mm_srli_si128(level[i / 2], 8) : level[i / 2];
        _mm256_storeu_ps(y + 8 * i,
                         _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(of_8))));
    }
}
#endif

static const struct {
    const char *name;
    gguf_decoder decode;
} decoders[] = {{"Q4_0", q4_0}, {"Q8_0", q8_0}, {"Q4_K", q4_k},
                {"Q5_K", q5_k}, {"Q6_K", q6_k}, {"IQ4_NL", iq4_nl}};

gguf_decoder gguf_decoder_of(const io_block *block)
{
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders && wide_is_here(); i++)
        if (strcmp(decoders[i].name, block->name) == 0)
            return decoders[i].decode;
    return block->decode;
}

/* Adds the dot product of n numbers, a multiple of 16, to sum. */
WIDE_INLINE wide_f32 dot_of(wide_f32 sum, const float *a, const float *b, int n)
{
    wide_f32 other = wide_all(0);
    for (int i = 0; i < n; i += 2 * WIDE_LANES) {
        const float *c = a + i + WIDE_LANES, *d = b + i + WIDE_LANES;
        sum = wide_fma(sum, wide_load(a + i), wide_load(b + i));
        other = wide_fma(other, wide_load(c), wide_load(d));
    }
    return sum + other;
}

WIDE static void dot_wide(const io_block *block, gguf_decoder decode, bytes row, int64_t columns,
                          const float *x, int n, float *y, int64_t step)
{
    float w[256];
    wide_f32 sums[GGUF_SKINNY];
    WIDE_EACH(r, GGUF_SKINNY)
    sums[r] = wide_all(0);
    for (int64_t at = 0; at < columns; at += block->elements, row += block->bytes) {
        decode(row, w);
        for (int r = 0; r < n; r++)
            sums[r] = dot_of(sums[r], w, x + r * columns + at, block->elements);
    }
    for (int r = 0; r < n; r++)
        y[r * step] = wide_sum(sums[r]);
}

#else
gguf_decoder gguf_decoder_of(const io_block *block)
{
    return block->decode;
}
#endif

void gguf_dot(const io_block *block, const unsigned char *row, int64_t columns, const float *x,
              int n, float *y, int64_t step)
{
    float w[256];
#ifdef WIDE
    if (wide_is_here()) {
        dot_wide(block, gguf_decoder_of(block), row, columns, x, n, y, step);
        return;
    }
#endif
    for (int r = 0; r < n; r++)
        y[r * step] = 0;
    for (int64_t at = 0; at < columns; at += block->elements, row += block->bytes) {
        block->decode(row, w);
        for (int r = 0; r < n; r++)
            for (int i = 0; i < block->elements; i++)
                y[r * step] += w[i] * x[r * columns + at + i];
    }
}
