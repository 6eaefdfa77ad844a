/* random.cl -- random numbers from Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011), and dropout.
 *
 * Group g of a call is four words of 32 bits that depend on the seed and the group's number alone;
 * state is {seed, base} and at is where the call begins. Element i uses word i % 4 of group i / 4;
 * elements of 64 bits use words 2 (i % 2) and the next of group i / 2. */

#include "philox.h"
#ifndef TERN_RANDOM_ONCE
#define TERN_RANDOM_ONCE
/* What one group gives: four numbers, or two of 64 bits. */
typedef struct tern_four {
    f32 a, b, c, d;
} tern_four;
#define TERN_FOUR_(NAME, A, B, C_, D)                                                              \
    INLINE tern_four NAME(tern_words w)                                                            \
    {                                                                                              \
        tern_four v;                                                                               \
        v.a = A;                                                                                   \
        v.b = B;                                                                                   \
        v.c = C_;                                                                                  \
        v.d = D;                                                                                   \
        return v;                                                                                  \
    }
/* Uniform in [0, 1), with as many bits as the type can distinguish below 1. */
#define UNIT_(u, BITS) ((f32)(i32)((u) >> (32 - BITS)) * (1.0f / (f32)(1 << BITS)))
#define UNIT4_(NAME, BITS)                                                                         \
    TERN_FOUR_(NAME, UNIT_(w.a, BITS), UNIT_(w.b, BITS), UNIT_(w.c, BITS), UNIT_(w.d, BITS))
UNIT4_(tern_uniform_f32, 24)
UNIT4_(tern_uniform_f16, 11)
UNIT4_(tern_uniform_bf16, 8)
/* Standard normal: radius sqrt(-2 ln(1 - u)) at the angle 2 pi v (Box, Muller 1958). */
#define RADIUS_(u) tern_sqrt_f32(-2.0f * tern_log_f32(1.0f - UNIT_(u, 24)))
TERN_FOUR_(tern_normal_f32, RADIUS_(w.a) * tern_cos2pi_f32(UNIT_(w.b, 24)),
           RADIUS_(w.a) * tern_sin2pi_f32(UNIT_(w.b, 24)),
           RADIUS_(w.c) * tern_cos2pi_f32(UNIT_(w.d, 24)),
           RADIUS_(w.c) * tern_sin2pi_f32(UNIT_(w.d, 24)))
#define tern_normal_f16  tern_normal_f32
#define tern_normal_bf16 tern_normal_f32

/* y = shift + scale v, with v of whole groups in a vector loop, then of the last one. */
#define FILL_FLOAT4_(MAKE)                                                                         \
    idx quads = (idx)n >> 2;                                                                       \
    SIMD ITEMS(g, quads)                                                                           \
    {                                                                                              \
        tern_four v = MAKE(tern_philox(from + (u64)g, seed));                                      \
        ST(ys, 4 * g, shift + scale * v.a);                                                        \
        ST(ys, 4 * g + 1, shift + scale * v.b);                                                    \
        ST(ys, 4 * g + 2, shift + scale * v.c);                                                    \
        ST(ys, 4 * g + 3, shift + scale * v.d);                                                    \
    }                                                                                              \
    ITEMS(k, (idx)n - 4 * quads)                                                                   \
    {                                                                                              \
        tern_four v = MAKE(tern_philox(from + (u64)quads, seed));                                  \
        f32 x = k == 0 ? v.a : k == 1 ? v.b : v.c;                                                 \
        ST(ys, 4 * quads + k, shift + scale * x);                                                  \
    }

#define FILL_TWOS_(MAKE)                                                                           \
    idx twos = (idx)n >> 1;                                                                        \
    SIMD ITEMS(g, twos)                                                                            \
    {                                                                                              \
        tern_two v = MAKE(tern_philox(from + (u64)g, seed));                                       \
        ST(ys, 2 * g, shift + scale * v.a);                                                        \
        ST(ys, 2 * g + 1, shift + scale * v.b);                                                    \
    }                                                                                              \
    ITEMS(k, (idx)n - 2 * twos)                                                                    \
    {                                                                                              \
        tern_two v = MAKE(tern_philox(from + (u64)twos, seed));                                    \
        ST(ys, 2 * twos + k, shift + scale * v.a);                                                 \
    }
#define FILL_f32  FILL_FLOAT4_
#define FILL_f16  FILL_FLOAT4_
#define FILL_bf16 FILL_FLOAT4_
#define FILL_f64  FILL_TWOS_

#define RANDOM(NAME)                                                                               \
    KERNEL6(K(NAME), (OUT, STO, ys), (IN, u64, state), (ARG, i64, at), (ARG, i64, n),              \
            (ARG, REAL, shift), (ARG, REAL, scale))                                                \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(state);                                                                               \
        u64 seed = state[0], from = state[1] + (u64)at;                                            \
        TERN_CAT(FILL, TERN_T)(TERN_CAT(tern_##NAME, TERN_T))                                      \
    }
#endif

#if IS_WIDE /* read once: no other type needs it */
typedef struct tern_two {
    f64 a, b;
} tern_two;
#define UNIT64_(high, low)                                                                         \
    ((f64)(i64)(((u64)(high) << 21) | ((low) >> 11)) * (1.0 / 9007199254740992.0))
INLINE tern_two tern_uniform_f64(tern_words w)
{
    tern_two v;
    v.a = UNIT64_(w.a, w.b);
    v.b = UNIT64_(w.c, w.d);
    return v;
}
INLINE tern_two tern_normal_f64(tern_words w)
{
    tern_two v = tern_uniform_f64(w);
    f64 radius = tern_sqrt_f64(-2.0 * tern_log_f64(1.0 - v.a)), angle = v.b;
    v.a = radius * tern_cos2pi_f64(angle);
    v.b = radius * tern_sin2pi_f64(angle);
    return v;
}
#endif

#if IS_FLOAT
RANDOM(uniform)
RANDOM(normal)

/* y = x scale + shift where a word is not below limit (of 2^24), else x 0 + dropped; kept says
 * which. */
KERNEL10(K(dropout), (OUT, STO, ys), (OUT, u8, kept), (IN, STO, xs), (IN, u64, state),
         (ARG, i64, at), (ARG, i64, n), (ARG, i32, limit), (ARG, REAL, scale), (ARG, REAL, shift),
         (ARG, REAL, dropped))
{
    BASE(ys);
    BASE(kept);
    BASE(xs);
    BASE(state);
    u64 seed = state[0], from = state[1] + (u64)at;
    idx quads = (idx)n >> 2;
    GLOBAL u32 *kept4 = (GLOBAL u32 *)kept; /* an output of its own: it begins at a multiple of
                                               four */
#define KEEP_(i, u)                                                                                \
    {                                                                                              \
        REAL on = (REAL)((i32)((u) >> 8) >= limit);                                                \
        ST(ys, i, LD(xs, i) * (on * scale) + (on * shift + (1 - on) * dropped));                   \
    }
#define KEPT_(u) ((u32)((i32)((u) >> 8) >= limit))
    SIMD ITEMS(g, quads)
    {
        tern_words w = tern_philox(from + (u64)g, seed);
        kept4[g] = KEPT_(w.a) | KEPT_(w.b) << 8 | KEPT_(w.c) << 16 | KEPT_(w.d) << 24;
        KEEP_(4 * g, w.a)
        KEEP_(4 * g + 1, w.b)
        KEEP_(4 * g + 2, w.c)
        KEEP_(4 * g + 3, w.d)
    }
    ITEMS(k, (idx)n - 4 * quads)
    {
        tern_words w = tern_philox(from + (u64)quads, seed);
        u32 u = k == 0 ? w.a : k == 1 ? w.b : w.c;
        kept[4 * quads + k] = (u8)KEPT_(u);
        KEEP_(4 * quads + k, u)
    }
#undef KEPT_
#undef KEEP_
}

/* y = x scale where kept, else 0. */
KERNEL5(K(kept_only), (OUT, STO, ys), (IN, STO, xs), (IN, u8, kept), (ARG, i64, n),
        (ARG, REAL, scale))
{
    BASE(ys);
    BASE(xs);
    BASE(kept);
    SIMD ITEMS(i, n)
    {
        ST(ys, i, LD(xs, i) * (kept[i] != 0 ? scale : 0));
    }
}
#endif

#if IS_FLOAT && !IS_WIDE && !IS_HALF /* once */
/* The next call begins n groups later. */
KERNEL2(K(advance_random), (OUT, u64, state), (ARG, i64, n))
{
    BASE(state);
    ITEMS(i, 1)
    {
        state[1 + i] += (u64)n;
    }
}
#endif

/* low + 0..span-1. Up to 2^32 a word times span, the upper half; else (span 0: all 2^64) 64 bits
 * modulo span. */
KERNEL6(K(integers), (OUT, STO, ys), (IN, u64, state), (ARG, i64, at), (ARG, i64, n),
        (ARG, i64, low), (ARG, u64, span))
{
    BASE(ys);
    BASE(state);
    u64 seed = state[0], from = state[1] + (u64)at;
    if (span != 0 && span <= ((u64)1 << 32)) {
        ITEMS(i, n)
        {
            tern_words w = tern_philox(from + (u64)(i >> 2), seed);
            u32 u = (i & 3) == 0 ? w.a : (i & 3) == 1 ? w.b : (i & 3) == 2 ? w.c : w.d;
            u64 high = span >> 32 != 0 ? u : (u64)u * span >> 32;
            ST(ys, i, (REAL)(i64)((u64)low + high));
        }
    } else {
        ITEMS(i, n)
        {
            tern_words w = tern_philox(from + (u64)(i >> 1), seed);
            u64 u = (i & 1) == 0 ? (u64)w.a << 32 | w.b : (u64)w.c << 32 | w.d;
            ST(ys, i, (REAL)(i64)((u64)low + (span != 0 ? u % span : u)));
        }
    }
}
