/* prelude_opencl_gpu.h -- loop forms for OpenCL GPUs: grid-stride loops, work-groups of TERN_WG. */
#define INLINE static inline
#define LOCAL  __local
#define LOCAL_ARRAY(T, name, n) __local T name[n]
#define TERN_KERNEL(n) __kernel __attribute__((reqd_work_group_size(TERN_WG, 1, 1))) void n
#define LID    ((i32)get_local_id(0))
#define LSIZE  TERN_WG
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define GROUP_ID    ((idx)get_group_id(0))
#define GROUP_COUNT ((idx)get_num_groups(0))
#define SIMD
#define SIMD_SUM(v)
#define SIMD_SUM2(v, w)
#define SIMD_MAX(v)
#define SIMD_MIN(v)
#define TERN_THREAD  ((idx)get_global_id(0))
#define TERN_THREADS ((idx)get_global_size(0))

/* Four elements in one load or store: see float4.h. */
#define TERN_FLOAT4 1
#define UNROLL _Pragma("unroll")
#define TERN_ND_CONSTANT 1 /* see nd_index.h */
#define TERN_SPREAD4_(to, T, load)                                                                 \
    do {                                                                                           \
        T four_ = (load);                                                                          \
        to[0] = four_.s0;                                                                          \
        to[1] = four_.s1;                                                                          \
        to[2] = four_.s2;                                                                          \
        to[3] = four_.s3;                                                                          \
    } while (0)
#define TERN_FLOAT4_(v) ((float4)(v[0], v[1], v[2], v[3]))
#define LOAD4_f32(v, p, i)  TERN_SPREAD4_(v, float4, vload4((size_t)(i), p))
#define LOAD4_f16(v, p, i)                                                                         \
    TERN_SPREAD4_(v, float4, vload_half4((size_t)(i), (const __global half *)(p)))
#define LOAD4_bf16(v, p, i)                                                                        \
    TERN_SPREAD4_(v, float4, as_float4(convert_uint4(vload4((size_t)(i), p)) << 16))
#define LOAD4_i64(v, p, i)  TERN_SPREAD4_(v, long4, vload4((size_t)(i), p))
#define STORE4_i64(p, i, v) vstore4((long4)(v[0], v[1], v[2], v[3]), (size_t)(i), p)
#define STORE4_f32(p, i, v) vstore4(TERN_FLOAT4_(v), (size_t)(i), p)
#define STORE4_f16(p, i, v)                                                                        \
    vstore_half4_rte(TERN_FLOAT4_(v), (size_t)(i), (__global half *)(p))
#define STORE4_bf16(p, i, v)                                                                       \
    vstore4((ushort4)(tern_f32_to_bf16(v[0]), tern_f32_to_bf16(v[1]), tern_f32_to_bf16(v[2]),      \
                      tern_f32_to_bf16(v[3])),                                                     \
            (size_t)(i), p)
#define STORE4_bool(p, i, v)                                                                       \
    vstore4((uchar4)(v[0] != 0, v[1] != 0, v[2] != 0, v[3] != 0), (size_t)(i), p)
#define STORE8_bool(p, i, v)                                                                       \
    do {                                                                                           \
        STORE4_bool(p, 2 * (i), v);                                                                \
        STORE4_bool(p, 2 * (i) + 1, (v + 4));                                                      \
    } while (0)
/* 16 bytes of anything at a multiple of them. */
#define LOAD_WORDS(v, p)  TERN_SPREAD4_(v, uint4, *(const __global uint4 *)(p))
#define STORE_WORDS(p, v) (*(__global uint4 *)(p) = (uint4)(v[0], v[1], v[2], v[3]))
/* Fours that are kept stay as they lie in memory until they are used: half as many registers for
 * halves. */
typedef struct {
    f32 v[4];
} tern_four_f32;
#define FOUR_f32  tern_four_f32
#define FOUR_f16  ushort4
#define FOUR_bf16 ushort4
#define GET4_f32(to, p, i)  LOAD4_f32(to.v, p, i)
#define GET4_f16(to, p, i)  to = vload4((size_t)(i), p)
#define GET4_bf16(to, p, i) to = vload4((size_t)(i), p)
#define GATHER4_f32(to, p, i) EACH4(e_) to.v[e_] = (p)[4 * (i) + e_]
#define SAME4_f32(to, x)      EACH4(e_) to.v[e_] = x
#define SAME8_f16(to, x)      to = (ushort8)(x)
#define SPREAD4_f32(to, four) EACH4(e_) to[e_] = four.v[e_]
#define SPREAD4_f16(to, four)  TERN_SPREAD4_(to, float4, tern_halves4(four))
#define SPREAD4_bf16(to, four) TERN_SPREAD4_(to, float4, as_float4(convert_uint4(four) << 16))
static inline float4 tern_halves4(ushort4 four)
{
    return vload_half4(0, (const __private half *)&four);
}
/* Eight halves at a multiple of 16 bytes. */
typedef struct {
    f32 v[8];
} tern_eight_f32;
#define EIGHT_f32  tern_eight_f32
#define EIGHT_f16  ushort8
#define EIGHT_bf16 ushort8
#define GET8_f32(to, p, i)                                                                         \
    do {                                                                                           \
        LOAD4_f32(to.v, p, 2 * (i));                                                               \
        LOAD4_f32((to.v + 4), p, 2 * (i) + 1);                                                     \
    } while (0)
#define GET8_f16(to, p, i) to = as_ushort8(((const __global uint4 *)(p))[i])
#define GET8_bf16          GET8_f16
#define GATHER8_f16(to, p, i)                                                                      \
    to = (ushort8)((p)[8 * (i)], (p)[8 * (i) + 1], (p)[8 * (i) + 2], (p)[8 * (i) + 3],             \
                   (p)[8 * (i) + 4], (p)[8 * (i) + 5], (p)[8 * (i) + 6], (p)[8 * (i) + 7])
#define SPREAD8_f32(to, eight) UNROLL for (i32 e_ = 0; e_ < 8; e_++) to[e_] = eight.v[e_]
#define SPREAD8_f16(to, eight)                                                                     \
    do {                                                                                           \
        SPREAD4_f16(to, eight.lo);                                                                 \
        SPREAD4_f16((to + 4), eight.hi);                                                           \
    } while (0)
#define SPREAD8_bf16(to, eight)                                                                    \
    do {                                                                                           \
        SPREAD4_bf16(to, eight.lo);                                                                \
        SPREAD4_bf16((to + 4), eight.hi);                                                          \
    } while (0)
#define STORE8_f32(p, i, v)                                                                        \
    do {                                                                                           \
        STORE4_f32(p, 2 * (i), v);                                                                 \
        STORE4_f32(p, 2 * (i) + 1, (v + 4));                                                       \
    } while (0)
#define STORE8_f16(p, i, v)                                                                        \
    ((__global uint4 *)(p))[i] = (uint4)(tern_two_f16(v[0], v[1]), tern_two_f16(v[2], v[3]),       \
                                         tern_two_f16(v[4], v[5]), tern_two_f16(v[6], v[7]))
#define STORE8_bf16(p, i, v)                                                                       \
    ((__global uint4 *)(p))[i] = (uint4)(tern_two_bf16(v[0], v[1]), tern_two_bf16(v[2], v[3]),     \
                                         tern_two_bf16(v[4], v[5]), tern_two_bf16(v[6], v[7]))
#define tern_two_bf16(a, b) (tern_f32_to_bf16(a) | (u32)tern_f32_to_bf16(b) << 16)
static inline u32 tern_two_f16(f32 a, f32 b)
{
    ushort2 two;
    vstore_half2_rte((float2)(a, b), 0, (__private half *)&two);
    return as_uint(two);
}
#if TERN_FAST_FMA /* of a device that says so */
#define TERN_EXP2_ROUGH(x) native_exp2(x)
#define TERN_FMA(a, b, c)  fma(a, b, c)
#endif
#define ROW_LARGER(a, b) ((b) > (a) ? (b) : (a)) /* NaN is none */
