/* user_cuda.h -- what comes before user.h and a kernel of the program's for NVRTC. */
#define TERN_FN static __device__ inline
#define TERN_IN __device__ inline
#define TERN_M(f) f
#define TERN_KERNEL   static __device__
#define TERN_LOCAL    __shared__
#define TERN_CONSTANT static __constant__
#define TERN_NATIVE(f) tern_native_##f
#define tern_native_cos   __cosf
#define tern_native_sin   __sinf
#define tern_native_tan   __tanf
#define tern_native_exp   __expf
#define tern_native_exp10 __exp10f
#define tern_native_exp2  exp2f
#define tern_native_log   __logf
#define tern_native_log2  __log2f
#define tern_native_log10 __log10f
#define tern_native_sqrt  sqrtf
#define tern_native_rsqrt rsqrtf
#define TERN_ASK(NAME, OF, ELSE) \
    TERN_FN size_t NAME(unsigned d) { return d == 0 ? OF.x : d == 1 ? OF.y : d == 2 ? OF.z : ELSE; }
TERN_ASK(cl_get_local_id, threadIdx, 0)
TERN_ASK(cl_get_group_id, blockIdx, 0)
TERN_ASK(cl_get_local_size, blockDim, 1)
TERN_ASK(cl_get_num_groups, gridDim, 1)
TERN_FN void cl_mem_fence(int) { __threadfence_block(); }
TERN_FN void cl_barrier(int flags)
{
    if (flags & 2)
        __threadfence();
    __syncthreads();
}
#define TERN_ONES(x)  __popcll(x)
#define TERN_ZEROS(x) __clzll((long long)(x))
/* CUDA's are of int, unsigned, float and unsigned long long. */
template <int BYTES, bool POSITIVE> struct tern_atomic_of { typedef unsigned long long type; };
template <> struct tern_atomic_of<4, true> { typedef unsigned type; };
template <> struct tern_atomic_of<4, false> { typedef int type; };
template <> struct tern_atomic_of<8, false> { typedef long long type; };
#define TERN_AS_ATOMIC(T) typename tern_atomic_of<sizeof(T), ((T)-1 > (T)0)>::type
#define TERN_AS_WHOLE(T)  typename tern_atomic_of<sizeof(T), true>::type
#define TERN_ATOMIC(F, TYPE, p, v) F((TYPE(T) *)(p), (TYPE(T))(v))
#define TERN_ATOMIC_ADD(p, v) TERN_ATOMIC(atomicAdd, TERN_AS_WHOLE, p, v)
#define TERN_ATOMIC_MIN(p, v) TERN_ATOMIC(atomicMin, TERN_AS_ATOMIC, p, v)
#define TERN_ATOMIC_MAX(p, v) TERN_ATOMIC(atomicMax, TERN_AS_ATOMIC, p, v)
#define TERN_ATOMIC_AND(p, v) TERN_ATOMIC(atomicAnd, TERN_AS_WHOLE, p, v)
#define TERN_ATOMIC_OR(p, v)  TERN_ATOMIC(atomicOr, TERN_AS_WHOLE, p, v)
#define TERN_ATOMIC_XOR(p, v) TERN_ATOMIC(atomicXor, TERN_AS_WHOLE, p, v)
template <class T> TERN_FN T tern_exchange(T *p, T v)
{
    typedef TERN_AS_WHOLE(T) whole;
    union { whole bits; T value; } x, y;
    x.value = v;
    y.bits = atomicExch((whole *)p, x.bits);
    return y.value;
}
#define TERN_ATOMIC_XCHG(p, v) tern_exchange(p, v)
#define TERN_ATOMIC_CMPXCHG(p, old, v) \
    (T)atomicCAS((TERN_AS_WHOLE(T) *)(p), (TERN_AS_WHOLE(T))(old), (TERN_AS_WHOLE(T))(v))
extern __shared__ __align__(16) char tern_shared[];
template <int N> struct tern_words {
    unsigned long long of[N];
};
__shared__ unsigned tern_dims;
TERN_FN unsigned cl_get_work_dim() { return tern_dims; }
#define TERN_SET_DIMS tern_dims = (unsigned)tern_given.of[sizeof tern_given / 8 - 1]
#define TERN_WORD(i)   tern_word{tern_given.of[i]}
#define TERN_SHARED(i) tern_shared_word{tern_shared + tern_given.of[i]}
