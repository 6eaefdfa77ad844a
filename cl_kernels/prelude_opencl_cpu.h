/* prelude_opencl_cpu.h -- loop forms for CPU-type OpenCL devices: work-groups of one, each with a
 * contiguous chunk, and loops that the device's compiler turns into vectors. */
#define TERN_CHUNKS 1 /* a work-item does one contiguous chunk */
#define INLINE static inline __attribute__((always_inline))
#undef TERN_WG
#define TERN_WG 1
#define LOCAL   __private
#define LOCAL_ARRAY(T, name, n) T name[n]
#define TERN_ONE_ITEM __attribute__((reqd_work_group_size(1, 1, 1)))
#define TERN_KERNEL(n) static void TERN_CAT(TERN_PICK, n)
#define LID     0
#define LSIZE   1
#define BARRIER()
#define TERN_PRAGMA(x) _Pragma(#x)
#define SIMD           TERN_PRAGMA(clang loop vectorize(assume_safety) vectorize_width(16))
#define SIMD_SUM(v)    SIMD
#define SIMD_SUM2(v, w) SIMD
#define SIMD_MAX(v)    SIMD
#define SIMD_MIN(v)    SIMD
INLINE idx tern_chunk(idx n, idx t, idx parts, idx align)
{
    idx size = (n + parts - 1) / parts;
    size = (size + align - 1) / align * align;
    return size * t < n ? size * t : n;
}
INLINE idx tern_larger(idx a, idx b)
{
    return a > b ? a : b;
}
INLINE idx tern_smaller(idx a, idx b)
{
    return a < b ? a : b;
}
#define TERN_FROM(n, align) tern_chunk((idx)(n), get_group_id(0), get_num_groups(0), align)
#define TERN_TO(n, align)   tern_chunk((idx)(n), get_group_id(0) + 1, get_num_groups(0), align)
#define ITEMS(i, n)  for (idx i = TERN_FROM(n, 64), i##_e = TERN_TO(n, 64); i < i##_e; ++i)
#define GROUPS(g, n) for (idx g = TERN_FROM(n, 1), g##_e = TERN_TO(n, 1); g < g##_e; ++g)
#define LANES(j, n)  for (idx j = 0; j < (idx)(n); ++j)
#define FLAT(r, rows, inner)                                                                       \
    for (idx tern_in = (idx)(inner), tern_n = (idx)(rows)*tern_in,                                 \
             tern_b = TERN_FROM(tern_n, 64), tern_e = TERN_TO(tern_n, 64),                         \
             r = tern_in ? tern_b / tern_in : 0;                                                   \
         tern_b < tern_e && r * tern_in < tern_e; ++r)
#define INNER(r, j)                                                                                \
    for (idx j = tern_larger(tern_b - r * tern_in, 0);                                             \
         j < tern_smaller(tern_e - r * tern_in, tern_in); ++j)
