/* prelude_host.h -- the dialect for the host's C compiler: a work-group of one, and a contiguous
 * chunk of the work for each thread. */
#include "types_host.h"
#define TERN_HOST 1
#define TERN_CHUNKS 1 /* a thread does one contiguous chunk */
#define TERN_F64  1
#define GLOBAL
#define LOCAL
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __OPTIMIZE_SIZE__
#define INLINE static inline __attribute__((unused)) /* the compiler weighs size */
#else
#define INLINE ALWAYS_INLINE
#endif
#define FUNCTION static __attribute__((unused))
#define INLINE64 FUNCTION /* math of f64 */
#define TERN_WG 1
#define LID     0
#define LSIZE   1
#define BARRIER() ((void)0)
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define LOCAL_ARRAY(T, name, n) T name[n]

#define TERN_PRAGMA(x)  _Pragma(#x)
#define SIMD            TERN_PRAGMA(omp simd)
#define SIMD_SUM(v)     TERN_PRAGMA(omp simd reduction(+ : v))
#define SIMD_SUM2(v, w) TERN_PRAGMA(omp simd reduction(+ : v, w))
#define SIMD_MAX(v)     TERN_PRAGMA(omp simd reduction(max : v))
#define SIMD_MIN(v)     TERN_PRAGMA(omp simd reduction(min : v))

/* The first item of part t of parts, chunks being multiples of align. */
ALWAYS_INLINE idx tern_chunk(idx n, idx t, idx parts, idx align)
{
    idx size = (n + parts - 1) / parts;
    size = (size + align - 1) / align * align;
    return size * t < n ? size * t : n;
}
ALWAYS_INLINE idx tern_larger(idx a, idx b)
{
    return a > b ? a : b;
}
ALWAYS_INLINE idx tern_smaller(idx a, idx b)
{
    return a < b ? a : b;
}
#define TERN_FROM(n, align) tern_chunk((idx)(n), tern_g.part, tern_g.parts, align)
#define TERN_TO(n, align)   tern_chunk((idx)(n), tern_g.part + 1, tern_g.parts, align)

#define ITEMS(i, n)  for (idx i = TERN_FROM(n, 64); i < TERN_TO(n, 64); ++i)
#define GROUPS(g, n) for (idx g = TERN_FROM(n, 1); g < TERN_TO(n, 1); ++g)
#define LANES(j, n)  for (idx j = 0; j < (idx)(n); ++j)
/* A thread's chunk of the flat range, cut into rows. */
#define FLAT(r, rows, inner)                                                                       \
    for (idx tern_in = (idx)(inner), tern_n = (idx)(rows)*tern_in,                                 \
             tern_b = TERN_FROM(tern_n, 64), tern_e = TERN_TO(tern_n, 64),                         \
             r = tern_in ? tern_b / tern_in : 0;                                                   \
         tern_b < tern_e && r * tern_in < tern_e; ++r)
#define INNER(r, j)                                                                                \
    for (idx j = tern_larger(tern_b - r * tern_in, 0);                                             \
         j < tern_smaller(tern_e - r * tern_in, tern_in); ++j)

INLINE f32 f32_from_bits(u32 u)
{
    union {
        u32 u;
        f32 f;
    } x;
    x.u = u;
    return x.f;
}
INLINE u32 f32_bits(f32 f)
{
    union {
        u32 u;
        f32 f;
    } x;
    x.f = f;
    return x.u;
}
INLINE f64 f64_from_bits(u64 u)
{
    union {
        u64 u;
        f64 f;
    } x;
    x.u = u;
    return x.f;
}
INLINE u64 f64_bits(f64 f)
{
    union {
        u64 u;
        f64 f;
    } x;
    x.f = f;
    return x.u;
}
#define tern_sqrt_f32(x) __builtin_sqrtf(x)
#define tern_sqrt_f64(x) __builtin_sqrt(x)
#define tern_fabs_f32(x) __builtin_fabsf(x)
#define tern_fabs_f64(x) __builtin_fabs(x)
#define tern_rint_f32(x) __builtin_rintf(x)
#define tern_rint_f64(x) __builtin_rint(x)

/* f16 by bits, so that loops vectorise; round to nearest even, subnormals, infinities and NaN
 * kept. */
INLINE f32 tern_f16_to_f32(u16 h)
{
#ifdef __aarch64__ /* FCVTL in loops, too; of what narrows gcc makes no vectors */
    union {
        u16 u;
        __fp16 h;
    } x;
    x.u = h;
    return (f32)x.h;
#else
    u32 magnitude = (u32)(h & 0x7fffu) << 13, sign = (u32)(h & 0x8000u) << 16;
    u32 r = f32_bits(f32_from_bits(magnitude) * 0x1p112f); /* rebias; exact, subnormals too */
    r = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : r;
    return f32_from_bits(r | sign);
#endif
}
INLINE u16 tern_f32_to_f16(f32 f)
{
    u32 u = f32_bits(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    u32 normal = (a + 0x0fffu + ((a >> 13) & 1u) - 0x38000000u) >> 13;
    u32 subnormal = f32_bits(f32_from_bits(a) + 0.5f) - 0x3f000000u; /* the adder rounds */
    u32 r = a < 0x38800000u ? subnormal : normal;
    r = a >= 0x47800000u ? 0x7c00u : r;
    r = a > 0x7f800000u ? 0x7e00u : r;
    return (u16)(r | sign);
}
#define LD_F16(R, p, i)    tern_f16_to_f32((p)[i])
#define ST_F16(S, p, i, v) ((p)[i] = tern_f32_to_f16((f32)(v)))

/* *p += v, whole even when several threads do it. */
INLINE void tern_atomic_add_f32(f32 *p, f32 v)
{
    u32 old = __atomic_load_n((u32 *)(void *)p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n((u32 *)(void *)p, &old, f32_bits(f32_from_bits(old) + v), 1,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}
INLINE void tern_atomic_add_f64(f64 *p, f64 v)
{
    u64 old = __atomic_load_n((u64 *)(void *)p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n((u64 *)(void *)p, &old, f64_bits(f64_from_bits(old) + v), 1,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}
#define BASE(x) ((void)(x))
