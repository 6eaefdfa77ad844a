/* declares.h -- OpenCL C's functions that kernels in the form for processors call, and products of
 * float32 and float64, where the driver was asked to leave its own declarations out: those of all
 * functions take longer to read than a kernel (enumerate.c). */
#ifdef TERN_DECLARES
#define TERN_ANY  __attribute__((overloadable))
#define TERN_READ __attribute__((overloadable, pure))
#define TERN_PURE __attribute__((overloadable, const))
size_t TERN_PURE get_group_id(uint);
size_t TERN_PURE get_num_groups(uint);
int TERN_PURE min(int, int);
long TERN_PURE min(long, long);
float TERN_READ vload_half(size_t, const __global half *);
void TERN_ANY vstore_half_rte(float, size_t, __global half *);
uint TERN_ANY atomic_cmpxchg(volatile __global uint *, uint, uint);
#define TERN_NUMBERS(T)                                                                            \
    T TERN_PURE sqrt(T);                                                                           \
    T TERN_PURE fabs(T);                                                                           \
    T TERN_PURE rint(T);                                                                           \
    T TERN_PURE mad(T, T, T);                                                                      \
    T TERN_PURE fma(T, T, T);
#define TERN_VECTORS(T, N)                                                                         \
    T##N TERN_PURE fma(T##N, T##N, T##N);                                                          \
    T##N TERN_READ vload##N(size_t, const __global T *);                                           \
    T##N TERN_READ vload##N(size_t, const __local T *);                                            \
    T##N TERN_READ vload##N(size_t, const __private T *);                                          \
    void TERN_ANY vstore##N(T##N, size_t, __global T *);                                           \
    void TERN_ANY vstore##N(T##N, size_t, __local T *);                                            \
    void TERN_ANY vstore##N(T##N, size_t, __private T *);
TERN_NUMBERS(float)
TERN_VECTORS(float, 4)
TERN_VECTORS(float, 8)
TERN_VECTORS(float, 16)
#if TERN_F64 || defined(GEMM_F64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
TERN_NUMBERS(double)
TERN_VECTORS(double, 4)
TERN_VECTORS(double, 8)
#endif
#if TERN_F64 && TERN_ATOMIC64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
ulong TERN_ANY atom_cmpxchg(volatile __global ulong *, ulong, ulong);
#endif
#endif
