/* prelude_opencl_gpu.h -- loop forms for OpenCL GPUs: grid-stride loops, work-groups of TERN_WG. */
#define INLINE static inline
#define LOCAL  __local
#define LOCAL_ARRAY(T, name, n) __local T name[n]
#define TERN_KERNEL(n) __kernel __attribute__((reqd_work_group_size(TERN_WG, 1, 1))) void n
#define LID    ((i32)get_local_id(0))
#define LSIZE  TERN_WG
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define SIMD
#define SIMD_SUM(v)
#define SIMD_SUM2(v, w)
#define SIMD_MAX(v)
#define SIMD_MIN(v)
#define ITEMS(i, n)                                                                                \
    for (idx i = (idx)get_global_id(0), i##_n = (idx)(n), i##_s = (idx)get_global_size(0);         \
         i < i##_n; i += i##_s)
#define FLAT(r, rows, inner)                                                                       \
    for (idx tern_k = (idx)get_global_id(0), tern_in = (idx)(inner),                               \
             tern_n = (idx)(rows)*tern_in, tern_s = (idx)get_global_size(0), r;                    \
         tern_k < tern_n && (r = tern_k / tern_in, 1); tern_k += tern_s)
#define INNER(r, j) for (idx j = tern_k % tern_in, tern_once = 1; tern_once; tern_once = 0)
#define GROUPS(g, n)                                                                               \
    for (idx g = (idx)get_group_id(0), g##_n = (idx)(n), g##_s = (idx)get_num_groups(0);           \
         g < g##_n; g += g##_s)
#define LANES(j, n) for (idx j = (idx)LID, j##_n = (idx)(n); j < j##_n; j += LSIZE)
