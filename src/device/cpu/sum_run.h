/* sum_run.h -- sums of contiguous elements by AVX2 for cl_kernels/reduce.cl: four sums at a time,
 * as a single one would wait for its last addition; half precision by the processor's own
 * conversions. */
#ifndef TERN_DEVICE_CPU_SUM_RUN_H
#define TERN_DEVICE_CPU_SUM_RUN_H
#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
#define TERN_SUM_RUN 1

/* Adds 16 elements to t: the first 8 to t[0], the others to t[1]. */
ALWAYS_INLINE void tern_sum_16_f32(__m256 t[2], const f32 *x)
{
    t[0] = _mm256_add_ps(t[0], _mm256_loadu_ps(x));
    t[1] = _mm256_add_ps(t[1], _mm256_loadu_ps(x + 8));
}
ALWAYS_INLINE void tern_sum_16_f16(__m256 t[2], const u16 *x)
{
    t[0] = _mm256_add_ps(t[0], _mm256_cvtph_ps(_mm_loadu_si128((const void *)x)));
    t[1] = _mm256_add_ps(t[1], _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x + 8))));
}
/* Adds the elements at even indices to t[0], those at odd indices to t[1]. */
ALWAYS_INLINE void tern_sum_16_bf16(__m256 t[2], const u16 *x)
{
    __m256i v = _mm256_loadu_si256((const void *)x);
    __m256i odd = _mm256_andnot_si256(_mm256_set1_epi32(0xffff), v);
    t[0] = _mm256_add_ps(t[0], _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)));
    t[1] = _mm256_add_ps(t[1], _mm256_castsi256_ps(odd));
}

#define TERN_SUM_RUN_OF(T)                                                                         \
    ALWAYS_INLINE f32 tern_sum_run_##T(const STO_OF(T) * x, idx n)                                 \
    {                                                                                              \
        __m256 t[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),              \
                       _mm256_setzero_ps()};                                                       \
        idx i = 0;                                                                                 \
        for (; i + 32 <= n; i += 32) {                                                             \
            tern_sum_16_##T(t, x + i);                                                             \
            tern_sum_16_##T(t + 2, x + i + 16);                                                    \
        }                                                                                          \
        if (i + 16 <= n) {                                                                         \
            tern_sum_16_##T(t, x + i);                                                             \
            i += 16;                                                                               \
        }                                                                                          \
        t[0] = _mm256_add_ps(_mm256_add_ps(t[0], t[1]), _mm256_add_ps(t[2], t[3]));                \
        __m128 h = _mm_add_ps(_mm256_castps256_ps128(t[0]), _mm256_extractf128_ps(t[0], 1));       \
        h = _mm_add_ps(h, _mm_movehl_ps(h, h));                                                    \
        f32 s = _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));                                  \
        for (; i < n; i++)                                                                         \
            s += LD_OF(T, x, i);                                                                   \
        return s;                                                                                  \
    }
TERN_SUM_RUN_OF(f32)
TERN_SUM_RUN_OF(f16)
TERN_SUM_RUN_OF(bf16)
#endif
#endif
