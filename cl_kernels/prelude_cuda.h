/* prelude_cuda.h -- the dialect for NVRTC; needs no header of CUDA's. */
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define TERN_F64 1
#if TERN_IDX32
typedef int idx;
#else
typedef long long idx;
#endif
#define GLOBAL
#define LOCAL
#define INLINE static __device__ __forceinline__
#define LOCAL_ARRAY(T, name, n) __shared__ T name[n]
/* Blocks that a multiprocessor is to hold, a number and no expression, which limits a thread's
 * registers. 0: the assembler weighs it, and may spill two or three to hold a block more; families
 * that this would happen to say 1 to 4. */
#define TERN_BLOCKS 0
#if TERN_ROW_LANES /* a lane has one load on its way: there have to be many */
#define TERN_ENTRY extern "C" __global__ __launch_bounds__(TERN_WG, TERN_MORE_BLOCKS(TERN_BLOCKS))
/* TERN_CAT, by which TERN_KERNEL comes to TERN_ENTRY, is not expanded inside itself. */
#define TERN_MORE_BLOCKS(n)  TERN_MORE_BLOCKS_(n)
#define TERN_MORE_BLOCKS_(n) TERN_MORE_BLOCKS_##n
#define TERN_MORE_BLOCKS_0 6
#define TERN_MORE_BLOCKS_1 2
#define TERN_MORE_BLOCKS_2 4
#define TERN_MORE_BLOCKS_3 6
#define TERN_MORE_BLOCKS_4 6
#define TERN_MORE_BLOCKS_5 5
#else
#define TERN_ENTRY extern "C" __global__ __launch_bounds__(TERN_WG, TERN_BLOCKS)
#endif
/* One kernel of many: TERN_PICK_<name> is defined for it, and the others are unused functions. */
#if TERN_PICKED
#define TERN_KERNEL(n) static __device__ void TERN_CAT(TERN_PICK, n)
#else
#define TERN_KERNEL(n) TERN_ENTRY void n
#endif
#define PARAM_OUT(T, a) T *a
#define PARAM_IN(T, a)  const T *a
#define PARAM_ARG(T, a) const T a
#define BASE(x)
#define LID       ((i32)threadIdx.x)
#define LSIZE     TERN_WG
#define BARRIER() __syncthreads()
/* Of sums that no other device has to agree with to the bit. */
#define MULTIPLY_ADD(a, b, c) __fmaf_rn(a, b, c)
#define GROUP_ID    ((idx)blockIdx.x)
#define GROUP_COUNT ((idx)gridDim.x)
/* From the lane `by` further on; from the first of every `team` lanes. All of a warp take part. */
#define TERN_SHUFFLES 1
#define SHUFFLE_DOWN(v, by)    __shfl_down_sync(0xffffffffu, v, by)
#define SHUFFLE_FIRST(v, team) __shfl_sync(0xffffffffu, v, 0, team)
#define ROLLED _Pragma("unroll 1")
/* What stands before is loaded here, not where it is used, and what stands in a branch on yes,
 * which is 1, is done there. */
#define LOADED(yes) asm volatile("" : "+r"(yes) : : "memory");
#define SIMD
#define SIMD_SUM(v)
#define SIMD_SUM2(v, w)
#define SIMD_MAX(v)
#define SIMD_MIN(v)
#define TERN_THREAD  ((idx)blockIdx.x * TERN_WG + (idx)threadIdx.x)
#define TERN_THREADS ((idx)gridDim.x * TERN_WG)

#define f32_from_bits(u) __uint_as_float((u32)(u))
#define f32_bits(f)      __float_as_uint((f32)(f))
#define f64_from_bits(u) __longlong_as_double((i64)(u))
#define f64_bits(f)      ((u64)__double_as_longlong((f64)(f)))
#define tern_sqrt_f32(x) sqrtf((f32)(x))
/* A function: math_names.h makes sqrt a macro. */
INLINE f64 tern_sqrt_f64(f64 x)
{
    return sqrt(x);
}
#define tern_fabs_f32(x) fabsf((f32)(x))
#define tern_fabs_f64(x) fabs((f64)(x))
#define tern_rint_f32(x) rintf((f32)(x))
#define tern_rint_f64(x) rint((f64)(x))
INLINE f32 tern_f16_to_f32(u16 h)
{
    f32 f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
INLINE u16 tern_f32_to_f16(f32 f)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
#define LD_F16(R, p, i)    tern_f16_to_f32((p)[i])
#define ST_F16(S, p, i, v) ((p)[i] = tern_f32_to_f16((f32)(v)))
INLINE void tern_atomic_add_f32(f32 *p, f32 v)
{
    atomicAdd(p, v);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600 /* has none of doubles */
INLINE void tern_atomic_add_f64(f64 *p, f64 v)
{
    u64 *q = (u64 *)p, old = 0x8000000000000000ull, seen;
    while ((seen = atomicCAS(q, old, f64_bits(f64_from_bits(old) + v))) != old)
        old = seen;
}
#else
INLINE void tern_atomic_add_f64(f64 *p, f64 v)
{
    atomicAdd(p, v);
}
#endif

/* c (16, 8) += a (16, 16) b (16, 8) of a warp, as PTX says which lane has what (mma.m16n8k16): two
 * elements in each word. */
#if __CUDA_ARCH__ >= 800
#define TERN_TENSOR_CORES 1
#define TERN_MMA_(T)                                                                               \
    INLINE void tern_mma_##T(f32 *c, const u32 *a, const u32 *b)                                   \
    {                                                                                              \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." #T "." #T ".f32 {%0, %1, %2, %3}, "           \
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                        \
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                       \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                   \
    }
TERN_MMA_(f16)
TERN_MMA_(bf16)
#endif

/* Four elements in one load or store: see float4.h. */
#define TERN_FLOAT4 1
#define UNROLL     _Pragma("unroll")
typedef struct __align__(16) tern_four_f32 {
    f32 v[4];
} tern_four_f32;
typedef struct __align__(8) tern_four_u16 { /* in pairs, which stay so until they are used */
    u32 v[2];
} tern_four_u16;
typedef struct __align__(4) tern_four_u8 {
    u8 v[4];
} tern_four_u8;
typedef struct __align__(16) tern_four_i64 {
    i64 v[4];
} tern_four_i64;
#define FOUR_i64  tern_four_i64
typedef struct __align__(16) tern_words4 {
    u32 v[4];
} tern_words4;
/* 16 bytes of anything at a multiple of them. */
#define LOAD_WORDS(to, p)                                                                          \
    do {                                                                                           \
        tern_words4 four_ = *(const tern_words4 *)(p);                                             \
        EACH4(e_) to[e_] = four_.v[e_];                                                            \
    } while (0)
#define STORE_WORDS(p, from)                                                                       \
    do {                                                                                           \
        tern_words4 four_;                                                                         \
        EACH4(e_) four_.v[e_] = from[e_];                                                          \
        *(tern_words4 *)(p) = four_;                                                               \
    } while (0)
#define GET4_i64(to, p, i) to = ((const tern_four_i64 *)(p))[i]
#define SPREAD4_i64        SPREAD4_f32
#define FOUR_f32  tern_four_f32
#define FOUR_f16  tern_four_u16
#define FOUR_bf16 tern_four_u16
#define GET4_f32(to, p, i) to = ((const tern_four_f32 *)(p))[i]
#define GET4_f16(to, p, i) to = ((const tern_four_u16 *)(p))[i]
#define GET4_bf16          GET4_f16
#define GATHER4_f32(to, p, i) EACH4(e_) to.v[e_] = (p)[4 * (i) + e_]
#define SAME4_f32(to, x)      EACH4(e_) to.v[e_] = x
#define SAME8_f16(to, x)      EACH4(e_) to.v[e_] = (x) | (u32)(x) << 16
#define SPREAD4_f32(to, four) EACH4(e_) to[e_] = four.v[e_]
#define SPREAD4_(LOW, HIGH, to, four)                                                              \
    do {                                                                                           \
        to[0] = LOW(four.v[0]);                                                                    \
        to[1] = HIGH(four.v[0]);                                                                   \
        to[2] = LOW(four.v[1]);                                                                    \
        to[3] = HIGH(four.v[1]);                                                                   \
    } while (0)
#define SPREAD4_f16(to, four)  SPREAD4_(TERN_F16_LOW, TERN_F16_HIGH, to, four)
#define SPREAD4_bf16(to, four) SPREAD4_(TERN_BF16_LOW, TERN_BF16_HIGH, to, four)
typedef struct tern_eight_f32 {
    tern_four_f32 v[2];
} tern_eight_f32;
#define EIGHT_f32  tern_eight_f32
#define EIGHT_f16  tern_words4
#define EIGHT_bf16 tern_words4
#define GET8_f32(to, p, i)                                                                         \
    do {                                                                                           \
        to.v[0] = ((const tern_four_f32 *)(p))[2 * (i)];                                           \
        to.v[1] = ((const tern_four_f32 *)(p))[2 * (i) + 1];                                       \
    } while (0)
#define GET8_f16(to, p, i)    to = ((const tern_words4 *)(p))[i]
#define GET8_bf16             GET8_f16
#define GATHER8_f16(to, p, i) EACH4(e_) to.v[e_] = (p)[8 * (i) + 2 * e_] |                         \
    (u32)(p)[8 * (i) + 2 * e_ + 1] << 16
#define SPREAD8_f32(to, eight)                                                                     \
    EACH4(e_)                                                                                      \
    {                                                                                              \
        to[e_] = eight.v[0].v[e_];                                                                 \
        to[4 + e_] = eight.v[1].v[e_];                                                             \
    }
#define SPREAD8_(LOW, HIGH, to, eight)                                                             \
    EACH4(e_)                                                                                      \
    {                                                                                              \
        to[2 * e_] = LOW(eight.v[e_]);                                                             \
        to[2 * e_ + 1] = HIGH(eight.v[e_]);                                                        \
    }
#define SPREAD8_f16(to, eight)  SPREAD8_(TERN_F16_LOW, TERN_F16_HIGH, to, eight)
#define SPREAD8_bf16(to, eight) SPREAD8_(TERN_BF16_LOW, TERN_BF16_HIGH, to, eight)
#define TERN_F16_LOW(v)   tern_f16_to_f32((u16)(v))
#define TERN_F16_HIGH(v)  tern_f16_to_f32((u16)((v) >> 16))
#define TERN_BF16_LOW(v)  f32_from_bits((v) << 16)
#define TERN_BF16_HIGH(v) f32_from_bits((v)&0xffff0000u)
#define LOAD4_(T, v, p, i)                                                                         \
    do {                                                                                           \
        TERN_CAT(FOUR, T) four_;                                                                   \
        TERN_CAT(GET4, T)(four_, p, i);                                                            \
        TERN_CAT(SPREAD4, T)(v, four_);                                                            \
    } while (0)
#define STORE4_(T, V, p, i, from)                                                                  \
    do {                                                                                           \
        T four_;                                                                                   \
        EACH4(e_) four_.v[e_] = V(from[e_]);                                                       \
        ((T *)(p))[i] = four_;                                                                     \
    } while (0)
#define STORE4_16_(PAIR, p, i, from)                                                               \
    do {                                                                                           \
        tern_four_u16 four_;                                                                       \
        four_.v[0] = PAIR(from[0], from[1]);                                                       \
        four_.v[1] = PAIR(from[2], from[3]);                                                       \
        ((tern_four_u16 *)(p))[i] = four_;                                                         \
    } while (0)
#define STORE8_16_(PAIR, p, i, from)                                                               \
    do {                                                                                           \
        tern_words4 eight_;                                                                        \
        EACH4(e_) eight_.v[e_] = PAIR(from[2 * e_], from[2 * e_ + 1]);                             \
        ((tern_words4 *)(p))[i] = eight_;                                                          \
    } while (0)
#if __CUDA_ARCH__ >= 800 /* two are rounded at a time */
#define TERN_TWO_(T)                                                                              \
    INLINE u32 tern_two_##T(f32 a, f32 b)                                                         \
    {                                                                                              \
        u32 pair;                                                                                  \
        asm("cvt.rn." #T "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));                      \
        return pair;                                                                               \
    }
TERN_TWO_(f16)
TERN_TWO_(bf16)
#else
#define tern_two_f16(a, b)  (tern_f32_to_f16(a) | (u32)tern_f32_to_f16(b) << 16)
#define tern_two_bf16(a, b) (tern_f32_to_bf16(a) | (u32)tern_f32_to_bf16(b) << 16)
#endif
/* In chains (row_functions.h), as the stores above round. */
#define AS_STORED_F16(v)   tern_f16_to_f32(tern_f32_to_f16(v))
#define AS_STORED4_F16     AS_STORED_F16
#define AS_STORED4_BF16(v) f32_from_bits(tern_two_bf16(v, v) << 16)
#define AS_STORED4_PLAIN   AS_STORED_PLAIN
#define AS_STORED4(v)      TERN_CAT(AS_STORED4, DTYPE_FIELD(CODE, TERN_ROW_(TERN_T)))(v)
#define TERN_AS_IT_IS(v)    (v)
#define TERN_TO_BOOL(v)     ((u8)((v) != 0))
#define LOAD4_f32(v, p, i)   LOAD4_(f32, v, p, i)
#define LOAD4_f16(v, p, i)   LOAD4_(f16, v, p, i)
#define LOAD4_bf16(v, p, i)  LOAD4_(bf16, v, p, i)
#define LOAD4_i64(v, p, i)   LOAD4_(i64, v, p, i)
#define STORE4_i64(p, i, v)  STORE4_(tern_four_i64, TERN_AS_IT_IS, p, i, v)
#define STORE4_f32(p, i, v)  STORE4_(tern_four_f32, TERN_AS_IT_IS, p, i, v)
#define STORE4_f16(p, i, v)  STORE4_16_(tern_two_f16, p, i, v)
#define STORE4_bf16(p, i, v) STORE4_16_(tern_two_bf16, p, i, v)
#define STORE4_bool(p, i, v) STORE4_(tern_four_u8, TERN_TO_BOOL, p, i, v)
#define STORE8_bool(p, i, v)                                                                       \
    do {                                                                                           \
        STORE4_bool(p, 2 * (i), v);                                                                \
        STORE4_bool(p, 2 * (i) + 1, (v + 4));                                                      \
    } while (0)
#define STORE8_f32(p, i, v)                                                                        \
    do {                                                                                           \
        STORE4_f32(p, 2 * (i), v);                                                                 \
        STORE4_f32(p, 2 * (i) + 1, (v + 4));                                                       \
    } while (0)
#define STORE8_f16(p, i, v)  STORE8_16_(tern_two_f16, p, i, v)
#define STORE8_bf16(p, i, v) STORE8_16_(tern_two_bf16, p, i, v)
/* 2^x in one instruction, to 22 bits; 0 below 2^-126. */
INLINE f32 tern_exp2_rough(f32 x)
{
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define TERN_EXP2_ROUGH(x) tern_exp2_rough(x)
#define TERN_FMA(a, b, c)  __fmaf_rn(a, b, c)
#define ROW_LARGER(a, b) fmaxf(a, b) /* NaN is none */
/* As they lie in memory. */
#define TERN_RAW4 1
#define RAW4(v, p, i) TERN_CAT(RAW4, TERN_T)(v, p, i)
#define RAW4_f32      LOAD4_f32
#define RAW4_bf16     RAW4_f16
typedef struct __align__(8) tern_raw_u16 {
    u16 v[4];
} tern_raw_u16;
#define RAW4_f16(to, p, i)                                                                         \
    do {                                                                                           \
        tern_raw_u16 four_ = ((const tern_raw_u16 *)(p))[i];                                       \
        SPREAD4_f32(to, four_);                                                                    \
    } while (0)
