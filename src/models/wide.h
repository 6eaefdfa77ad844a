/* wide.h -- what products of a few rows by AVX2 share: how a vector is summed, and how many rows are taken at once. */
#ifndef TERN_SRC_MODELS_WIDE_H
#define TERN_SRC_MODELS_WIDE_H
#include <stdbool.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2,fma")))

/* Whether this processor has what WIDE functions are made of. */
static inline bool wide_is_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

WIDE static inline float wide_sum(__m256 x)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

/* ROW_OF(P, O, r, n) for all rows r .. r + n of P->rows: four at once, then two, then one, so that n is a constant of each. */
#define WIDE_ROWS(ROW_OF, P, O)                                                                    \
    do {                                                                                           \
        int64_t r = 0;                                                                             \
        for (; r + 4 <= (P)->rows; r += 4)                                                         \
            ROW_OF(P, O, r, 4);                                                                    \
        for (; r + 2 <= (P)->rows; r += 2)                                                         \
            ROW_OF(P, O, r, 2);                                                                    \
        if (r < (P)->rows)                                                                         \
            ROW_OF(P, O, r, 1);                                                                    \
    } while (0)
#endif
#endif
