/* prelude_opencl.h -- the dialect for OpenCL C 1.2: what both kinds of device share. */
#include "declares.h"
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;
#if TERN_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#endif
#if TERN_IDX32
typedef int idx;
#else
typedef long idx;
#endif
#pragma OPENCL FP_CONTRACT OFF
#define GLOBAL __global
#define PARAM_OUT(T, a) __global T *a, const i64 a##_at
#define PARAM_IN(T, a)  const __global T *a, const i64 a##_at
#define PARAM_ARG(T, a) const T a
#define BASE(x) x += x##_at
/* Of sums that no other device has to agree with to the bit. */
#define MULTIPLY_ADD(a, b, c) mad(a, b, c)

#define f32_from_bits(u) as_float((u32)(u))
#define f32_bits(f)      as_uint((f32)(f))
#define f64_from_bits(u) as_double((u64)(u))
#define f64_bits(f)      as_ulong((f64)(f))
/* Functions, as sqrt may be a macro of the device's that math_names.h undefines. */
static inline f32 tern_sqrt_f32(f32 x)
{
    return sqrt(x);
}
static inline f32 tern_fabs_f32(f32 x)
{
    return fabs(x);
}
static inline f32 tern_rint_f32(f32 x)
{
    return rint(x);
}
#if TERN_F64
static inline f64 tern_sqrt_f64(f64 x)
{
    return sqrt(x);
}
static inline f64 tern_fabs_f64(f64 x)
{
    return fabs(x);
}
static inline f64 tern_rint_f64(f64 x)
{
    return rint(x);
}
#endif

/* f16 in memory needs no cl_khr_fp16. */
#define LD_F16(R, p, i)    vload_half((size_t)(i), (const __global half *)(p))
#define ST_F16(S, p, i, v) vstore_half_rte((f32)(v), (size_t)(i), (__global half *)(p))

/* *p += v by compare and swap: OpenCL 1.2 has no float atomics. The first guess is no read, which
 * would race with the other writers. */
static inline void tern_atomic_add_f32(__global f32 *p, f32 v)
{
    volatile __global u32 *q = (volatile __global u32 *)p;
    u32 old = 0x80000000u, seen;
    while ((seen = atomic_cmpxchg(q, old, as_uint(as_float(old) + v))) != old)
        old = seen;
}
#if TERN_F64 && TERN_ATOMIC64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
static inline void tern_atomic_add_f64(__global f64 *p, f64 v)
{
    volatile __global u64 *q = (volatile __global u64 *)p;
    u64 old = 0x8000000000000000ul, seen;
    while ((seen = atom_cmpxchg(q, old, as_ulong(as_double(old) + v))) != old)
        old = seen;
}
#endif
