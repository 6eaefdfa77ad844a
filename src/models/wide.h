/* wide.h -- vectors of AVX2 or NEON for products of a few rows, and the loop over tiles of outputs
 * and rows. */
#ifndef TERN_SRC_MODELS_WIDE_H
#define TERN_SRC_MODELS_WIDE_H
#include "base/os_cpu.h"
/* Whether this processor has instructions for products of bfloat16. */
static inline bool wide_has_bf16(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return tern_cpu_has(TERN_CPU_AVX512BF16);
#else
    return false;
#endif
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WIDE        __attribute__((target("avx2,fma")))
#define WIDE_INLINE static inline __attribute__((target("avx2,fma"), always_inline))

/* Whether this processor has the instructions that functions marked WIDE use. */
static inline bool wide_is_here(void)
{
    return tern_cpu_has(TERN_CPU_AVX2 | TERN_CPU_FMA);
}

/* A vector of float32. wide_all broadcasts a number, wide_load loads neighbours, wide_fma and
 * wide_fms return sum + a * b and sum - a * b, rounded once, and wide_sum adds the lanes. */
enum { WIDE_LANES = 8 };
typedef __m256 wide_f32;
typedef __m256i wide_i32;
WIDE_INLINE wide_f32 wide_all(float x)
{
    return _mm256_set1_ps(x);
}

WIDE_INLINE wide_f32 wide_load(const float *x)
{
    return _mm256_loadu_ps(x);
}

WIDE_INLINE wide_f32 wide_of_i32(wide_i32 x)
{
    return _mm256_cvtepi32_ps(x);
}

WIDE_INLINE wide_f32 wide_fma(wide_f32 sum, wide_f32 a, wide_f32 b)
{
    return _mm256_fmadd_ps(a, b, sum);
}

WIDE_INLINE wide_f32 wide_fms(wide_f32 sum, wide_f32 a, wide_f32 b)
{
    return _mm256_fnmadd_ps(a, b, sum);
}

WIDE static inline float wide_sum(wide_f32 x)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
#elif defined(__aarch64__)
#include <arm_neon.h>
#define WIDE
#define WIDE_INLINE static inline __attribute__((always_inline))
static inline bool wide_is_here(void)
{
    return true;
}

enum { WIDE_LANES = 4 };
typedef float32x4_t wide_f32;
typedef int32x4_t wide_i32;
#define wide_all    vdupq_n_f32
#define wide_load   vld1q_f32
#define wide_of_i32 vcvtq_f32_s32
#define wide_fma    vfmaq_f32
#define wide_fms    vfmsq_f32
#define wide_sum    vaddvq_f32
#endif

#ifdef WIDE
/* Number of independent sums, so that no product waits for the one before. WIDE_EACH loops up to
 * that many times and is unrolled. */
enum { WIDE_SUMS = 4 };
#define WIDE_EACH(I, N) _Pragma("GCC unroll 4") for (int I = 0; I < (N); I++)

/* Calls TILE_OF(P, o, k, r, n) so that the tiles cover the LEFT <= WIDE_SUMS outputs from O on
 * and all P->rows rows; a tile has k outputs from o on and n rows from r on, and k and n are
 * constants. */
#define WIDE_TILES(TILE_OF, P, O, LEFT)                                                            \
    do {                                                                                           \
        int64_t r = 0;                                                                             \
        int c = 0;                                                                                 \
        for (; r + 4 <= (P)->rows; r += 4)                                                         \
            for (c = 0; c < (LEFT); c++)                                                           \
                TILE_OF(P, (O) + c, 1, r, 4);                                                      \
        for (; r + 2 <= (P)->rows; r += 2) {                                                       \
            for (c = 0; c + 2 <= (LEFT); c += 2)                                                   \
                TILE_OF(P, (O) + c, 2, r, 2);                                                      \
            if (c < (LEFT))                                                                        \
                TILE_OF(P, (O) + c, 1, r, 2);                                                      \
        }                                                                                          \
        if (r < (P)->rows && (LEFT) == WIDE_SUMS)                                                  \
            TILE_OF(P, O, WIDE_SUMS, r, 1);                                                        \
        else if (r < (P)->rows)                                                                    \
            for (c = 0; c < (LEFT); c++)                                                           \
                TILE_OF(P, (O) + c, 1, r, 1);                                                      \
    } while (0)
#endif
#endif
