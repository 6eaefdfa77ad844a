/* kernel.h -- kernels of the user's own.
 *
 *   tern_kernel *k = tern_kernel_compile("opencl:0", source, "twice");
 *   tern_kernel_launch(k, TERN_GRID(n), TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y), TERN_ARG_INT(n));
 *   tern_kernel_free(k);
 *
 * The source is OpenCL C 1.2 on every device. On an OpenCL device the driver compiles it. On "cpu"
 * it is translated to C++ and compiled to a library by c++, g++ or clang++ from the PATH, or by
 * TERN_CXX; without a compiler, an OpenCL driver for the processor runs the kernel on copies of the
 * tensors. On "cuda" it is translated to C++ and compiled by NVRTC. The translation supports:
 *
 *   words           __kernel __global __local __constant __private, with and without __; restrict;
 *                   helper functions; structs, unions, enums, typedefs; the
 *                   preprocessor, with macros in parameters too
 *   types           bool char uchar short ushort int uint long ulong float double size_t, half
 *                   through pointers only, and vectors of 2, 3, 4, 8, 16: literals (float4)(a, b),
 *                   .xyzw, .s0 to .sf, swizzles (read and assigned), .lo .hi .even .odd (read),
 *                   arithmetic, comparisons (-1 for true)
 *   work-items      get_global_id and similar ones, get_work_dim, get_global_offset (0),
 *                   barrier, mem_fence, reqd_work_group_size
 *   memory          __local variables and arguments, arguments written as arrays (__local float
 *                   x[]), __constant tables, vload, vstore and vload_half, vstore_half of every
 *                   width (nearest: _rte)
 *   numbers         C's functions of float and double, native_ and half_; fma mad min max clamp mix
 *                   step smoothstep sign degrees radians fract modf sincos ldexp frexp pown powr
 *                   rsqrt; dot cross length distance normalize
 *   integers        abs abs_diff add_sat sub_sat hadd rhadd mul24 mad24 mul_hi (32 bits) rotate
 *                   popcount clz
 *   logic           select any all bitselect isnan isinf isfinite isnormal signbit isless
 *                   and similar ones
 *   conversions     convert_type, _sat, _rte _rtz _rtp _rtn; as_type
 *   atomics         atomic_ and atom_ add sub inc dec min max and or xor xchg cmpxchg, of 32 and 64
 *                   bits
 *   constants       INFINITY NAN FLT_MAX FLT_EPSILON M_PI_F INT_MAX ... as OpenCL has them
 *
 * Not supported: images, samplers, pipes, events, async copies, a vector as the condition of ?:,
 * assignment to a swizzle of a swizzle. */
#ifndef TERN_KERNEL_H
#define TERN_KERNEL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_kernel tern_kernel;

/* Compiles source for device and returns the kernel called name, which the caller frees with
 * tern_kernel_free. NULL after an error: TERN_ERR_ARGUMENT with the compiler's log in the message,
 * TERN_ERR_UNSUPPORTED if there is no compiler for the device. */
TERN_API tern_kernel *tern_kernel_compile(const char *device, const char *source, const char *name);
/* Frees the kernel; NULL is fine. */
TERN_API void tern_kernel_free(tern_kernel *kernel);

/* Kinds of arguments. A value is an integer, a floating point number, or bytes that match a
 * parameter of either kind. */
typedef enum tern_kernel_arg_kind {
    TERN_KERNEL_ARG_TENSOR = 1,
    TERN_KERNEL_ARG_BYTES = 2,
    TERN_KERNEL_ARG_LOCAL = 3,
    TERN_KERNEL_ARG_INTEGER = 4,
    TERN_KERNEL_ARG_REAL = 5
} tern_kernel_arg_kind;

typedef struct tern_kernel_arg {
    tern_kernel_arg_kind kind;
    uint32_t bytes; /* the size of the value, or of the local memory for ..._LOCAL */
    tern_tensor *tensor;
    union {
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } value;
} tern_kernel_arg;

/* Passes a tensor as the address of its first element. It must be on the kernel's device,
 * contiguous, and at the start of its storage (tern_clone returns a copy that is; tern_contiguous
 * returns a contiguous slice unchanged). The kernel may write to it, so its version counter is
 * incremented. */
TERN_API tern_kernel_arg tern_kernel_arg_tensor(tern_tensor *x);
/* Passes a 32-bit integer. */
TERN_API tern_kernel_arg tern_kernel_arg_int(int32_t value);
/* Passes a 64-bit integer. */
TERN_API tern_kernel_arg tern_kernel_arg_long(int64_t value);
/* Passes a float32 number. */
TERN_API tern_kernel_arg tern_kernel_arg_float(float value);
/* Passes a float64 number. */
TERN_API tern_kernel_arg tern_kernel_arg_double(double value);
/* Passes a pointer to that many bytes of local memory. */
TERN_API tern_kernel_arg tern_kernel_arg_local(size_t bytes);
#define TERN_ARG_TENSOR(x) tern_kernel_arg_tensor(x)
#define TERN_ARG_INT(v)    tern_kernel_arg_int(v)
#define TERN_ARG_LONG(v)   tern_kernel_arg_long(v)
#define TERN_ARG_FLOAT(v)  tern_kernel_arg_float(v)
#define TERN_ARG_DOUBLE(v) tern_kernel_arg_double(v)
#define TERN_ARG_LOCAL(n)  tern_kernel_arg_local(n)

/* The number of work-items, and the size of a work-group, where 0 lets tern choose. The number of
 * items is rounded up to whole groups, so kernels must compare their id with the number of
 * elements. */
typedef struct tern_kernel_grid {
    int64_t items[3];
    int64_t group[3];
} tern_kernel_grid;
/* Returns a grid of that many items. */
TERN_API tern_kernel_grid tern_kernel_grid_1d(int64_t items);
/* Returns a grid of that many items, in groups of that size. */
TERN_API tern_kernel_grid tern_kernel_grid_1d_grouped(int64_t items, int64_t group);
/* Returns a grid of x times y items. */
TERN_API tern_kernel_grid tern_kernel_grid_2d(int64_t x, int64_t y);
#define TERN_GRID(n)          tern_kernel_grid_1d(n)
#define TERN_GRID_GROUP(n, g) tern_kernel_grid_1d_grouped(n, g)
#define TERN_GRID_2D(x, y)    tern_kernel_grid_2d(x, y)

/* Launches the kernel with n arguments, and does not wait for it. An empty grid launches nothing.
 * Arguments that do not match the kernel's parameters in the source are TERN_ERR_ARGUMENT: a wrong
 * number of them, a number for a pointer, an integer for a float, a number or tensor of another
 * width. A pointer to float, float4, int or half takes tensors of that type, signed or unsigned; a
 * pointer to integers of 8 or 16 bits takes any tensor of that width (ushort: float16); a pointer
 * to void, a struct or a type that the source defines takes every tensor. */
TERN_API tern_status tern_kernel_launch_args(tern_kernel *kernel, tern_kernel_grid grid,
                                             const tern_kernel_arg *args, int n);

#ifndef __cplusplus
#define tern_kernel_launch(kernel, grid, ...)                                                      \
    tern_kernel_launch_args(                                                                       \
        kernel, grid, (const tern_kernel_arg[]){__VA_ARGS__},                                      \
        (int)(sizeof((const tern_kernel_arg[]){__VA_ARGS__}) / sizeof(tern_kernel_arg)))
#endif

TERN_END_DECLS

#ifdef __cplusplus
template <class... A>
inline tern_status tern_kernel_launch(tern_kernel *kernel, tern_kernel_grid grid, A... args)
{
    const tern_kernel_arg list[] = {args...};
    return tern_kernel_launch_args(kernel, grid, list, static_cast<int>(sizeof...(args)));
}
#endif
#endif
